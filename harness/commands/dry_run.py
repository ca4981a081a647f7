"""The tables of a dry run: the runs of a plan with what they will cost, and how its rows differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from harness.commands.terminal import print_table
from harness.files.printable import join_some, tell

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
    from harness.runs.costs import IMPOSSIBLE, TO_TRAIN, CostEstimate

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
    tell(f"{_list_states(states)}; {_describe_time(estimate, plan)}")
    if states[TO_TRAIN]:
        weights = _describe_weights(estimate, plan)
        if weights:
            tell(weights)
        if measure and plan.experiment.precision == "fp32":
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
        _duration(cost.seconds) if cost.due else "",
        _duration(cost.total) if cost.due else "",
    )


def _duration(seconds: float | None) -> str:
    from harness.machine.progress import describe_duration

    if seconds is None:
        return "unknown"
    return describe_duration(seconds)


def _list_states(states: Mapping[str, int]) -> str:
    parts = [f"{count} {state}" for state, count in states.items() if count]
    return ", ".join(parts)


def _describe_time(estimate: CostEstimate, plan: Plan) -> str:
    """Say how long all runs take, and on how many GPUs; no total while a part is unknown."""
    from harness.machine.environment import device_name
    from harness.machine.progress import describe_duration

    device = device_name(plan.device)
    total = estimate.seconds()
    if total is None:
        unknown = estimate.unknown()
        return (
            f"the time on {device} is unknown for {len(unknown)} of {len(estimate.rows)} rows: "
            f"{join_some(unknown)} (--measure times two training steps and an encoding of each)"
        )
    if not total:
        return "nothing is left to run"
    at_a_time = estimate.at_a_time()
    text = f"about {describe_duration(total / at_a_time)} on {device}"
    if at_a_time > 1:
        text += f", {at_a_time} runs at a time"
    gpus = plan.experiment.executor.gpus_per_run
    if plan.device.startswith("cuda") or gpus:
        gpu_hours = total / 3600 * (gpus or 1)
        text += f" ({gpu_hours:.1f} GPU-hours)"
    return text


def _describe_weights(estimate: CostEstimate, plan: Plan) -> str:
    """Say what the weights of the runs take on the disk."""
    size = estimate.weights()
    if not size:
        return ""
    keep = 'keep = ["vectors"]'
    return f"their weights take about {size / _GIB:.2f} GiB of the disk ({keep} keeps none)"


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
