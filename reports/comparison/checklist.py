"""`harness report checklist`: what the records answer of the reproducibility questions of NeurIPS and of ACL's ARR.

Numbers are those of the NeurIPS paper checklist (2025) and of the Responsible NLP Research checklist of ARR. What only
the authors know is marked "author".
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from harness.files.printable import join_some, markdown_text
from harness.machine.progress import describe_duration
from harness.results.record import Record
from harness.results.store import read_comparison_file
from reports.comparison.deviations import deviations
from reports.read.comparison_runs import Comparison, base_name, read_comparison

AUTHOR = "**author**"
_BY_AUTHORS = (
    ("NeurIPS 1, 2; ARR A1", "Do the claims match the results, and are limits discussed?"),
    ("NeurIPS 3", "Are assumptions and proofs complete?"),
    ("NeurIPS 5; ARR B5", "Are code and data released, with documentation?"),
    ("NeurIPS 9, 10, 11; ARR A2", "Ethics, impacts, risks and safeguards"),
    ("NeurIPS 12; ARR B2, B3", "Licences and intended use of models and data"),
    ("ARR B4", "Do the data name or offend people?"),
    ("NeurIPS 14, 15; ARR D", "Annotators and participants"),
    ("NeurIPS 16; ARR E", "Use of language models and of coding assistants"),
)


def checklist(name: str, workdir: Path) -> str:
    """The checklist of a comparison as Markdown.

    Raises:
        InputError: no such comparison.
    """
    comparison = read_comparison(workdir, name)
    answers = [
        ("NeurIPS 4; ARR C2", "How is every result obtained?", _obtained(comparison)),
        ("NeurIPS 6; ARR C2", "How were hyperparameters chosen?", _chosen(comparison)),
        ("NeurIPS 7; ARR C3", "How large is the chance in the results?", _chance(comparison)),
        ("NeurIPS 8; ARR C1", "What was it computed on, and for how long?", _computed(comparison)),
        ("ARR C1", "How many parameters have the models?", _parameters(comparison)),
        ("ARR C4", "Which packages, in which versions?", _versions(comparison.records)),
        ("ARR B1, B6", "Which data, and how many examples?", _data(comparison)),
        *((where, question, AUTHOR) for where, question in _BY_AUTHORS),
    ]
    lines = [f"# Reproducibility checklist: {markdown_text(comparison.title or name)}", ""]
    lines += ["| where | question | answer |", "|---|---|---|"]
    for where, question, answer in answers:
        lines.append(f"| {where} | {question} | {answer if answer == AUTHOR else markdown_text(answer)} |")
    return "\n".join(lines) + "\n"


def _obtained(comparison: Comparison) -> str:
    records = comparison.records
    ended = [record for record in records if record.status != "finished"]
    lost = f"; {len(ended)} of them have no result and are reported as such" if ended else ""
    plan = deviations(comparison.workdir, comparison.name, records)
    planned = (
        ""
        if plan is None
        else f" The plan {plan[1]} of {plan[0][:10]} was written before the results"
        + (f"; deviations: {'; '.join(plan[2])}." if plan[2] else ", and everything is as planned.")
    )
    return (
        f"{len(comparison.rows)} rows, {len({r.id for r in records})} runs{lost}. The report lists the whole "
        f"configuration, the data's hashes and a command for every run.{planned}"
    )


def _chosen(comparison: Comparison) -> str:
    done = read_comparison_file(comparison.workdir, comparison.name) or {}
    selected = dict.fromkeys(f"{r.dev['task']} ({r.dev['source']}, dev)" for r in comparison.records if r.dev)
    dev = f"Checkpoints were selected on {join_some(list(selected))}. " if selected else ""
    if not (tuned := done.get("tuned")):
        return f"{dev}No search was run; the report names the source of each preset's values."
    searched = [row for row in tuned["rows"] if row["study"]]
    return (
        f"{dev}{len(searched)} rows were searched with {tuned['trials']} trials of up to {tuned['steps']} training "
        "steps each, on seeds that no result uses; ranges and best values are in the report's table Tuning."
    )


def _chance(comparison: Comparison) -> str:
    seeds = sorted({len(row.finished) for row in comparison.rows if row.records[0].training.get("steps")} - {0})
    count = "no row is trained" if not seeds else f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    runs = f"{count} seeds a trained row" if seeds else count
    return (
        f"{runs}; every mean has its standard deviation over seeds (n - 1) and 95 % intervals over seeds and test "
        "examples. Differences are corrected for the family that they are judged in (docs/statistics.md)."
    )


def _computed(comparison: Comparison) -> str:
    records = {record.id: record for record in [*comparison.records, *comparison.held]}.values()
    machines = dict.fromkeys(str(r.environment.get("device_name", "unknown device")) for r in records)
    kinds = ("train_seconds", "dev_seconds", "encode_seconds", "evaluate_seconds")
    train, dev, encode, evaluate = (sum(record.cost.get(kind, 0.0) for record in records) for kind in kinds)
    peak = max((record.cost.get("peak_memory_bytes", 0.0) for record in records), default=0.0)
    tuned = (read_comparison_file(comparison.workdir, comparison.name) or {}).get("tuned") or {"rows": []}
    search = sum(float(row.get("seconds") or 0) for row in tuned["rows"])
    searched = f", {describe_duration(search)} of search" if search else ""
    return (
        f"{join_some(list(machines))}: {describe_duration(train)} of training, {describe_duration(dev)} of selection, "
        f"{describe_duration(encode + evaluate)} of evaluation{searched}; at "
        f"most {peak / 2**30:.1f} GiB of memory a run. Runs that were given up before are not counted."
    )


def _parameters(comparison: Comparison) -> str:
    counts = {base_name(r.base_model): r.cost["parameters"] for r in comparison.records if "parameters" in r.cost}
    return "; ".join(f"{name}: {count / 1e6:.1f} million" for name, count in counts.items()) or "not measured"


def _versions(records: Iterable[Record]) -> str:
    found: dict[str, dict[str, None]] = {}
    for record in records:
        for name, version in {
            "python": record.environment.get("python"),
            **record.environment.get("versions", {}),
        }.items():
            found.setdefault(name, {})[str(version)] = None
    return "; ".join(f"{name} {' and '.join(versions)}" for name, versions in found.items()) or "not recorded"


def _data(comparison: Comparison) -> str:
    texts = dict.fromkeys(
        f"{c.get('uri')}: {c.get('count', 0):,} {c.get('kind')}" for r in comparison.records if (c := r.corpus)
    )
    tests = {f"{s.task} ({s.source})": s.n for r in comparison.records for s in r.scores if s.split != "dev"}
    return (
        f"Training: {join_some(list(texts)) or 'none'}. Test: "
        f"{join_some([f'{task}: {n:,}' for task, n in tests.items()], 60)}. Sources: docs/reference.md."
    )
