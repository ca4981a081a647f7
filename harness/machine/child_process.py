"""A process that was started by another one and ends with it."""

from __future__ import annotations

import os
from multiprocessing import parent_process
from threading import Thread


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
