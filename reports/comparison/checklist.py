"""`harness report checklist`: what the records answer of the reproducibility questions of NeurIPS
and of ACL's ARR.

Questions and sentences are in `reports/write/templates/checklist.md.j2`; their numbers are those of
the NeurIPS paper checklist (2025) and of the Responsible NLP Research checklist of ARR. What only
the authors know is marked "author".
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.files.printable import join_some, markdown_text
from harness.machine.progress import describe_duration
from reports.comparison.comparison_document import span
from reports.load import read_comparison
from reports.results import base_name
from reports.write.environment import environment


def checklist(name: str, workdir: Path) -> str:
    """The checklist of a comparison as Markdown.

    Raises:
        InputError: no such comparison.
    """
    comparison = read_comparison(workdir, name)
    records = comparison.records
    every = {record.id: record for record in [*records, *comparison.partial_seed_runs]}.values()
    tuned = comparison.file.tuned
    seeds = [
        len(row.finished)
        for row in comparison.rows
        if row.finished and row.records[0].training.get("steps")
    ]
    versions: dict[str, dict[str, None]] = {}
    for record in records:
        about = record.environment
        for package, version in {
            "python": about.get("python"),
            **about.get("versions", {}),
        }.items():
            versions.setdefault(package, {})[str(version)] = None
    parameters = {
        base_name(r.base_model): r.cost["parameters"] for r in records if "parameters" in r.cost
    }
    texts = [_describe_text(r.corpus) for r in records if r.corpus]
    tests = {f"{s.task} ({s.source})": s.n for r in records for s in r.scores if s.split != "dev"}
    search = sum(row.seconds for row in tuned.rows) if tuned is not None else 0

    def took(*kinds: str) -> str:
        return describe_duration(
            sum(record.cost.get(kind, 0.0) for record in every for kind in kinds)
        )

    def some(names: list[str], most: int = 5) -> str:
        return join_some(list(dict.fromkeys(names)), most)

    return (
        environment(markdown_text, keep_trailing_newline=True)
        .get_template("checklist.md.j2")
        .render(
            title=comparison.title or name,
            rows=len(comparison.rows),
            runs=len({r.id for r in records}),
            lost=sum(r.status != "finished" for r in records),
            plan=comparison.plan,
            tuned=tuned,
            selected=some([f"{r.dev['task']} ({r.dev['source']}, dev)" for r in records if r.dev]),
            seeds=span(seeds) if seeds else "",
            machines=some([str(r.environment.get("device_name", "unknown device")) for r in every]),
            training=took("train_seconds"),
            selection=took("dev_seconds"),
            evaluation=took("encode_seconds", "evaluate_seconds"),
            search=describe_duration(search) if search else "",
            memory=f"{max((r.cost.get('peak_memory_bytes', 0.0) for r in every), default=0.0) / 2**30:.1f}",
            parameters="; ".join(
                f"{base}: {count / 1e6:.1f} million" for base, count in parameters.items()
            ),
            versions="; ".join(
                f"{package} {' and '.join(some)}" for package, some in versions.items()
            ),
            texts=some(texts),
            tests=some([f"{task}: {n:,}" for task, n in tests.items()], 60),
        )
    )


def _describe_text(corpus: Mapping[str, Any]) -> str:
    """Return how much text a run learned from, and how much of it was left out."""
    said = f"{corpus.get('uri')}: {corpus.get('count', 0):,} {corpus.get('kind')}"
    out = [
        f"{corpus[key]:,} {why}"
        for key, why in (("left_out", "not selected"), ("empty", "without text"))
        if corpus.get(key)
    ]
    return f"{said} ({', '.join(out)}, left out)" if out else said
