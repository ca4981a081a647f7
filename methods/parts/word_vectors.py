"""Word vectors from a text file (word2vec's or GloVe's format, also gzipped) or a model of sentence-transformers."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from harness.errors import InputError
from harness.files.reading import is_there, require_ordinary
from harness.sources.corpus.rows import byte_lines, opened
from harness.sources.remote.cache_folder import writing
from harness.sources.remote.hub import hub_file

HUB = "hf://"
GLOVE = "sentence-transformers/average_word_embeddings_glove.6B.300d"  # 400,000 lower-cased words, 480 MB
SOURCES = "word2vec or GloVe text file (.gz too), hf://datasets/ORG/NAME/FILE, or a model of averaged word vectors"
LINES = 16_384  # lines parsed at a time
IN_MEMORY = 256 << 20  # bytes of vectors; more go through an unnamed temporary file that the system maps to memory


@dataclass(frozen=True)
class WordVectors:
    """`row` of every word in `matrix` (n, d), float32, which may be a memory map; a repeated word has its first row."""

    row: dict[str, int]
    matrix: NDArray[np.float32]


def read_word_vectors(uri: str, limit: int | None = None) -> WordVectors:
    """The vectors behind `uri`: a text file, or a model of sentence-transformers that averages word vectors.

    A text file holds one word and its numbers a line, separated by blanks; a first line of exactly two fields (count
    and dimension) is a header. Of a model only words and vectors are used: not its tokenizer, which drops stop words.

    Args:
        uri: path, hf://datasets/ORG/NAME/FILE or hf://ORG/NAME/FILE of a text file; folder or ORG/NAME of a model.
        limit: use the first so many words: files are sorted by frequency.

    Raises:
        InputError: no such source, or a line that is not a word and as many numbers as the others (file and line).
    """
    files = _files(uri)
    words, matrix = _read_text(files[0], limit) if len(files) == 1 else _read_model(files[0], files[1], limit)
    row: dict[str, int] = {}
    for place, word in enumerate(words):
        row.setdefault(word, place)
    return WordVectors(row, matrix)


def vectors_hash(uri: str) -> str:
    """Content hash of the files behind `uri`.

    Raises:
        InputError: no such source.
    """
    files = _files(uri)
    return "-".join(_sha256(file, file.stat().st_size, file.stat().st_mtime_ns)[:16] for file in files)


@cache
def _sha256(file: Path, size: int, changed: int) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _files(uri: str) -> tuple[Path, ...]:
    """A text file, or the words and the weights of a model."""
    if uri.startswith(HUB):
        data = uri.startswith(f"{HUB}datasets/")
        parts = uri.removeprefix(HUB).removeprefix("datasets/").split("/", 2)
        if len(parts) < 3 or not all(parts):
            raise InputError(f'vectors "{uri}": expected hf://datasets/ORG/NAME/FILE, or hf://ORG/NAME/FILE of a model')
        name, _, revision = parts[1].partition("@")
        kind = "dataset" if data else "model"
        return (hub_file(f"{parts[0]}/{name}", parts[2], unquote(revision) or None, kind=kind),)
    path = Path(uri).expanduser()
    if uri.strip() and (path / "modules.json").is_file():
        return _model_files(uri, lambda name: _existing(path / name))
    if uri.strip() and is_there(path):
        require_ordinary(path)
        return (path,)
    if re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", uri, re.ASCII) and path.suffix not in (".txt", ".vec", ".gz"):
        return _model_files(uri, lambda name: hub_file(uri, name, kind="model"))
    raise InputError(f'vectors "{uri}": no such file; give a {SOURCES}, such as {GLOVE}')


def _model_files(uri: str, file: Callable[[str], Path]) -> tuple[Path, Path]:
    """The words and the weights of the module WordEmbeddings; `file` gives the path of a file of the model."""
    try:
        paths = {
            str(m["type"]).rpartition(".")[2]: str(m["path"]) for m in json.loads(file("modules.json").read_text())
        }
    except (ValueError, TypeError, KeyError):
        raise InputError(f'vectors "{uri}": its modules.json is damaged') from None
    if "WordEmbeddings" not in paths:
        raise InputError(f'vectors "{uri}": expected a module WordEmbeddings, not {", ".join(paths)}')
    folder = Path(Path(paths["WordEmbeddings"]).name)  # never outside of the model
    words = file(str(folder / "whitespacetokenizer_config.json"))
    try:
        return words, file(str(folder / "model.safetensors"))
    except InputError:  # models of before safetensors
        return words, file(str(folder / "pytorch_model.bin"))


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    require_ordinary(path)
    return path


def _read_model(words_file: Path, weights_file: Path, limit: int | None) -> tuple[list[str], NDArray[np.float32]]:
    import torch
    from safetensors.torch import load_file

    try:
        words = json.loads(words_file.read_text("utf-8"))["vocab"]
        safe = weights_file.suffix == ".safetensors"
        state = load_file(weights_file) if safe else torch.load(weights_file, map_location="cpu", weights_only=True)
        matrix: NDArray[np.float32] = state["emb_layer.weight"].float().numpy()
    except Exception as error:  # json, safetensors, zipfile and pickle have an error of their own each
        what = f"{weights_file.parent}: damaged word vectors ({type(error).__name__})"
        raise InputError(f"{what}; replace the files of this folder") from None
    if len(words) != len(matrix) or not len(words) or not np.isfinite(matrix).all():
        raise InputError(f"{weights_file}: expected finite vectors for the {len(words)} words of {words_file.name}")
    if not matrix[0].any():  # sentence-transformers puts a word for padding before those of the file
        words, matrix = words[1:], matrix[1:]
    return words[:limit], matrix[:limit]


def _read_text(path: Path, limit: int | None) -> tuple[list[str], NDArray[np.float32]]:
    words: list[str] = []
    matrix = _Rows()
    with opened(path, zipped=path.name.lower().endswith(".gz")) as stream, matrix:
        lines = enumerate(byte_lines(path, stream), 1)
        first = next(lines, None)
        if first is None:
            raise InputError(f"{path}: is empty; expected a word and its numbers on every line")
        fields = first[1].split()
        header = fields if len(fields) == 2 else None
        start = next(lines, (2, b"")) if header else first
        d = len(start[1].split()) - 1
        if d < 1:
            raise InputError(f"{path}, line {start[0]}: expected a word and its numbers, separated by blanks")
        if header and header[1] != b"%d" % d:
            raise InputError(f"{path}, line 2: {d} numbers, but the first line announces {_shown(header[1])}")
        seen, waiting = 0, [start]
        while waiting:
            new, values = _parse(path, waiting, d)
            words += new
            matrix.add(values)
            seen += len(waiting)
            room = LINES if limit is None else min(LINES, limit - len(words))
            waiting = list(islice(lines, room))
        if header and limit is None and header[0].isdigit() and seen < int(header[0]):
            raise InputError(f"{path}: ends after {seen} words; its first line announces {_shown(header[0])}")
        return words, matrix.finish(d)


def _parse(path: Path, lines: Iterable[tuple[int, bytes]], d: int) -> tuple[list[str], NDArray[np.float32]]:
    """Words and vectors (n, d). A word with a blank in it, as some files have, can be no token: it is left out."""
    words, numbers, places = [], [], []
    for number, line in lines:
        word, _, rest = line.strip().partition(b" ")
        if rest.count(b" ") != d - 1:
            *front, rest = _fields(path, number, line, d)
            if len(front) != 1:
                continue
            word = front[0]
        words.append(word.decode("utf-8", "replace"))
        numbers.append(rest)
        places.append(number)
    values = _floats(b" ".join(numbers))
    if len(values) != d * len(words):
        for number, rest in zip(places, numbers, strict=True):
            if len(_floats(rest)) != d:
                raise InputError(f"{path}, line {number}: {_shown(rest)} is not {d} numbers")
    vectors = values.reshape(-1, d)
    if not np.isfinite(vectors).all():
        wrong = places[int(np.flatnonzero(~np.isfinite(vectors).all(1))[0])]
        raise InputError(f"{path}, line {wrong}: holds a number that is infinite, or none")
    return words, vectors


def _fields(path: Path, number: int, line: bytes, d: int) -> list[bytes]:
    """The parts of the word, then the d numbers in one."""
    fields = line.split()
    if len(fields) <= d:
        raise InputError(f"{path}, line {number}: {max(0, len(fields) - 1)} numbers after the word, not {d}")
    return [*fields[:-d], b" ".join(fields[-d:])]


def _floats(text: bytes) -> NDArray[np.float32]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # what is no number ends the array early: the caller counts
        try:
            return np.fromstring(text, dtype=np.float32, sep=" ")
        except ValueError:
            return np.empty(0, dtype=np.float32)


def _shown(text: bytes) -> str:
    return repr(text[:40].decode("utf-8", "replace"))


class _Rows:
    """Collects rows of numbers: in memory, or in a temporary file that is mapped when there are many."""

    def __init__(self) -> None:
        self._parts: list[NDArray[np.float32]] = []
        self._bytes = 0
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (closed by __exit__; a memory map keeps it alive)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def add(self, rows: NDArray[np.float32]) -> None:
        self._parts.append(rows)
        self._bytes += rows.nbytes
        if self._bytes > IN_MEMORY:
            self._flush()

    def _flush(self) -> None:
        with writing("word vectors", Path(tempfile.gettempdir())):
            for part in self._parts:
                self._file.write(part.tobytes())
            self._file.flush()
        self._parts, self._bytes = [], 0

    def finish(self, d: int) -> NDArray[np.float32]:
        """(n, d)"""
        if not self._file.tell():
            return np.concatenate(self._parts)
        self._flush()
        return np.memmap(self._file, dtype=np.float32, mode="r").reshape(-1, d)
