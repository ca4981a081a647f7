"""`harness compare --against`: rows that were made elsewhere, compared with those of a comparison.

Nothing of them is trained or scored. A row is comparable where it was made under the same conditions: base model, text,
training steps, selection set, and code that still gives these numbers. Those of its scores count whose protocol is that
of the comparison's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import registry
from harness.errors import InputError
from harness.files.printable import join_some, one_line
from harness.results.elsewhere import copy_run, open_workdir
from harness.results.record import Record, Score
from harness.results.spec import NUMERICS, method_version, scoring_version
from harness.results.store import RunFolder, comparison_files, limit_to_tasks, read_comparison_file, read_records
from harness.runs.plan import Plan
from harness.tasks.base import task_key

Run = tuple[Record, Mapping[str, Any]]  # a record, and its entry in the file of a comparison


@dataclass
class OtherRows:
    """Attributes:
    runs: the comparable ones, each with its entry of the comparison's file: "row", "source", "tasks", "base_model".
    left_out: "source", "row" and "why" of the rows that are not comparable, as the comparison's file stores them.
    """

    runs: list[Run] = field(default_factory=list)
    left_out: list[dict[str, str]] = field(default_factory=list)

    @property
    def labels(self) -> list[str]:
        """The labels of the comparable rows."""
        return list(dict.fromkeys(entry["row"] for _, entry in self.runs))

    def summary(self) -> Iterator[str]:
        """Lines: how many rows of each source, and which are left out, by reason."""
        for source in dict.fromkeys(entry["source"] for _, entry in self.runs):
            rows = [entry["row"] for _, entry in self.runs if entry["source"] == source]
            yield f"compared with {len(set(rows))} rows of {one_line(source)} ({len(rows)} runs)"
        reasons: dict[str, list[str]] = {}
        for row in self.left_out:
            reasons.setdefault(f"left out, of {one_line(row['source'])}: {one_line(row['why'])}", []).append(row["row"])
        for reason, labels in reasons.items():
            yield f"{reason}: {join_some([one_line(label) for label in labels])}"

    def entries(self, blocks: Sequence[Any]) -> list[dict[str, Any]]:
        """Their entries for the comparison's file; in a file with blocks they belong to each."""
        placed = {"blocks": list(blocks)} if blocks else {}
        return [{**entry, **placed} for _, entry in self.runs]

    def records(self, comparison: str) -> list[Record]:
        """Their records as rows of a comparison."""
        return [
            limit_to_tasks(record, entry["tasks"]).labelled(entry["row"], comparison, entry["base_model"])
            for record, entry in self.runs
        ]


def find_other_rows(plan: Plan, sources: Mapping[str, Path], workdir: Path | None) -> OtherRows:
    """The rows of work directories or archives that are comparable with a plan's.

    Args:
        sources: name -> place.
        workdir: gets a copy of their runs; None copies nothing.

    Raises:
        InputError: a source is no work directory, or has a damaged record.
    """
    found, base_models = OtherRows(), {job.spec.model: job.spec.base_model for job in plan.jobs}
    labels = {row.label for row in plan.rows}
    for name, place in sources.items():
        with open_workdir(place) as other:
            for comparison, label, members in _rows(other):
                records = tuple(record for record, _ in members)
                tasks, reason = _comparable_tasks(plan, records)
                try:
                    if not reason and workdir is not None:
                        _copy_runs(other, records, workdir)
                except InputError as error:
                    reason = str(error)
                if reason:
                    found.left_out.append({"source": name, "row": label, "why": reason})
                    continue
                shown = f"{label} ({name})"
                if shown in labels:
                    shown = f"{label} ({name}, {comparison})"
                labels.add(shown)
                own = {"row": shown, "source": name, "tasks": list(tasks)}
                for record, run in members:
                    entry = {key: value for key, value in run.items() if key not in ("blocks", "analysis")}
                    base = base_models.get(record.spec.model, record.base_model)
                    found.runs.append((record, {**entry, **own, "base_model": base}))
    return found


