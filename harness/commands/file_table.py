"""What a whole experiment file asks for: a line for each row and base model, by block, and the sums."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from harness.commands.amounts import duration, size
from harness.commands.planned_rows import tell_added, tell_searches
from harness.commands.terminal import plain, show_table, table_of
from harness.files.printable import one_line, tell

if TYPE_CHECKING:
    from rich.text import Text

    from harness.comparison.plan import Plan, PlannedCell
    from harness.comparison.tuning import Tuning
    from harness.comparison.two_updates import Measured

_HEADS = ("row", "base model", "batch", "runs", "updates", "memory", "s/update", "a run", "in all")


def show_file(plan: Plan, folder: Path, tuning: Tuning | None = None) -> list[PlannedCell]:
    """Print the table of every block, and the sums; the runs that are left. A run in several blocks counts where it
    stands first; the runs of `tuning` and of the rows that it will find are counted in the sums alone."""
    from harness.comparison.kept_results import finished

    left = [cell for cell in plan.cells if not cell.fault and finished(cell, plan, folder) is None]
    sums = _Sums(plan, folder, {cell.id for cell in left})
    for name, block in plan.experiment.parts.items():
        table = table_of(block.title or name or plan.experiment.name, _HEADS, right=_HEADS[2:])
        for cells in _rows(plan, name):
            table.add_row(*sums.line(cells))
        show_table(table)
    left += sums.search(tuning) if tuning is not None else []
    sums.tell()
    return left


class _Sums:
    """What the lines so far add up to."""

    def __init__(self, plan: Plan, folder: Path, to_do: set[str]) -> None:
        from harness.comparison.full_size import Measurements
        from harness.comparison.scoring_time import ScoringTimes

        self.plan, self.to_do = plan, to_do
        self.known, self.scoring = Measurements(folder), ScoringTimes(plan, folder)
        self.counted: set[str] = set()
        self.seconds, self.scored, self.most = 0.0, 0.0, 0
        self.unmeasured: dict[tuple[str, str], None] = {}
        self.remarks: dict[str, None] = {}

    def line(self, cells: list[PlannedCell]) -> tuple[str | Text, ...]:
        """The line of a row on a base model, from its runs in one block."""
        from harness.comparison.estimate import steps_of
        from harness.comparison.full_size import seconds_of

        first, ids = cells[0], {cell.id for cell in cells}
        done = len(ids - self.to_do)
        runs = f"{len(ids)} ({done} done)" if done and not first.fault else f"{len(ids)}"
        batch = str(getattr(first.row.config, "batch_size", ""))
        head = (plain(first.row.label), plain(first.base_model), batch, runs)
        new = (ids & self.to_do) - self.counted
        self.counted |= ids
        if first.fault:
            self.remarks[f"cannot be run: {one_line(first.row.label)}: {one_line(first.fault)}"] = None
            return (*head, "cannot be run")
        steps = steps_of(first, self.plan)
        measured = self.known.of(first, self.plan)
        if measured is None or measured.fault:
            if new:
                self.unmeasured[first.row.label, first.base_model] = None
            if measured is not None:
                self.remarks[_remark(first, measured)] = None
            return (*head, f"{steps:,}", "" if measured is None else "failed")
        if measured.batches:
            self.remarks[_remark(first, measured)] = None
        scored = self.scoring.of(first)
        run = seconds_of(measured, first, self.plan, steps) + scored
        self.seconds += len(new) * run
        self.scored += len(new) * scored
        self.most = max(self.most, measured.memory)
        about = "≈ " if measured.batches else ""
        memory, update = f"{about}{size(measured.memory)}", f"{about}{measured.update:.2f}" if steps else ""
        in_all = duration(len(new) * run) if new or done == len(ids) else "as above"
        return (*head, f"{steps:,}", memory, update, duration(run), in_all)

    def search(self, tuning: Tuning) -> list[PlannedCell]:
        """Count and tell the searches before the comparison; runs as long as those of the rows that they will find."""
        from harness.comparison.estimate import steps_of
        from harness.comparison.full_size import seconds_of
        from harness.comparison.searches_ahead import searches_ahead

        ahead, searching = list(searches_ahead(self.plan, tuning)), 0.0
        for one in ahead:
            first = one.tuned[0]
            measured = self.known.of(first, self.plan)
            if measured is None or measured.fault:
                continue
            trial_steps = steps_of(one.trial, self.plan)
            searching += one.runs * seconds_of(measured, one.trial, self.plan, trial_steps, scored=False)
            run = seconds_of(measured, first, self.plan, steps_of(first, self.plan)) + self.scoring.of(first)
            self.seconds += len(one.tuned) * run
        self.seconds += searching
        tell_searches(tuning, ahead, searching)
        return [cell for one in ahead for cell in one.tuned]

    def tell(self) -> None:
        """Remarks on rows, then runs, time and memory, and what the time leaves out."""
        for remark in self.remarks:
            tell(remark)
        without = {cell.id for cell in self.plan.cells if cell.fault}
        lacking = f", {len(without)} that cannot be run" if without else ""
        tell(f"{len({cell.id for cell in self.plan.cells})} runs: {len(self.to_do)} to do{lacking}")
        tell_added(self.plan)
        if self.seconds:
            tell(f"about {duration(self.seconds)} on {self.plan.device}; up to {size(self.most)} of memory")
            left_out = self.scoring.left_out()
            part = f"in it {duration(self.scored)} of scoring, timed on random vectors; " if self.scored else ""
            names = ", ".join(map(one_line, left_out[:5])) + (f" and {len(left_out) - 5} more" if left_out[5:] else "")
            tasks = f"the scoring of {names}, " if left_out else ""
            tell(f"{part}not in it: {tasks}report and tracking")
        if self.unmeasured:
            tell(f"{len(self.unmeasured)} rows without a time: harness compare ... --rehearse=full-size measures two "
                  "updates of each")  # fmt: skip


def _remark(cell: PlannedCell, measured: Measured) -> str:
    """Why a row has no measure, or how it came by one, and what would let it run."""
    where = f"{one_line(cell.row.label)} on {one_line(cell.base_model)}"
    if measured.fault:
        said = measured.fault
    else:
        batches = " and ".join(map(str, measured.batches))
        said = (
            f"its batch needs {size(measured.memory)}, and {size(measured.free)} could be had (≈: extrapolated from "
            f"batches of {batches})"
        )
    return f"{where}: {one_line(said)}" + (f"; {measured.hint}" if measured.hint else "")


def _rows(plan: Plan, block: str) -> Iterator[list[PlannedCell]]:
    """The cells of each row on each base model that stand in a block."""
    inside = [cell for cell in plan.cells if block in cell.blocks]
    for _, cells in groupby(inside, key=lambda cell: (cell.row.label, cell.base_model)):
        yield list(cells)
