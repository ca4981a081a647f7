"""One seed, several independent streams: randomness has one door.

A run has one seed. What it drives is split by purpose ("data order", "init", "dropout", "views"),
so that two methods with the same seed see the same data order however many random numbers their
heads or views take. The loop draws from these streams; a plugin that fits without it does too
(`numpy_generator`, `torch_generator`).

Since all draws pass here, a run may also have another seed in some streams alone (`PartSeed`): that
is how the spread of scores is split by where it comes from.
"""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

if TYPE_CHECKING:
    import numpy as np
    import torch

Stream = Literal["init", "data_order", "dropout", "views"]
STREAMS: tuple[Stream, ...] = get_args(Stream)
MOST_SEEDS = 1000  # that a number stands for: a larger one was meant as a seed

_PURPOSES: dict[
    str, Stream
] = {  # how the purposes of a stream begin; "views" are all draws for one batch but dropout
    "init": "init",
    "random vectors": "init",
    "data order": "data_order",
    "batch order": "data_order",
    "dropout": "dropout",
    "views": "views",
}


class PartSeed(int):
    """A seed that some streams have, while the others, and what belongs to no stream, are those of
    the seed `held`.

    As a number it is the seed of the streams that vary, so that it can be given wherever a seed
    can; `derive` distinguishes the two.
    """

    vary: tuple[Stream, ...]
    held: int

    def __new__(cls, seed: int, vary: Sequence[Stream], held: int) -> PartSeed:
        made = super().__new__(cls, seed)
        made.vary = tuple(stream for stream in STREAMS if stream in vary)
        made.held = int(held)
        return made

    def of(self, purpose: str) -> int:
        """The seed that drives one purpose."""
        stream = next(
            (stream for start, stream in _PURPOSES.items() if purpose.startswith(start)), None
        )
        if stream in self.vary:
            return int(self)
        return self.held

    def __add__(self, other: int) -> PartSeed:
        return PartSeed(int(self) + other, self.vary, self.held + other)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PartSeed):
            return False
        return seed_fields(self) == seed_fields(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((int(self), self.vary, self.held))

    def __reduce__(self) -> tuple[Any, ...]:
        return PartSeed, (int(self), self.vary, self.held)


def part_seed(seed: int, vary: Sequence[Stream], held: int) -> int:
    """`seed` in the streams `vary` and `held` in the rest; a plain seed where that is the same for
    all of them.
    """
    varies_all = not vary or set(vary) == set(STREAMS)
    if seed == held or varies_all:
        return seed
    return PartSeed(seed, vary, held)


def seed_fields(seed: int) -> dict[str, Any]:
    """A seed as files have it: {"seed"}, and of a `PartSeed` {"seed", "vary", "held"}."""
    if isinstance(seed, PartSeed):
        own = {"vary": list(seed.vary), "held": seed.held}
    else:
        own = {}
    return {"seed": int(seed), **own}


def seed_of(fields: Mapping[str, Any]) -> int:
    """What `seed_fields` wrote.

    Raises:
        ValueError, KeyError, TypeError: it is damaged.
    """
    numbers = [fields["seed"], fields.get("held", 0)]
    vary = fields.get("vary", [])
    are_whole = all(type(number) is int for number in numbers)
    if not are_whole or not set(vary) <= set(STREAMS):
        raise ValueError("no seed")
    if vary:
        return part_seed(numbers[0], vary, numbers[1])
    return int(numbers[0])


def seed_text(seed: int) -> str:
    """A seed for a reader: "3", "3 (init)" where that stream alone has it."""
    if isinstance(seed, PartSeed):
        streams = ", ".join(seed.vary)
        return f"{int(seed)} ({streams})"
    return str(seed)


def derive(seed: int, purpose: str) -> int:
    """The seed of one purpose: 63 bits of BLAKE2b over both, the same on every machine and in every
    version.
    """
    if isinstance(seed, PartSeed):
        own = seed.of(purpose)
    else:
        own = seed
    text = f"{own}\0{purpose}"
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def numpy_generator(seed: int, purpose: str) -> np.random.Generator:
    """A fresh numpy generator for one purpose of a run."""
    import numpy as np

    return np.random.default_rng(derive(seed, purpose))


def torch_generator(seed: int, purpose: str, device: str = "cpu") -> torch.Generator:
    """A fresh torch generator for one purpose of a run."""
    import torch

    generator = torch.Generator(device=device)
    return generator.manual_seed(derive(seed, purpose))


class _TorchStates(NamedTuple):
    """States of torch's own generators: the processor's, and those of the GPUs in use."""

    processor: torch.Tensor
    devices: list[torch.Tensor]


@contextmanager
def preserve_random_state() -> Iterator[None]:
    """Give the caller's generators (Python's, NumPy's, torch's) back as they were.

    torch is not imported for this, which takes seconds: who imports it later finds it new.
    """
    import numpy as np

    python = random.getstate()
    numpy = np.random.get_state()
    torch_states = _torch_states()
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
        _set_torch_states(torch_states)


def _torch_states() -> _TorchStates | None:
    """Return the states of torch's generators; None where torch has not been imported."""
    if "torch" not in sys.modules:
        return None
    import torch

    # A GPU that nothing has used yet is not started for this.
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
    return _TorchStates(torch.get_rng_state(), devices)


def _set_torch_states(states: _TorchStates | None) -> None:
    """Set torch's generators; None stands for those of a torch that has just been imported."""
    if "torch" not in sys.modules:
        return
    import torch

    if states is None:
        new = torch.Generator()  # with the seed that the default one begins with
        torch.set_rng_state(new.get_state())
        return
    torch.set_rng_state(states.processor)
    if states.devices:
        torch.cuda.set_rng_state_all(states.devices)


def expand_seeds(value: Any) -> Any:
    """Return the seeds that a number stands for; a list, and what is no number, unchanged.

    >>> expand_seeds(3), expand_seeds([7, 8])
    ([1, 2, 3], [7, 8])

    Raises:
        ValueError: a number below 1.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    if not 1 <= value <= MOST_SEEDS:
        raise ValueError(f"expected a number of seeds from 1 to {MOST_SEEDS:,}, or a list of seeds")
    return list(range(1, value + 1))
