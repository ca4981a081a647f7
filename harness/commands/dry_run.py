"""`harness compare --dry-run` and `--rehearse=full-size`: what a comparison would do, and what it asks for here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.commands.amounts import size
from harness.commands.file_table import show_file
from harness.commands.planned_rows import tell_added, tell_budget, tell_differences, tell_searches
from harness.commands.terminal import plain, show_table, table_of
from harness.files.printable import one_line, tell
from harness.seeds import seed_text

if TYPE_CHECKING:
    from harness.comparison.plan import Plan, PlannedCell
    from harness.comparison.tuning import Budget, Tuning
    from harness.comparison.two_updates import Measured
    from harness.comparison.until import Until


def show(
    experiment: str,
    workdir: str,
    overrides: Sequence[str],
    only: Sequence[str],
    budget: Budget | None,
    *,
    rehearse: bool = False,
    full_size: bool = False,
    until: Until | None = None,
    against: Sequence[str] = (),
) -> int:
    """Print what a comparison would do, and about how long and how much of the disk it would take on this machine.

    The rows of a file with parts stand by block and are not tried: their times are those that were measured at full
    size. `full_size`: every row is, first; exit code 1 where one failed.
    """
    from harness.comparison import keeping, other_code

    plan, folder, tuning = _planned(experiment, workdir, overrides, only, budget, rehearse=rehearse)
    if full_size:
        return _measured(plan, folder, tuning)
    if until is not None:
        plan = _first_look(plan, until)
    if plan.experiment.blocks:
        _tell_disk(plan, show_file(plan, folder))
    else:
        _by_cell(plan, folder, tuning)
    tell_budget(plan, folder)
    tell_differences(plan)
    if against:
        from harness.comparison.beside import set_beside

        for line in set_beside(plan, against, None).told():
            tell(line)
    if plan.schedule.note:
        tell(f"note: {one_line(plan.schedule.note)}")
    for told in (other_code.told, keeping.told):
        if cost := told(plan, folder):
            tell(cost)
    return 0


def _measured(plan: Plan, folder: Path, tuning: Tuning | None) -> int:
    """Measure every row at full size, then print what the whole file asks for."""
    from harness.comparison.full_size import measure, one_a_row
    from harness.comparison.scoring_time import ScoringTimes
    from harness.machine.environment import busy_with_others

    rows, failed = len(one_a_row(plan)), 0
    for number, (cell, measured, kept) in enumerate(measure(plan, folder), 1):
        told = f"[{number}/{rows}] {one_line(cell.row.label)} · {one_line(cell.base_model)}: {_said(measured)}"
        tell(told + (" (known)" if kept else ""))
        failed += bool(measured.fault)
    for task, width, seconds in ScoringTimes(plan, folder).measure():
        tell(f"{one_line(task)}: {seconds:.1f} s of scoring with vectors of {width} numbers")
    _tell_disk(plan, show_file(plan, folder, tuning))
    if load := busy_with_others():
        tell(f"measured beside other work: load {load}; on an idle machine it takes less time")
    return 1 if failed else 0


def _said(measured: Measured) -> str:
    if measured.fault:
        return one_line(measured.fault)
    speed = f"{measured.update:.2f} s an update" if measured.update else "no updates"
    batches = " and ".join(map(str, measured.batches))
    how = f", extrapolated from batches of {batches}; {one_line(measured.hint)}" if batches else ""
    return f"{speed}, {size(measured.memory)} of memory{how}"


def _planned(
    experiment: str,
    workdir: str,
    overrides: Sequence[str],
    only: Sequence[str],
    budget: Budget | None,
    *,
    rehearse: bool = False,
) -> tuple[Plan, Path, Tuning | None]:
    """What would be done, where, and what is known of the searches before it."""
    from harness.comparison.part import asked_of
    from harness.comparison.plan import LoadedData, make_plan
    from harness.comparison.rehearsal import StandIns, rehearsed
    from harness.comparison.tuning import asked_budget, checked_budget, tune_rows
    from harness.results.run_folder import checked_workdir

    asked = asked_of(experiment, overrides, only, experiment, searched=budget is not None)
    budget = None if rehearse and budget is None else asked_budget(budget, asked)
    if budget is not None:
        budget = checked_budget(budget, asked)
    data = LoadedData()
    if rehearse:
        data = StandIns(asked.rehearsal)
        asked = rehearsed(asked, data)
    folder = checked_workdir(workdir, create=False)
    tuning = None
    if budget is not None:
        tuning = tune_rows(asked, budget, folder, dry=True)
        asked = tuning.ended.with_winners(asked)
    return make_plan(asked, experiment, folder, data=data, say=tell, counterparts=True), folder, tuning


def _first_look(plan: Plan, until: Until) -> Plan:
    """The plan of the first look of `--until`; what may follow is told."""
    from harness.comparison.until import Looks, checked_until

    until = checked_until(until, plan.experiment)
    looks = Looks.of(until, plan.experiment)
    begun = looks.begun(plan)
    going = sum(not row.method.card.deterministic for row in plan.rows)
    most = len(begun.cells) + going * (until.most - looks.first)
    bound = f", {until.runs} runs in all" if until.runs else f", {until.hours:g} hours in all" if until.hours else ""
    tell(f"up to the first look, {looks.first} seeds a row; then seed by seed where a decision is open{bound}, "
         f"{most} runs at the very most")  # fmt: skip
    return begun


def _by_cell(plan: Plan, folder: Path, tuning: Tuning | None) -> None:
    """One line a cell; its row is tried out for the estimate."""
    from harness.comparison.estimate import estimate_seconds, estimates, steps_of
    from harness.comparison.searches_ahead import searches_ahead

    ahead = list(searches_ahead(plan, tuning)) if tuning is not None else []
    heads = ("id", "row", "base model", "seed", "updates", "state", "about")
    to_find = f", {sum(len(one.tuned) for one in ahead)} more of tuned rows" if ahead else ""
    title = f"{plan.experiment.name}: {len(plan.cells)} cells{to_find}"
    table = table_of(title, heads, right=("id", "seed", "updates", "about"))
    total, left, a_run = 0.0, [], {}
    for cell, state, steps, seconds in estimates(plan, folder):
        total += seconds
        if state == "to do":
            left.append(cell)
            a_run[cell.row.label] = seconds
        names = (plain(cell.row.label), plain(cell.base_model))
        table.add_row(cell.id, *names, seed_text(cell.seed), f"{steps:,}", state, f"{seconds:.0f} s")
    searching = 0.0
    for one in ahead:
        searching += one.runs * estimate_seconds(one.trial, plan, True, [])
        seconds = a_run.get(one.search.row, 0.0) or estimate_seconds(one.tuned[0], plan, True, list(one.tuned[0].tasks))
        total += len(one.tuned) * seconds
        left += one.tuned
        for cell in one.tuned:
            names = (plain(cell.row.label), plain(cell.base_model))
            table.add_row(
                "", *names, seed_text(cell.seed), f"{steps_of(cell, plan):,}", "to be found", f"{seconds:.0f} s"
            )
    show_table(table)
    tell_added(plan)
    if tuning is not None:
        tell_searches(tuning, ahead, searching)
        total += searching
    tell(f"about {total / 60:.1f} minutes in all on {plan.device}, report and tracking apart")
    _tell_disk(plan, left)


def _tell_disk(plan: Plan, left: list[PlannedCell]) -> None:
    """What the runs that are left add to the disk."""
    from harness.comparison.disk import disk_of

    disk = disk_of(plan, left)
    if disk.most:
        stays = f"{size(disk.models)} of weights that stay (keep = {plan.experiment.keep})"
        tell(f"disk: {stays}, {size(disk.passing)} at work, up to {size(disk.vectors)} of cached vectors")
    if disk.unknown:
        tell(f"disk: without {', '.join(map(one_line, disk.unknown))}, whose architecture cannot be read")
