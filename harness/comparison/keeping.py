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


class Keeping:
    """Removes the weights of runs that have their record, as soon as it is known that they do not stay.

    Runs that another comparison made are left alone.
    """

    def __init__(self, plan: Plan, workdir: Path) -> None:
        self.plan, self.workdir = plan, workdir
        self._rows: dict[tuple[str, str], list[PlannedCell]] = {}
        for cell in plan.cells:
            self._rows.setdefault((cell.row.label, cell.base_model), []).append(cell)
        self._ended: dict[str, Record] = {}

    def after(self, cell: PlannedCell, record: Record) -> Record:
        """Take note of a run that has its record, and remove what is not needed any more; its record as it is then."""
        self._ended[cell.id] = record
        if not self.plan.experiment.keep_vectors and record.status == "finished":
            self._forget_vectors(record, RunFolder(self.workdir, cell.id))
        if self.plan.experiment.keep == "all":
            return record
        complete = [row for row in self._rows.values() if all(other.id in self._ended for other in row)]
        open_ = {other.id for row in self._rows.values() if row not in complete for other in row}
        best = {self._best(row) for row in complete} if self.plan.experiment.keep == "selected" else set()
        for other in dict.fromkeys(other.id for row in complete for other in row):
            if other not in best and other not in open_:
                self._remove(other)
        if self.plan.experiment.keep == "none":
            self._remove(cell.id)
        return self._ended[cell.id]

    def _best(self, row: list[PlannedCell]) -> str:
        """The run with the highest dev score; the first one where none has any."""
        return max(row, key=lambda cell: self._ended[cell.id].training.get("best_dev") or float("-inf")).id

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
        row = next(c.row for row in self._rows.values() for c in row if c.id == record.id)
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
