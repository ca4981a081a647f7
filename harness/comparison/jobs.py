"""Cells as jobs of an executor: what a worker is told, what it does, and what it sends back.

The work directory holds the truth. A worker that sees it writes the run there, as the coordinator would; one that does
not makes the run in a folder of its own and sends that back, which the coordinator unpacks.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from harness.comparison.carried import carried
from harness.comparison.cell import run_cell, take_part
from harness.comparison.experiment import Experiment
from harness.comparison.kept_results import earlier_record
from harness.comparison.launched import launch, launched
from harness.comparison.measured_files import added_texts, keep_texts, put_texts
from harness.comparison.measured_precision import precision_of
from harness.comparison.packed_run import packed, unpack
from harness.comparison.plan import LoadedData, Plan, PlannedCell, make_plan
from harness.comparison.rehearsal import StandIns
from harness.comparison.watched import CannotWatch, Watched
from harness.errors import RunError, StopAsked
from harness.executors.leaving import leaving
from harness.executors.post import Post
from harness.live.requests import Stop, asked
from harness.live.signs import Sign
from harness.machine.distributed import ALONE, Team, join
from harness.results.record import Record
from harness.results.run_folder import RunFolder

if TYPE_CHECKING:
    from harness.tasks.base import Task


@dataclass(frozen=True)
class CellJob:
    """One cell for a worker; plain texts, so that any engine carries it, and the engine's own post.

    Attributes:
        experiment: as JSON, resolved as the coordinator's is.
        cell, row: id and label of the run; empty: only the precision is to be measured.
        token: name of a file in the work directory, by which a worker knows that it sees the coordinator's.
        measured: what the coordinator's work directory has measured, for a worker that does not see it.
        kept: the weights and scores of the run that are kept there, to which scores are to be added, or its
            checkpoint, as `packed` has them; None where a worker that does not see them is to ask for them.
        processes: how many train the cell together, each on a GPU.
        key: by what a request to stop is known (`harness.live.requests`).
        watched: whether the coordinator follows its dev scores, and may have it end (`harness.comparison.watched`).
        post: of the executor, for a worker that does not see the work directory.
    """

    experiment: str
    where: str
    workdir: str
    cell: str = ""
    row: str = ""
    command: str = ""
    token: str = ""
    measured: Mapping[str, str] = field(default_factory=dict)
    kept: bytes | None = b""
    rehearsal: bool = False
    processes: int = 1
    key: str = ""
    watched: bool = False
    post: Post | None = None


@dataclass(frozen=True)
class Made:
    """What a worker sends back.

    Attributes:
        record: of the run; empty where the precision alone was asked for, or the kept run is lacking.
        archive: the run's folder, of a worker that saw no work directory of the coordinator's.
        measured: what was measured there.
        stopped: it was asked to stop, and has left a checkpoint (in the folder or the archive) instead of a record.
    """

    record: str = ""
    archive: bytes = b""
    measured: Mapping[str, str] = field(default_factory=dict)
    stopped: bool = False

    @property
    def lacks_kept(self) -> bool:
        """Has to be asked again, with what is kept of the run?"""
        return not (self.record or self.stopped)


def measured(job: CellJob) -> Made:
    """The training precision on a worker's device, once for all cells of a comparison."""
    with _workdir(job) as workdir:
        precision_of(_plan(job.experiment, job.where, workdir, job.rehearsal), Path(workdir))
        return Made(measured={} if workdir == job.workdir else added_texts(job.measured, Path(workdir)))


def made(job: CellJob) -> Made:
    """Bring the cell to its record; what a worker is called with.

    Raises:
        StopAsked: the worker is about to be taken away (`harness.executors.leaving`); a checkpoint is written.
    """
    with _workdir(job) as workdir:
        there = workdir == job.workdir
        if not there and job.kept is None:
            return Made()
        folder = RunFolder(Path(workdir), job.cell)
        if asked(Path(workdir), job.key) is not None:
            return Made(stopped=True)
        try:
            if job.processes > 1:
                _together(job, Path(workdir))
            else:
                _alone(job, workdir, ALONE)
        except StopAsked:
            if leaving():  # nobody asked the comparison to stop
                raise
            return Made(stopped=True, archive=b"" if there else packed(folder))
        record = folder.read_if_sound()
        if record is None:
            raise RunError(f"run {job.cell}: ended without a record")
        if there:
            return Made(record.model_dump_json())
        return Made(record.model_dump_json(), packed(folder), added_texts(job.measured, Path(workdir)))


@contextmanager
def _workdir(job: CellJob) -> Iterator[str]:
    """The work directory as this worker has it: the coordinator's, else a folder that is gone with the block."""
    if (Path(job.workdir) / job.token).is_file():
        yield job.workdir
        return
    if job.watched and job.post is None:
        raise CannotWatch(
            "a worker that does not see the work directory cannot be told to give its run up: share the directory with "
            'all workers, use --executor ray with its address, or leave the pruner out (--set pruner="none")'
        )
    with tempfile.TemporaryDirectory(prefix="harness-") as own:
        put_texts(job.measured, Path(own))
        if job.cell:
            folder = RunFolder(Path(own), job.cell)
            folder.path.mkdir(parents=True)  # by it a plan knows under which of its ids a run goes on
            if job.kept:
                unpack(job.kept, folder)
        with carried(job.post, Path(own), job.key, job.cell) if job.post and job.cell else nullcontext():
            yield own


