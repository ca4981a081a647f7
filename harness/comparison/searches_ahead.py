"""What `--tune`, or a budget of equal trials, still asks for: trials of each row, then runs of the tuned rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from harness.comparison.plan import Plan, PlannedCell
from harness.comparison.tuning import RowSearch, Tuning


@dataclass(frozen=True)
class SearchAhead:
    """The search of a row that has trials left.

    Attributes:
        tuned: runs of the row that it will find: as many and as long as those of the row itself.
        trial: a run of a trial, as long as the budget lets it be.
        runs: how many of these are left, at most: what is proposed twice is trained once.
    """

    search: RowSearch
    tuned: tuple[PlannedCell, ...]
    trial: PlannedCell
    runs: int


def searches_ahead(plan: Plan, tuning: Tuning) -> Iterator[SearchAhead]:
    """One a row with trials left; rows that are not searched, and ended searches, are none."""
    budget = tuning.budget
    for search in tuning.rows:
        left = budget.trials - search.trials
        if not search.study or left <= 0:
            continue
        cells = [cell for cell in plan.cells if cell.row.label == search.row]
        row = cells[0].row
        tuned = [replace(cell, id=f"{cell.id}-tuned", row=replace(row, label=search.label)) for cell in cells]
        trial = replace(cells[0], row=replace(row, max_steps=budget.steps))
        yield SearchAhead(search, tuple(tuned), trial, left * len(budget.seeds))
