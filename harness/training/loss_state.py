"""The state of a loss that another library wrote: its buffers, and what it keeps beside them."""

from __future__ import annotations

import functools
import inspect
import random
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from harness.errors import InputError

_CONSTANT = (type(None), bool, int, float, str, bytes)
_NEVER_CHANGES = (type, torch.dtype, torch.device, Enum, Path, complex, range)


class LossState(nn.Module):
    """A loss, or another callable, whose whole state is in `state_dict`.

    Besides parameters and buffers these are the attributes of its modules and of the objects in
    them: tensors, arrays, numbers, and lists, tuples, queues and tables of them (`self.C` of
    lightly's TiCo).

        >>> class Counts(nn.Module):
        ...     steps = 0
        ...     def forward(self, a, b):
        ...         self.steps += 1
        ...         return (a - b).square().sum() * self.steps
        >>> first, again = LossState(Counts()), LossState(Counts())
        >>> _ = first.built(torch.ones(2), torch.zeros(2))
        >>> _ = again.load_state_dict(first.state_dict())
        >>> again.built.steps
        1

    Raises:
        InputError: it keeps something that a checkpoint cannot hold, such as a generator.
    """

    def __init__(self, built: Any) -> None:
        super().__init__()
        self.built = built
        self.moves = False  # plain tensors that were loaded follow to the device of the vectors
        self.get_extra_state()

    def _objects(self) -> Iterator[tuple[str, Any]]:
        """Yield every object whose attributes are state, with its place.

        Raises:
            InputError: an attribute that a checkpoint cannot hold.
        """
        waiting = [("", self.built)]
        seen = set()
        while waiting:
            place, one = waiting.pop()
            if id(one) in seen or not _has_attributes(one):
                continue
            seen.add(id(one))
            yield place, one
            for name, value in attributes_of(one):
                for number, part in enumerate(_parts(value)):
                    self._check(part, name)
                    below = f"{place}/{name}.{number}"
                    waiting.append((below, part))
            if isinstance(one, nn.Module):
                for name, part in one.named_children():
                    waiting.append((f"{place}/{name}", part))

    def _check(self, value: Any, name: str) -> None:
        if _is_value(value) or _is_constant(value) or _has_attributes(value):
            return
        raise InputError(
            f'the loss {type(self.built).__name__} keeps a {type(value).__name__} in "{name}", which a '
            "checkpoint cannot hold",
            key="loss",
            remedy="keep tensors, numbers, and lists or tables of them",
        )

    def get_extra_state(self) -> dict[str, Any]:
        """Return the values of attributes by the place of their object and their name."""
        state: dict[str, Any] = {}
        for place, one in self._objects():
            for name, value in attributes_of(one):
                if _is_value(value):
                    state[f"{place}:{name}"] = _pack(value)
        return state

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Set what `get_extra_state` returned."""
        places = dict(self._objects())
        for key, value in state.items():
            place, _, name = key.rpartition(":")
            if place in places:
                _set_attribute(places[place], name, _unpack(value))
        self.moves = True

    def load_state_dict(self, state_dict: Any, *args: Any, **options: Any) -> Any:
        """Load a state; buffers that a call made, or gave another size, are made first."""
        modules = dict(self.named_modules())
        for key, value in state_dict.items():
            place, _, name = key.rpartition(".")
            module = modules.get(place)
            if module is None or name in module._parameters:
                continue
            if not torch.is_tensor(value):
                continue
            there = module._buffers.get(name)
            if there is None or there.shape != value.shape:
                if there is not None:
                    device = there.device
                else:
                    device = value.device
                module._buffers[name] = torch.empty_like(value, device=device)
        return super().load_state_dict(state_dict, *args, **options)

    def follow(self, device: torch.device) -> None:
        """Move tensors that were loaded as attributes to the device of the vectors."""
        if not self.moves:
            return
        self.moves = False
        for _, one in self._objects():
            for name, value in attributes_of(one):
                if _is_value(value):
                    _set_attribute(one, name, _to(value, device))


_TORCH = frozenset(vars(nn.Module()))  # attributes of every module, which torch itself keeps


def attributes_of(one: Any) -> list[tuple[str, Any]]:
    """Return the attributes of an object; of a module its own ones, and the buffers that its
    state_dict leaves out.

    >>> module = nn.Linear(2, 3)
    >>> module.register_buffer("seen", torch.zeros(1), persistent=False)
    >>> attributes_of(module)
    [('in_features', 2), ('out_features', 3), ('seen', tensor([0.]))]
    """
    if not isinstance(one, nn.Module):
        return list(vars(one).items())
    attributes = [(name, value) for name, value in vars(one).items() if name not in _TORCH]
    for name, buffer in one.named_buffers(recurse=False):
        if name in one._non_persistent_buffers_set:
            attributes.append((name, buffer))
    return attributes


def _set_attribute(one: Any, name: str, value: Any) -> None:
    """Set what `attributes_of` gave."""
    if isinstance(one, nn.Module) and name in one._buffers:
        one._buffers[name] = value
    else:
        vars(one)[name] = value


def _has_attributes(value: Any) -> bool:
    """True for an object whose whole state is its attributes."""
    if not hasattr(value, "__dict__") or _is_constant(value):
        return False
    if isinstance(value, nn.Module):
        return True
    own = ("__reduce__", "__reduce_ex__", "__getstate__")  # of an object that holds more
    kind: Any = type(value)
    return all(getattr(kind, name) is getattr(object, name) for name in own)


def _is_constant(value: Any) -> bool:
    """True for what holds no state of the loss: functions, classes, the encoder, a tokenizer."""
    from harness.encoder.network import Network

    module = type(value).__module__.partition(".")[0]
    return bool(
        inspect.isroutine(value)
        or isinstance(value, (Network, functools.partial, *_NEVER_CHANGES))
        or module in ("transformers", "tokenizers", "logging")
    )


def _parts(value: Any) -> list[Any]:
    """Return what has to be looked into: the elements of a list or table that is no value, or the
    value itself.
    """
    if _is_value(value):
        return []
    if isinstance(value, dict):
        return _parts(list(value.values()))
    if isinstance(value, list | tuple | deque | set | frozenset):
        parts = []
        for one in value:
            parts.extend(_parts(one))
        return parts
    return [value]


def _is_value(value: Any) -> bool:
    """True for constants, tensors, arrays, and lists, tuples, queues, sets and tables of them."""
    if isinstance(value, (torch.Tensor, np.generic, *_CONSTANT)):
        return True
    if isinstance(value, np.ndarray):
        return not value.dtype.hasobject
    if isinstance(value, dict):
        members = [*value.keys(), *value.values()]
        return all(map(_is_value, members))
    if isinstance(value, list | tuple | deque | set | frozenset):
        return all(map(_is_value, value))
    return False


def _pack(value: Any) -> Any:
    """Return a value as what a checkpoint without pickle can hold."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, np.ndarray):
        return {"kind": "array", "value": torch.from_numpy(np.array(value))}
    if isinstance(value, np.generic):
        return {"kind": "number", "value": torch.from_numpy(np.array(value))}
    if isinstance(value, dict):
        pairs = []
        for key, one in value.items():
            pairs.append([_pack(key), _pack(one)])
        return {"kind": "dict", "value": pairs}
    if isinstance(value, deque):
        return {
            "kind": "deque",
            "value": [_pack(one) for one in value],
            "most": value.maxlen,
        }
    if isinstance(value, list | tuple | set | frozenset):
        kinds = [name for name, known in _SEQUENCES.items() if isinstance(value, known)]
        kind = kinds[0]
        return {"kind": kind, "value": [_pack(one) for one in value]}
    return value


_SEQUENCES: dict[str, Any] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
}


def _unpack(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    kind = value["kind"]
    if kind == "array":
        return value["value"].numpy()
    if kind == "number":
        return value["value"].numpy()[()]
    if kind == "dict":
        pairs = value["value"]
        return {_unpack(key): _unpack(one) for key, one in pairs}
    if kind == "deque":
        members = map(_unpack, value["value"])
        return deque(members, maxlen=value["most"])
    return _SEQUENCES[kind](map(_unpack, value["value"]))


def _to(value: Any, device: torch.device) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return {key: _to(one, device) for key, one in value.items()}
    if isinstance(value, deque):
        moved = [_to(one, device) for one in value]
        return deque(moved, maxlen=value.maxlen)
    if type(value) in (list, tuple):
        moved = [_to(one, device) for one in value]
        return type(value)(moved)
    return value


@contextmanager
def use_seed(seed: int) -> Iterator[None]:
    """Seed Python's and NumPy's global generators inside the block, and restore them after it.

    A loss may draw from them: like everything else it then depends on seed and step alone.
    """
    python = random.getstate()
    numpy = np.random.get_state()
    random.seed(seed)
    np.random.seed(seed % 2**32)
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
