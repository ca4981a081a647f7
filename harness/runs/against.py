"""`harness compare --against`: rows that were made elsewhere, compared with those of a comparison.

Nothing of them is trained or scored. A row is comparable where it was made under the same conditions: base model, text,
training steps, selection set, and code that still gives these numbers. Those of its scores count whose protocol is that
of the comparison's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
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

Member = tuple[Record, Mapping[str, Any]]  # a record, and its run in the file of the other comparison


@dataclass(frozen=True)
class OtherRow:
    """A comparable row of another work directory.

    Attributes:
        source: name of the work directory. label: of the row here.
        runs: as the comparison's file has them. tasks: "SOURCE:TASK" of the comparable scores.
    """

    source: str
    label: str
    records: tuple[Record, ...]
    runs: tuple[Mapping[str, Any], ...]
    tasks: tuple[str, ...]


@dataclass
class OtherRows:
    """Attributes:
    rows: the comparable ones.
    left_out: (source, row, reason) of the others.
    """

    rows: list[OtherRow] = field(default_factory=list)
    left_out: list[tuple[str, str, str]] = field(default_factory=list)

    def summary(self) -> Iterator[str]:
        """Lines: how many rows of each source, and which are left out, by reason."""
        for source in dict.fromkeys([row.source for row in self.rows] + [source for source, _, _ in self.left_out]):
            rows = [row for row in self.rows if row.source == source]
            yield f"compared with {len(rows)} rows of {one_line(source)} ({sum(len(row.records) for row in rows)} runs)"
            reasons: dict[str, list[str]] = {}
            for _, row, reason in (one for one in self.left_out if one[0] == source):
                reasons.setdefault(reason, []).append(one_line(row))
            for reason, names in reasons.items():
                yield f"left out: {join_some(names)}: {one_line(reason)}"

    def runs(self, blocks: Sequence[Any]) -> list[dict[str, Any]]:
        """Their runs for the comparison's file; in a file with blocks they belong to each."""
        placed = {"blocks": list(blocks)} if blocks else {}
        return [{**run, **placed} for row in self.rows for run in row.runs]

    def describe_left_out(self) -> list[dict[str, str]]:
        """The rows that are left out, for the comparison's file."""
        return [{"source": source, "row": row, "why": reason} for source, row, reason in self.left_out]

    def records(self, comparison: str) -> list[Record]:
        """Their records as rows of a comparison."""
        return [
            limit_to_tasks(record, row.tasks).labelled(row.label, comparison, run["base_model"])
            for row in self.rows
            for record, run in zip(row.records, row.runs, strict=True)
        ]


def find_other_rows(plan: Plan, sources: Mapping[str, Path], workdir: Path | None) -> OtherRows:
    """The rows of work directories or archives that are comparable with a plan's.

    Args:
        sources: name -> place.
        workdir: gets a copy of their runs; None copies nothing.

    Raises:
        InputError: a source is no work directory, or has a damaged record.
    """
    found, conditions = OtherRows(), _Conditions(plan)
    taken = {row.label for row in plan.rows}
    for name, place in sources.items():
        with open_workdir(place) as other:
            for comparison, rows in _rows(other):
                for label, members in rows.items():
                    row = _comparable_row(conditions, other, workdir, members)
                    if isinstance(row, str):
                        found.left_out.append((name, label, row))
                        continue
                    shown = (
                        f"{label} ({name})" if f"{label} ({name})" not in taken else f"{label} ({name}, {comparison})"
                    )
                    taken.add(shown)
                    runs = tuple({**run, "row": shown, "source": name, "tasks": list(row.tasks)} for run in row.runs)
                    found.rows.append(replace(row, source=name, label=shown, runs=runs))
    return found


def _rows(other: Path) -> Iterator[tuple[str, dict[str, list[Member]]]]:
    """Comparison -> its rows by label. A run of several comparisons belongs to the first."""
    seen: set[str] = set()
    for name in comparison_files(other):
        tree = read_comparison_file(other, name) or {}
        runs = {(run["id"], run["row"]): run for run in tree.get("runs", ())}
        rows: dict[str, list[Member]] = {}
        for record in read_records(other, name):
            rows.setdefault(record.row, []).append((record, runs[record.id, record.row]))
        yield name, {label: members for label, members in rows.items() if not seen >= {r.id for r, _ in members}}
        seen |= {run for run, _ in runs}


