"""The loop of a comparison: every cell of a plan comes to its record, here or elsewhere. Nothing here prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.comparison.keeping import Keeping
from harness.comparison.overlaps import check_overlaps
from harness.comparison.placement import endings
from harness.comparison.plan import Plan, PlannedCell
from harness.comparison.row_facts import planned_rate
from harness.executors.executor import Executor, ExecutorSettings
from harness.executors.serial import Serial
from harness.machine.progress import Reporter
from harness.results.manifest import asked, write_manifest
from harness.results.migrations import MANIFEST
from harness.results.record import Record
from harness.seeds import seed_fields
from harness.tasks.base import task_key

if TYPE_CHECKING:
    from harness.comparison.tuning import Tuning
    from harness.tracking.tracker import Tracker


def run_comparison(
    plan: Plan,
    workdir: Path,
    *,
    command_of: Callable[[PlannedCell], str],
    tracker: Tracker | None = None,
    reporter: Reporter | None = None,
    tuned: Tuning | None = None,
    only: Sequence[str] = (),
    executor: Executor | None = None,
) -> list[Record]:
    """Run every cell that has no record yet; the records of all, in the order of the plan.

    Args:
        plan: what is compared.
        workdir: where runs are kept; the manifest that names them is written first.
        command_of: the command line that makes a cell's run again, for its record.
        tracker: gets every record; without one nothing is tracked.
        reporter: shows how far it is.
        tuned: how rows were tuned, for the manifest.
        only: what part of an experiment the plan was made of (see `harness.comparison.part`), for the manifest.
        executor: where the cells are run; this process when left out.

    Raises:
        OSError: the disk is full or fails. A cell that fails has a record with that status, and does not end the
            others.
    """
    manifest = _manifest(plan, tuned, only)
    write_manifest(workdir, manifest)
    reporter = reporter or Reporter(quiet=True)
    records: dict[tuple[str, str, int], Record] = {}
    said: set[str] = set()
    keeping = Keeping(plan, workdir)
    if plan.schedule.note:
        reporter.say(f"note: {plan.schedule.note}")
    reporter.expect(len(plan.cells))
    for ending in endings(plan, workdir, command_of, reporter, executor or Serial(ExecutorSettings(), workdir)):
        record = asked(keeping.after(ending.cell, ending.record), map(task_key, ending.cell.tasks)).model_copy(
            update={"row": ending.cell.row.label, "comparison": plan.experiment.name}
        )
        records[_place(ending.cell)] = record
        reporter.done(_line_about(record) + (" (kept)" if ending.kept else ""))
        for note in record.training.get("notes", []):
            if note not in said:  # the same data in every cell
                said.add(note)
                reporter.say(f"note: {note}")
        if tracker is not None:
            tracker.log(record)
    plan.team.from_main("")  # no more training: the other processes end
    for line in check_overlaps(plan, workdir):
        reporter.say(line)
    return [records[_place(cell)] for cell in plan.cells]


def _place(cell: PlannedCell) -> tuple[str, str, int]:
    """Row, base model and seed: two rows may have one run."""
    return cell.row.label, cell.base_model, cell.seed


def _manifest(plan: Plan, tuned: Tuning | None, only: Sequence[str]) -> dict[str, Any]:
    """Which runs the comparison and its blocks consist of, the experiment as it was resolved, and how its rows were
    tuned."""
    blocks = [
        {"name": name, "title": b.title or name, "description": b.description, "tasks": plan.keys_of(name)}
        for name, b in plan.experiment.blocks.items()
    ]
    found = tuned.manifest() if tuned else None
    return {
        MANIFEST.key: MANIFEST.version,
        "name": plan.experiment.name,
        "title": plan.experiment.title,
        "description": plan.experiment.description,
        "experiment": plan.experiment.model_dump(mode="json"),
        "tasks": list(plan.evaluation),
        "cells": [
            {"id": c.id, "row": c.row.label, "base_model": c.base_model, **seed_fields(c.seed)}
            | ({"blocks": list(c.blocks)} if blocks else {})
            | ({"rate_from": origin} if (origin := planned_rate(plan, c.row, found)) else {})
            | ({"counterpart": True} if c.row.counterpart else {})
            | ({"untrained": plan.starts[c.id]} if c.id in plan.starts else {})
            for c in plan.cells
        ],
        **({"blocks": blocks} if blocks else {}),
        **({"only": list(only)} if only else {}),
        **({"schedule": asdict(plan.schedule)} if plan.schedule.every else {}),
        **({"tuned": found} if found else {}),
    }


_NAMED = 7  # tasks without scores that a line names


def _line_about(record: Record) -> str:
    """One line about a record: its main scores, or why it has none."""
    if record.status != "finished":
        return f"{'n/a' if record.lacking else record.status}: {record.reason}"
    main = [s for s in record.scores if s.metric == "spearman" and s.aggregation == "all" and s.split == "test"]
    scores = ", ".join(f"{s.task} {100 * s.value:.2f}" for s in main[:7])
    lacking = list(record.missing)
    more = f" and {len(lacking) - _NAMED} more" if len(lacking) > _NAMED else ""
    without = f"; without {', '.join(lacking[:_NAMED])}{more}" if lacking else ""
    best, initial = record.training.get("best_dev"), record.training.get("initial_dev")
    if best is not None and initial is not None and best <= initial:
        without += f"; training never beat the start (dev {100 * best:.2f}, untrained {100 * initial:.2f})"
    return f"{scores}{without} ({record.cost.get('train_seconds', 0):.0f} s training)"
