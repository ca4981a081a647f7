"""Models that lie in no folder: vectors in a file, functions of a module, and what these have in
common with endpoints and models of mteb.
"""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from harness.encoder.sentences import clean
from harness.errors import HarnessError, InputError, RunError
from harness.files.code import digest_of, find_changed_files, find_sources
from harness.files.exits import refuse_exits
from harness.files.hashing import sha256_of, sha256_of_text
from harness.files.imports import import_path
from harness.files.printable import first_line
from harness.results.code import Code
from harness.tasks.base import Array, as_array
from harness.tasks.prompts import Prompts

_NUMBERS = "biufO"  # kinds of arrays that may hold real numbers


class OutsideModel(ABC):
    """A model of which its vectors are known, and no weights, pooling or length.

    Attributes:
        name: what it is called.
        timed: its seconds say what the model costs; not those of a file or of a network.
        takes_prompts: a text behind a prompt is a text like any other.
        stores: vectors that cost a request are stored on this machine, and used again.
        prompts: what its makers put before texts; None where nothing is known of any.
    """

    timed: bool = True
    takes_prompts: ClassVar[bool] = True
    stores = True
    name: str
    prompts: Prompts | None = None

    @property
    @abstractmethod
    def identity(self) -> str:
        """A hash or name of what decides its vectors.

        Raises:
            InputError: it cannot be found out.
        """

    @abstractmethod
    def vectors_of(self, texts: list[str], device: str | None) -> Any:
        """Return the vectors (n, d) of n texts, n > 0, as an array of numbers."""

    def encode(
        self,
        sentences: str | Sequence[str],
        *,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        normalize_embeddings: bool = False,
        device: str | None = None,
        **_: Any,
    ) -> Any:
        """Return the vectors (n, d) in float32, (d,) of a single text; arguments as `Method.encode`.

        Raises:
            InputError: something that is no text, or vectors of another shape or without numbers.
        """
        if isinstance(sentences, str):
            vectors = self._vectors([sentences], device)[0]
        else:
            vectors = self._vectors(
                [clean(text, row) for row, text in enumerate(sentences)], device
            )
        if normalize_embeddings:
            lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
            vectors = vectors / np.maximum(lengths, 1e-12)
        if convert_to_tensor or not convert_to_numpy:
            import torch

            return torch.from_numpy(vectors)
        return vectors

    def _vectors(self, texts: list[str], device: str | None) -> Array:
        if not texts:
            return np.empty((0, 0), np.float32)
        made = self.vectors_of(texts, device)
        try:
            array = as_array(made)
            if array.dtype.kind not in _NUMBERS:
                raise TypeError(f"its values are {array.dtype.name}")
            with np.errstate(over="ignore"):  # infinite values are reported where they are scored
                vectors = np.asarray(array, dtype=np.float32)
        except (TypeError, ValueError, NotImplementedError) as error:  # the last: on no device
            kind = type(made).__name__
            fault = f"{kind}, no array of numbers ({first_line(error):.100})"
            raise InputError(f'"{self.name}" gave a {fault}', key="model") from error
        is_table = vectors.ndim == 2 and len(vectors) == len(texts)
        if not is_table or not vectors.shape[1]:
            raise InputError(
                f'"{self.name}" gave an array of shape {vectors.shape} for {len(texts):,} texts',
                key="model",
            )
        return np.ascontiguousarray(vectors)

    def fault_of(self, texts: Sequence[str]) -> InputError | None:
        """Return why it can have no vectors of some texts; None where it may have all."""
        return None


def choose_prompts(model: OutsideModel, asked: Mapping[str, str] | str | None) -> Prompts | None:
    """Return the prompts before the texts of an outside model.

    Args:
        asked: texts by kind of task, "own", or None for those of its makers, if mteb knows some.

    Raises:
        InputError: none are known, or the model takes none.
    """
    if asked is None or (asked == "own" and model.prompts is not None):
        return model.prompts
    if isinstance(asked, str):
        raise InputError(f"none of {model.name} are known", key="prompts", remedy="give texts")
    if not model.takes_prompts:
        raise InputError(f"{model.name} takes none of yours", key="prompts", remedy="leave it out")
    return Prompts(asked)


