"""The training precision of a work directory."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from harness.comparison.plan import Plan
from harness.files.atomic import sweep, write_atomic

log = logging.getLogger(__name__)

FILE, LOCK = "precision.json", ".precision.lock"


def precision_of(plan: Plan, workdir: Path) -> dict[str, Any]:
    """The training precision of a work directory: measured once, so that no two runs of a comparison differ in it."""
    if plan.experiment.precision != "auto":
        return {"choice": plan.experiment.precision, "reason": "asked for"}
    file = workdir / FILE
    known = read(file)
    if plan.device_name not in known:
        from filelock import FileLock

        with FileLock(workdir / LOCK):  # another comparison may be measuring here
            known = read(file)
            if plan.device_name not in known:
                known[plan.device_name] = _measure(plan)
                sweep(file)
                write_atomic(file, json.dumps(known, indent=1) + "\n")
    precision: dict[str, Any] = known[plan.device_name]
    return precision


def _measure(plan: Plan) -> dict[str, Any]:
    from harness.encoder.precision import choose_precision

    chosen = choose_precision(plan.device)
    return {"choice": chosen.name, **chosen.measurement}


def read(file: Path) -> dict[str, Any]:
    """Device -> its precision, as far as it was measured."""
    try:
        known = json.loads(file.read_text("utf-8")) if file.exists() else {}
        if isinstance(known, dict) and all(isinstance(one, dict) and "choice" in one for one in known.values()):
            return known
    except ValueError:
        pass
    log.warning("%s: damaged; the precision is measured again", file)
    return {}
