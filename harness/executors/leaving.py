"""A worker that is about to be taken away: its job is told, writes a checkpoint and leaves with `StopAsked`.

Known to the whole process, as a signal is; or by a file, to processes that another one started.
"""

from __future__ import annotations

from pathlib import Path

_told = False
_file: Path | None = None


def leave() -> None:
    """Have the job of this process leave as soon as it asks."""
    global _told
    _told = True


def leave_by(file: Path) -> None:
    """Have the job of this process leave once this file is there."""
    global _file
    _file = file


def stay() -> None:
    """Forget what was told: a new job begins."""
    global _told
    _told = False


def leaving() -> bool:
    """Is this worker about to be taken away?"""
    return _told or (_file is not None and _file.exists())
