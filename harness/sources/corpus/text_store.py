"""Many texts in little memory: one buffer of UTF-8 and the place of every text in it.

A million sentences take 16 MB of places beside a buffer that the operating system can drop: a memory map of the file
itself, or, for what had to be unpacked or parsed, memory up to `IN_MEMORY` and an unnamed temporary file above it.
"""

from __future__ import annotations

import hashlib
import mmap
import tempfile
from array import array
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import numpy as np
from numpy.typing import NDArray

from harness.sources.corpus.rows import byte_lines, decoded, opened, without_end
from harness.sources.remote.cache_folder import cache_root, writing

IN_MEMORY = 256 << 20  # bytes of text


class TextStore:
    """(n, columns) texts with random access; the empty text stands for "none" in an optional column."""

    def __init__(
        self, buffer: mmap.mmap | bytes, places: array[int] | NDArray[np.int64], columns: int, sha256: str
    ) -> None:
        """`places` holds start and end of every text in `buffer`, row by row."""
        self._buffer = buffer
        flat = np.frombuffer(places, dtype=np.int64) if isinstance(places, array) else places
        self.places: NDArray[np.int64] = flat.reshape(-1, columns, 2)
        self.sha256 = sha256

    def __len__(self) -> int:
        return len(self.places)

    def row(self, index: int) -> list[str]:
        """The texts of one row, 0 <= index < len."""
        buffer = self._buffer
        return [buffer[start:end].decode("utf-8") for start, end in self.places[index].tolist()]


class StoreWriter:
    """Collects texts into a TextStore; a context manager, so that a failure leaves nothing behind.

    The buffer is kept as `file` where one is named.
    """

    def __init__(self, columns: int, file: Path | None = None) -> None:
        self._columns = columns
        self._path = file
        self._chunk = bytearray()
        self._file: IO[bytes] | None = None
        self._flushed = 0
        self._places = array("q")
        self._hash = ContentHash(columns)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()  # it never had a name, so closing removes it; a memory map keeps it alive

    def add(self, texts: list[bytes]) -> None:
        """Append one row of UTF-8 texts."""
        for text in texts:
            start = self._flushed + len(self._chunk)
            self._chunk += text
            self._places.append(start)
            self._places.append(start + len(text))
        self._hash.add(texts)
        if len(self._chunk) > IN_MEMORY:
            self._flush()

    def _flush(self) -> None:
        folder = cache_root()
        with writing("a converted copy of the corpus", folder):
            if self._file is None and self._path is not None:
                self._file = self._path.open("w+b")
            elif self._file is None:
                folder.mkdir(parents=True, exist_ok=True)
                self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (closed by __exit__)
            self._file.write(self._chunk)
            self._file.flush()
        self._flushed += len(self._chunk)
        self._chunk.clear()

    def finish(self) -> TextStore:
        """The store of what was added."""
        if self._path is not None:
            self._flush()
        if self._file is None or not self._flushed + len(self._chunk):  # what is empty cannot be mapped
            buffer: mmap.mmap | bytes = bytes(self._chunk)
            self._chunk.clear()
        else:
            self._flush()
            buffer = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        return TextStore(buffer, self._places, self._columns, self._hash.hexdigest())


class ContentHash:
    """sha256 over rows of texts, the same however they were stored: each text after its length in bytes."""

    def __init__(self, columns: int) -> None:
        self._sha256 = hashlib.sha256(f"harness-texts-1 {columns}\n".encode())

    def add(self, texts: list[bytes]) -> None:
        self._sha256.update(b"".join([b"%d:%b" % (len(text), text) for text in texts]))

    def hexdigest(self) -> str:
        return self._sha256.hexdigest()


def mapped_lines(path: Path, limit: int | None) -> tuple[TextStore, int]:
    """The non-empty lines of an uncompressed text file, through a memory map; and how many lines were empty.

    White space around a line is dropped. The file must not be changed while the store is in use.

    Raises:
        InputError: not readable, not UTF-8, or a carriage return within a line (file and line).
    """
    places, skipped, at = array("q"), 0, 0
    content = ContentHash(1)
    with opened(path, zipped=False) as stream:
        if not stream.seek(0, 2):
            return TextStore(b"", places, 1, content.hexdigest()), 0
        stream.seek(0)
        for number, line in enumerate(byte_lines(path, stream), 1):
            if limit is not None and len(places) >= 2 * limit:
                break
            if number == 1:
                at = stream.tell() - len(line)  # after a byte-order mark
            start, at = at, at + len(line)
            text = without_end(path, number, decoded(path, number, line)).strip().encode()
            if not text:
                skipped += 1
                continue
            start += line.index(text)
            places.append(start)
            places.append(start + len(text))
            content.add([text])
        buffer = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    return TextStore(buffer, places, 1, content.hexdigest()), skipped
