"""What a method may change of its process, and what is undone for the runs after it."""

from __future__ import annotations

import locale
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from harness.files.exits import refuse_exits


@contextmanager
def preserve_process_state() -> Iterator[None]:
    """Undo what a method changes for the runs after it; `os._exit` raises `SystemExit`.

    That is the working directory, the environment, standard streams, signals, Python's, NumPy's and
    torch's modes, and functions of NumPy and torch that were replaced.
    """
    import numpy as np
    import torch

    functions = []
    for module in (torch, torch.nn.functional, np):
        functions.append((module, dict(vars(module))))
    states = [(get(), put) for get, put in _states(torch, np)]
    streams = (sys.stdout, sys.stderr)
    if sys.__stdout__ and sys.__stderr__:
        copies = {number: os.dup(number) for number in (1, 2)}
    else:
        copies = {}

    try:
        with refuse_exits():
            yield
    finally:
        for value, put in states:
            put(value)
        for module, before in functions:
            for name in before.keys() & vars(module).keys():
                if vars(module)[name] is not before[name]:
                    setattr(module, name, before[name])
        for number, copy in copies.items():
            os.dup2(copy, number)
            os.close(copy)
        sys.stdout, sys.stderr = (
            open(number, "w", closefd=False) if getattr(stream, "closed", False) else stream  # noqa: SIM115
            for number, stream in enumerate(streams, 1)
        )


def _states(torch: Any, np: Any) -> Iterator[tuple[Callable[[], Any], Callable[[Any], Any]]]:
    """How each state is read, and how it is set."""
    yield Path.cwd, os.chdir
    yield lambda: dict(os.environ), _set_environment
    yield lambda: sys.path[:], lambda paths: sys.path.__setitem__(slice(None), paths)
    yield sys.getrecursionlimit, sys.setrecursionlimit
    yield lambda: warnings.filters[:], lambda filters: setattr(warnings, "filters", filters)
    yield (
        lambda: locale.setlocale(locale.LC_ALL),
        lambda name: locale.setlocale(locale.LC_ALL, name),
    )
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGALRM):
            if signal.getsignal(number) is not None:  # one that no Python code has set
                yield partial(signal.getsignal, number), partial(signal.signal, number)
    yield (
        lambda: signal.getitimer(signal.ITIMER_REAL)[0],
        lambda left: signal.setitimer(signal.ITIMER_REAL, left),
    )
    yield np.geterr, lambda errors: np.seterr(**errors)
    yield torch.get_num_threads, torch.set_num_threads
    yield torch.get_default_dtype, torch.set_default_dtype
    yield torch.is_grad_enabled, torch.set_grad_enabled
    yield torch.get_deterministic_debug_mode, lambda mode: _set_determinism(torch, mode)
    yield torch.get_float32_matmul_precision, torch.set_float32_matmul_precision
    yield (
        lambda: torch.backends.mkldnn.enabled,
        lambda enabled: setattr(torch.backends.mkldnn, "enabled", enabled),
    )
    yield (
        lambda: torch.is_autocast_enabled("cpu"),
        lambda enabled: torch.set_autocast_enabled("cpu", enabled),
    )
    yield lambda: False, torch.set_flush_denormal
    yield torch.get_default_device, lambda device: _set_device(torch, device)


def _set_environment(before: dict[str, str]) -> None:
    if dict(os.environ) != before:
        os.environ.clear()
        os.environ.update(before)


def _set_determinism(torch: Any, mode: int) -> None:
    if torch.get_deterministic_debug_mode() != mode:  # a call imports torch's compiler: a second
        torch.use_deterministic_algorithms(mode > 0, warn_only=mode == 1)


def _set_device(torch: Any, device: Any) -> None:
    if torch.get_default_device() != device:  # a default that is set slows every call down
        torch.set_default_device(None if device.type == "cpu" else device)