class FileVectors(OutsideModel):
    """Vectors of texts from a file: the columns (or arrays) `text` and `vector`; `sha256` in place of
    `text` has hashes of texts in UTF-8, as 64 hexadecimal digits. Tables of texts are read without
    blanks around them: here a text may have them, for a hash they are left out.

    Raises:
        InputError: it has no such columns, or vectors of different lengths.
    """

    timed = False
    takes_prompts = False

    def __init__(self, file: Path) -> None:
        self.name = file.stem
        self.file = file
        try:
            names, vectors, self.hashed = _read(file)
        except InputError:
            raise
        except Exception as error:  # pyarrow and numpy raise classes of their own
            fault = f"{first_line(error):.200}"
            raise InputError(f"cannot be read: {fault}", file=file) from error
        is_table = vectors.ndim == 2 and len(names) == len(vectors)
        if not is_table or not vectors.size:
            raise InputError(
                f"expected a vector of one length for each of {len(names):,} texts, not an array of "
                f"shape {vectors.shape}",
                file=file,
                key="vector",
            )
        if not np.isfinite(vectors).all():
            raise InputError("has values that are no numbers", file=file, key="vector")
        self.vectors = vectors
        self.rows = {name: row for row, name in enumerate(names)}
        self._refuse_two_vectors(names)
        if not self.hashed:  # tables of a user's are read without the blanks around texts
            for name, row in list(self.rows.items()):
                self.rows.setdefault(name.strip(), row)

    def _refuse_two_vectors(self, names: list[str]) -> None:
        if len(self.rows) == len(names):
            return
        for row, name in enumerate(names):
            first = self.vectors[self.rows[name]]
            if not np.array_equal(self.vectors[row], first):
                text = " ".join(name.split())
                message = f'"{text:.80}" has two different vectors'
                key = "sha256" if self.hashed else "text"
                raise InputError(message, file=self.file, key=key)

    def _key(self, text: str) -> str:
        if not self.hashed:
            return text
        return sha256_of_text(text)

    @cached_property
    def identity(self) -> str:
        """The hash of the file."""
        return sha256_of(self.file)

    def fault_of(self, texts: Sequence[str]) -> InputError | None:
        """Return which texts are not in the file."""
        distinct = dict.fromkeys(texts)
        missing = [text for text in distinct if self._key(text) not in self.rows]
        if not missing:
            return None
        return InputError(
            f"{len(missing):,} of {len(set(texts)):,} texts are missing, the first is "
            f'"{" ".join(missing[0].split()):.80}"',
            file=self.file,
            key="sha256" if self.hashed else "text",
            remedy="add their vectors",
        )

    def vectors_of(self, texts: list[str], device: str | None) -> Any:
        """Return the vectors of texts of the file.

        Raises:
            InputError: some texts are not in the file.
        """
        if (fault := self.fault_of(texts)) is not None:
            raise fault
        rows = [self.rows[self._key(text)] for text in texts]
        return self.vectors[rows]


def _real(file: Path, vectors: np.ndarray) -> np.ndarray:
    if np.iscomplexobj(vectors):
        raise InputError("vectors are complex; expected real numbers", file=file, key="vector")
    return np.asarray(vectors, np.float32)


def _read(file: Path) -> tuple[list[str], np.ndarray, bool]:
    """Return texts or their hashes, the vectors, and whether they are hashes."""
    if file.suffix.lower() == ".npz":
        with np.load(file, allow_pickle=False) as arrays:
            column = _column_of_texts(file, list(arrays))
            vectors = _real(file, _array(file, arrays, "vector"))
            texts = _texts_of(file, column, _array(file, arrays, column).tolist())
        return texts, vectors, column != "text"
    import pandas as pd

    table = pd.read_parquet(file)
    column = _column_of_texts(file, list(table.columns))
    lengths = {len(vector) for vector in table["vector"]}
    if len(lengths) > 1:
        message = f"vectors have {sorted(lengths)} dimensions"
        raise InputError(message, file=file, key="vector")
    vectors = np.array(list(table["vector"]), np.float32)
    texts = _texts_of(file, column, table[column].tolist())
    return texts, vectors, column != "text"


def _array(file: Path, arrays: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    """Return an array of a file.

    Raises:
        InputError: it has objects of Python, which only pickle reads, and pickle runs code.
    """
    try:
        return arrays[name]
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
    if name == "vector":
        remedy = "save np.stack(vectors), of vectors of one length"
    else:
        remedy = "save np.array(list(texts), dtype=str)"
    message = "is an array of Python objects, which only pickle reads"
    raise InputError(message, file=file, key=name, remedy=remedy)


def _texts_of(file: Path, column: str, values: list[Any]) -> list[str]:
    for row, value in enumerate(values, 1):
        if not isinstance(value, str):
            raise InputError(
                f"row {row:,} has {value!r:.60}, no text",
                file=file,
                key=column,
                remedy="remove it",
            )
    if column == "sha256":
        return [value.lower() for value in values]
    return values


def _column_of_texts(file: Path, names: list[str]) -> str:
    if "sha256" in names and "text" not in names:
        column = "sha256"
    else:
        column = "text"
    for name in (column, "vector"):
        if name not in names:
            raise InputError(
                f"no column of that name; its columns are: {', '.join(names)}", file=file, key=name
            )
    return column


class ModuleFunction(OutsideModel):
    """A function of a list of texts, imported by its name; modules of the working folder too.

    Raises:
        InputError: it cannot be imported, or is no function; its module, or one that it imports, has
            changed since this process imported it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        found = import_path(name, key="model")
        if not callable(found):
            raise InputError(
                f'"{self.name}" is a {type(found).__name__}, and no function of texts', key="model"
            )
        self.function: Callable[[list[str]], Any] = found
        self.sources = find_sources([name.partition(":")[0]])
        changed = find_changed_files(self.sources)
        Code(self.name, changed=tuple(changed)).check_current()

    @property
    def identity(self) -> str:
        """The hash of its module's source, with the modules of its user that it imports.

        Raises:
            InputError: no source can be read.
        """
        sources = self.sources
        if not sources:
            module = self.name.partition(":")[0]
            raise InputError(
                f'the source of "{module}" cannot be read, so its vectors cannot be identified',
                key="model",
                remedy="give a function of a module in Python",
            )
        lines = [f"{name} {sources[name].digest}" for name in sorted(sources)]
        return digest_of("\n".join(lines))

    def vectors_of(self, texts: list[str], device: str | None) -> Any:
        """Return what the function gives.

        Raises:
            RunError: it fails, with the line of its code.
        """
        try:
            with refuse_exits():
                return self.function(list(texts))
        except (HarnessError, KeyboardInterrupt):
            raise
        except BaseException as error:  # of the user's own code, which may also exit
            said = f"{type(error).__name__}: {first_line(error):.200}"
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{frame.filename}, line {frame.lineno}: {frame.line}"
            raise RunError(f'"{self.name}" failed: {said} ({place})') from error
