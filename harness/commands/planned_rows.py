"""What a dry run says of the rows: the budget that they share, and what differs between them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.commands.amounts import duration
from harness.commands.terminal import plain
from harness.files.printable import one_line, tell

if TYPE_CHECKING:
    from harness.comparison.plan import Plan
    from harness.comparison.searches_ahead import SearchAhead
    from harness.comparison.tuning import Tuning


def tell_budget(plan: Plan, workdir: Path) -> None:
    """What every row gets as much of as every other; nothing where that is nothing."""
    from harness.comparison.timed_updates import FILE, clock_of

    budget = plan.experiment.budget
    amount, of = budget.said(clock_of(plan.device))
    if not amount:
        return
    measured = ""
    if budget.kind == "seconds":
        measured = (
            f" on {one_line(budget.device or plan.device_name)}; an update of each is timed once ({workdir / FILE})"
        )
    tell(f"budget: {amount} {of}{measured}")


def tell_added(plan: Plan) -> None:
    """Which untrained starts the file does not hold, and are evaluated all the same."""
    added = {cell.id: cell.row.label for cell in plan.cells if cell.row.counterpart}
    if added:
        names = ", ".join(dict.fromkeys(map(one_line, added.values())))
        tell(f"{len(added)} of them added, the untrained starts that the file does not hold: {names}")


def tell_searches(tuning: Tuning, ahead: Sequence[SearchAhead], seconds: float) -> None:
    """Which rows are searched before the comparison, by how many runs of how long; `seconds` is what all take."""
    for search in tuning.rows:
        if not search.study:
            tell(f"{one_line(search.row)}: {one_line(search.reason)}")
    kept = sum(search.trials for search in tuning.rows)
    if not ahead:
        if kept:
            tell(f"tuning: every search has ended ({kept} trials)")
        return
    b, names = tuning.budget, ", ".join(one_line(one.search.row) for one in ahead)
    done = f" ({kept} trials done)" if kept else ""
    about = f", about {duration(seconds)}" if seconds else ""
    tell(f"tuning comes first: {names}: {b.trials} trials each{done}, {sum(one.runs for one in ahead)} runs of up to "
         f"{b.steps:,} updates, seeds {', '.join(map(str, b.seeds))}{about}")  # fmt: skip


def tell_differences(plan: Plan) -> None:
    """The columns in which the rows differ, a line a row; heads of those that usually matter have a star."""
    from rich.console import Console
    from rich.table import Table

    from harness.comparison.row_differences import planned

    found = planned(plan)
    if len(found.rows) < 2:
        return
    if not found.columns:
        tell("what differs between rows: their methods and the methods' own options alone")
        return
    table = Table(title="What differs between rows", title_justify="left")
    table.add_column("row", overflow="fold")
    for fact in found.columns:
        table.add_column(fact.title + ("*" if fact.key in found.marked else ""), overflow="fold")
    for number, (label, _) in enumerate(found.rows):
        table.add_row(plain(label), *(plain(found.cells[fact.key][number] or "–") for fact in found.columns))
    (Console() if sys.stdout.isatty() else Console(width=160)).print(table)
    for fact in found.mattering:
        tell(f"* {fact.why}")
