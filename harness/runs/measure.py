"""Measure the seconds of a training step on this machine."""

from __future__ import annotations

import time

from harness.errors import InputError, RunError
from harness.files.printable import first_line
from harness.method import FitContext, own_line
from harness.runs.rows import Row
from harness.sources import Corpus


def time_steps(row: Row, corpus: Corpus, device: str, precision: str) -> float:
    """Mean seconds of two training steps of a row, after a first one that pays for setting up;
    nothing is stored.

    Raises:
        RunError: the row cannot be trained, for want of memory for example.
    """
    from harness.runs.rows import with_steps

    if "log_every" in type(row.config).model_fields:
        values = {"log_every": 1}
    else:
        values = {}
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
