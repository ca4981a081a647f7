"""Which cell is run where and when: cells become jobs of an executor, the longest first, and their answers records."""

from __future__ import annotations

import glob
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

from harness.comparison.cell import run_cell
from harness.comparison.estimate import steps_of
from harness.comparison.experiment import Experiment
from harness.comparison.jobs import CellJob, made, measured, record_of
from harness.comparison.kept_results import finished, remaining, tidy
from harness.comparison.measured_precision import keep_measured, precision_of
from harness.comparison.plan import Plan, PlannedCell
from harness.comparison.signs import forget, signs
from harness.encoder.families import size_of
from harness.errors import HarnessError, InputError
from harness.executors.executor import Answer, Executor, Job
from harness.files.atomic import write_atomic
from harness.machine.progress import Reporter
from harness.results.record import Record
from harness.results.run_folder import RunFolder
from harness.seeds import PartSeed

CommandOf = Callable[[PlannedCell], str]
Place = tuple[str, str, int]


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
    reporter: Reporter,
    executor: Executor,
    known: Mapping[Place, Record] = MappingProxyType({}),
) -> Iterator[Ending]:
    """Bring every cell to its record; those of `known` have theirs. The reporter has been told of each other one when
    it comes.

    Raises:
        InputError: the executor cannot be used. OSError: a disk is full or fails.
    """
    there = [cell for cell in plan.cells if place_of(cell) in known]
    yield from (Ending(cell, known[place_of(cell)], kept=True) for cell in there)
    cells = [cell for cell in plan.cells if place_of(cell) not in known]
    if not executor.elsewhere:
        yield from _one_by_one(cells, plan, workdir, command_of, reporter, executor)
    elif plan.team.size > 1:
        raise InputError(
            f'executor "{executor.name}": starts processes of its own; start it without a launcher, and give '
            "gpus_per_cell for cells that several processes train"
        )
    else:
        yield from _elsewhere(cells, plan, workdir, command_of, reporter, executor)


def _one_by_one(
    cells: Sequence[PlannedCell],
    plan: Plan,
    workdir: Path,
    command_of: CommandOf,
    reporter: Reporter,
    executor: Executor,
) -> Iterator[Ending]:
    """In the order of the plan, in this process."""
    kept: set[str] = set()

    def bring(cell: PlannedCell) -> Record:
        reporter.start(cell.label)
        known = finished(cell, plan, workdir)
        if known is not None:
            kept.add(cell.label)
            tidy(RunFolder(workdir, cell.id))
        return known or run_cell(cell, plan, workdir, command=command_of(cell), progress=reporter.step)

    jobs = [Job(cell.label, bring, (cell,)) for cell in cells]
    with executor:
        for cell, answer in zip(cells, executor.run(jobs, lambda: None), strict=True):
            yield Ending(cell, answer.value, cell.label in kept)


def _elsewhere(
    cells: Sequence[PlannedCell],
    plan: Plan,
    workdir: Path,
    command_of: CommandOf,
    reporter: Reporter,
    executor: Executor,
) -> Iterator[Ending]:
    """Those that have their record first, then the others as they end."""
    open_cells: dict[str, list[PlannedCell]] = {}  # by id: two rows may have one run
    for cell in cells:
        known = finished(cell, plan, workdir)
        if known is None:
            open_cells.setdefault(cell.id, []).append(cell)
            continue
        tidy(RunFolder(workdir, cell.id))
        reporter.start(cell.label)
        yield Ending(cell, known, kept=True)
    if not open_cells:
        return
    mine = f"shared-{plan.experiment.name}-"
    for left in (workdir / "locks").glob(f"{glob.escape(mine)}*"):  # by a coordinator that was killed
        left.unlink(missing_ok=True)
    token = workdir / "locks" / f"{mine}{uuid.uuid4().hex}"
    write_atomic(token, "by this file a worker knows that it sees this work directory\n")
    try:
        with executor:
            common = CellJob(
                _experiment_of(plan).model_dump_json(exclude_unset=True),
                plan.where,
                str(workdir.resolve()),
                token=str(token.relative_to(workdir)),
                rehearsal=plan.rehearsal is not None,
                processes=max(1, int(executor.settings.gpus_per_cell)),
            )
            first = [cells[0] for cells in open_cells.values()]
            if any(cell.row.trained for cell in first):
                common = replace(common, precision=_precision(plan, workdir, common, executor))
            longest = sorted(first, key=partial(work_of, plan=plan, workdir=workdir), reverse=True)
            jobs = [Job(c.id, made, (replace(common, cell=c.id, command=command_of(c)),)) for c in longest]
            begun = time.time()
            watch = partial(_watch, reporter, open_cells, workdir, begun, len(jobs))
            for answer in executor.run(jobs, watch):
                same = open_cells.pop(answer.job.key)
                forget(workdir, answer.job.key)
                record = _record(answer, same[0], plan, workdir, command_of)
                for cell in same:
                    reporter.start(cell.label)
                    yield Ending(cell, record, kept=False)
    finally:
        token.unlink(missing_ok=True)


