"""How much of a device training used: `mfu`, the operations of its encoders a second against the most that there are.

Model FLOP utilisation is PaLM's (Chowdhery et al. 2022, appendix B). The most is the maker's data sheet for the GPUs
that `harness.machine.peak` knows, and else what products of square matrices reach here, which is less: measured once
for each device, precision and number of threads, and kept in `WORKDIR/peak.json`.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from harness.files.atomic import sweep, write_atomic
from harness.machine.environment import device_name
from harness.machine.peak import peak_flops, sheet_flops

log = logging.getLogger(__name__)

FILE, LOCK = "peak.json", ".peak.lock"


def utilisation(
    cost: dict[str, float], workdir: Path, device: str, precision: str, processes: int = 1
) -> dict[str, float]:
    """`mfu`, a share, and `peak_flops` of one device, for the cost of a training; empty where its work was not counted.

    Never raises: a peak that cannot be measured is not worth a run.

        >>> cost = {"train_flops": 1e9, "train_seconds": 10.0}
        >>> found = utilisation(cost, work, "cpu", "fp32")
        >>> found["mfu"] == 1e8 / found["peak_flops"]
        True

    Args:
        cost: with `train_flops` and `train_seconds`.
        processes: devices that trained together.
    """
    flops, seconds = cost.get("train_flops", 0.0), cost.get("train_seconds", 0.0)
    if not (flops and seconds):
        return {}
    try:
        peak = _peak(workdir, device, precision)
    except Exception as error:
        log.warning("the peak of %s was not measured: %s", device, error)
        return {}
    return {"mfu": flops / seconds / (peak * processes), "peak_flops": peak}


def _peak(workdir: Path, device: str, precision: str) -> float:
    import torch
    from filelock import FileLock

    cuda = device.startswith("cuda")
    if cuda and precision == "fp32" and torch.backends.cuda.matmul.allow_tf32:
        precision = "tf32"
    name = device_name(device)
    if cuda and (known := sheet_flops(name, precision)) is not None:
        return known
    key = f"{name}, {precision}" + ("" if cuda else f", {torch.get_num_threads()} threads")
    file = workdir / FILE
    if key not in read(file):
        with FileLock(workdir / LOCK):  # another comparison may be measuring here
            kept = read(file)
            if key not in kept:
                sweep(file)
                kept[key] = {"flops": peak_flops(device, precision)}
                write_atomic(file, json.dumps(kept, indent=1) + "\n")
    return float(read(file)[key]["flops"])


def read(file: Path) -> dict[str, Any]:
    """Device, precision and threads -> operations a second, as far as they were measured.

    >>> read(work / "no-such.json")
    {}
    """
    try:
        known = json.loads(file.read_text("utf-8")) if file.exists() else {}
        if isinstance(known, dict) and all(float(one["flops"]) > 0 for one in known.values()):
            return known
    except (ValueError, TypeError, KeyError):
        pass
    log.warning("%s: damaged; the most that devices can do is measured again", file)
    return {}
