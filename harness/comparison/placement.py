"""Which cell is run where and when: cells become jobs of an executor, the longest first, and their answers records."""

from __future__ import annotations

import glob
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from harness.comparison.carried import deliver
from harness.comparison.cell import run_cell
from harness.comparison.estimate import steps_of
from harness.comparison.experiment import Experiment
from harness.comparison.jobs import CellJob, forget_loaded, is_kept, made, measured, record_of, stopped_at, with_kept
from harness.comparison.kept_results import finished, remaining, tidy
from harness.comparison.measured_files import keep_texts, measured_texts
from harness.comparison.measured_precision import precision_of
from harness.comparison.plan import Plan, PlannedCell
from harness.encoder.families import size_of
from harness.errors import HarnessError, InputError, StopAsked
from harness.executors.executor import Answer, Executor, Job
from harness.files.atomic import write_atomic
from harness.live.signs import Sign, forget
from harness.live.watch import Watch
from harness.results.record import Record
from harness.results.run_folder import RunFolder
from harness.seeds import PartSeed
from harness.tasks.base import task_key

CommandOf = Callable[[PlannedCell], str]
Place = tuple[str, str, int]

_LENGTH = 32  # tokens of a text, where nothing says how many


def place_of(cell: PlannedCell) -> Place:
    """Row, base model and seed: two rows may have one run."""
    return cell.row.label, cell.base_model, cell.seed


@dataclass(frozen=True)
class Ending:
    """How a cell came to its record."""

    cell: PlannedCell
    record: Record
    kept: bool  # the record was there before, and lacked nothing


def endings(
    plan: Plan,
    workdir: Path,
    command_of: CommandOf,
    watch: Watch,
    executor: Executor,
    known: Mapping[Place, Record] = MappingProxyType({}),
) -> Iterator[Ending]:
    """Bring every cell to its record; those of `known` have theirs. The watch is told of those that are begun here.

    Raises:
        InputError: the executor cannot be used. OSError: a disk is full or fails. StopAsked: somebody asked for it.
    """
    there = [cell for cell in plan.cells if place_of(cell) in known]
    yield from (Ending(cell, known[place_of(cell)], kept=True) for cell in there)
    cells = [cell for cell in plan.cells if place_of(cell) not in known]
    placement = Placement(plan, workdir, command_of, watch, executor)
    if not executor.elsewhere:
        yield from placement.one_by_one(cells)
    elif plan.team.size > 1:
        raise InputError(
            f'executor "{executor.name}": starts processes of its own; start it without a launcher, and give '
            "gpus_per_cell for cells that several processes train"
        )
    else:
        yield from placement.elsewhere(cells)


@dataclass(frozen=True)
class Placement:
    """The cells of a plan, on their way through an executor."""

    plan: Plan
    workdir: Path
    command_of: CommandOf
    watch: Watch
    executor: Executor

    def one_by_one(self, cells: Sequence[PlannedCell]) -> Iterator[Ending]:
        """In the order of the plan, in this process."""
        kept: set[str] = set()

        def bring(cell: PlannedCell) -> Record:
            if self.watch.stop():
                raise StopAsked
            self.watch.start(cell.label)
            known = finished(cell, self.plan, self.workdir)
            if known is not None:
                kept.add(cell.label)
                tidy(RunFolder(self.workdir, cell.id))
                return known
            return self._made_here(cell)

        jobs = [Job(cell.label, bring, (cell,)) for cell in cells]
        weighed = False
        with self.executor:
            for number, (cell, answer) in enumerate(zip(cells, self.executor.run(jobs, lambda: None), strict=True), 1):
                if answer.error is not None:
                    raise answer.error
                yield Ending(cell, answer.value, cell.label in kept)
                if not weighed and cell.label not in kept:  # the texts of its tasks are read now
                    weighed = True
                    self.watch.weigh(self._works(cells[number:]))

    def _made_here(self, cell: PlannedCell) -> Record:
        command, stop = self.command_of(cell), self.watch.stop
        with Sign(self.workdir, cell.id, show=self.watch.step) as sign:
            return run_cell(
                cell, self.plan, self.workdir, command=command, progress=sign.step, on_dev=sign.dev, stop=stop
            )

    def _works(self, cells: Sequence[PlannedCell]) -> dict[str, float]:
        """Label -> `work_of`; seeds of a row have the same."""
        known: dict[tuple[str, str], float] = {}
        for cell in cells:
            key = cell.row.label, cell.base_model
            if key not in known:
                known[key] = 0.0 if cell.fault else work_of(cell, self.plan, self.workdir)
        return {cell.label: known[cell.row.label, cell.base_model] for cell in cells}

    def elsewhere(self, cells: Sequence[PlannedCell]) -> Iterator[Ending]:
        """Those that have their record first, then the others as they end."""
        open_cells: dict[str, list[PlannedCell]] = {}  # by id: two rows may have one run
        for cell in cells:
            known = finished(cell, self.plan, self.workdir)
            if known is None:
                open_cells.setdefault(cell.id, []).append(cell)
                continue
            tidy(RunFolder(self.workdir, cell.id))
            yield Ending(cell, known, kept=True)
        if not open_cells:
            return
        with token(self.workdir, self.plan.experiment.name) as shared, self.executor:
            jobs = self._jobs([same[0] for same in open_cells.values()], shared)

            def tick() -> None:
                deliver(self.executor.post, self.workdir, open_cells)
                self.watch.tick()

            for answer in self._answers(jobs, tick):
                forget(self.workdir, answer.job.key)
                if answer.value is not None and answer.value.stopped:
                    stopped_at(answer.value, self.workdir, answer.job.key)
                    continue
                same = open_cells.pop(answer.job.key)
                record = record_of_answer(answer, same[0], self.plan, self.workdir, self.command_of(same[0]))
                for cell in same:
                    yield Ending(cell, record, kept=False)
            if open_cells:
                raise StopAsked

    def _jobs(self, cells: Sequence[PlannedCell], shared: str) -> list[Job]:
        """The longest first."""
        common = CellJob(
            _experiment_of(self.plan).model_dump_json(exclude_unset=True),
            self.plan.where,
            str(self.workdir.resolve()),
            token=shared,
            rehearsal=self.plan.rehearsal is not None,
            processes=max(1, int(self.executor.settings.gpus_per_cell)),
            key=self.watch.key,
            post=self.executor.post,
        )
        if any(cell.row.trained for cell in cells):
            settle_precision(self.plan, self.workdir, common, self.executor)
        common = replace(common, measured=measured_texts(self.workdir))
        works = {cell.label: work_of(cell, self.plan, self.workdir) for cell in cells}
        self.watch.weigh(works)
        longest = sorted(cells, key=lambda cell: works[cell.label], reverse=True)
        return [self._job(cell, common) for cell in longest]

    def _job(self, cell: PlannedCell, common: CellJob) -> Job:
        kept = None if is_kept(cell, self.workdir) else b""
        told = replace(common, cell=cell.id, row=cell.row.label, command=self.command_of(cell), kept=kept)
        return Job(cell.id, made, (told,))

    def _answers(self, jobs: Sequence[Job], tick: Callable[[], None]) -> Iterator[Answer]:
        """Of workers that have what is kept of their cells: those that do not see it are sent it in further rounds, of
        as many as run at a time, since weights and checkpoints are large."""
        again = []
        for answer in self.executor.run(jobs, tick):
            if answer.value is not None and answer.value.lacks_kept:
                again.append(answer.job)
            else:
                yield answer
        room = self.executor.room(len(again)) if again else 1
        for first in range(0, len(again), room):
            some = again[first : first + room]
            told = [replace(job, arguments=(with_kept(job.arguments[0], self.workdir),)) for job in some]
            yield from self.executor.run(told, tick)