def _experiment_of(plan: Plan) -> Experiment:
    """The experiment with the seeds that were added to it, so that a worker plans them too."""
    own = plan.experiment
    added = {
        c.seed: None for c in plan.cells if not (isinstance(c.seed, PartSeed) or c.seed in own.seeds or own.blocks)
    }
    stated = {seed for entry in own.methods for seed in entry.seeds}
    more = [seed for seed in added if seed not in stated]
    return own.model_copy(update={"seeds": [*own.seeds, *more]}) if more else own


def work_of(cell: PlannedCell, plan: Plan, workdir: Path) -> float:
    """How long a cell takes, in a unit of no meaning: tokens that it encodes, by the size of what encodes them.

    For an order alone: that the longest cell does not begin when the others have ended.
    """
    config = cell.row.config
    train, tasks = remaining(cell, plan, workdir)
    tokens = 32.0 * sum(len(task.texts()) for task in tasks if task.name not in plan.unreadable) / 3
    if train and (steps := steps_of(cell, plan)):  # forwards and backwards, against one way for the tasks
        tokens += float(steps) * getattr(config, "batch_size", 1) * getattr(config, "train_length", 32)
    return tokens * _size(cell.base_model)


def _size(base_model: str) -> float:
    try:
        return size_of(base_model) or 1.0
    except HarnessError:
        return 1.0  # word vectors and the like


def _precision(plan: Plan, workdir: Path, common: CellJob, executor: Executor) -> str:
    """The training precision, measured once where the cells are run, before the first one."""
    if plan.experiment.precision != "auto":
        return ""
    if executor.here:
        precision_of(plan, workdir)
        return (workdir / "precision.json").read_text("utf-8")
    answer = next(iter(executor.run([Job("precision", measured, (common,))], lambda: None)))
    if answer.error is not None:
        raise answer.error
    if answer.lost:
        raise InputError(f'executor "{executor.name}": {answer.lost}')
    return keep_measured(workdir, answer.value.precision)


def _record(answer: Answer, cell: PlannedCell, plan: Plan, workdir: Path, command_of: CommandOf) -> Record:
    """The record of an answer; a cell that no worker came to the end of has failed, and is tried again next time."""
    if answer.error is not None and not isinstance(answer.error, HarnessError):
        raise answer.error
    if answer.lost or answer.error is not None:
        lost = replace(cell, fault=answer.lost or str(answer.error))
        return run_cell(lost, plan, workdir, command=command_of(cell))
    return record_of(answer.value, workdir, cell.id)


def _watch(reporter: Reporter, cells: dict[str, list[PlannedCell]], workdir: Path, begun: float, count: int) -> None:
    """Have the reporter show what the workers are at."""
    lines = [
        (cells[seen.cell][0].label, seen.step, seen.steps, seen.text)
        for seen in signs(workdir).values()
        if seen.cell in cells and seen.time >= begun - 60  # what a kill left long ago says nothing
    ]
    reporter.running(lines, count - len(cells))
