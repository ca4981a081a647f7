"""From a validated experiment to the jobs of a comparison: whatever can be wrong with the input is
found here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from harness import registry
from harness.config import nearest
from harness.errors import InputError, OutOfReach, RunError
from harness.files.printable import join_some
from harness.machine.environment import pick_device
from harness.results.code import Code, method_code, task_code
from harness.results.spec import RunSpec
from harness.runs.experiment import Entry, Experiment, Rehearsal
from harness.runs.inputs import (
    PlannedFile,
    find_task,
    fingerprint_of_start,
    list_planned_files,
    load_dev,
    load_text,
    open_tasks,
    task_code_of,
)
from harness.runs.rows import (
    Blocks,
    Row,
    Schedule,
    add_untrained_starts,
    apply_budget,
    apply_schedule,
    resolve_rows,
)
from harness.runs.sizes import resolve_sizes
from harness.runs.typical_costs import Texts
from harness.seeds import seed_fields, seed_text
from harness.sources import Corpus
from harness.sources.embedded import model_fingerprint
from harness.tasks.base import Task, task_key
from harness.tasks.own.data import TaskFile
from harness.tasks.sts import DevSet


@dataclass(frozen=True)
class Job:
    """What an executor runs: a specification, the tasks to score it on, and where it belongs.

    Attributes:
        spec: what decides the run's numbers.
        row, comparison: label of its row, and the comparison that requests it.
        tasks: "SOURCE:TASK" of each.
        device: as the experiment names it; "auto" is resolved where the job runs.
        command: what reproduces the run, for its record.
        blocks: the blocks of the file that contain it.
        steps: planned training steps; 0 where there are none.
        keep: what stays of the run once it is scored: "weights", "vectors".
        trial: the trial of a study that requests it.
        files: the tasks of them that are files, with the hash of what they held.
        scoring: task of a plugin -> the code that is to score it.
    """

    spec: RunSpec
    row: str
    comparison: str
    tasks: tuple[str, ...] = ()
    device: str = "auto"
    command: str = ""
    blocks: tuple[str, ...] = ()
    steps: int = 0
    keep: tuple[str, ...] = ("weights", "vectors")
    trial: int | None = None
    files: tuple[PlannedFile, ...] = ()
    scoring: Mapping[str, Code] = field(default_factory=dict)

    @cached_property
    def id(self) -> str:
        """The id of its run."""
        return self.spec.id

    @property
    def label(self) -> str:
        """What its progress is shown under: the trial of a study, else row, base model and seed."""
        if self.trial is not None:
            return f"trial {self.trial}"
        seed = seed_text(self.spec.random_seed)
        return f"{self.row} · {self.spec.base_model} · seed {seed}"

    @property
    def runs_plugin(self) -> bool:
        """True if its method, or a task that it is scored on, does not ship."""
        ships = registry.is_shipped(registry.METHODS, self.spec.method)
        return not ships or bool(self.scoring)

    @property
    def place(self) -> tuple[str, str, int]:
        """Row, base model and seed: two rows may share a run."""
        return self.row, self.spec.base_model, self.spec.random_seed


@dataclass
class Plan:
    """What a comparison will run.

    Attributes:
        rows: one for each row of the file and base model.
        dev: the selection set; None where no row uses one.
        block_tasks: block of the file -> its tasks.
        rehearsal: how runs of a rehearsal are cut; None for runs in full.
        schedule: when rows are scored on the dev set.
    """

    experiment: Experiment
    rows: list[Row]
    dev: DevSet | None
    block_tasks: dict[str, list[Task]]
    device: str
    rehearsal: Rehearsal | None = None
    schedule: Schedule = field(default_factory=Schedule)

    @cached_property
    def tasks(self) -> list[Task]:
        """The tasks of all blocks, each once."""
        return list(
            {task_key(task): task for tasks in self.block_tasks.values() for task in tasks}.values()
        )

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """Label -> the first row of the file that has it."""
        found: dict[str, Entry] = {}
        for entry in self.experiment.methods:
            found.setdefault(entry.label, entry)
        return found

    def keys_of(self, blocks: Iterable[str]) -> tuple[str, ...]:
        """ "SOURCE:TASK" of the tasks of some blocks, in the order of `tasks`."""
        wanted = set()
        for block in blocks:
            for task in self.block_tasks[block]:
                wanted.add(task_key(task))
        keys = [task_key(task) for task in self.tasks]
        return tuple([key for key in keys if key in wanted])

    @cached_property
    def jobs(self) -> list[Job]:
        """One for each row, base model and seed, in the order of the table."""
        jobs = []
        for row, *others in self._rows_by_start.values():
            seeds: dict[int, Blocks] = {}
            for same in (row, *others):
                for seed, blocks in same.seeds.items():
                    if row.instance.deterministic:
                        seed = int(next(iter(row.seeds)))
                    both = (*seeds.get(seed, ()), *blocks)
                    seeds[seed] = tuple(dict.fromkeys(both))
            spec = self._spec(row)
            length = row.length(self.corpus(row))
            steps = length.steps if length is not None else 0
            for seed, blocks in seeds.items():
                own = spec.model_copy(
                    update=seed_fields(seed) | {"vary": tuple(getattr(seed, "vary", ()))}
                )
                tasks = self.keys_of(blocks)
                e = self.experiment
                keep = tuple(self.experiment.keep)
                jobs.append(
                    Job(
                        own,
                        row.label,
                        e.name,
                        tasks,
                        e.device,
                        blocks=blocks,
                        steps=steps,
                        keep=keep,
                        files=list_planned_files(map(find_task, tasks)),
                        scoring=self._code_of(tasks),
                    )
                )
        return jobs

    @cached_property
    def _rows_by_start(self) -> dict[tuple[str, str], list[Row]]:
        """(label, base model of its runs) -> rows: one, unless the method does not start from a
        base model.
        """
        rows: dict[tuple[str, str], list[Row]] = {}
        for row in self.rows:
            rows.setdefault((row.label, row.start_model), []).append(row)
        return rows

    def row_of(self, job: Job) -> Row:
        """The row of a job."""
        return self._rows_by_start[job.row, job.spec.base_model][0]

    @cached_property
    def starts(self) -> dict[str, str]:
        """Id of a run -> id of the run of its untrained start, of those that have one."""
        known = {}
        for job in reversed(self.jobs):
            known[self.row_of(job).key] = job.id
        starts = {}
        for job in self.jobs:
            start = self.row_of(job).start()
            if start is not None and start.key in known:
                starts[job.id] = known[start.key]
        return starts

    def corpus(self, row: Row) -> Corpus | None:
        """The text that a row learns from; None where it learns from none, or its text is not
        available.
        """
        if row.corpus is None or row.fault:
            return None
        return load_text(row.corpus)

    def dev_texts(self, job: Job) -> Texts:
        """The texts that a run encodes to be scored on the dev set, each time it is."""
        row = self.row_of(job)
        every = self.schedule.every or getattr(row.config, "eval_every", 0)
        if self.dev is None or not row.instance.uses_dev or not job.steps or not every:
            return Texts(0, 0.0)
        times = job.steps // every + 1  # the untrained start, too
        once = Texts.of(self.dev.texts())
        return Texts(times * once.count, once.characters)

    def _code_of(self, tasks: Sequence[str]) -> dict[str, Code]:
        """The code of those tasks that come from plugins."""
        return {key: code for key in tasks if (code := task_code_of(key)).files}

    @cached_property
    def _stated_dev(self) -> dict[str, Any] | None:
        """The dev set as specifications state it; None where there is none."""
        dev = self.experiment.selection()
        if dev is None or self.dev is None:
            return None
        stated: dict[str, Any] = {
            "task": dev.label,
            "source": dev.where,
            "split": "dev",
            "sha256": self.dev.sha256,
        }
        if dev.pairs is not None:
            stated["pairs"] = dev.pairs
        if dev.file is not None:
            stated["file"] = dev.file.with_full_path().model_dump(exclude_defaults=True)
        return stated

    def _spec(self, row: Row) -> RunSpec:
        """The specification of the runs of a row, but for their seed."""
        known: dict[str, Any] = {}
        start = row.start_model
        if not row.fault:
            selects = row.instance.uses_dev
            if start == row.base_model:
                known["model"] = fingerprint_of_start(start)
            else:
                known["model"] = start
            known["inputs"] = row.instance.inputs
            if row.instance.by_content:
                known |= {"by_content": row.instance.by_content, "model": ""}
            if (corpus := self.corpus(row)) is not None and row.corpus is not None:
                stated = row.corpus.model_dump(
                    include={"uri", "limit", "columns", "kind"}, exclude_none=True
                )
                known["corpus"] = {**corpus.describe(), **stated}
            if selects:
                known["dev"] = self._stated_dev
            if selects or hasattr(row.config, "learning_rate"):
                known |= {"max_steps": row.max_steps, "precision": self.experiment.precision}
        if self.rehearsal is not None:
            known["most_sentences"] = self.rehearsal.sentences
            known["encoded_sentences"] = self.rehearsal.limit
        code = method_code(row.method)
        return RunSpec(
            method=row.method.name,
            version=code.version,
            code=dict(code.files),
            config=row.config.model_dump(mode="json"),
            base_model=start,
            seed=0,
            deterministic=row.instance.deterministic,
            missing=row.fault,
            **known,
        )


def _check_primary(
    primary: str,
    suites: Mapping[str, Sequence[str | TaskFile]],
    block_tasks: Mapping[str, Sequence[Task]],
) -> None:
    """Raises:
    InputError: the primary score is none that the file evaluates.
    """
    if not primary:
        return
    known: dict[str, None] = {"STS": None}
    for names in suites.values():
        own = [str(name) for name in names if name != "embedded"]
        known |= dict.fromkeys(own)
    for tasks in block_tasks.values():
        for task in tasks:
            known[task_key(task).partition(":")[2]] = None
    if primary.lower() not in {name.lower() for name in known}:
        raise InputError(
            f'key "primary": the file evaluates no score "{primary}"{nearest(primary, list(known))}; '
            f"expected one of: {join_some(list(known), 12)}",
            key="primary",
        )


def make_plan(
    experiment: Experiment,
    where: str,
    *,
    starts: bool = True,
    rehearsal: Rehearsal | None = None,
    to_run: bool = True,
) -> Plan:
    """Resolve rows, text, dev set and tasks.

    Args:
        where: the file or name that error messages name.
        starts: whether the untrained starts that the file does not contain are added.
        rehearsal: how the runs of a rehearsal are cut; None for runs in full.
        to_run: False for a plan that is only shown: of an experiment with blocks, rows lack what is
            out of reach, the dev set too, and none may be left.

    Raises:
        InputError: anything in the experiment that cannot work.
    """
    experiment = resolve_sizes(experiment, load_text)
    tolerant = rehearsal is not None or bool(experiment.blocks)
    resolved = resolve_rows(experiment, where, tolerant=tolerant)
    rows, schedule = apply_schedule(resolved, experiment.dev)
    rows = [_attempt(_check_data, row, tolerant) for row in rows]
    _refuse_copies(rows)
    if starts:
        rows = _add_available_starts(rows)
    try:
        dev = _find_dev(experiment, rows)
    except InputError as error:
        if to_run or not tolerant:
            raise
        dev = None
        rows = [_without_dev(row, str(error)) for row in rows]
    suites = experiment.suites_by_block()
    block_tasks = {}
    for block, names in suites.items():
        block_tasks[block] = open_tasks(names, experiment.source)
    _check_primary(experiment.primary, suites, block_tasks)
    if experiment.budget.kind:
        rows = [_attempt(partial(_with_budget, experiment), row, tolerant) for row in rows]
    device = pick_device(experiment.device)
    plan = Plan(experiment, rows, dev, block_tasks, device, rehearsal, schedule)
    _check_code(plan)
    if all(job.spec.missing for job in plan.jobs) and (to_run or not tolerant):
        raise InputError(plan.jobs[0].spec.missing, file=where)
    return plan


def _with_budget(experiment: Experiment, row: Row) -> Row:
    if row.corpus is None:
        return row
    return apply_budget(row, experiment.budget, load_text(row.corpus))


def _refuse_copies(rows: Iterable[Row]) -> None:
    """Check that base models differ: runs are known by content, and two names would have one row.

    Raises:
        InputError: two of them are the same.
    """
    first: dict[str, str] = {}
    for row in rows:
        if row.fault or row.start_model != row.base_model:
            continue
        known = first.setdefault(fingerprint_of_start(row.base_model), row.base_model)
        if known != row.base_model:
            message = f"{known} and {row.base_model} are the same model"
            raise InputError(message, key="base_models", remedy="leave one out")


def _check_code(plan: Plan) -> None:
    """Raises:
    InputError: the code of a method or task was changed after it was imported.
    """
    for row in plan.rows:
        method_code(row.method).check_current()
    for task in plan.tasks:
        task_code(task).check_current()


def _add_available_starts(rows: list[Row]) -> list[Row]:
    """Return the rows with the untrained starts that they lack.

    A start that is not available, such as of a missing layer, says less than the row itself, and
    is left out.
    """
    available = []
    for row in add_untrained_starts(rows):
        if row.added:
            start = _attempt(_check_data, row, True)
        else:
            start = row
        if not (start.added and start.fault):
            available.append(start)
    return available


def _find_dev(experiment: Experiment, rows: Sequence[Row]) -> DevSet | None:
    """Load the set that weights are selected on; None where no row selects.

    Raises:
        InputError: it is out of reach.
    """
    selection = experiment.selection()
    if selection is None or not any(row.instance.uses_dev for row in rows):
        return None
    try:
        return load_dev(selection)
    except OutOfReach as error:
        message = f"{error} (table [dev]; embedded: --set dev.task=Embedded-STS-natural)"
        raise InputError(message, key="dev.task") from None


def _without_dev(row: Row, fault: str) -> Row:
    """Return a row as it is without the dev set: one that selects on it lacks it."""
    if row.fault or not row.instance.uses_dev:
        return row
    return replace(row, fault=fault)


def _attempt(action: Callable[[Row], Row], row: Row, tolerant: bool) -> Row:
    """The row after an action; where it is tolerated that the action fails, the row has the reason
    as its fault.
    """
    try:
        return row if row.fault else action(row)
    except (InputError, RunError) as error:
        if not tolerant:
            raise
        return replace(row, fault=str(error))


def _check_data(row: Row) -> Row:
    """The row, once its base model, its text and what else it refers to were found to be here and
    to suit it.
    """
    if row.start_model == row.base_model:
        model_fingerprint(row.base_model)
    row.instance.check(load_text(row.corpus) if row.corpus is not None else None)
    _ = row.instance.inputs  # hashed, so that what is missing is said now
    return row
