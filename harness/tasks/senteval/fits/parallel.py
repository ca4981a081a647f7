"""Fits on all cores, and the generator that SentEval shuffles with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

Part = TypeVar("Part")


def on_all_cores(work: Callable[[Part], None], parts: Sequence[Part], threads: int) -> None:
    """Parts side by side, one thread each: their matrices are too small to be worth splitting among threads."""
    if threads == 1 or len(parts) == 1:
        for part in parts:
            work(part)
        return
    from concurrent.futures import ThreadPoolExecutor

    import torch

    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            list(pool.map(work, parts))
    finally:
        torch.set_num_threads(threads)


def shuffler(seed: int, drawn: int) -> np.random.RandomState:
    """The legacy generator, for SentEval's own shuffles, once it has shuffled `drawn` rows."""
    generator = np.random.RandomState(seed)
    if drawn:
        generator.permutation(drawn)
    return generator
