"""A further process of this program: it does not run the user's script, and ends with its parent."""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from os import _exit  # while a run is under way, os._exit is replaced
from threading import RLock, Thread
from typing import Any

from tqdm import tqdm


def start_process(target: Callable[..., None], *args: Any) -> tuple[BaseProcess, Connection]:
    """Start a process that calls `target(connection, *args)`; the process and the other end of the
    connection.

    The connection reads as ended as soon as the process has.
    """
    # A fork would share locks of torch's threads.
    context = multiprocessing.get_context("spawn")
    connection, other_end = context.Pipe()
    process = context.Process(target=_begin, args=(target, other_end, *args))
    with _hide_script():
        process.start()
    other_end.close()  # only the process holds it now
    return process, connection


@contextmanager
def _hide_script() -> Iterator[None]:
    """Start a process that does not run the user's script, as it would if it knew its file."""
    main = vars(sys.modules["__main__"])
    if "__file__" not in main:
        yield
        return
    file = main.pop("__file__")
    try:
        yield
    finally:
        main["__file__"] = file


def _begin(target: Callable[..., None], connection: Connection, *args: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles the user's interrupt
    if hasattr(signal, "SIGHUP"):  # and the end of the terminal
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    tqdm.set_lock(RLock())  # by default one of the system's, which a killed process leaves behind
    Thread(target=_end_with_parent, daemon=True).start()
    target(connection, *args)


def _end_with_parent() -> None:
    """End this process as soon as its parent has: it may hold a GPU or most of the memory."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    _exit(1)
