"""Whose weights and vectors stay after scoring: `keep` and `keep_vectors` of an experiment.

Weights that are removed are trained again when they are asked for, and vectors encoded again.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from harness.comparison.kept_results import earlier_record, finished
from harness.comparison.plan import Plan, PlannedCell
from harness.evaluation.vector_cache import EmbeddingCache, folder_hash
from harness.files.locks import run_lock
from harness.files.printable import one_line
from harness.identity.code import code_ids
from harness.results.checksums import MODEL, weights
from harness.results.record import Record
from harness.results.run_folder import RunFolder

_RowKey = tuple[str, str]  # its label, and a base model


class Keeping:
    """Removes the weights of runs that have their record, as soon as it is known that they do not stay.

    Runs that another comparison made are left alone.
    """

    def __init__(self, plan: Plan, workdir: Path) -> None:
        self.plan, self.workdir = plan, workdir
        self._rows: dict[_RowKey, list[PlannedCell]] = {}
        self._rows_with: dict[str, list[_RowKey]] = {}  # by run: two rows may have one
        for cell in plan.cells:
            key = cell.row.label, cell.base_model
            self._rows.setdefault(key, []).append(cell)
            self._rows_with.setdefault(cell.id, []).append(key)
        self._open = {key: {cell.id for cell in row} for key, row in self._rows.items()}
        self._ended: dict[str, Record] = {}
        self._best: set[str] = set()  # of the rows that are complete

    def after(self, cell: PlannedCell, record: Record) -> Record:
        """Take note of a run that has its record, and remove what is not needed any more; its record as it is then."""
        self._ended[cell.id] = record
        if not self.plan.experiment.keep_vectors and record.status == "finished":
            self._forget_vectors(record, RunFolder(self.workdir, cell.id))
        if self.plan.experiment.keep == "none":
            self._remove(cell.id)
        if self.plan.experiment.keep == "selected":
            for key in self._rows_with[cell.id]:
                self._open[key].discard(cell.id)
            for key in self._rows_with[cell.id]:
                if not self._open[key]:
                    self._select(self._rows[key])
        return self._ended[cell.id]

    def _select(self, row: list[PlannedCell]) -> None:
        """Of a row that is complete the run with the highest dev score stays (the first one where none has any), and
        what a row that is not asks for."""
        self._best.add(max(row, key=lambda c: self._ended[c.id].training.get("best_dev") or float("-inf")).id)
        for run in dict.fromkeys(cell.id for cell in row):
            if run not in self._best and not any(self._open[key] for key in self._rows_with[run]):
                self._remove(run)

    def _remove(self, run: str) -> None:
        record, folder = self._ended[run], RunFolder(self.workdir, run)
        own = (record.comparison + "--").startswith(self.plan.experiment.name + "--")
        if not own or record.status != "finished" or not folder.model.exists():
            return
        with run_lock(folder.path):
            record = folder.read_if_sound() or record
            self._forget_vectors(record, folder)
            files = {name: digest for name, digest in record.files.items() if not name.startswith(MODEL)}
            removed = record.removed or weights(folder)
            self._ended[run] = record.model_copy(update={"files": files, "removed": removed})
            folder.write(self._ended[run])  # before they are gone
            folder.fitted_file.unlink(missing_ok=True)
            shutil.rmtree(folder.model, ignore_errors=True)

    def _forget_vectors(self, record: Record, folder: RunFolder) -> None:
        """The vectors that a run was scored by."""
        row = self._rows[self._rows_with[record.id][0]][0].row
        cache = EmbeddingCache(self.workdir / "embeddings")
        stored = cache.of(
            folder_hash(folder.model) if row.trained else record.id,
            str(record.config.get("pooling")),
            code=code_ids(row.method)[0],
            device=self.plan.device_name,
        )
        shutil.rmtree(stored.folder, ignore_errors=True)


def retrained(folder: RunFolder, earlier: Record | None) -> Record | None:
    """The record whose removed weights have just been made again, bit by bit: its scores stand. None for any other."""
    if earlier is None or earlier.status != "finished" or not earlier.removed:
        return None
    return earlier if earlier.removed == weights(folder) else None


def told(plan: Plan, workdir: Path) -> str:
    """One line on the runs that are trained again because their weights were removed; empty where there are none."""
    folders = [(cell, RunFolder(workdir, cell.id)) for cell in {cell.id: cell for cell in plan.cells}.values()]
    again = [
        cell
        for cell, folder in folders
        if (record := folder.read_if_sound()) is not None
        and record.removed
        and finished(cell, plan, workdir) is None
        and earlier_record(cell, folder) is None
    ]
    if not again:
        return ""
    rows = ", ".join(dict.fromkeys(one_line(cell.row.label) for cell in again))
    return f"new scores are asked of runs whose weights were not kept: {rows}: {len(again)} runs are trained again"
