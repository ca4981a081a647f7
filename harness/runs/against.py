"""`harness compare --against`: rows that were made elsewhere, compared with those of a comparison.

Nothing of them is trained or scored. A row is comparable where it was made under the same
conditions: base model, text, training steps, selection set, and code that still gives these
numbers. Those of its scores count whose protocol is that of the comparison's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness import registry
from harness.errors import InputError
from harness.files.printable import join_some
from harness.results.code import task_code
from harness.results.comparison import ListedRun, RowNotCompared
from harness.results.elsewhere import copy_run, open_workdir
from harness.results.record import Record, Score
from harness.results.spec import NUMERICS, RunSpec, method_version, scoring_version
from harness.results.store import (
    RunFolder,
    comparison_files,
    read_comparison_file,
    read_records,
)
from harness.runs.plan import Job, Plan
from harness.tasks.base import task_key

Run = tuple[Record, ListedRun]


@dataclass
class OtherRow:
    """A row that was made elsewhere: its label here, and the tasks ("SOURCE:TASK") on which it is
    comparable.
    """

    label: str
    source: str
    tasks: list[str]
    runs: list[Run]


@dataclass
class OtherRows:
    """The comparable rows, and those that are not."""

    rows: list[OtherRow] = field(default_factory=list)
    left_out: list[RowNotCompared] = field(default_factory=list)

    def summary(self) -> Iterator[str]:
        """Lines: how many rows of each source, and which are left out, by reason."""
        for source in dict.fromkeys(row.source for row in self.rows):
            runs = [len(row.runs) for row in self.rows if row.source == source]
            total = sum(runs)
            yield f"compared with {len(runs)} rows of {source} ({total} runs)"
        reasons: dict[str, list[str]] = {}
        for row in self.left_out:
            reason = f"left out, of {row.source}: {row.why}"
            reasons.setdefault(reason, []).append(row.row)
        for reason, labels in reasons.items():
            yield f"{reason}: {join_some(labels)}"

    def list_runs(self, blocks: tuple[str, ...]) -> list[ListedRun]:
        """Return their runs for the comparison's file; in a file with blocks they belong to each."""
        listed = []
        for row in self.rows:
            here = {
                "row": row.label,
                "source": row.source,
                "tasks": tuple(row.tasks),
                "blocks": blocks,
                "analysis": 0,
            }
            for _, run in row.runs:
                listed.append(run.model_copy(update=here))
        return listed

    def records(self, comparison: str) -> list[Record]:
        """Their records as rows of a comparison."""
        found = []
        for row in self.rows:
            for record, run in row.runs:
                found.append(
                    record.limit_to(row.tasks).as_row(row.label, comparison, run.base_model)
                )
        return found

    def limit_to_protocols(self, own: Sequence[Record]) -> None:
        """Leave out the tasks that the comparison's own runs were scored on under another protocol."""
        protocols: dict[tuple[str, ...], set[str]] = {}
        for record in own:
            for score in record.scores:
                protocols.setdefault(_key(score), set()).add(score.comparable)
        for row in self.rows:
            unlike = set()
            for record, _ in row.runs:
                for score in record.scores:
                    same = protocols.get(_key(score), {score.comparable})
                    if score.comparable not in same:
                        unlike.add(score.task_key)
            lost = [task for task in row.tasks if task in unlike]
            if lost:
                why = f"scored under another protocol: {', '.join(lost)}"
                omitted = RowNotCompared(source=row.source, row=row.label, why=why)
                self.left_out.append(omitted)
            row.tasks = [task for task in row.tasks if task not in unlike]
        self.rows = [row for row in self.rows if row.tasks]


def _key(score: Score) -> tuple[str, ...]:
    return score.task, score.source, score.split, score.metric, score.aggregation


def find_other_rows(plan: Plan, sources: Mapping[str, Path], workdir: Path | None) -> OtherRows:
    """The rows of work directories or archives that are comparable with a plan's.

    Args:
        sources: name -> place.
        workdir: gets a copy of their runs; None copies nothing.

    Raises:
        InputError: a source is no work directory, or has a damaged record.
    """
    found = OtherRows()
    base_models = {job.spec.model: job.spec.base_model for job in plan.jobs}
    labels = {row.label for row in plan.rows}
    for name, place in sources.items():
        with open_workdir(place) as other:
            for comparison, label, runs in _rows(other):
                records = [record for record, _ in runs]
                tasks, why = _comparable_tasks(plan, records)
                try:
                    if workdir is not None and not why:
                        for record in records:
                            folder = RunFolder(other, record.id)
                            whole = folder.read()  # with its scores on all tasks
                            if whole is not None:
                                copy_run(whole, folder, workdir)
                except InputError as error:
                    why = str(error)
                if why:
                    omitted = RowNotCompared(source=name, row=label, why=why)
                    found.left_out.append(omitted)
                    continue
                if f"{label} ({name})" not in labels:
                    shown = f"{label} ({name})"
                else:
                    shown = f"{label} ({name}, {comparison})"
                labels.add(shown)
                found.rows.append(OtherRow(shown, name, tasks, []))
                for record, run in runs:
                    own = base_models.get(record.spec.model, record.base_model)
                    renamed = run.model_copy(update={"base_model": own})
                    found.rows[-1].runs.append((record, renamed))
    return found


