"""Finished runs of an earlier version hold scores without the outcomes of their examples. `--rescore outcomes` has them
scored again on those tasks, from the weights that are kept; without it nothing is done for the outcomes' sake."""

from __future__ import annotations

from pathlib import Path

from harness.comparison.kept_weights import kept_report
from harness.comparison.plan import Plan, PlannedCell
from harness.errors import InputError
from harness.files.locks import run_lock
from harness.results.record import Record
from harness.results.run_folder import RunFolder
from harness.tasks.base import needs_model, task_key


def ask_anew(plan: Plan, workdir: Path) -> str:
    """Make tasks without outcomes due again; one line on how many runs are scored anew, and on how many cannot be.

    The scores stay in the record until new ones take their place.
    """
    cells = {cell.id: cell for cell in plan.cells}.values()
    asked, without = 0, 0
    for cell in cells:
        folder = RunFolder(workdir, cell.id)
        if not folder.record_file.exists():
            continue
        with run_lock(folder.path):
            record = folder.read_if_sound()
            if record is None or record.status != "finished" or not (keys := _lacking(cell, folder, record)):
                continue
            if cell.row.trained and kept_report(folder) is None:
                without += 1
                continue
            evaluation = {key: code for key, code in record.evaluation.items() if key not in keys}
            folder.write(record.model_copy(update={"evaluation": evaluation}))
            asked += 1
    said = f"scored again for the outcomes of their examples: {asked} runs"
    return f"{said}; {without} more have none, and their weights were not kept" if without else said


def _lacking(cell: PlannedCell, folder: RunFolder, record: Record) -> set[str]:
    """Tasks of a cell that have scores, but no facts beside them; those that look into the model have no examples."""
    try:
        known = folder.facts()
    except InputError:  # damaged: made anew in any case
        known = {}
    scored = {score.made_by for score in record.scores}
    unknown = [task_key(task) for task in cell.tasks if task.name not in known and not needs_model(task)]
    return scored.intersection(unknown)
