"""Devices by name."""

from __future__ import annotations

from harness.errors import InputError


def pick_device(name: str) -> str:
    """ "auto" -> the best device there is; any other name is checked.

    Raises:
        InputError: the device is not there.
    """
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f'device "{name}" is not available: {str(error).splitlines()[0]}') from None
    return name
