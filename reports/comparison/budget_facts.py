"""The budget of a comparison in a few words: what every row had as much of as every other."""

from __future__ import annotations

from harness.comparison.budget import BudgetSettings
from harness.comparison.timed_updates import clock_of
from harness.errors import InputError
from harness.results.manifest import read_manifest
from reports.read.comparison_runs import Comparison


def budget_facts(comparison: Comparison) -> list[tuple[str, str]]:
    """As the manifest says it; without a budget, the updates of the rows as they were planned."""
    devices = [str(r.environment.get("device", "")) for r in comparison.records if r.training.get("planned_steps")]
    clocks = {clock_of(device) for device in devices}
    amount, of = _budget(comparison).said(clocks.pop() if len(clocks) == 1 else "")
    if amount:
        return [(amount, of)]
    updates = {r.training["planned_steps"] for r in comparison.records if r.training.get("planned_steps")}
    if not updates:
        return []
    return [(f"{updates.pop():,}", "updates a row")] if len(updates) == 1 else [("each row's own", "number of updates")]


def _budget(comparison: Comparison) -> BudgetSettings:
    try:
        experiment = (read_manifest(comparison.workdir, comparison.name) or {}).get("experiment") or {}
        return BudgetSettings.parse(experiment.get("budget") or {}, "budget")
    except InputError:
        return BudgetSettings()
