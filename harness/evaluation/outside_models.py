"""Models that lie in no folder: vectors in a file, and functions of a module."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.errors import InputError
from harness.files.printable import first_line

_FILES = (".parquet", ".npz")


def open_outside(name: str) -> FileVectors | ModuleFunction | None:
    """Return the model that a file of vectors or "module:function" names; None for other names.

    Raises:
        InputError: the file or the function cannot be read, or is of another kind.
    """
    if Path(name).suffix in _FILES and Path(name).is_file():
        return FileVectors(Path(name))
    module, colon, function = name.partition(":")
    dotted = all(part.isidentifier() for part in [*module.split("."), *function.split(".")])
    if colon and dotted and module not in ("embedded", "mteb"):
        return ModuleFunction(module, function)
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

    def __init__(self, module: str, function: str) -> None:
        self.name = f"{module}:{function}"
        folder = str(Path.cwd())
        added = folder not in sys.path
        if added:
            sys.path.append(folder)
        try:
            found: Any = importlib.import_module(module)
            for part in function.split("."):
                found = getattr(found, part)
        except Exception as error:  # whatever a module does when it is imported
            said = f"{type(error).__name__}: {first_line(error):.200}"
            raise InputError(f'"{self.name}" cannot be imported: {said}', key="model") from error
        finally:
            if added and folder in sys.path:
                sys.path.remove(folder)
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
