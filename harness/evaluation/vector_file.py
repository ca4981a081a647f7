"""The vectors of many texts as a file of numpy's, written as they are made: memory does not grow with their number."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from harness.errors import InputError
from harness.files.atomic import sweep
from harness.machine.progress import encoding_bar
from harness.tasks.base import Array, checked

AT_ONCE = 16_384  # texts that are encoded and held at a time: enough for batches of like length


def write_vectors(
    encode: Callable[[list[str]], Array], texts: Iterable[str], out: str | Path, *, progress: bool = False
) -> Array:
    """The file `out`, (n, d) in float32 in the order of the texts, and its rows as numpy maps them (read-only).

    It appears whole or not at all, in the place of what was there. `texts` is gone through once, a generator may be.

        >>> rows = write_vectors(lambda texts: np.ones((len(texts), 2)), ["a", "b", "c"], work / "ones.npy")
        >>> rows.shape, float(np.load(work / "ones.npy").sum())
        ((3, 2), 6.0)

    Raises:
        InputError: `out` cannot be written, or does not end with .npy.
        RunError: `encode` returned something else than one vector a text.
    """
    out = Path(out)
    if out.suffix != ".npy":
        raise InputError(f"--out {out}: expected a file name that ends with .npy")
    unfinished = out.with_name(f".{out.name}.{os.getpid()}.00000000")  # what `sweep` knows, should this be killed
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        sweep(out)
        file = unfinished.open("wb")
    except OSError as error:
        raise InputError(f"--out {out}: cannot be written ({error.strerror})") from None
    try:
        with file:
            _write(file, encode, iter(texts), getattr(texts, "__len__", lambda: 0)(), progress)
            os.fsync(file.fileno())
        os.replace(unfinished, out)
    finally:
        unfinished.unlink(missing_ok=True)
    rows: Array = np.load(out, mmap_mode="r")
    return rows


def _write(
    file: BinaryIO, encode: Callable[[list[str]], Array], texts: Iterable[str], total: int, progress: bool
) -> None:
    count, width = 0, 0
    with encoding_bar(total, show=progress) as advance:
        while (part := list(islice(texts, AT_ONCE))) or not count:  # an empty file has its width, too
            rows = np.ascontiguousarray(checked(encode(part), len(part)), dtype="<f4")
            if not count:
                width = rows.shape[1]
                _head(file, 0, width)
            file.write(rows.data)
            count += len(part)
            advance(len(part))
            if not part:
                break
    file.seek(0)
    _head(file, count, width)  # of the same length: numpy leaves room for more rows


def _head(file: BinaryIO, count: int, width: int) -> None:
    about = {"descr": "<f4", "fortran_order": False, "shape": (count, width)}
    np.lib.format.write_array_header_1_0(file, about)