def _rows(other: Path) -> Iterator[tuple[str, str, list[Run]]]:
    """(comparison, label, runs) of every row. A run of several comparisons belongs to the first."""
    seen: set[str] = set()
    for name in comparison_files(other):
        listed = read_comparison_file(other, name)
        runs = listed.runs_by_row if listed is not None else {}
        rows: dict[str, list[Run]] = {}
        for record in read_records(other, name):
            run = runs[record.id, record.row]
            rows.setdefault(record.row, []).append((record, run))
        for label, members in rows.items():
            if not seen >= {record.id for record, _ in members}:
                yield name, label, members
        seen |= {run for run, _ in runs}


def _comparable_tasks(plan: Plan, records: Sequence[Record]) -> tuple[list[str], str]:
    """The plan's tasks on which the runs of a row are comparable; and the reason, where they are
    not.
    """
    finished = [record for record in records if record.status == "finished"]
    tasks = {}
    for task in plan.tasks:
        tasks[task_key(task)] = scoring_version(task, task_code(task))
    for record in finished:
        if reason := _find_difference(plan, record):
            return [], reason
        scored = {score.task_key for score in record.scores}
        same = {}
        for key, code in tasks.items():
            if key in scored and record.evaluation.get(key) == code:
                same[key] = code
        tasks = same
    if not finished:
        return [], f"no run of it finished ({records[0].status})"
    if not tasks:
        return [], "scored on none of your tasks, or by code that gives other numbers now"
    return list(tasks), ""


def _find_difference(plan: Plan, record: Record) -> str:
    """Why a run is not comparable with those of a plan; empty where it is."""
    spec = record.spec
    jobs = [job for job in plan.jobs if not job.spec.missing]
    same = [job.row for job in jobs if job.id == record.id]
    if same:
        return f'the same run as your row "{same[0]}"'
    if record.rehearsal:
        return "of a rehearsal"
    base_models = {job.spec.model: job.spec.base_model for job in jobs}
    if spec.model not in base_models:
        yours = ", ".join(base_models.values())
        return f"another base model ({spec.base_model}; yours: {yours})"
    if difference := _find_difference_of_training(jobs, record):
        return difference
    if difference := _find_difference_of_selection(plan, jobs, record):
        return difference
    try:
        method = registry.load(registry.METHODS, spec.method)
        current = method_version(method), NUMERICS
    except InputError:  # a method that is not installed here
        return ""
    if (spec.version, spec.numerics) == current:
        return ""
    return "made by code of its method that gives other numbers now"


def _find_difference_of_selection(plan: Plan, jobs: Sequence[Job], record: Record) -> str:
    """Why the weights of a run were selected otherwise than those of these jobs; empty where they
    were not, or where one of the two is not selected at all.
    """
    spec = record.spec
    selects_here = any(plan.row_of(job).instance.uses_dev for job in jobs)
    if spec.dev and selects_here:
        if plan.dev is None:
            return f"its weights were selected on a set ({spec.dev['task']}), yours on none"
        if spec.dev["sha256"] != plan.dev.sha256:
            return f"its weights were selected on another set ({spec.dev['task']})"
    if plan.dev is not None and not spec.dev and _could_select(spec):
        return f"its weights were selected on no set, yours on {plan.dev.name}"
    return ""


def _could_select(spec: RunSpec) -> bool:
    """True if the method of a run selects its weights on a dev set where there is one."""
    try:
        kind = registry.load(registry.METHODS, spec.method)
        config = kind.Config.parse(spec.config, f'method "{spec.method}"')
    except InputError:  # not installed here, or with other options
        return False
    return bool(kind(config, base_model=spec.base_model).uses_dev)


def _find_difference_of_training(jobs: Sequence[Job], record: Record) -> str:
    """Why the text or the budget of a run is not that of these jobs; empty where it is."""
    if text := record.spec.corpus:
        # A kind that no row here learns from is in the table of differences.
        own = set()
        for job in jobs:
            corpus = job.spec.corpus
            if corpus and corpus["kind"] == text["kind"]:
                own.add(corpus["sha256"])
        if own and text["sha256"] not in own:
            size = f"{text.get('count', 0):,} {text['kind']}"
            return f"trained on other text ({text['uri']}, {size})"
    steps = record.training.get("planned_steps") or record.spec.max_steps
    planned = [job.steps or job.spec.max_steps for job in jobs]
    bounds = {bound for bound in planned if bound}
    if steps and bounds and steps not in bounds:
        texts = [f"{bound:,}" for bound in sorted(bounds)]
        yours = ", ".join(texts)
        return f"another budget: {steps:,} training steps (yours: {yours})"
    return ""
