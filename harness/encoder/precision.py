"""The floating-point precision of training (`precision`) and of encoding (`dtype`): float32, unless
another one is requested by name.

The precision is part of what a run is, so nothing here chooses it. `measure_bf16` says what bf16
would save: autocast to bf16 is several times faster than fp32 on processors with native bf16, and
up to a hundred times slower on those without.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn

from harness.errors import InputError

Name = Literal["fp32", "bf16", "fp16"]
NAMES: tuple[str, ...] = ("fp32", "bf16", "fp16")
_MEASURED = ("cpu", "cuda")  # types of devices
_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def check_dtype(dtype: str) -> None:
    """Raises:
    InputError: an unknown name.
    """
    if dtype not in NAMES:
        message = f'unknown dtype "{dtype}"; known: {", ".join(NAMES)}'
        raise InputError(message, key="dtype")


def convert(module: nn.Module, dtype: str) -> None:
    """Convert the weights of a module, which then computes in `dtype`, as "bf16".

    Buffers stay, as where transformers loads a model in `dtype`: rotary positions in bf16 would
    be rounded to 8 bits.

    Raises:
        InputError: an unknown name.
    """
    check_dtype(dtype)
    kind = _DTYPES.get(dtype, torch.float32)
    for parameter in module.parameters():
        if parameter.is_floating_point():
            parameter.data = parameter.data.to(kind)


def dtype_of(model: Any) -> str:
    """Return what a model encodes in, as its `set_dtype` was called; "fp32" of any other."""
    named = getattr(model, "dtype", "")
    if isinstance(named, str) and named in NAMES:
        return named
    return "fp32"


def check_precision(precision: str, device: str | torch.device) -> None:
    """Check that a precision can be used for training on a device.

    Raises:
        InputError: an unknown name, or fp16 on a CPU (its gradients would need scaling that a CPU
            cannot speed up).
    """
    if precision == "auto":
        raise InputError(
            '"auto" is not supported any more, since it chose by a measurement of time',
            key="precision",
            remedy='write "fp32" (the default) or "bf16"; harness doctor measures both',
        )
    if precision not in NAMES:
        message = f'unknown precision "{precision}"; known: {", ".join(NAMES)}'
        raise InputError(message, key="precision")
    if precision == "fp16" and torch.device(device).type == "cpu":
        raise InputError('"fp16" needs a GPU', key="precision", remedy='use "bf16" or "fp32"')


def measure_bf16(device: str | torch.device) -> float | None:
    """Measure the time of a training step in bf16 as a share of its time in fp32.

    Returns:
        The share, below 1 where bf16 is faster; None where the device has no native bf16, or is no
        CPU and no GPU of CUDA.
    """
    device = torch.device(device)
    if device.type == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False):
        return None
    if device.type not in _MEASURED:
        return None
    seconds = measure(device)
    return seconds["bf16"] / seconds["fp32"]


def describe_bf16(device: str | torch.device) -> str:
    """Measure bf16 on a device, and return what it would change in one phrase."""
    if torch.device(device).type not in _MEASURED:
        return "bf16 was not measured"
    share = measure_bf16(device)
    if share is None:
        return "no native bf16"
    return f"a small training step in bf16 takes {share:.2g} of the time in fp32"


@contextmanager
def autocast(precision: str | None, device: str | torch.device) -> Iterator[None]:
    """Compute in `precision` ("fp32" or None: untouched) on `device` inside the block."""
    if precision is None or precision == "fp32":
        yield
        return
    if precision not in _DTYPES:
        raise InputError(
            f'unknown precision "{precision}"; known: fp32, bf16, fp16', key="precision"
        )
    with torch.autocast(torch.device(device).type, dtype=_DTYPES[precision]):
        yield


def measure(device: torch.device, *, seconds: float = 0.25) -> dict[str, float]:
    """Return the best time of a training step of a small block in fp32 and in bf16, in seconds.

    Little over `seconds` in all, or three steps each where hardware emulates bf16; they take turns,
    so that noise meets both. The random state of the caller is left alone. A CPU is measured on one
    thread: the gain is the core's, and threads that wait for each other on a busy machine would
    hide it.
    """
    gpus = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=gpus):
        torch.manual_seed(0)
        layers = (nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256))
        block = nn.Sequential(*layers).to(device)
        count = 256 if device.type == "cpu" else 8192
        rows = torch.randn(count, 256, device=device)
    threads = torch.get_num_threads()
    if device.type == "cpu":
        torch.set_num_threads(1)
    try:
        best = dict.fromkeys(("fp32", "bf16"), float("inf"))
        for name in best:
            _step(block, rows, name)  # the first call pays for set-up
        start = time.perf_counter()
        rounds = 0
        while rounds < 3 or time.perf_counter() - start < seconds:
            for name, known in best.items():
                best[name] = min(known, _step(block, rows, name))
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
