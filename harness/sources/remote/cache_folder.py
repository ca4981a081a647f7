"""The harness's own cache folder, and the one clear line for a disk that is full."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import InputError

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
_NO_ACCESS = {errno.EACCES, errno.EPERM, errno.EROFS}


def cache_root() -> Path:
    """HARNESS_CACHE, or `harness` in the user's cache folder. It is not created here."""
    if given := os.environ.get("HARNESS_CACHE"):
        return Path(given).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "harness"


@contextmanager
def writing(what: str, folder: Path) -> Iterator[None]:
    """Turn "disk full" and "not allowed" while writing `what` into `folder` into one clear line.

    Raises:
        InputError: no space, quota used up, or a folder that cannot be written to.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise InputError(
                f"{folder}: no space left on the disk while writing {what}; nothing was kept; "
                "free some space, or set HARNESS_CACHE (and HF_HOME for downloads) to a folder on another disk"
            ) from None
        if error.errno in _NO_ACCESS:
            raise InputError(
                f"{folder}: cannot be written to ({error.strerror}) while storing {what}; "
                "set HARNESS_CACHE to a folder that can"
            ) from None
        raise
