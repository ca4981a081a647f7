"""The cost of inference of a fitted method, measured on this machine."""

from __future__ import annotations

import logging
import math
import time
from pathlib import Path
from typing import Any

from harness.machine.environment import device_name
from harness.method import Method
from harness.results.measurements import PROCESSOR, WALL, InferenceCost, measure_once

log = logging.getLogger(__name__)

SENTENCES = 64  # of a pass of inference
PASSES = 7  # over these sentences
_SHORTEST = 0.05  # seconds of a pass: a clock's steps and a collection of garbage are small compared with it
LONGEST = 20.0  # seconds of all passes: of a large network there are fewer


def measure_inference(method: Method, workdir: Path, device: str) -> str:
    """Measure the encoding of a fitted method, once for each architecture; returns the
    architecture's name.

    Passes over the same embedded sentences use one thread, in processor time (elapsed time on a
    GPU). It never raises: the name is "" where the cost cannot be measured.
    """
    from harness.evaluation.any_model import architecture

    def measure() -> dict[str, Any]:
        return {**conditions.model_dump(), "seconds": _time_passes(method, device)}

    try:
        name = architecture(method)
        clock = WALL if device.startswith("cuda") else PROCESSOR
        conditions = InferenceCost(
            architecture=name,
            device=device_name(device),
            threads=1,
            precision=method.dtype,
            clock=clock,
            sentences=SENTENCES,
            seconds=[],
        )
        measure_once(workdir, "inference", conditions.key, measure)
        return name
    except Exception as error:
        log.warning("the cost of inference of %s was not measured: %s", method.name, error)
        return ""


def _time_passes(method: Method, device: str) -> list[float]:
    """Seconds of each pass; at least one, fewer where they take long."""
    import torch

    from harness.sources import embedded_rows

    rows = embedded_rows("sentences", ("a",))
    texts = [row["text"] for row in rows[:SENTENCES]]
    if device.startswith("cuda"):
        clock = time.perf_counter
    else:
        clock = time.process_time

    def seconds(repeats: int) -> float:
        start = clock()
        for _ in range(repeats):
            method.encode(texts, device=device)  # vectors in main memory: a GPU has finished too
        return (clock() - start) / repeats

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        first = max(seconds(1), 1e-6)  # warms up
        repeats = max(1, math.ceil(_SHORTEST / first))
        passes = max(1, min(PASSES, int(LONGEST / first)))
        return [seconds(repeats) for _ in range(passes)]
    finally:
        torch.set_num_threads(threads)
