"""One seed, several independent streams: randomness has one door.

A run has one seed. What it drives is split by purpose ("data order", "init", "dropout", "views"), so that two methods
with the same seed see the same data order however many random numbers their heads or views take. The loop draws from
these streams; a plugin that fits without it does too (`numpy_generator`, `torch_generator`, `seed_everything`).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import torch


def derive(seed: int, purpose: str) -> int:
    """The seed of one purpose: 63 bits of BLAKE2b over both, the same on every machine and in every version."""
    digest = hashlib.blake2b(f"{seed}\0{purpose}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def numpy_generator(seed: int, purpose: str) -> np.random.Generator:
    """A fresh numpy generator for one purpose of a run."""
    import numpy as np

    return np.random.default_rng(derive(seed, purpose))


def torch_generator(seed: int, purpose: str, device: str = "cpu") -> torch.Generator:
    """A fresh torch generator for one purpose of a run."""
    import torch

    return torch.Generator(device=device).manual_seed(derive(seed, purpose))


def seed_everything(seed: int) -> None:
    """Seed the global generators of python, numpy and torch (all devices).

    Dropout can only draw from torch's global generator, so that one gets the "dropout" stream.
    """
    import random

    import numpy as np
    import torch

    random.seed(derive(seed, "python"))
    np.random.seed(derive(seed, "numpy") % 2**32)
    torch.manual_seed(derive(seed, "dropout"))
