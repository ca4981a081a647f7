"""What a change of code costs: runs that are there, the same in all but the code that made them, and made anew."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.comparison.estimate import steps_of
from harness.comparison.plan import Plan, PlannedCell
from harness.config import Config
from harness.files.printable import one_line
from harness.results.manifest import read_records
from harness.results.record import Record
from harness.results.run_folder import RunFolder


def told(plan: Plan, workdir: Path) -> str:
    """One line on the cells whose runs were made by other code and will be made again; empty where there are none."""
    wanting = [cell for cell in plan.cells if not RunFolder(workdir, cell.id).record_file.exists()]
    if not wanting:
        return ""
    records = [r for r in read_records(workdir, damaged={}) if r.status in ("finished", "collapsed", "diverged")]
    earlier = [(cell, run) for cell in wanting if (run := _earlier(cell, plan, records)) is not None]
    if not earlier:
        return ""
    rows = ", ".join(dict.fromkeys(one_line(cell.row.label) for cell, _ in earlier))
    minutes = sum(run.cost.get("train_seconds", 0.0) for _, run in earlier) / 60
    return (
        f"made by other code than today's: {rows}: {len(earlier)} of {len(plan.cells)} runs are made again, with about "
        f"{minutes:.1f} minutes of training; nothing is deleted, the earlier runs stay in {workdir / 'runs'}"
    )


def _earlier(cell: PlannedCell, plan: Plan, records: Sequence[Record]) -> Record | None:
    """The newest run that differs from a cell in nothing but code, None where there is none."""
    same = [record for record in records if _is_same(record, cell, plan)]
    return max(same, key=lambda record: record.finished, default=None)


def _is_same(record: Record, cell: PlannedCell, plan: Plan) -> bool:
    method, config = cell.row.method.name, cell.row.config
    if (record.method, record.base_model) != (method, cell.base_model) or not _is_configured(record, config):
        return False
    if record.identity:
        return _without_code(record.identity) == _without_code(cell.identity)
    # A record of schema version 1 says nothing of the content of its base model, and of its bounds only what they were.
    steps = steps_of(cell, plan)
    known = {
        "seed": record.seed if cell.identity["seed"] is not None else None,
        "corpus": (record.corpus or {}).get("sha256"),
        "inputs": record.inputs,
        "dev": (record.dev or {}).get("sha256"),
    }
    same = _without_code({**cell.identity, **known}) == _without_code(cell.identity)
    return same and record.training.get("planned_steps", steps) == steps


def _is_configured(record: Record, config: Config) -> bool:
    """Has a run this config, but for neutral options that are newer than it?"""
    mine, counting = config.model_dump(mode="json"), config.for_id()
    asked = {key: value for key, value in mine.items() if key in counting or key in record.config}
    return record.config == asked


def _without_code(identity: dict[str, Any]) -> dict[str, Any]:
    inputs = {key: value for key, value in identity["inputs"].items() if not key.endswith(" code")}
    return {**identity, "inputs": inputs, "code": ""}