@contextmanager
def token(workdir: Path, name: str) -> Iterator[str]:
    """A file by which workers know that they see this work directory, while the block lasts; its path in there."""
    mine = f"shared-{name}-"
    for left in (workdir / "locks").glob(f"{glob.escape(mine)}*"):  # by a coordinator that was killed
        left.unlink(missing_ok=True)
    file = workdir / "locks" / f"{mine}{uuid.uuid4().hex}"
    write_atomic(file, "by this file a worker knows that it sees this work directory\n")
    forget_loaded()
    try:
        yield str(file.relative_to(workdir))
    finally:
        file.unlink(missing_ok=True)


def _experiment_of(plan: Plan) -> Experiment:
    """The experiment with what a worker cannot know: the seeds that were added to it, and whose seconds of an update
    its rows were cut by."""
    own = plan.experiment
    added = {
        c.seed: None for c in plan.cells if not (isinstance(c.seed, PartSeed) or c.seed in own.seeds or own.blocks)
    }
    stated = {seed for entry in own.methods for seed in entry.seeds}
    more = [seed for seed in added if seed not in stated]
    if own.budget.kind == "seconds" and not own.budget.device:
        own = own.model_copy(update={"budget": own.budget.model_copy(update={"device": plan.device_name})})
    return own.model_copy(update={"seeds": [*own.seeds, *more]}) if more else own


def work_of(cell: PlannedCell, plan: Plan, workdir: Path) -> float:
    """How long a cell takes, in a unit of no meaning: tokens forwards and backwards, by the size of what encodes them.

    For an order alone: that the longest cell does not begin when the others have ended.
    """
    config = cell.row.config
    length = getattr(config, "train_length", _LENGTH)
    train, tasks = remaining(cell, plan, workdir)
    forwards = _LENGTH * sum(plan.texts_of.get(task_key(task), 0) for task in tasks)
    tokens = forwards / 3.0  # a backward pass takes twice as long as a forward one
    if train and (steps := steps_of(cell, plan)):
        tokens += float(steps) * getattr(config, "batch_size", 1) * length
    return tokens * _size(cell.base_model)


def _size(base_model: str) -> float:
    try:
        return size_of(base_model) or 1.0
    except HarnessError:
        return 1.0  # word vectors and the like


def settle_precision(plan: Plan, workdir: Path, common: CellJob, executor: Executor) -> None:
    """Measure the training precision, once where the cells are run, before the first one."""
    if executor.here or plan.experiment.precision != "auto":
        precision_of(plan, workdir)
        return
    told = replace(common, measured=measured_texts(workdir))
    answer = next(iter(executor.run([Job("precision", measured, (told,))], lambda: None)))
    if answer.error is not None:
        raise answer.error
    if answer.lost:
        raise InputError(f'executor "{executor.name}": {answer.lost}')
    keep_texts(answer.value.measured, workdir)


def record_of_answer(answer: Answer, cell: PlannedCell, plan: Plan, workdir: Path, command: str) -> Record:
    """The record of an answer; a cell that no worker came to the end of has failed, and is tried again next time."""
    if answer.error is not None and not isinstance(answer.error, HarnessError):
        raise answer.error
    if answer.lost or answer.error is not None:
        lost = replace(cell, fault=answer.lost or str(answer.error))
        return run_cell(lost, plan, workdir, command=command)
    return record_of(answer.value, workdir, cell.id)
