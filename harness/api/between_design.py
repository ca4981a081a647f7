"""Which rows between two rows are made for `harness.why`, what they cost, and how they are run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harness import registry
from harness.files.locks import comparison_lock
from harness.machine.progress import Reporter
from harness.results.answer import Answer
from harness.results.store import RunFolder
from harness.runs.between import Between, Factor, join_impossible
from harness.runs.due import find_finished
from harness.runs.grid import Grid
from harness.runs.plan import Plan
from harness.runs.progress import Progress
from harness.runs.rows import Row
from harness.runs.runner import Runner
from harness.tracking import open_tracker
from reports.live import page
from reports.why.explanation import parts_of, unions
from reports.why.shares import Design, Subset, draw_orders

COMPLETE = 4  # factors up to which all rows between are made

Parts = frozenset[str]  # the groups of settings that a row has from the first row


@dataclass(frozen=True)
class Made:
    """A design before it is run.

    Attributes:
        factors: as they are after those whose rows cannot be made were joined.
        missing: runs that do not exist yet.
        notes: what a reader has to know of how it was made.
    """

    factors: list[Factor]
    design: Design
    rows: dict[Subset, Row]
    plan: Plan
    missing: int
    notes: tuple[str, ...]

    @property
    def labels(self) -> dict[Parts, str]:
        """The settings that a row has from the first row -> its label."""
        groups = [factor.parts for factor in self.factors]
        labels = {}
        for subset, row in self.rows.items():
            labels[parts_of(groups, subset)] = row.label
        return labels


@dataclass(frozen=True)
class Designer:
    """Makes designs of the rows between two rows in a work directory."""

    between: Between
    folder: Path

    def make(self, factors: Sequence[Factor], runs: int | None) -> Made:
        """Return the design of some factors: all rows between, or those of so many orders as the
        new runs allow.
        """
        factors, rows, notes = self._make_rows(list(factors))
        count = len(factors)
        complete = self._design(factors, Design(count), rows, notes)
        if count <= COMPLETE or (runs is not None and complete.missing <= runs):
            return complete
        largest = None
        for pairs in range(1, math.factorial(count) // 2 + 1):
            design = Design(count, draw_orders(count, pairs))
            made = self._design(factors, design, rows, notes)
            if largest is not None and runs is not None and made.missing > runs:
                break
            largest = made
            has_all = len(made.rows) == len(rows)
            if has_all or (runs is None and pairs == count):
                break
        return largest or complete

    def _make_rows(
        self, factors: list[Factor]
    ) -> tuple[list[Factor], dict[Subset, Row], tuple[str, ...]]:
        """Return all rows between, of factors that are joined until each row can be made."""
        notes: tuple[str, ...] = ()
        while True:
            subsets = unions([factor.parts for factor in factors])
            rows, reasons = self.between.try_rows(factors, subsets)
            if not reasons:
                return factors, rows, notes
            reason = next(iter(reasons.values()))
            factors, joined = join_impossible(factors, reasons)
            notes = (
                f"Changed together, since rows between cannot be made: {'; '.join(joined)} "
                f"({reason}).",
            )

    def _design(
        self,
        factors: list[Factor],
        design: Design,
        rows: dict[Subset, Row],
        notes: tuple[str, ...],
    ) -> Made:
        some = {subset: rows[subset] for subset in design.subsets}
        plan = self.between.plan_of(some)
        missing = set()
        for job in plan.jobs:
            if find_finished(job, self.folder) is None:
                missing.add(job.id)
        return Made(factors, design, some, plan, len(missing), notes)


def describe_plan(made: Made, between: Between, folder: Path, command: str) -> Answer:
    """Return the rows between, how many runs exist, and what the others cost; nothing is trained."""
    ids = {job.id for job in made.plan.jobs}
    cost = _estimate_cost(made, folder)
    existing = len(ids) - made.missing
    lines = [f"{between.a.label} and {between.b.label} differ in {len(made.factors)} factors:"]
    for factor in made.factors:
        lines.append(f"  {factor.describe()}")
    lines += made.notes
    lines.append(
        f"{len(made.rows)} rows between them, {len(between.seeds)} seeds each: {len(ids)} runs, of "
        f"which {existing} exist"
    )
    for row in made.rows.values():
        lines.append(f"  {row.label}")
    if made.design.orders:
        lines.append(f"These are the rows of {len(made.design.orders)} orders of the changes.")
    if cost is not None:
        duration = _duration(cost)
        lines.append(f"The {made.missing} new runs take about {duration} one after another.")
    lines.append(f"Nothing was trained. To answer: {command} --runs {made.missing}")
    data: dict[str, Any] = {
        "a": between.a.label,
        "b": between.b.label,
        "factors": [
            {"factor": factor.name, "settings": factor.describe()} for factor in made.factors
        ],
        "rows": [row.label for row in made.rows.values()],
        "runs": len(ids),
        "missing": made.missing,
        "seconds": cost,
    }
    return Answer("\n".join(lines), data, data["factors"])


def _estimate_cost(made: Made, folder: Path) -> float | None:
    """Return the seconds of the new runs, by the mean of those that exist; None where none does."""
    seconds = []
    for job_id in dict.fromkeys(job.id for job in made.plan.jobs):
        record = RunFolder(folder, job_id).read_if_sound()
        if record is not None and record.seconds > 0:
            seconds.append(record.seconds)
    if seconds:
        return made.missing * float(np.mean(seconds))
    return None


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def run_design(
    plan: Plan,
    folder: Path,
    reporter: Reporter,
    tracking_uri: str | None,
    command: str,
) -> None:
    """Run the rows of a design as an ordinary comparison.

    Raises:
        RunError: a stop was requested.
    """
    e = plan.experiment
    with comparison_lock(folder, e.name):
        tracker = open_tracker(folder, e.name, tracking_uri)
        make_executor = registry.load(registry.EXECUTORS, e.executor.name)
        executor = make_executor(e.executor, folder)
        with reporter, closing(tracker) if tracker is not None else nullcontext():
            progress = Progress(folder, e.name, "comparison", e.title, executor, reporter, page)
            grid = Grid(plan, folder, progress, command_of=lambda job: command, tracker=tracker)
            Runner(folder, executor, progress).run(grid)
