"""What a machine can do at most in products of matrices: what the speed of a model is held against."""

from __future__ import annotations

import re
import time
from functools import cache
from typing import NamedTuple

_SIDES = {"cpu": 1024, "cuda": 8192}  # of square matrices: in a processor's cache, large enough to fill a GPU
_SECONDS, _ROUNDS = 0.1, 5
_LONGEST = 2.0  # seconds after which no further round begins: processors that emulate bf16 are slow


class DataSheet(NamedTuple):
    """Operations a second in units of 10^12, dense products (data sheets print those with sparsity at twice that);
    None where there is no hardware for it."""

    bf16: float | None
    fp16: float
    tf32: float | None
    fp32: float


# By the words that stand in the name that a driver gives, from NVIDIA's data sheets of the products. A GPU whose sheet
# was not at hand is left out: it is measured.
_SHEETS = {
    ("H100", "PCIe"): DataSheet(756, 756, 378, 51),
    ("H100", "HBM3"): DataSheet(989.5, 989.5, 494.5, 67),
    ("A100",): DataSheet(312, 312, 156, 19.5),
    ("L40S",): DataSheet(362, 362, 183, 91.6),
    ("L4",): DataSheet(121, 121, 60, 30.3),
    ("T4",): DataSheet(None, 65, None, 8.1),
    ("V100", "SXM2"): DataSheet(None, 125, None, 15.7),
    ("V100", "PCIE"): DataSheet(None, 112, None, 14),
}


def sheet_flops(name: str, precision: str) -> float | None:
    """Operations a second of a GPU in "bf16", "fp16", "tf32" or "fp32" as its maker prints them; None where it is not
    known here, or has no hardware for it.

    >>> sheet_flops("NVIDIA A100-SXM4-80GB", "bf16"), sheet_flops("Tesla T4", "bf16")
    (312000000000000.0, None)
    """
    words = set(re.split(r"[\s-]+", name))
    for asked, sheet in _SHEETS.items():
        if words.issuperset(asked):
            value: float | None = getattr(sheet, precision)
            return None if value is None else value * 1e12
    return None


@cache
def peak_flops(device: str, precision: str = "fp32") -> float:
    """Floating-point operations a second of products of square matrices (fp32 on a GPU: with TF32 as torch is set), the
    best of some rounds; measured once a process, with its threads.

    >>> peak_flops("cpu") > 1e9
    True
    """
    import torch

    kinds = {"bf16": torch.bfloat16, "fp16": torch.float16}
    side = _SIDES.get(torch.device(device).type, _SIDES["cuda"])
    a = torch.full((side, side), 0.5, device=device, dtype=kinds.get(precision, torch.float32))

    def seconds(count: int) -> float:
        _wait(device)
        started = time.perf_counter()
        for _ in range(count):
            a @ a
        _wait(device)
        return time.perf_counter() - started

    began = time.perf_counter()
    best = seconds(2) / 2
    count = max(1, int(_SECONDS / best))
    for _ in range(_ROUNDS):
        if time.perf_counter() - began > _LONGEST:
            break
        best = min(best, seconds(count) / count)
    return 2 * side**3 / best


def _wait(device: str) -> None:
    """Until a GPU has finished."""
    import torch

    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)
