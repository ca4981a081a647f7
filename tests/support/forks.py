"""Processes that a test kills, or starts at once: forks of the test's own, which has imported what
they need. A new process would import torch and transformers, which takes longer than all else.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

import torch


def start_fork(function: Callable[..., object], *arguments: Any) -> BaseProcess:
    """Start a process that calls a function, with one thread: a fork has none of the others."""
    context = multiprocessing.get_context("fork")
    process = context.Process(target=_call, args=(function, *arguments))
    process.start()
    return process


def run_fork(function: Callable[..., object], *arguments: Any) -> int:
    """Return the exit code of a process that calls a function; -9 of one that was killed."""
    process = start_fork(function, *arguments)
    process.join()
    assert process.exitcode is not None
    return process.exitcode


def _call(function: Callable[..., object], *arguments: Any) -> None:
    torch.set_num_threads(1)
    function(*arguments)
