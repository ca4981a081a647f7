"""From a validated experiment to the jobs of a comparison: whatever can be wrong with the input is found here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import HarnessError, InputError, OutOfReach
from harness.identity import model_fingerprint
from harness.machine.devices import pick_device
from harness.machine.distributed import ALONE, Team
from harness.machine.environment import device_name
from harness.results.spec import RunSpec, method_version
from harness.runs.data import forget_data, load_dev, load_text
from harness.runs.experiment import Experiment
from harness.runs.measure import step_seconds
from harness.runs.rows import (
    Row,
    RunLength,
    Schedule,
    add_untrained_starts,
    apply_budget,
    apply_schedule,
    length_of,
    resolve_rows,
    row_key,
    start_of,
)
from harness.seeds import seed_fields, seed_text
from harness.tasks.base import task_key

if TYPE_CHECKING:
    from harness.sources import Corpus
    from harness.tasks.base import Task
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
        trial: the trial of a study that requests it.
    """

    spec: RunSpec
    row: str
    comparison: str
    tasks: tuple[str, ...] = ()
    device: str = "auto"
    command: str = ""
    blocks: tuple[str, ...] = ()
    steps: int = 0
    trial: int | None = None

    @cached_property
    def id(self) -> str:
        """The id of its run."""
        return self.spec.id

    @property
    def label(self) -> str:
        """Row, base model and seed in words."""
        return f"{self.row} · {self.spec.base_model} · seed {seed_text(self.spec.random_seed)}"

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
        tolerant: a row that cannot be run here does not stop the others.
        schedule: when rows are scored on the dev set.
    """

    experiment: Experiment
    rows: list[Row]
    dev: DevSet | None
    block_tasks: dict[str, list[Task]]
    device: str
    team: Team = ALONE
    tolerant: bool = False
    most_sentences: int | None = None
    schedule: Schedule = field(default_factory=Schedule)
    where: str = ""

    @cached_property
    def tasks(self) -> list[Task]:
        """The tasks of all blocks, each once."""
        return list({task_key(task): task for tasks in self.block_tasks.values() for task in tasks}.values())

    def keys_of(self, blocks: Iterable[str]) -> tuple[str, ...]:
        """ "SOURCE:TASK" of the tasks of some blocks, in the order of `tasks`."""
        wanted = {task_key(task) for block in blocks for task in self.block_tasks[block]}
        return tuple(key for task in self.tasks if (key := task_key(task)) in wanted)

    @cached_property
    def device_name(self) -> str:
        """The device as measurements are stored by: two of one kind have one name."""
        return device_name(self.device)

    @cached_property
    def jobs(self) -> list[Job]:
        """One for each row, base model and seed, in the order of the table."""
        runs: dict[tuple[str, str], tuple[Row, dict[int, tuple[str, ...]]]] = {}
        for row in self.rows:  # a method that does not start from a base model has one row, not one per base model
            _, seeds = runs.setdefault((row.label, row.method.base_for(row.config, row.base_model)), (row, {}))
            for seed, blocks in row.seeds.items():
                seeds[seed] = tuple(dict.fromkeys((*seeds.get(seed, ()), *blocks)))
        jobs = []
        for (_, base_model), (row, seeds) in runs.items():
            if row.method.card.deterministic:
                seeds = {int(next(iter(seeds))): tuple(dict.fromkeys(b for some in seeds.values() for b in some))}
            spec, length = self._spec(row, base_model), self._length(row)
            for seed, blocks in seeds.items():
                fields = seed_fields(seed)
                own = {**fields, "vary": tuple(fields.get("vary", ()))}
                jobs.append(
                    Job(
                        spec.model_copy(update=own),
                        row.label,
                        self.experiment.name,
                        self.keys_of(blocks),
                        self.experiment.device,
                        blocks=blocks,
                        steps=length.steps if length is not None else 0,
                    )
                )
        return jobs

    @cached_property
    def row_by_label(self) -> dict[tuple[str, str], Row]:
        """(label, base model of its runs) -> row."""
        return {(row.label, row.method.base_for(row.config, row.base_model)): row for row in reversed(self.rows)}

    def row_of(self, job: Job) -> Row:
        """The row of a job."""
        return self.row_by_label[job.row, job.spec.base_model]

    @cached_property
    def starts(self) -> dict[str, str]:
        """Id of a run -> id of the run of its untrained start, of those that have one."""
        known = {(job.spec.base_model, row_key(self.row_of(job))): job.id for job in reversed(self.jobs)}
        starts = {job.id: (job.spec.base_model, start_of(self.row_of(job))) for job in self.jobs}
        return {
            run: known[key]
            for run, (base, start) in starts.items()
            if start is not None and (key := (base, row_key(start))) in known
        }

    def corpus(self, row: Row) -> Corpus | None:
        """The text that a row learns from; None where it learns from none, or its text is not available."""
        if row.corpus is None or row.fault:
            return None
        return load_text(row.corpus)

    def _length(self, row: Row) -> RunLength | None:
        return None if row.fault else length_of(row, self.corpus(row))

    def _spec(self, row: Row, base_model: str) -> RunSpec:
        """The specification of the runs of a row, but for their seed.

        Raises:
            InputError: what the config refers to is not available; where it is tolerated, the spec says so.
        """
        config = row.config.model_dump(mode="json")
        common: dict[str, Any] = {
            "method": row.method.name,
            "version": method_version(row.method),
            "config": config,
            "base_model": base_model,
            "seed": 0,
            "deterministic": row.method.card.deterministic,
            "most_sentences": self.most_sentences,
        }
        try:
            if row.fault:
                raise InputError(row.fault)
            corpus, settings = self.corpus(row), row.corpus
            selects = row.method.uses_dev(row.config) and self.dev is not None
            trains = row.method.uses_dev(row.config) or hasattr(row.config, "learning_rate")
            text = None
            if corpus is not None and settings is not None:
                asked = settings.model_dump(include={"uri", "limit", "columns"}, exclude_none=True)
                text = {**corpus.describe(), **asked, "kind": settings.kind}
            return RunSpec(
                **common,
                model=model_fingerprint(base_model) if base_model == row.base_model else base_model,
                corpus=text,
                inputs=row.method.inputs(row.config),
                dev=self._describe_dev() if selects else None,
                max_steps=row.max_steps if trains else None,
                precision=self.experiment.precision if trains else None,
            )
        except InputError as error:
            if not self.tolerant:
                raise
            return RunSpec(**common, missing=str(error))

    def _describe_dev(self) -> dict[str, Any]:
        dev = self.experiment.dev
        assert dev is not None
        assert self.dev is not None
        pairs = {"pairs": dev.pairs} if dev.pairs is not None else {}
        return {"task": dev.task, "source": dev.where, "split": "dev", "sha256": self.dev.sha256, **pairs}


def make_plan(
    experiment: Experiment,
    where: str,
    workdir: Path | None = None,
    *,
    team: Team = ALONE,
    log_line: Callable[[str], None] = lambda line: None,
    starts: bool = True,
    most_sentences: int | None = None,
) -> Plan:
    """Resolve rows, text, dev set and tasks; time the training steps of rows under a budget of time.

    Args:
        where: the file or name that error messages name.
        workdir: where measurements are stored; None stores nothing.
        team: the processes that train together.
        log_line: called with a line for each row whose steps were timed.
        starts: whether the untrained starts that the file does not contain are added.
        most_sentences: as in `RunSpec`, of a rehearsal.

    Raises:
        InputError: anything in the experiment that cannot work. RunError: the steps of a row cannot be timed.
    """
    tolerant = most_sentences is not None or bool(experiment.blocks)
    resolved, schedule = apply_schedule(resolve_rows(experiment, where, tolerant=tolerant), experiment.dev)
    rows = [_check_data(row, tolerant) for row in resolved]
    if starts:  # a start that is not available, such as of a missing layer, says less than the row itself
        checked = (_check_data(row, tolerant or row.added) for row in add_untrained_starts(rows))
        rows = [row for row in checked if not (row.added and row.fault)]
    dev = None
    if experiment.dev is not None and any(row.method.uses_dev(row.config) for row in rows):
        try:
            dev = load_dev(experiment.dev)
        except OutOfReach as error:
            given = "dev" in experiment.model_fields_set
            asks = "asks for it" if given else "is not there, and its default asks for it"
            raise InputError(f"{error} (table [dev] {asks}; embedded: --set dev.task=Embedded-STS-natural)") from None
    suites = {name: block.suites or experiment.suites for name, block in experiment.parts.items()}
    block_tasks = {name: resolve(names, experiment.source) if names else [] for name, names in suites.items()}
    device = team.device or pick_device(experiment.device)
    rows = apply_budget(
        rows,
        experiment.budget,
        lambda row: load_text(row.corpus) if row.corpus is not None else None,
        lambda row, corpus, epoch: step_seconds(
            workdir,
            row,
            corpus,
            device=device,
            precision=experiment.precision,
            epoch=epoch,
            machine=experiment.budget.device,
            log_line=log_line if team.main else lambda line: None,
        ),
        tolerant=tolerant,
    )
    plan = Plan(experiment, rows, dev, block_tasks, device, team, tolerant, most_sentences, schedule, where)
    if plan.jobs and all(job.spec.missing for job in plan.jobs):
        raise InputError(plan.jobs[0].spec.missing)
    return plan


def _check_data(row: Row, tolerant: bool) -> Row:
    """The row, once its base model and text were found to suit it.

    Raises:
        InputError: one is not available or does not suit; where it is tolerated, the row keeps it as its fault.
    """
    if row.fault:
        return row
    try:
        model_fingerprint(row.base_model)
        text = load_text(row.corpus) if row.corpus is not None else None
        row.method(row.config, base_model=row.base_model).check(text)
    except InputError as error:
        if not tolerant:
            raise
        return replace(row, fault=str(error))
    return row


def resolve(suites: Iterable[str], source: str) -> list[Task]:
    """The tasks of suites; a task that was resolved before in this process is the same object, with its data."""
    from harness.tasks.catalogue import resolve_tasks

    return [_TASKS.setdefault(task_key(task), task) for task in resolve_tasks(list(suites), source=source)]


def find_task(key: str) -> Task:
    """The task "SOURCE:TASK".

    Raises:
        InputError: no such task is installed.
    """
    if key not in _TASKS:
        from harness.tasks.catalogue import SOURCES, resolve_tasks

        source, _, name = key.partition(":")
        (task,) = resolve_tasks([name], source=source if source in SOURCES else SOURCES[0])
        return _TASKS.setdefault(task_key(task), task)
    return _TASKS[key]


_TASKS: dict[str, Task] = {}


@lru_cache(maxsize=4096)
def is_readable(key: str, most_sentences: int | None) -> bool:
    """Is the data of a task available now?"""
    from harness.evaluation.scoring import announced

    try:
        announced(find_task(key), most_sentences)
    except HarnessError:
        return False
    return True


def forget_loaded() -> None:
    """Read text, dev sets and tasks again on their next use: files may have changed since the last call."""
    forget_data()
    _TASKS.clear()
    is_readable.cache_clear()
