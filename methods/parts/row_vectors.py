"""Row vectors (n, d) of objectives: checks, full precision, unit length."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

import torch
from torch import Tensor
from torch.nn import functional

_P = ParamSpec("_P")
_R = TypeVar("_R", Tensor, dict[str, Tensor])


def full_precision(objective: Callable[_P, _R]) -> Callable[_P, _R]:
    """Run `objective` outside autocast on inputs of at least float32."""

    @wraps(objective)
    def run_in_full_precision(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        tensors = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
        if any(x.dtype == torch.float64 for x in tensors):
            dtype = torch.float64
        else:
            dtype = torch.float32

        def lift(x: Any) -> Any:
            if isinstance(x, Tensor):
                return x.to(dtype)
            return x

        if tensors:
            device = tensors[0].device.type
        else:
            device = "cpu"
        with torch.autocast(device_type=device, enabled=False):
            positional = [lift(x) for x in args]
            named = {name: lift(x) for name, x in kwargs.items()}
            return cast(Callable[..., _R], objective)(*positional, **named)

    return run_in_full_precision


def check_rows(a: Tensor, b: Tensor, *, rows: int = 1) -> None:
    """Refuse tensors that are not both (n, d) of one shape with at least `rows` rows."""
    if a.ndim != 2 or a.shape != b.shape:
        raise ValueError(
            f"expected two (n, d) tensors of one shape, got {tuple(a.shape)} and {tuple(b.shape)}"
        )
    if a.shape[0] < rows:
        raise ValueError(f"batch statistics need at least {rows} rows, got {a.shape[0]}")


def check_temperature(temperature: float) -> None:
    """Refuse a temperature that is not positive: it divides."""
    if not temperature > 0:
        raise ValueError(f"temperature must be > 0, got {temperature}")


def unit(x: Tensor) -> Tensor:
    """Scale rows (last axis) to length 1; a zero row stays zero, so its cosines are 0."""
    return functional.normalize(x, dim=-1, eps=1e-8)
