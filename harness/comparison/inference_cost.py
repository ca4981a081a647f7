"""The cost of inference, measured once for each architecture and shared by all encoders of it.

Speeds that are taken while other things run differ by a factor of seven for one network. So the processor's time is
taken, of one thread (several spin while they wait for each other), over the same embedded sentences; and of every cell
of an architecture one pass, until there are enough: the passes of one stand between those of others, and what slows
the machine for a while slows all alike. The median counts.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.evaluation.architecture import architecture
from harness.machine.environment import device_name
from harness.method import Method
from harness.results.inference import PROCESSOR, WALL, InferenceCost, add_passes, read_inference
from harness.sources import embedded_rows

log = logging.getLogger(__name__)

SENTENCES = 64
FIRST, ENOUGH = 3, 7  # passes of the first encoder of an architecture; of all
_SHORTEST = 0.05  # seconds of a pass: a clock's steps and a collection of garbage are small beside it
_LONGEST = 20.0  # seconds of the passes of one cell: a large network on a small processor is measured over more cells


def measure(method: Method, workdir: Path, device: str) -> str:
    """Add a fitted method's passes, where its architecture has too few; the architecture's name, "" where it has none.

    Never raises: a cost that cannot be measured is not worth a run.
    """
    try:
        name = architecture(method)
        conditions = InferenceCost(
            architecture=name,
            device=device_name(device),
            threads=1,
            precision="fp32",
            clock=WALL if device.startswith("cuda") else PROCESSOR,
            sentences=SENTENCES,
            seconds=[],
        )
        known = read_inference(workdir).get(conditions.key)
        have = len(known.seconds) if known is not None else 0
        if have < ENOUGH:
            passes = _passes(method, device, 1 if have else FIRST)
            add_passes(workdir, conditions.model_copy(update={"seconds": passes}))
        return name
    except Exception as error:
        log.warning("the cost of inference of %s was not measured: %s", method.name, error)
        return ""


def _passes(method: Method, device: str, count: int) -> list[float]:
    """Seconds of so many passes; at least one, fewer where they take long."""
    texts = [row["text"] for row in embedded_rows("sentences", ("a",))][:SENTENCES]
    clock = time.perf_counter if device.startswith("cuda") else time.process_time

    def seconds(repeats: int) -> float:
        start = clock()
        for _ in range(repeats):
            method.encode(texts, device=device)  # vectors in main memory: a GPU has finished too
        return (clock() - start) / repeats

    with _one_thread():
        first = seconds(1)  # warms up
        repeats = max(1, math.ceil(_SHORTEST / max(first, 1e-6))) if first < _SHORTEST else 1
        count = max(1, min(count, int(_LONGEST / max(first, 1e-6))))
        return [seconds(repeats) for _ in range(count)]


@contextmanager
def _one_thread() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