def _rows(other: Path) -> Iterator[tuple[str, str, list[Run]]]:
    """(comparison, label, runs) of every row. A run of several comparisons belongs to the first."""
    seen: set[str] = set()
    for name in comparison_files(other):
        tree = read_comparison_file(other, name) or {}
        runs = {(run["id"], run["row"]): run for run in tree.get("runs", ())}
        rows: dict[str, list[Run]] = {}
        for record in read_records(other, name):
            rows.setdefault(record.row, []).append((record, runs[record.id, record.row]))
        for label, members in rows.items():
            if not seen >= {record.id for record, _ in members}:
                yield name, label, members
        seen |= {run for run, _ in runs}


def _copy_runs(other: Path, records: Sequence[Record], workdir: Path) -> None:
    for record in records:
        source = RunFolder(other, record.id)
        copy_run(source.read() or record, source, workdir)  # with its scores on all tasks


def _comparable_tasks(plan: Plan, records: Sequence[Record]) -> tuple[tuple[str, ...], str]:
    """The plan's tasks on which the runs of a row are comparable; and the reason, where they are not."""
    finished = [record for record in records if record.status == "finished"]
    if not finished:
        return (), f"no run of it finished ({records[0].status})"
    tasks: tuple[str, ...] = ()
    for record in finished:
        if reason := _find_difference(plan, record):
            return (), reason
        scored = {score.task_key for score in record.scores}
        current = {task_key(task): scoring_version(task) for task in plan.tasks}
        tasks = tuple(
            key for key, version in current.items() if key in scored and record.evaluation.get(key) == version
        )
        if not tasks:
            return (), "scored on none of your tasks, or by code that gives other numbers now"
    return tasks, ""


def _find_difference(plan: Plan, record: Record) -> str:
    """Why a run is not comparable with those of a plan; empty where it is."""
    spec, jobs = record.spec, [job for job in plan.jobs if not job.spec.missing]
    if same := [job.row for job in jobs if job.id == record.id]:
        return f'the same run as your row "{same[0]}"'
    if record.rehearsal:
        return "of a rehearsal"
    base_models = {job.spec.model: job.spec.base_model for job in jobs}
    if spec.model not in base_models:
        return f"another base model ({spec.base_model}; yours: {', '.join(base_models.values())})"
    if text := spec.corpus:
        own = {job.spec.corpus["sha256"] for job in jobs if job.spec.corpus and job.spec.corpus["kind"] == text["kind"]}
        if own and text["sha256"] not in own:  # a kind that no row here learns from is in the table of differences
            return f"trained on other text ({text['uri']}, {text.get('count', 0):,} {text['kind']})"
    steps, bounds = (
        record.training.get("planned_steps") or spec.max_steps,
        {job.steps or job.spec.max_steps for job in jobs},
    )
    if steps and bounds - {None} and steps not in bounds:
        yours = ", ".join(f"{bound:,}" for bound in sorted(bound for bound in bounds if bound))
        return f"another budget: {steps:,} training steps (yours: {yours})"
    if spec.dev and plan.dev is not None and spec.dev["sha256"] != plan.dev.sha256:
        return f"its weights were selected on another set ({spec.dev['task']})"
    try:
        current = method_version(registry.load(registry.METHODS, spec.method)), NUMERICS
    except InputError:  # a method that is not installed here
        return ""
    return "" if (spec.version, spec.numerics) == current else "made by code of its method that gives other numbers now"


def limit_to_protocols(others: OtherRows, own: Sequence[Record]) -> OtherRows:
    """Without the tasks that the comparison's own runs were scored on under another protocol."""
    protocols: dict[tuple[str, ...], set[str]] = {}
    for score in (score for record in own for score in record.scores):
        protocols.setdefault(_key(score), set()).add(score.comparable)
    limited = OtherRows(left_out=list(others.left_out))
    for label in others.labels:
        runs = [(record, entry) for record, entry in others.runs if entry["row"] == label]
        scores = (score for record, _ in runs for score in record.scores)
        unlike = {s.task_key for s in scores if s.comparable not in protocols.get(_key(s), {s.comparable})}
        tasks = [task for task in runs[0][1]["tasks"] if task not in unlike]
        if lost := [task for task in runs[0][1]["tasks"] if task in unlike]:
            reason = f"scored under another protocol: {', '.join(lost)}"
            limited.left_out.append({"source": runs[0][1]["source"], "row": label, "why": reason})
        if tasks:
            limited.runs += [(record, {**entry, "tasks": tasks}) for record, entry in runs]
    return limited


def _key(score: Score) -> tuple[str, ...]:
    return score.task, score.source, score.split, score.metric, score.aggregation
