"""Measurements on this machine: training precision, seconds of a training step, cost of inference."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import InputError, RunError, TrainingStopped
from harness.files.hashing import content_id
from harness.files.printable import first_line
from harness.identity import model_fingerprint
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
_UNTIMED = 2  # the first training steps pay for setting up
_FEWEST, _MOST, _SECONDS = 4, 48, 5.0  # timed steps: at least, at most, and until this much time has passed


def choose_precision(workdir: Path, device: str, requested: str) -> dict[str, Any]:
    """The training precision ("choice") and why; "auto" is measured once for each device of a work directory."""
    if requested != "auto":
        return {"choice": requested, "reason": "requested"}
    from harness.encoder import precision

    def measure() -> dict[str, Any]:
        chosen = precision.choose_precision(device)
        return {"choice": chosen.name, **chosen.measurement}

    return measure_once(workdir, "precision", device_name(device), measure)


def step_seconds(
    workdir: Path | None,
    row: Row,
    corpus: Corpus,
    epoch: int,
    *,
    device: str,
    precision: str,
    log_line: Callable[[str], None] = lambda line: None,
) -> float:
    """Seconds of a training step of a row: processor time on a CPU, elapsed time on a GPU; measured once and stored.

    Dev evaluations and the loading of models and text do not count.

    Args:
        epoch: training steps of a pass over the text.
        log_line: called with a line when a row is measured.

    Raises:
        RunError: the row cannot be trained.
    """
    here = device_name(device)
    key = step_key(row, here, precision)

    def measure() -> dict[str, Any]:
        seconds = time_steps(row, corpus, device, precision, epoch)
        log_line(
            f"{row.label} · {row.base_model}: {seconds:.3g} s of {clock_name(device)} per training step (measured)"
        )
        about = {"row": row.label, "method": row.method.name, "base_model": row.base_model, "device": here}
        return {**about, "clock": clock_name(device), "precision": precision, "seconds": seconds}

    return float(measure_once(workdir, "step_seconds", key, measure)["seconds"])


def step_key(row: Row, device: str, precision: str) -> str:
    """What the seconds of a training step are stored under."""
    return content_id(
        {
            "method": row.method.name,
            "config": row.config.model_dump(mode="json"),
            "model": model_fingerprint(row.base_model),
            "corpus": row.corpus.model_dump() if row.corpus is not None else None,
            "device": device,
            "precision": precision,
        }
    )


def clock_name(device: str) -> str:
    """What the seconds of a device are."""
    return "processor time" if device.startswith("cpu") else "GPU time" if device.startswith("cuda") else "time"


def time_steps(
    row: Row, corpus: Corpus, device: str, precision: str, epoch: int, *, untimed: int = _UNTIMED, most: int = _MOST
) -> float:
    """Mean seconds of some training steps after the first `untimed` ones; nothing of them is stored.

    Raises:
        RunError: the row cannot be trained, for want of memory for example.
    """
    from harness.runs.rows import with_steps

    values = {"log_every": 1} if "log_every" in type(row.config).model_fields else {}
    config = with_steps(row.config, untimed + most, epoch).model_copy(update=values)
    now = _clock(device)
    stamps: list[float] = []

    def seen(step: int, steps: int, text: str) -> None:
        if step != len(stamps) + 1:  # a message from before the first step
            return
        stamps.append(now())
        if len(stamps) - untimed >= min(_FEWEST, most) and stamps[-1] - stamps[untimed - 1] >= _SECONDS:
            raise TrainingStopped("pruned", "measured")

    context = FitContext(device=device, precision=precision, max_steps=untimed + most, progress=seen)
    try:
        row.method(config, base_model=row.base_model).fit(corpus, context)
    except TrainingStopped as stop:
        if stop.status != "pruned":
            raise RunError(f'row "{row.label}" cannot be timed: {stop.reason}') from None
    except (InputError, RunError):
        raise
    except Exception as error:  # of any library; out of memory above all
        why = f"{type(error).__name__}: {first_line(error)}{own_line(error, row.method)}"
        raise RunError(f'row "{row.label}" cannot be timed: {why}') from None
    if len(stamps) <= untimed:
        raise RunError(f'row "{row.label}" cannot be timed: the method reports no training steps')
    return (stamps[-1] - stamps[untimed - 1]) / (len(stamps) - untimed)


def _clock(device: str) -> Callable[[], float]:
    """Seconds of processor time, or of elapsed time when the device has done all its work."""
    import torch

    if device.startswith("cpu"):
        return time.process_time

    def synchronized() -> float:
        torch.accelerator.synchronize(device)
        return time.perf_counter()

    return synchronized


def measure_inference(method: Method, workdir: Path, device: str) -> str:
    """Measure the encoding of a fitted method, once for each architecture; returns the architecture's name.

    Passes over the same embedded sentences use one thread, in processor time (elapsed time on a GPU). It never raises:
    the name is "" where the cost cannot be measured.
    """
    from harness.evaluation.any_model import architecture

    try:
        name, clock = architecture(method), WALL if device.startswith("cuda") else PROCESSOR
        conditions = InferenceCost(
            architecture=name, device=device_name(device), threads=1, precision="fp32", clock=clock,
            sentences=_SENTENCES, seconds=[],
        )  # fmt: skip
        measure_once(
            workdir, "inference", conditions.key,
            lambda: conditions.model_copy(update={"seconds": _time_passes(method, device)}).model_dump(),
        )  # fmt: skip
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
