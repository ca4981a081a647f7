"""A row whose batch does not fit in memory: what it would need, from smaller batches, and what makes it fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from harness.comparison.two_updates import Measured, Probe, measured
from harness.training import TrainingConfig


def measured_or_extrapolated(probe: Probe) -> Measured:
    """The row as it is; where the memory does not suffice, two smaller batches and a straight line through them.

    Memory and time of an update are linear in the batch as long as the layers' states are most of them, which they are
    of all methods here: what is quadratic in the batch are numbers, not states.
    """
    whole = measured(probe)
    config = probe.config
    if not whole.out_of_memory or not isinstance(config, TrainingConfig):
        return whole
    small, size = whole, config.batch_size
    while small.out_of_memory and size >= 8:
        size //= 4  # by halves the last attempt before one that fits costs most of the time
        small = _with(probe, batch_size=size)
    smaller = _with(probe, batch_size=size // 2) if not small.fault else small
    if smaller.fault:
        said = f"out of memory with a batch of {config.batch_size}; with one of {size}: {smaller.fault}".strip()
        return replace(whole, hint=_hint(probe, {}), fault=said)
    line = _Line(size, small, smaller)
    return replace(
        small,
        update=line.at(config.batch_size, "update"),
        memory=int(line.at(config.batch_size, "memory")),
        free=whole.free,
        batches=(size // 2, size),
        hint=_hint(probe, _in_parts(config, line, whole.free)),
    )


class _Line:
    """Through what was measured with batches of `size` and of half of it."""

    def __init__(self, size: int, small: Measured, smaller: Measured) -> None:
        self.size, self.small, self.smaller = size, small, smaller

    def at(self, batch: int, name: str) -> float:
        """A measure of a larger or smaller batch; no smaller batch costs more than a larger one."""
        here, below = (float(getattr(seen, name)) for seen in (self.small, self.smaller))
        slope = max(0.0, here - below) / (self.size - self.size // 2)
        return here + slope * (batch - self.size)


def _in_parts(config: TrainingConfig, line: _Line, free: int) -> dict[str, Any]:
    """The largest micro-batch that should fit, a power of two; empty where the method knows none."""
    if not config.in_parts or config.micro_batch is not None:
        return {}
    sizes = [2**n for n in range(config.batch_size.bit_length()) if 2**n < config.batch_size]
    fitting = [size for size in sizes if line.at(size, "memory") <= free]
    return {"micro_batch": max(fitting, default=1)}


def _hint(probe: Probe, parts: Mapping[str, Any]) -> str:
    """The option that lets the whole batch fit, tried out."""
    change = dict(parts) or {"gradient_checkpointing": True}
    option = ", ".join(f"{key} = {str(value).lower()}" for key, value in change.items())
    if all(getattr(probe.config, key) == value for key, value in change.items()):
        return "a smaller batch_size, or more memory"
    tried = _with(probe, **change)
    if tried.out_of_memory:
        return f"{option} does not suffice: a smaller batch_size, or more memory"
    if tried.fault:
        return f"{option} may help; tried, it failed: {tried.fault}"
    return f"{option} makes it fit: {tried.memory / 1e9:.1f} GB, {tried.update:.2f} s an update"


def _with(probe: Probe, **change: Any) -> Measured:
    try:
        return measured(probe.with_config(change))
    except ValueError as error:  # a batch that the method refuses
        return Measured(fault=str(error).splitlines()[0])
