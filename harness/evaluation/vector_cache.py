"""Vectors stored on disk between runs: by the content of the model, how it pools, and the text.

A folder for each model holds segments: safetensors files that are written once, whole, under a name
of their own. Processes that fill one cache at the same time can so never damage each other's work;
at worst both store the same vectors.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import shutil
import zlib
from collections.abc import Iterable
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from harness.files.atomic import write_atomic
from harness.files.hashing import content_id, sha256_of
from harness.results.model_card import is_card
from harness.tasks.base import Array

log = logging.getLogger(__name__)

DEFAULT_LIMIT = 4 << 30  # bytes of a whole cache: BERT-base vectors of some 1.3 million sentences
SUFFIX = ".safetensors"
_KEY = 16  # bytes of a text's hash
_HEAD = 256  # bytes, more than the head of a segment takes
_SEGMENT = (
    65_536  # vectors that are copied for a segment at a time: a million of them are not there twice
)
_PATIENCE = 60.0  # seconds to wait for another process that is storing


def text_key(text: str) -> bytes:
    """The first 16 bytes of the text's sha256: no two of 10^12 texts share one but by a chance of
    10^-15.
    """
    encoded = text.encode("utf-8", "surrogatepass")
    return hashlib.sha256(encoded).digest()[:_KEY]


def folder_hash(folder: Path) -> str:
    """Content hash of a saved model: all its files but its card."""
    digest = hashlib.sha256()
    files = [file for file in folder.rglob("*") if file.is_file()]
    for file in sorted(file for file in files if not is_card(file)):
        name = file.relative_to(folder)
        digest.update(f"{name}\n{file.stat().st_size}\n".encode())
        digest.update(bytes.fromhex(sha256_of(file)))
    return digest.hexdigest()


class EmbeddingCache:
    """A folder with the vectors of many models, at most `limit` bytes in all: the model unused for
    longest goes first.

    Whatever is wrong with the folder (full disk, no right to write, damaged files) costs time,
    never a result: it is logged as a warning, and the vectors are computed again or not stored.
    """

    def __init__(self, folder: Path, *, limit: int = DEFAULT_LIMIT) -> None:
        self.folder = folder
        self.limit = limit

    def of(self, model: str, pooling: str, *, code: str, **conditions: Any) -> StoredVectors:
        """The vectors of one model.

        `model`: hash of its content. `code`: id of the code that encodes. `conditions`: whatever
        else the vectors depend on, such as the device.
        """
        versions = {name: version(name) for name in ("torch", "transformers")}
        programs = {"code": code, **versions}
        content = [model, pooling, programs, conditions]
        return StoredVectors(self, content_id(content, digits=32))

    def make_room(self, needed: int, keep: Path) -> bool:
        """Remove models, never `keep`, until `needed` more bytes fit; whether they do. Call it
        under the lock.
        """
        used = {}
        for f in self.folder.iterdir():
            if f.is_dir():
                size = sum(file.stat().st_size for file in f.iterdir())
                used[f] = (f.stat().st_mtime, size)
        total = needed + sum(size for _, size in used.values())
        oldest_first = sorted(used.items(), key=lambda item: item[1])
        for folder, (_, size) in oldest_first:
            if total > self.limit and folder != keep:
                shutil.rmtree(folder, ignore_errors=True)
                total -= size
        return total <= self.limit


class StoredVectors:
    """Text -> (d,) float32 vector of one model: what `harness.evaluation.scoring` takes as its
    `cache`.
    """

    def __init__(self, cache: EmbeddingCache, name: str) -> None:
        self.cache = cache
        self.name = name  # hash of all that the vectors depend on
        self.folder = cache.folder / name
        self._rows: dict[bytes, Array] = {}
        self._stores = True  # False once storing has failed
        try:
            files = sorted(self.folder.glob("*" + SUFFIX))
            if files:
                os.utime(self.folder)  # when it was last used
        except OSError as error:
            self._warn(f"cannot be read ({error.strerror}); going on without")
            return
        for file in files:
            try:
                self._take(file)
            except FileNotFoundError:
                continue  # another process has just made room
            except (OSError, ValueError) as error:
                self._warn(f"{file.name} is damaged ({error}); its sentences are encoded again")
                if file.is_file():
                    file.unlink(missing_ok=True)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def width(self) -> int | None:
        """Numbers of a vector; None where none is stored."""
        for row in self._rows.values():
            return len(row)
        return None

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and text_key(text) in self._rows

    def __getitem__(self, text: str) -> Array:
        return self._rows[text_key(text)]

    def update(self, vectors: Iterable[tuple[str, Array]], /) -> None:
        """Add vectors, all of one length, and store them in segments; ones that cannot be stored
        are dropped.
        """
        items = iter(vectors)
        while self._stores and (part := list(islice(items, _SEGMENT))):
            keys = [text_key(text) for text, _ in part]
            matrix = np.ascontiguousarray([row for _, row in part], dtype="<f4")
            self._store(keys, matrix)

    def _warn(self, what: str) -> None:
        log.warning("embedding cache %s: %s", self.folder, what)

    def _take(self, file: Path) -> None:
        keys, matrix = read_segment(file, self.name)
        if self.width not in (None, matrix.shape[1]):
            raise ValueError("vectors of another length than the rest")
        self._rows.update(zip(keys, matrix, strict=True))

    def _store(self, keys: list[bytes], matrix: Array) -> None:
        from filelock import FileLock

        file = self.folder / f"{secrets.token_hex(8)}{SUFFIX}"
        needed = _HEAD + len(keys) * _KEY + matrix.nbytes
        try:
            self.cache.folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self.cache.folder / ".lock", timeout=_PATIENCE):
                self.folder.mkdir(exist_ok=True)
                self._stores = self.cache.make_room(needed, self.folder)
                if not self._stores:
                    self._warn(
                        f"{needed:,} more bytes are beyond its limit of {self.cache.limit:,}; they are dropped"
                    )
                    return
                write_segment(file, self.name, keys, matrix)
            self._take(file)  # mapped from the disk, so that memory is free for other things
        except (
            OSError,
            ValueError,
        ) as error:  # a full disk, no right to write, a lock that is never given back
            self._warn(
                f"vectors cannot be stored ({getattr(error, 'strerror', None) or error}); going on without"
            )
            self._stores = False


def write_segment(file: Path, model: str, keys: list[bytes], matrix: Array) -> None:
    """Keys and their (n, d) float32 rows of a model as one file, which appears whole or not at all."""
    from safetensors.numpy import save

    joined = np.frombuffer(b"".join(keys), dtype=np.uint8)
    names = joined.reshape(-1, _KEY)
    about = {"model": model, "crc32": _checksum(names, matrix)}
    write_atomic(file, save({"keys": names, "vectors": matrix}, metadata=about))


def read_segment(file: Path, model: str) -> tuple[list[bytes], Array]:
    """Keys and rows of a segment of a model. The rows are mapped, not read: memory pages come and
    go as they are used.

    Raises:
        ValueError: the file is not what `write_segment` wrote.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(
            file, "pt"
        ) as segment:  # as PyTorch's tensors: those for numpy are read into memory
            keys = segment.get_tensor("keys").numpy()
            matrix = segment.get_tensor("vectors").numpy()
            about = segment.metadata() or {}
    except SafetensorError as error:
        raise ValueError(str(error)) from None
    if about.get("model") != model:
        raise ValueError("it holds the vectors of another model")
    if about.get("crc32") != _checksum(keys, matrix):
        raise ValueError("its checksum is wrong")
    matrix.setflags(write=False)
    names = keys.tobytes()
    starts = range(0, len(names), _KEY)
    return [names[start : start + _KEY] for start in starts], matrix


def _checksum(keys: Array, matrix: Array) -> str:
    """CRC-32 of the content: safetensors notices a wrong head and a wrong length, but no flipped
    bit.
    """
    return str(zlib.crc32(matrix.data, zlib.crc32(keys.data)))
