"""`harness compare --dry-run` and `--rehearse=full-size`: what a comparison would do, and what it asks for here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from harness.commands.planned_rows import tell_budget, tell_differences
from harness.commands.terminal import plain
from harness.files.printable import one_line, tell
from harness.seeds import seed_text

if TYPE_CHECKING:
    from rich.table import Table

    from harness.comparison.plan import Plan, PlannedCell
    from harness.comparison.tuning import Budget

_HEADS = ("row", "base model", "runs", "updates", "s/update", "memory", "in all")
_TO_THE_RIGHT = ("id", "seed", "updates", "about", "runs", "s/update", "memory", "in all")


def show(
    experiment: str,
    workdir: str,
    overrides: Sequence[str],
    only: Sequence[str],
    budget: Budget | None,
    *,
    rehearse: bool = False,
) -> int:
    """Print what a comparison would do, and about how long and how much of the disk it would take on this machine.

    The rows of a file with parts stand by block and are not tried: their times are those that were measured at full
    size.
    """
    from harness.comparison import keeping, other_code

    plan, folder = _planned(experiment, workdir, overrides, only, budget, rehearse=rehearse)
    if plan.experiment.blocks:
        _by_block(plan, folder)
    else:
        _by_cell(plan, folder)
    tell_budget(plan, folder)
    tell_differences(plan)
    if plan.schedule.note:
        tell(f"note: {one_line(plan.schedule.note)}")
    for told in (other_code.told, keeping.told):
        if cost := told(plan, folder):
            tell(cost)
    return 0


def show_measured(
    experiment: str,
    workdir: str,
    overrides: Sequence[str],
    only: Sequence[str],
    budget: Budget | None,
    *,
    rehearse: bool = True,
) -> int:
    """Measure every row at full size, then print what the whole file asks for. Exit code 1 where a row failed."""
    from harness.comparison.full_size import measure, one_a_row

    plan, folder = _planned(experiment, workdir, overrides, only, budget)
    rows, failed = len(one_a_row(plan)), 0
    for number, (cell, measured, kept) in enumerate(measure(plan, folder), 1):
        speed = f"{measured.update:.2f} s an update" if measured.update else "no updates"
        said = measured.fault or f"{speed}, {_size(measured.memory)} of memory"
        told = f"[{number}/{rows}] {one_line(cell.row.label)} · {one_line(cell.base_model)}: {one_line(said)}"
        tell(told + (" (known)" if kept else ""))
        failed += bool(measured.fault)
    _by_block(plan, folder)
    return 1 if failed else 0


def _planned(
    experiment: str,
    workdir: str,
    overrides: Sequence[str],
    only: Sequence[str],
    budget: Budget | None,
    *,
    rehearse: bool = False,
) -> tuple[Plan, Path]:
    from harness.comparison.part import asked_of
    from harness.comparison.plan import LoadedData, make_plan
    from harness.comparison.rehearsal import StandIns, rehearsed
    from harness.comparison.tuning import asked_budget, checked_budget
    from harness.results.run_folder import checked_workdir

    asked = asked_of(experiment, overrides, only, experiment, searched=budget is not None)
    budget = None if rehearse and budget is None else asked_budget(budget, asked)
    if budget is not None:
        budget = checked_budget(budget, asked)
        tell(f"before that (not in the estimate): {budget.trials} trials of {budget.steps} updates for each row")
    data = LoadedData()
    if rehearse:
        data = StandIns(asked.rehearsal)
        asked = rehearsed(asked, data)
    folder = checked_workdir(workdir, create=False)
    return make_plan(asked, experiment, folder, data=data, say=tell, counterparts=True), folder


def _table(title: str, heads: Sequence[str]) -> Table:
    from rich.table import Table

    table = Table(title=plain(title), title_justify="left")
    for head in heads:
        table.add_column(head, justify="right" if head in _TO_THE_RIGHT else "left")
    return table


def _print(table: Table) -> None:
    import sys

    from rich.console import Console

    (Console() if sys.stdout.isatty() else Console(width=160)).print(table)


def _by_cell(plan: Plan, folder: Path) -> None:
    """One line a cell; its row is tried out for the estimate."""
    from harness.comparison.estimate import estimates

    table = _table(
        f"{plan.experiment.name}: {len(plan.cells)} cells",
        ("id", "row", "base model", "seed", "updates", "state", "about"),
    )
    total, left = 0.0, []
    for cell, state, steps, seconds in estimates(plan, folder):
        total += seconds
        left += [cell] if state == "to do" else []
        names = (plain(cell.row.label), plain(cell.base_model))
        table.add_row(cell.id, *names, seed_text(cell.seed), f"{steps:,}", state, f"{seconds:.0f} s")
    _print(table)
    _tell_added(plan)
    tell(f"about {total / 60:.1f} minutes in all on {plan.device}, report and tracking apart")
    _tell_disk(plan, left)


def _by_block(plan: Plan, folder: Path) -> None:
    """One line a row and base model, by block; a run in several blocks counts where it stands first."""
    from harness.comparison.estimate import steps_of
    from harness.comparison.full_size import Measurements
    from harness.comparison.kept_results import finished

    known = Measurements(folder)
    left = [cell for cell in plan.cells if not cell.fault and finished(cell, plan, folder) is None]
    to_do = {cell.id for cell in left}
    counted: set[str] = set()
    total, unmeasured, most = 0.0, 0, 0
    faults: dict[str, str] = {}
    for name, block in plan.experiment.parts.items():
        table = _table(block.title or name or plan.experiment.name, _HEADS)
        for (label, base_model), cells in _rows(plan, name):
            first = cells[0]
            ids = {cell.id for cell in cells}
            runs = f"{len(ids)}" + (f" ({done} done)" if (done := len(ids - to_do)) and not first.fault else "")
            head = (plain(label), plain(base_model), runs)
            new = (ids & to_do) - counted
            counted |= ids
            if first.fault:
                faults[label] = first.fault
                table.add_row(*head, "cannot be run")
                continue
            steps = steps_of(first, plan)
            measured = known.of(first, plan)
            if measured is None or measured.fault:
                unmeasured += bool(new)
                said = ("", "", "" if measured is None else "failed")
            else:
                seconds = len(new) * measured.seconds(first, plan, steps)
                total += seconds
                most = max(most, measured.memory)
                speed = f"{measured.update:.2f}" if steps else ""
                said = (speed, _size(measured.memory), _time(seconds) if new or not ids & to_do else "as above")
            table.add_row(*head, f"{steps:,}", *said)
        _print(table)
    for label, fault in faults.items():
        tell(f"cannot be run: {one_line(label)}: {one_line(fault)}")
    without = {cell.id for cell in plan.cells if cell.fault}
    lacking = f", {len(without)} that cannot be run" if without else ""
    tell(f"{len({cell.id for cell in plan.cells})} runs: {len(to_do)} to do{lacking}")
    _tell_added(plan)
    if total:
        apart = "classifiers of tasks, report and tracking apart"
        tell(f"about {_time(total)} on {plan.device}, {apart}; up to {_size(most)} of memory")
    if unmeasured:
        tell(f"{unmeasured} rows without a time: harness compare ... --rehearse=full-size measures two updates of each")
    _tell_disk(plan, left)


def _tell_added(plan: Plan) -> None:
    """Which untrained starts the file does not hold, and are evaluated all the same."""
    added = {cell.id: cell.row.label for cell in plan.cells if cell.row.counterpart}
    if added:
        names = ", ".join(dict.fromkeys(map(one_line, added.values())))
        tell(f"{len(added)} of them added, the untrained starts that the file does not hold: {names}")


def _rows(plan: Plan, block: str) -> Iterator[tuple[tuple[str, str], list[PlannedCell]]]:
    """(label, base model) and the cells of it that stand in a block."""
    inside = [cell for cell in plan.cells if block in cell.blocks]
    for key, cells in groupby(inside, key=lambda cell: (cell.row.label, cell.base_model)):
        yield key, list(cells)


def _tell_disk(plan: Plan, left: list[PlannedCell]) -> None:
    """What the runs that are left add to the disk."""
    from harness.comparison.disk import disk_of

    disk = disk_of(plan, left)
    if disk.most:
        stays = f"{_size(disk.models)} of weights that stay (keep = {plan.experiment.keep})"
        tell(f"disk: {stays}, {_size(disk.passing)} at work, up to {_size(disk.vectors)} of cached vectors")
    if disk.unknown:
        tell(f"disk: without {', '.join(map(one_line, disk.unknown))}, whose architecture cannot be read")


def _size(count: float) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.0f} MB"


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