@lru_cache(maxsize=2)
def _loaded(rehearsal: str) -> LoadedData:
    """Texts stay loaded for the next cell."""
    return StandIns(Experiment.model_validate_json(rehearsal).rehearsal) if rehearsal else LoadedData()


@lru_cache(maxsize=1)
def _plan(experiment: str, where: str, workdir: str, rehearsal: bool, team: Team = ALONE) -> Plan:
    """The coordinator's plan, made again here; kept for the next cell of the same comparison."""
    data = _loaded(experiment if rehearsal else "")
    asked = Experiment.model_validate_json(experiment)
    tasks = _tasks(tuple(asked.suites), asked.source) if not asked.blocks else None
    return make_plan(asked, where, Path(workdir), data=data, tasks=tasks, team=team, counterparts=True)


@lru_cache(maxsize=1)
def _tasks(suites: tuple[str, ...], source: Literal["senteval", "mteb"]) -> list[Task]:
    """The same for all trials of a study, so that each set is read once; a study may go by its dev set alone."""
    from harness.tasks.catalogue import resolve_tasks

    return resolve_tasks(suites, source=source) if suites else []


def forget_loaded() -> None:
    """Have this process read plans, tasks and texts anew: for an executor whose jobs run in the process that hands them
    out, where files may have changed since the last comparison."""
    for kept in (_plan, _tasks, _loaded):
        kept.cache_clear()


def _of_row(plan: Plan, job: CellJob) -> Plan:
    """Of the job's row alone: each run of a plan costs a look at the disk, and a worker makes one of thousands."""
    return replace(plan, rows=[row for row in plan.rows if row.label == job.row]) if job.row else plan


def _cell(plan: Plan, job: CellJob) -> PlannedCell:
    for cell in _of_row(plan, job).cells:
        if cell.id == job.cell:
            return cell
    raise RunError(
        f"run {job.cell}: this worker plans no such run: it has another version of the package, or sees other data "
        "than the coordinator"
    )


def _alone(job: CellJob, workdir: str, team: Team) -> None:
    plan = _plan(job.experiment, job.where, workdir, job.rehearsal, team)
    cell = _cell(plan, job)
    watched = Watched(Path(workdir), job.cell) if job.watched else None
    stop = Stop(Path(workdir), job.key)
    with Sign(Path(workdir), job.cell) as sign:

        def on_dev(step: int, score: float) -> None:
            sign.dev(step, score)
            if watched is not None:
                watched.on_dev(step, score)

        def stopping() -> bool:
            if watched is not None:
                watched.look()
            return leaving() or stop()

        run_cell(cell, plan, Path(workdir), command=job.command, progress=sign.step, on_dev=on_dev, stop=stopping)


def _together(job: CellJob, workdir: Path) -> None:
    """Have several processes train the cell."""
    RunFolder(workdir, job.cell).path.mkdir(parents=True, exist_ok=True)
    try:
        launch(__name__, asdict(replace(job, workdir=str(workdir), kept=None, post=None)), job.processes)
    except RunError as error:
        raise RunError(f"run {job.cell}: {error}") from None
    if leaving() or asked(workdir, job.key) is not None:
        raise StopAsked


def _main(file: str) -> None:
    """One of the processes that train a cell together."""
    job = CellJob(**launched(Path(file)))
    experiment = Experiment.model_validate_json(job.experiment)
    team = join(experiment.device)
    with suppress(StopAsked):  # in all of them, at the same update
        if team.main:
            _alone(job, job.workdir, team)
            team.from_main("")  # no more training: the other processes end
            return
        plan = _plan(job.experiment, job.where, job.workdir, job.rehearsal, team)
        take_part(_of_row(plan, job), Path(job.workdir))


def with_kept(job: CellJob, workdir: Path) -> CellJob:
    """The same with what is kept of the run in the coordinator's work directory."""
    return replace(job, kept=packed(RunFolder(workdir, job.cell)))


def is_kept(cell: PlannedCell, workdir: Path) -> bool:
    """Has the run weights and scores, to which others are to be added, or a checkpoint?"""
    folder = RunFolder(workdir, cell.id)
    return folder.checkpoint.exists() or earlier_record(cell, folder) is not None


def record_of(made_elsewhere: Made, workdir: Path, cell: str) -> Record:
    """The record of a cell that a worker made, with its folder in the work directory."""
    if made_elsewhere.archive:
        folder = RunFolder(workdir, cell)
        shutil.rmtree(folder.checkpoint, ignore_errors=True)  # the worker went on from it
        unpack(made_elsewhere.archive, folder)
        keep_texts(made_elsewhere.measured, workdir)
    return Record.model_validate_json(made_elsewhere.record)


def stopped_at(made_elsewhere: Made, workdir: Path, cell: str) -> None:
    """Have the checkpoint of a cell in the work directory, whose worker was asked to stop."""
    if made_elsewhere.archive:
        unpack(made_elsewhere.archive, RunFolder(workdir, cell))


if __name__ == "__main__":
    _main(sys.argv[1])
