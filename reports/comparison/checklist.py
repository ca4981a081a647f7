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
from harness.results.comparison import Tuning
from harness.results.record import Record
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
    every = {record.id: record for record in [*records, *comparison.partial_seed_runs]}
    runs = list(every.values())
    seeds = []
    for row in comparison.rows:
        if row.finished and row.records[0].training.get("steps"):
            seeds.append(len(row.finished))
    dev_tasks = []
    for record in records:
        if record.dev:
            dev_tasks.append(f"{record.dev['task']} ({record.dev['source']}, dev)")
    templates = environment(markdown_text, keep_trailing_newline=True)
    return templates.get_template("checklist.md.j2").render(
        title=comparison.title or name,
        rows=len(comparison.rows),
        runs=len({r.id for r in records}),
        lost=sum(r.status != "finished" for r in records),
        plan=comparison.plan,
        tuned=comparison.file.tuned,
        selected=_join(dev_tasks),
        seeds=span(seeds) if seeds else "",
        parameters="; ".join(_describe_parameters(records)),
        versions="; ".join(_describe_versions(records)),
        texts=_join([_describe_text(r.corpus) for r in records if r.corpus]),
        tests=_join(_describe_tests(records), 60),
        **_describe_effort(runs, comparison.file.tuned),
    )


def _join(names: list[str], most: int = 5) -> str:
    return join_some(list(dict.fromkeys(names)), most)


def _describe_effort(runs: list[Record], tuned: Tuning | None) -> dict[str, str]:
    """Return machines, times and memory by their keys in the template."""

    devices = []
    memory = 0.0
    for run in runs:
        devices.append(str(run.environment.get("device_name", "unknown device")))
        memory = max(memory, run.cost.get("peak_memory_bytes", 0.0))
    search = ""
    if tuned is not None:
        seconds = sum(row.seconds for row in tuned.rows)
        search = describe_duration(seconds) if seconds else ""
    return {
        "machines": _join(devices),
        "training": _describe_time(runs, "train_seconds"),
        "selection": _describe_time(runs, "dev_seconds"),
        "evaluation": _describe_time(runs, "encode_seconds", "evaluate_seconds"),
        "search": search,
        "memory": f"{memory / 2**30:.1f}",
    }


def _describe_time(runs: list[Record], *kinds: str) -> str:
    """Return how long some parts of all runs took together."""
    seconds = 0.0
    for run in runs:
        for kind in kinds:
            seconds += run.cost.get(kind, 0.0)
    return describe_duration(seconds)


def _describe_parameters(records: list[Record]) -> list[str]:
    counts = {}
    for record in records:
        if "parameters" in record.cost:
            counts[base_name(record.base_model)] = record.cost["parameters"]
    parameters = []
    for base, count in counts.items():
        parameters.append(f"{base}: {count / 1e6:.1f} million")
    return parameters


def _describe_versions(records: list[Record]) -> list[str]:
    """Return each package with its versions."""
    versions: dict[str, dict[str, None]] = {}
    for record in records:
        about = record.environment
        packages = {"python": about.get("python"), **about.get("versions", {})}
        for package, version in packages.items():
            versions.setdefault(package, {})[str(version)] = None
    return [f"{package} {' and '.join(some)}" for package, some in versions.items()]


def _describe_text(corpus: Mapping[str, Any]) -> str:
    """Return how much text a run learned from, and how much of it was left out."""
    size = f"{corpus.get('count', 0):,} {corpus.get('kind')}"
    said = f"{corpus.get('uri')}: {size}"
    out = []
    for key, why in (("left_out", "not selected"), ("empty", "without text")):
        if corpus.get(key):
            out.append(f"{corpus[key]:,} {why}")
    if out:
        return f"{said} ({', '.join(out)}, left out)"
    return said


def _describe_tests(records: list[Record]) -> list[str]:
    """Return each task with its number of examples."""
    counts = {}
    for record in records:
        for score in record.scores:
            if score.split != "dev":
                counts[f"{score.task} ({score.source})"] = score.n
    return [f"{task}: {n:,}" for task, n in counts.items()]
