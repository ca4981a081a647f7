"""Plugins of other packages that end the process, or raise what is no exception."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from harness.errors import HarnessError, RunError
from harness.files.atomic import storage_fault
from harness.files.printable import first_line

ENDS = (Exception, SystemExit, GeneratorExit)
"""What a plugin may raise that is no request of the user's."""


@contextmanager
def refuse_exits() -> Iterator[None]:
    """Let `os._exit` raise `SystemExit` in this process, until the block ends."""
    leave = os._exit
    own = os.getpid()

    def refuse(code: int) -> NoReturn:
        if os.getpid() != own:  # a child, which may end
            leave(code)
        raise SystemExit(f"os._exit({code})")

    os._exit = refuse  # type: ignore[assignment]
    try:
        yield
    finally:
        os._exit = leave


@contextmanager
def calling(plugin: str) -> Iterator[None]:
    """Call a plugin of another package, whatever it raises.

    Args:
        plugin: what it is, as 'sampler "halton"'.

    Raises:
        RunError: it failed or wanted to end the process; the line names it.
        HarnessError, OSError: as they were raised; of the latter, those of the disk alone.
    """
    try:
        yield
    except HarnessError:
        raise
    except ENDS as error:
        if isinstance(error, Exception) and storage_fault(error) is not None:
            raise
        what = f"{type(error).__name__}: {first_line(error)}"
        raise RunError(
            f"{plugin} failed ({what}); finished runs are saved: correct or replace it, and give the "
            "same command again"
        ) from error
