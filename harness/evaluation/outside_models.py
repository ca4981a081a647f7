"""Models that lie in no folder: vectors in a file, and functions of a module."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.errors import InputError
from harness.files.imports import import_path, names_code
from harness.files.printable import first_line

_FILES = (".parquet", ".npz")
_SCHEMES = ("embedded", "mteb")
_ENDPOINTS = ("http://", "https://")


def calls_others(name: str) -> str:
    """Return what code or machine of someone else a model is: "imports ..."; empty for none.

    >>> calls_others("encoders:embed"), calls_others("embedded:mini-bert")
    ('imports "encoders:embed"', '')
    """
    if is_function(name):
        return f'imports "{name}"'
    if name.startswith(_ENDPOINTS):
        return f'sends its texts to "{name}"'
    return ""


def is_function(name: str) -> bool:
    """Return True for "module:function"."""
    return names_code(name) and name.partition(":")[0] not in _SCHEMES


def open_outside(name: str) -> FileVectors | ModuleFunction | None:
    """Return the model that a file of vectors or "module:function" names; None for other names.

    Raises:
        InputError: the file or the function cannot be read, or is of another kind.
    """
    if Path(name).suffix in _FILES and Path(name).is_file():
        return FileVectors(Path(name))
    if is_function(name):
        return ModuleFunction(name)
    return None


class FileVectors:
    """Vectors of texts from a file: the columns (or arrays) `text` and `vector`.

    Raises:
        InputError: it has no such columns, or vectors of different lengths.
    """

    def __init__(self, file: Path) -> None:
        self.name = file.stem
        self.file = file
        try:
            texts, vectors = _read(file)
        except InputError:
            raise
        except Exception as error:  # pyarrow and numpy raise classes of their own
            raise InputError(f"cannot be read: {first_line(error):.200}", file=file) from error
        if vectors.ndim != 2 or len(texts) != len(vectors):
            raise InputError(
                f"expected a vector of one length for each of {len(texts):,} texts, not an array of "
                f"shape {vectors.shape}",
                file=file,
                key="vector",
            )
        if not np.isfinite(vectors).all():
            raise InputError("has values that are no numbers", file=file, key="vector")
        self.vectors = vectors
        self.rows = {text: row for row, text in enumerate(texts)}

    def encode(self, texts: Sequence[str], **_: Any) -> np.ndarray:
        """Return the vectors (n, d) in float32.

        Raises:
            InputError: some texts are not in the file.
        """
        missing = [text for text in texts if text not in self.rows]
        if missing:
            raise InputError(
                f'{len(missing):,} of {len(texts):,} texts are missing, the first is "{missing[0]:.80}"',
                file=self.file,
                key="text",
                remedy="add their vectors",
            )
        return self.vectors[[self.rows[text] for text in texts]]


def _read(file: Path) -> tuple[list[str], np.ndarray]:
    if file.suffix == ".npz":
        with np.load(file, allow_pickle=False) as arrays:
            _need(file, list(arrays))
            return [str(text) for text in arrays["text"]], np.asarray(arrays["vector"], np.float32)
    import pandas as pd

    table = pd.read_parquet(file)
    _need(file, list(table.columns))
    lengths = {len(vector) for vector in table["vector"]}
    if len(lengths) > 1:
        raise InputError(f"vectors have {sorted(lengths)} dimensions", file=file, key="vector")
    return [str(text) for text in table["text"]], np.array(list(table["vector"]), np.float32)


def _need(file: Path, names: list[str]) -> None:
    for name in ("text", "vector"):
        if name not in names:
            raise InputError(
                f"no column of that name; its columns are: {', '.join(names)}", file=file, key=name
            )


class ModuleFunction:
    """A function of a list of texts, imported by its name; modules of the working folder too.

    Raises:
        InputError: it cannot be imported, or is no function.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        found = import_path(name, key="model")
        if not callable(found):
            raise InputError(
                f'"{self.name}" is a {type(found).__name__}, and no function of texts', key="model"
            )
        self.function = found

    def encode(self, texts: Sequence[str], **_: Any) -> np.ndarray:
        """Return the vectors (n, d) that the function gives.

        Raises:
            InputError: it gives something else.
        """
        vectors = np.asarray(self.function(list(texts)), dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise InputError(
                f'"{self.name}" gave an array of shape {vectors.shape} for {len(texts):,} texts',
                key="model",
            )
        return vectors
