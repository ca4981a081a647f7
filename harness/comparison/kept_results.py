"""What earlier processes left of a cell: is it finished, what can be added to, and what is damaged?"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from harness.comparison.kept_weights import kept_report
from harness.comparison.plan import Plan, PlannedCell
from harness.comparison.rescoring import due
from harness.files.locks import try_run_lock
from harness.results.checksums import changed
from harness.results.record import Record
from harness.results.run_folder import RunFolder

if TYPE_CHECKING:
    from harness.tasks.base import Task


def finished(cell: PlannedCell, plan: Plan, workdir: Path) -> Record | None:
    """The record of a cell that needs no more work, or None.

    Failed cells, and those a study gave up, run again; finished ones that lack scores are scored on what they lack, and
    those whose pairs or figures are damaged on everything, as long as their weights are kept.
    """
    folder = RunFolder(workdir, cell.id)
    record = folder.read_if_sound()
    if record is None or record.status in ("failed", "pruned"):
        return None
    if record.status == "finished" and (due(record, cell, plan) or _to_repair(cell, folder, record)):
        return None
    return record


def remaining(cell: PlannedCell, plan: Plan, workdir: Path) -> tuple[bool, list[Task]]:
    """Whether a cell that is not `finished` has to be trained, and the tasks that it has to be scored on."""
    folder = RunFolder(workdir, cell.id)
    earlier = earlier_record(cell, folder)
    return earlier is None and not (cell.row.trained and kept_report(folder) is not None), due(earlier, cell, plan)


def earlier_record(cell: PlannedCell, folder: RunFolder) -> Record | None:
    """The finished record of the very weights that this cell has, to which scores can be added, or None.

    Pairs or figures that are damaged are made anew, with all scores.
    """
    record = folder.read_if_sound()
    if record is None or record.status != "finished" or not folder.is_readable() or _damaged(folder, record):
        return None
    return None if cell.row.trained and kept_report(folder) is None else record


def _damaged(folder: RunFolder, record: Record) -> bool:
    """Are pairs, outcomes or figures not what the record says?"""
    files = (folder.pairs_file, folder.outcomes_file, folder.figures_file)
    made = {file.name: record.files.get(file.name, "") for file in files}
    return any(changed(folder, {name: digest for name, digest in made.items() if digest}))


def _to_repair(cell: PlannedCell, folder: RunFolder, record: Record) -> bool:
    """Is something damaged that can be made again without a training?"""
    return _damaged(folder, record) and (not cell.row.trained or kept_report(folder) is not None)


def tidy(folder: RunFolder) -> None:
    """Remove what a kill left in the folder of a finished run, unless another process is at work there."""
    if not folder.checkpoint.exists() and not folder.leftovers():
        return
    with try_run_lock(folder.path) as held:
        if held:
            folder.sweep()
            shutil.rmtree(folder.checkpoint, ignore_errors=True)
