"""The loop of a comparison: every cell of a plan comes to its record, here or elsewhere. Nothing here prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.comparison.beside import Beside, under_protocols
from harness.comparison.keeping import Keeping
from harness.comparison.overlaps import check_overlaps
from harness.comparison.placement import Place as _Place
from harness.comparison.placement import endings, place_of
from harness.comparison.plan import Plan, PlannedCell
from harness.comparison.row_facts import planned_rate
from harness.errors import StopAsked
from harness.executors.executor import Executor, ExecutorSettings
from harness.executors.serial import Serial
from harness.live.before import state_of
from harness.live.state import Cell
from harness.live.watch import Watch
from harness.machine.progress import Reporter
from harness.results.manifest import asked, write_manifest
from harness.results.migrations import MANIFEST
from harness.results.record import Record
from harness.seeds import seed_fields, seed_text
from harness.tasks.base import task_key

if TYPE_CHECKING:
    from harness.comparison.tuning import Tuning
    from harness.comparison.until import Looks
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
    looks: Looks | None = None,
    beside: Beside | None = None,
) -> list[Record]:
    """Run every cell that has no record yet; the records of all, in the order of the plan.

    With `looks`, seeds are added to it after each look, until it is decided.

    Args:
        plan: what is compared.
        workdir: where runs are kept; the manifest that names them is written first.
        command_of: the command line that makes a cell's run again, for its record.
        tracker: gets every record; without one nothing is tracked.
        reporter: shows how far it is.
        tuned: how rows were tuned, for the manifest.
        only: what part of an experiment the plan was made of (see `harness.comparison.part`), for the manifest.
        executor: where the cells are run; this process when left out.
        looks: the course of `--until`, of which the plan is that of the first look.
        beside: rows made elsewhere, whose runs are in `workdir`; their records follow those of the plan.

    Raises:
        OSError: the disk is full or fails. A cell that fails has a record with that status, and does not end the
            others. RunError: somebody asked it to stop.
    """
    executor = executor or Serial(ExecutorSettings(), workdir)
    workers = (executor.settings.workers or 1) if executor.elsewhere else 1
    name, title = plan.experiment.name, plan.experiment.title
    watch = Watch(workdir, name, title=title, executor=executor.name, workers=workers, reporter=reporter)
    try:
        with watch:
            return _run(plan, workdir, command_of, tracker, watch, tuned, only, executor, looks, beside)
    except StopAsked:
        raise watch.stopped() from None


def _run(
    plan: Plan,
    workdir: Path,
    command_of: Callable[[PlannedCell], str],
    tracker: Tracker | None,
    watch: Watch,
    tuned: Tuning | None,
    only: Sequence[str],
    executor: Executor,
    looks: Looks | None,
    beside: Beside | None,
) -> list[Record]:
    """As `run_comparison`."""
    records: dict[_Place, Record] = {}
    kept: dict[_Place, Record] = {}  # as their folders have them
    said: set[str] = set()
    if plan.schedule.note:
        watch.say(f"note: {plan.schedule.note}")
    while True:
        write_manifest(workdir, _manifest(plan, tuned, only, looks, beside))
        keeping = Keeping(plan, workdir)
        watch.expect([_told(cell) for cell in plan.cells])
        for ending in endings(plan, workdir, command_of, watch, executor, kept):
            place = place_of(ending.cell)
            kept[place] = keeping.after(ending.cell, ending.record)
            if place in records:
                continue
            records[place] = record = asked(kept[place], map(task_key, ending.cell.tasks)).model_copy(
                update={"row": ending.cell.row.label, "comparison": plan.experiment.name}
            )
            _tell_done(watch, ending.cell, record, kept=ending.kept)
            for note in record.training.get("notes", []):
                if note not in said:  # the same data in every cell
                    said.add(note)
                    watch.say(f"note: {note}")
            if tracker is not None:
                tracker.log(record)
        more = None
        if looks is not None:
            looks.open()
            write_manifest(workdir, _manifest(plan, tuned, only, looks))
            more = looks.close(plan, workdir, list(records.values()))
            write_manifest(workdir, _manifest(plan, tuned, only, looks))
            watch.say(looks.told())
        if more is None:
            break
        plan = more
    plan.team.from_main("")  # no more training: the other processes end
    for line in check_overlaps(plan, workdir):
        watch.say(line)
    own = [records[place_of(cell)] for cell in plan.cells]
    if beside is None:
        return own
    beside = under_protocols(beside, own)
    write_manifest(workdir, _manifest(plan, tuned, only, looks, beside))
    for line in beside.told():
        watch.say(line)
    return own + beside.records(plan.experiment.name)


def _told(cell: PlannedCell) -> Cell:
    """A cell as watchers know it."""
    return Cell(cell.id, cell.label, cell.row.label, cell.base_model, seed_text(cell.seed))


def _tell_done(watch: Watch, cell: PlannedCell, record: Record, *, kept: bool) -> None:
    """Tell how a cell ended, and how long it took: by the clock, or by its parts where it was made in several goes."""
    began, ended = (datetime.fromisoformat(at).timestamp() if at else 0.0 for at in (record.started, record.finished))
    watch.done(
        cell.label,
        state_of(record, kept=kept),
        _line_about(record) + (" (kept)" if kept else ""),
        reason=record.reason,
        seconds=max(ended - began, record.seconds),
        training=record.cost.get("train_seconds", 0.0) + record.cost.get("dev_seconds", 0.0),
        record=record,
    )


def _manifest(
    plan: Plan, tuned: Tuning | None, only: Sequence[str], looks: Looks | None = None, beside: Beside | None = None
) -> dict[str, Any]:
    """Which runs the comparison and its blocks consist of, the experiment as it was resolved, how its rows were tuned,
    and the looks that were taken before seeds were added."""
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
            | ({"look": looks.look_of(c)} if looks else {})
            for c in plan.cells
        ]
        + (beside.cells([block["name"] for block in blocks]) if beside else []),
        **({"blocks": blocks} if blocks else {}),
        **({"only": list(only)} if only else {}),
        **({"schedule": asdict(plan.schedule)} if plan.schedule.every else {}),
        **({"tuned": found} if found else {}),
        **({"until": looks.manifest()} if looks else {}),
        **({"not_beside": beside.manifest()} if beside else {}),
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
    return f"{scores}{without} ({_training(record.cost)})"


def _training(cost: dict[str, float]) -> str:
    """Seconds of training, and how fast it was where that was counted."""
    seconds, tokens, mfu = (cost.get(key) for key in ("train_seconds", "train_tokens_per_second", "mfu"))
    said = [f"{seconds or 0:.0f} s training", f"{tokens:,.0f} tokens/s" if tokens else ""]
    return ", ".join(part for part in (*said, f"MFU {100 * mfu:.0f} %" if mfu else "") if part)
