"""The tables of a dry run: the runs of a plan with what they will cost, and how its rows differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from harness.commands.terminal import print_table
from harness.files.printable import join_some, tell, tell_lines

if TYPE_CHECKING:
    from harness.runs.costs import CostEstimate, RowCost
    from harness.runs.plan import Plan

_GIB = 2**30
_HEADS = ("row", "base model", "runs", "training steps", "state", "a run", "all")


def show_runs(plan: Plan, workdir: Path, *, measure: bool) -> None:
    """Print a line for each row and base model (number of runs, training steps, what is reused,
    time), and what all of it costs.

    Args:
        measure: time two training steps and an encoding of each row for which nothing is known.
    """
    from harness.runs.costs import IMPOSSIBLE, TO_SCORE, TO_TRAIN, CostEstimate

    estimate = CostEstimate(plan, workdir, measure=measure)
    lines = []
    for (label, base), cost in estimate.rows.items():
        lines.append(_describe_row(label, base, cost))
    size = f"{len(plan.jobs)} runs of {len(estimate.rows)} rows"
    title = f"{plan.experiment.name}: {size}"
    print_table(title, _HEADS, lines, texts=True)
    _show_missing(estimate)
    added = dict.fromkeys(row.label for row in plan.rows if row.added)
    if added:
        tell(f"added as untrained starts of rows: {join_some(list(added), 8)}")
    states = Counter[str]()
    for cost in estimate.rows.values():
        states += cost.states
    if set(states) == {IMPOSSIBLE}:
        tell(f"{_list_states(states)}: nothing can be run here")
        return
    tell(f"{_list_states(states)}; {estimate.describe()}")
    show_script(plan, workdir, states[TO_TRAIN] + states[TO_SCORE])
    if disk := _describe_disk(estimate):
        tell(disk)
    if states[TO_TRAIN] and measure and plan.experiment.precision == "fp32":
        from harness.encoder.precision import describe_bf16

        tell(f'precision is fp32; {describe_bf16(plan.device)} here (precision = "bf16")')


def _show_missing(estimate: CostEstimate) -> None:
    """Print each reason why rows cannot be run here, or measured, with the rows."""
    missing: dict[str, dict[str, None]] = {}
    for (label, _), cost in estimate.rows.items():
        reason = cost.jobs[0].spec.missing
        if reason:
            missing.setdefault(reason, {})[label] = None
        if cost.fault:
            tell(f"{label}: {cost.fault}")
    for reason, labels in missing.items():
        tell(f"n/a: {join_some(list(labels))}: {reason}")


def _describe_row(label: str, base: str, cost: RowCost) -> tuple[str, ...]:
    steps = cost.jobs[0].steps
    return (
        label,
        base,
        str(len(cost.jobs)),
        f"{steps:,}" if steps else "–",
        _list_states(cost.states),
        _duration(cost.seconds, cost.rough) if cost.due else "",
        _duration(cost.total, cost.rough) if cost.due else "",
    )


def _duration(seconds: float | None, rough: bool) -> str:
    from harness.machine.progress import describe_duration

    if seconds is None:
        return "unknown"
    if rough:
        return f"~ {describe_duration(seconds)}"
    return describe_duration(seconds)


def _list_states(states: Mapping[str, int]) -> str:
    parts = []
    for state, count in states.items():
        if count:
            parts.append(f"{count} {state}")
    return ", ".join(parts)


def _describe_disk(estimate: CostEstimate) -> str:
    """Say what the runs take on the disk; empty where that is next to nothing."""
    parts = []
    for what, size in estimate.disk().items():
        if size > _GIB / 200:
            parts.append(f"{what} {size / _GIB:.2f} GiB")
    if not parts:
        return ""
    return f"on the disk: about {', '.join(parts)} (keep = [] keeps neither weights nor vectors)"


def show_script(plan: Plan, workdir: Path, due: int) -> None:
    """Print the script that SLURM would get for the runs that are due, and have `sbatch` check it.

    Raises:
        InputError: an option is wrong, or sbatch refuses the script.
    """
    from harness.executors.executor import open_executor
    from harness.executors.slurm import Slurm

    settings = plan.experiment.executor
    if settings.name != Slurm.name or not due:
        return
    if find_spec("submitit") is None:
        tell('no script: executor "slurm" needs submitit: pip install "sentence-harness[slurm]"')
        return
    executor = open_executor(settings, workdir)
    if not isinstance(executor, Slurm):  # of another package
        return
    script = executor.make_script(due)
    tell("the script that sbatch gets:")
    tell_lines(script)
    said = executor.check_script(script)
    if said:
        tell(f"sbatch --test-only: {said}")
    else:
        tell("not checked: there is no sbatch here")


def show_differences(plan: Plan) -> None:
    """Print the settings in which rows differ, a line per row; columns that usually matter are
    marked with a star.
    """
    from harness.runs.differences import find_planned_differences

    found = find_planned_differences(plan)
    fits = 2 <= len(found.rows) <= 60
    if not fits or not found.columns:
        return
    heads = []
    for column in found.columns:
        mark = "*" if column in found.marked else ""
        heads.append(column.title + mark)
    lines = []
    for place, (label, _) in enumerate(found.rows):
        texts = [found.texts[column.key][place] for column in found.columns]
        cells = [text or "–" for text in texts]
        lines.append((label, *cells))
    legend = [f"* {column.title}: {column.why}" for column in found.marked]
    print_table("Settings in which rows differ", ("row", *heads), lines, legend, texts=True)
