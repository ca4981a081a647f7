"""Measurements on this machine: training precision, seconds of a training step, cost of inference."""

from __future__ import annotations

import logging
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import InputError, RunError
from harness.files.printable import first_line
from harness.machine.environment import device_name
from harness.method import FitContext, Method, own_line
from harness.results.measurements import PROCESSOR, WALL, InferenceCost, measure_once

if TYPE_CHECKING:
    from harness.runs.rows import Row
    from harness.sources import Corpus

log = logging.getLogger(__name__)

_SENTENCES = 64  # of a pass of inference
_PASSES = 7  # over these sentences
_SHORTEST = 0.05  # seconds of a pass: a clock's steps and a collection of garbage are small compared with it
_LONGEST = 20.0  # seconds of all passes: of a large network there are fewer


def choose_precision(workdir: Path, device: str, requested: str) -> dict[str, Any]:
    """The training precision ("choice") and why; "auto" is measured once for each device of a work directory."""
    if requested != "auto":
        return {"choice": requested, "reason": "requested"}
    from harness.encoder import precision

    def measure() -> dict[str, Any]:
        chosen = precision.choose_precision(device)
        return {"choice": chosen.name, **chosen.measurement}

    return measure_once(workdir, "precision", device_name(device), measure)


def time_steps(row: Row, corpus: Corpus, device: str, precision: str) -> float:
    """Mean seconds of two training steps of a row, after a first one that pays for setting up; nothing is stored.

    Raises:
        RunError: the row cannot be trained, for want of memory for example.
    """
    from harness.runs.rows import with_steps

    values = {"log_every": 1} if "log_every" in type(row.config).model_fields else {}
    config = with_steps(row.config, 3, 10**9).model_copy(update=values)
    stamps: list[float] = []

    def seen(step: int, steps: int, text: str) -> None:
        if step == len(stamps) + 1:  # else a message from before the first step
            stamps.append(_now(device))

    context = FitContext(device=device, precision=precision, max_steps=3, progress=seen)
    try:
        row.method(config, base_model=row.base_model).fit(corpus, context)
    except (InputError, RunError):
        raise
    except Exception as error:  # of any library; out of memory above all
        why = f"{first_line(error)}{own_line(error, row.method)}"
        raise RunError(f'row "{row.label}" cannot be timed: {why}') from None
    if len(stamps) < 2:
        raise RunError(f'row "{row.label}" cannot be timed: the method reports no training steps')
    return (stamps[-1] - stamps[0]) / (len(stamps) - 1)


def _now(device: str) -> float:
    """Seconds of processor time, or of elapsed time when the device has done all its work."""
    import torch

    if device.startswith("cpu"):
        return time.process_time()
    torch.accelerator.synchronize(device)
    return time.perf_counter()


def measure_inference(method: Method, workdir: Path, device: str) -> str:
    """Measure the encoding of a fitted method, once for each architecture; returns the architecture's name.

    Passes over the same embedded sentences use one thread, in processor time (elapsed time on a GPU). It never raises:
    the name is "" where the cost cannot be measured.
    """
    from harness.evaluation.any_model import architecture

    def measure() -> dict[str, Any]:
        return {**conditions.model_dump(), "seconds": _time_passes(method, device)}

    try:
        name, clock = architecture(method), WALL if device.startswith("cuda") else PROCESSOR
        conditions = InferenceCost(architecture=name, device=device_name(device), threads=1, precision="fp32",
                                   clock=clock, sentences=_SENTENCES, seconds=[])  # fmt: skip
        measure_once(workdir, "inference", conditions.key, measure)
        return name
    except Exception as error:
        log.warning("the cost of inference of %s was not measured: %s", method.name, error)
        return ""


def _time_passes(method: Method, device: str) -> list[float]:
    """Seconds of each pass; at least one, fewer where they take long."""
    import torch

    from harness.sources import embedded_rows

    texts = [row["text"] for row in embedded_rows("sentences", ("a",))][:_SENTENCES]
    clock = time.perf_counter if device.startswith("cuda") else time.process_time

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
        return [seconds(repeats) for _ in range(max(1, min(_PASSES, int(_LONGEST / first))))]
    finally:
        torch.set_num_threads(threads)
