"""The training budget that all rows of a comparison share, in a few words."""

from __future__ import annotations

from harness.errors import InputError
from harness.results.store import read_comparison_file
from harness.runs.experiment import BudgetSettings
from harness.runs.measure import clock_name
from reports.read.comparison_runs import Comparison


def budget_facts(comparison: Comparison) -> list[tuple[str, str]]:
    """As the comparison file says it; without a budget, the planned training steps of the rows."""
    devices = [str(r.environment.get("device", "")) for r in comparison.records if r.training.get("planned_steps")]
    clocks = {clock_name(device) for device in devices}
    amount, of = _budget(comparison).describe(clocks.pop() if len(clocks) == 1 else "")
    if amount:
        return [(amount, of)]
    steps = {r.training["planned_steps"] for r in comparison.records if r.training.get("planned_steps")}
    if not steps:
        return []
    return (
        [(f"{steps.pop():,}", "training steps per row")]
        if len(steps) == 1
        else [("each row's own", "number of training steps")]
    )


def _budget(comparison: Comparison) -> BudgetSettings:
    try:
        experiment = (read_comparison_file(comparison.workdir, comparison.name) or {}).get("experiment") or {}
        return BudgetSettings.parse(experiment.get("budget") or {}, "budget")
    except InputError:
        return BudgetSettings()
