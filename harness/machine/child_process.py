"""A function in a process of its own: whatever it does to the memory, this process goes on."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any, TypeVar

from harness.errors import RunError

T = TypeVar("T")


class ChildEnded(RunError):  # noqa: N818 - says what happened
    """A child process ended without an answer: killed, as the system does for want of memory, or by an error of its
    own, which it has reported."""


def in_child(function: Callable[..., T], *args: Any, data: int | None = None) -> T:
    """`function(*args)`, computed in a fresh process; function, arguments and answer have to be picklable.

    Args:
        data: so many bytes may it hold, where the system bounds that (Linux); more is a MemoryError in it, or what its
            libraries make of one. Without a bound the system's own judgement kills it, or another process.

    Raises:
        ChildEnded: it did not answer.
    """
    context = get_context("spawn")  # a fork of a process with threads, or with a GPU in use, hangs
    answers, answer = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(answer, data, function, args))
    process.start()
    answer.close()
    try:
        told: T = answers.recv()
    except EOFError:
        process.join()
        raise ChildEnded(f"its process ended with exit code {process.exitcode}") from None
    finally:
        process.terminate()  # it has answered, or nobody waits any more
        process.join()
    return told


def _answer(answer: Connection, data: int | None, function: Callable[..., T], args: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the user's interrupt is the parent's, which ends this process
    end_with_parent()
    if data is not None:
        _bound(data)
    answer.send(function(*args))


def end_with_parent() -> None:
    """End this process, which `multiprocessing` started, as soon as its parent has ended.

    A parent that was killed cannot end it, and it may hold a GPU or most of the memory.
    """
    Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _bound(data: int) -> None:
    """Data, not address space: libraries reserve far more addresses than they ever fill."""
    with suppress(ImportError, AttributeError, ValueError, OSError):  # Windows; a system with a lower bound of its own
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (data, most))
