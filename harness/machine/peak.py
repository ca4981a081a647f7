"""What a machine can do at most in matrix multiplication, as it is now: what the speed of a model is held against."""

from __future__ import annotations

import time
from functools import cache

_SIDES = {"cpu": 1024, "cuda": 8192}  # of square matrices: in a processor's cache, large enough to fill a GPU
_SECONDS, _ROUNDS = 0.1, 5


@cache
def peak_flops(device: str) -> float:
    """Floating-point operations a second of products of square matrices in float32 (a GPU: with TF32 as torch is set),
    the best of some rounds; measured once a process, with its threads.
    """
    import torch

    side = _SIDES.get(torch.device(device).type, _SIDES["cuda"])
    a = torch.randn(side, side, device=device)

    def seconds(count: int) -> float:
        _wait(device)
        started = time.perf_counter()
        for _ in range(count):
            a @ a
        _wait(device)
        return time.perf_counter() - started

    seconds(2)
    count = max(1, int(_SECONDS / seconds(1)))
    return max(count * 2 * side**3 / seconds(count) for _ in range(_ROUNDS))


def _wait(device: str) -> None:
    """Until a GPU has finished."""
    import torch

    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)