def _comparable_row(
    conditions: _Conditions, other: Path, workdir: Path | None, members: Sequence[Member]
) -> OtherRow | str:
    """The runs of a row, copied into `workdir`; or the reason why they are not comparable."""
    finished = [record for record, _ in members if record.status == "finished"]
    if not finished:
        return f"no run of it finished ({members[0][0].status})"
    tasks: tuple[str, ...] = ()
    for record in finished:
        if reason := conditions.find_difference(record):
            return reason
        if not (tasks := conditions.tasks_of(record)):
            return "scored on none of your tasks, or by code that gives other numbers now"
    if workdir is not None:
        try:
            for record, _ in members:
                source = RunFolder(other, record.id)
                complete = source.read()  # on all its tasks
                assert complete is not None
                copy_run(complete, source, workdir)
        except InputError as error:
            return str(error)
    base = conditions.base_names[finished[0].spec.model]
    kept = ("blocks", "analysis")
    runs = tuple({**{k: v for k, v in run.items() if k not in kept}, "base_model": base} for _, run in members)
    return OtherRow("", "", tuple(record for record, _ in members), runs, tasks)


class _Conditions:
    """The conditions of a plan, with which runs made elsewhere are compared."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.jobs = {job.id: job for job in plan.jobs if not job.spec.missing}
        self.base_names = {job.spec.model: job.spec.base_model for job in self.jobs.values()}
        self.texts: dict[str, set[str]] = {}
        for job in self.jobs.values():
            if job.spec.corpus is not None:
                self.texts.setdefault(job.spec.corpus["kind"], set()).add(job.spec.corpus["sha256"])

    @cached_property
    def _steps(self) -> set[int]:
        return {steps for job in self.jobs.values() if (steps := job.steps or job.spec.max_steps)}

    def find_difference(self, record: Record) -> str:
        """Why a run is not comparable; empty where it is."""
        spec, plan = record.spec, self.plan
        if record.id in self.jobs:
            return f'the same run as your row "{self.jobs[record.id].row}"'
        if record.rehearsal:
            return "of a rehearsal"
        if spec.model not in self.base_names:
            return f"another base model ({spec.base_model}; yours: {', '.join(self.base_names.values())})"
        text = spec.corpus
        # A kind of text that no row here learns from is shown in the table of differences.
        if text and text["kind"] in self.texts and text["sha256"] not in self.texts[text["kind"]]:
            return f"trained on other text ({text['uri']}, {text.get('count', 0):,} {text['kind']})"
        steps = record.training.get("planned_steps") or spec.max_steps
        if steps and self._steps and steps not in self._steps:
            yours = ", ".join(f"{n:,}" for n in sorted(self._steps))
            return f"another budget: {steps:,} training steps (yours: {yours})"
        if spec.dev and plan.dev is not None and spec.dev["sha256"] != plan.dev.sha256:
            return f"its weights were selected on another set ({spec.dev['task']})"
        try:
            version = method_version(registry.load(registry.METHODS, spec.method))
        except InputError:  # a method that is not installed here
            return ""
        same = (spec.version, spec.numerics) == (version, NUMERICS)
        return "" if same else "made by code of its method that gives other numbers now"

    def tasks_of(self, record: Record) -> tuple[str, ...]:
        """The plan's tasks that the run was scored on, by code that gives the same numbers."""
        scored = {score.task_key for score in record.scores}
        return tuple(
            key
            for task in self.plan.tasks
            if (key := task_key(task)) in scored and record.evaluation.get(key) == scoring_version(task)
        )


def limit_to_protocols(others: OtherRows, own: Sequence[Record]) -> OtherRows:
    """Without the tasks that the comparison's own runs were scored on under another protocol."""
    protocols: dict[tuple[str, ...], set[str]] = {}
    for record in own:
        for score in record.scores:
            protocols.setdefault(_key(score), set()).add(score.comparable)
    rows, left_out = [], list(others.left_out)
    for row in others.rows:
        unlike = {
            score.task_key
            for record in row.records
            for score in record.scores
            if (known := protocols.get(_key(score))) and score.comparable not in known
        }
        tasks = tuple(task for task in row.tasks if task not in unlike)
        if lost := [task for task in row.tasks if task in unlike]:
            left_out.append((row.source, row.label, f"scored under another protocol: {', '.join(lost)}"))
        if tasks:
            rows.append(replace(row, tasks=tasks, runs=tuple({**run, "tasks": list(tasks)} for run in row.runs)))
    return OtherRows(rows, left_out)


def _key(score: Score) -> tuple[str, ...]:
    return score.task, score.source, score.split, score.metric, score.aggregation
