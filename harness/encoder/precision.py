"""Which floating-point precision to compute in: decided by a short measurement, because hardware
differs a hundredfold.

bf16 autocast is several times faster than fp32 on processors with native bf16 and up to a hundred
times slower on those without. Encoding for evaluation stays in fp32 unless asked otherwise: results
must not depend on the batch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from harness.errors import InputError

Name = Literal["fp32", "bf16", "fp16"]
NAMES: tuple[str, ...] = ("auto", "fp32", "bf16", "fp16")
_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
_NEEDED_GAIN = 1.3  # below this the loss of precision buys too little


@dataclass(frozen=True)
class Precision:
    """The chosen precision; `measurement` says how it was chosen and goes into the run's record."""

    name: Name
    measurement: dict[str, Any] = field(default_factory=dict)


def choose_precision(device: str | torch.device, requested: str = "auto") -> Precision:
    """Choose for training on `device`: what was `requested`, or with "auto" bf16 where it measures
    >= 1.3x fp32.

    Raises:
        InputError: an unknown name, or fp16 on a CPU (its gradients would need scaling that a CPU
            cannot speed up).
    """
    device = torch.device(device)
    if requested not in NAMES:
        raise InputError(f'unknown precision "{requested}"; known: {", ".join(NAMES)}')
    if requested == "fp16" and device.type == "cpu":
        raise InputError('precision "fp16" needs a GPU; use "auto", "bf16" or "fp32" on a CPU')
    if requested != "auto":
        return Precision(cast(Name, requested), {"requested": requested, "device": device.type})
    native = device.type == "cpu" or (
        device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    )
    if not native:
        return Precision(
            "fp32", {"requested": "auto", "device": device.type, "reason": "no native bf16"}
        )
    seconds = measure(device)
    gain = seconds["fp32"] / seconds["bf16"]
    report = {
        "requested": "auto",
        "device": device.type,
        "fp32_seconds": round(seconds["fp32"], 6),
        "bf16_seconds": round(seconds["bf16"], 6),
        "bf16_gain": round(gain, 2),
        "needed_gain": _NEEDED_GAIN,
    }
    return Precision("bf16" if gain >= _NEEDED_GAIN else "fp32", report)


@contextmanager
def autocast(precision: str | None, device: str | torch.device) -> Iterator[None]:
    """Compute in `precision` ("fp32" or None: untouched) on `device` inside the block."""
    if precision is None or precision == "fp32":
        yield
        return
    if precision not in _DTYPES:
        raise InputError(f'unknown precision "{precision}"; known: fp32, bf16, fp16')
    with torch.autocast(torch.device(device).type, dtype=_DTYPES[precision]):
        yield


def measure(device: torch.device, *, seconds: float = 0.25) -> dict[str, float]:
    """Best time of one training step of a small feed-forward block in fp32 and in bf16 autocast, in
    seconds.

    Little over `seconds` in all, or three steps each where hardware emulates bf16; they take turns,
    so that noise meets both. The random state of the caller is left alone. A CPU is measured on one
    thread: the gain is the core's, and threads that wait for each other on a busy machine would
    hide it.
    """
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(0)
        block = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)).to(device)
        rows = torch.randn(256 if device.type == "cpu" else 8192, 256, device=device)
    threads = torch.get_num_threads()
    if device.type == "cpu":
        torch.set_num_threads(1)
    try:
        best = dict.fromkeys(("fp32", "bf16"), float("inf"))
        for name in best:
            _step(block, rows, name)  # the first call pays for set-up
        start, rounds = time.perf_counter(), 0
        while rounds < 3 or time.perf_counter() - start < seconds:
            best = {name: min(known, _step(block, rows, name)) for name, known in best.items()}
            rounds += 1
        return best
    finally:
        torch.set_num_threads(threads)


def _step(block: nn.Module, rows: Tensor, precision: str) -> float:
    block.zero_grad(set_to_none=True)
    _wait(rows)
    start = time.perf_counter()
    with autocast(precision, rows.device):
        loss = block(rows).float().square().mean()
    loss.backward()
    _wait(rows)
    return time.perf_counter() - start


def _wait(rows: Tensor) -> None:
    if rows.is_cuda:
        torch.cuda.synchronize(rows.device)
