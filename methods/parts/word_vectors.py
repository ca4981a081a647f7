"""Word vectors from a text file (word2vec's or GloVe's format, also gzipped) or a model of
sentence-transformers.
"""

from __future__ import annotations

import json
import re
import warnings
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from harness.errors import InputError
from harness.files.hashing import sha256_of
from harness.files.reading import expand_user, is_there, require_ordinary
from harness.sources.corpus.rows import byte_lines, open_stream
from harness.sources.remote.hub import hub_file

HUB = "hf://"
GLOVE = "sentence-transformers/average_word_embeddings_glove.6B.300d"  # 400,000 lower-cased words, 480 MB
SOURCES = "word2vec or GloVe text file (.gz too), hf://datasets/ORG/NAME/FILE, or a model of averaged word vectors"

LOST_CAPITALS = (
    "no word of the vectors has a capital letter, so words with one are unknown: "
    "lower_case = true finds them"
)


@dataclass(frozen=True)
class WordVectors:
    """`row` of every word in `matrix` (n, d), float32; a repeated word has its first row."""

    row: dict[str, int]
    matrix: NDArray[np.float32]


def read_word_vectors(uri: str, limit: int | None = None) -> WordVectors:
    """Read the vectors behind `uri`: a text file, or a model of sentence-transformers that averages
    word vectors.

    A text file holds one word and its numbers a line, separated by blanks; a first line of exactly
    two fields (count and dimension) is a header. Of a model only words and vectors are used: not
    its tokenizer, which drops stop words.

    Args:
        uri: path, hf://datasets/ORG/NAME/FILE or hf://ORG/NAME/FILE of a text file; folder or
            ORG/NAME of a model.
        limit: use the first so many words: files are sorted by frequency.

    Raises:
        InputError: no such source, or a line that is not a word and as many numbers as the others
            (file and line).
    """
    files = _files(uri)
    if len(files) == 1:
        words, matrix = _read_text(files[0], limit)
    else:
        words, matrix = _read_model(files[0], files[1], limit)
    row: dict[str, int] = {}
    for place, word in enumerate(words):
        row.setdefault(word, place)
    return WordVectors(row, matrix)


def describe_lost_capitals(words: Iterable[str], lower_case: bool) -> list[str]:
    """Return a note where texts keep their capitals and no word has one, so that words such as
    "The" are unknown; none else.

    >>> describe_lost_capitals(["the", "The"], False), describe_lost_capitals(["the"], True)
    ([], [])
    """
    if lower_case or any(word != word.lower() for word in words):
        return []
    return [LOST_CAPITALS]


def vectors_hash(uri: str) -> str:
    """Return the content hash of the files behind `uri`.

    Raises:
        InputError: no such source.
    """
    hashes: list[str] = []
    for file in _files(uri):
        facts = file.stat()
        hashes.append(_sha256(file, facts.st_size, facts.st_mtime_ns)[:16])
    return "-".join(hashes)


@cache
def _sha256(file: Path, size: int, changed: int) -> str:
    return sha256_of(file)


def _files(uri: str) -> tuple[Path, ...]:
    """Return the path of a text file, or those of the words and the weights of a model."""
    if uri.startswith(HUB):
        data = uri.startswith(f"{HUB}datasets/")
        parts = uri.removeprefix(HUB).removeprefix("datasets/").split("/", 2)
        if len(parts) < 3 or not all(parts):
            raise InputError(
                f'vectors "{uri}": expected hf://datasets/ORG/NAME/FILE, or hf://ORG/NAME/FILE of a model',
                file=uri,
            )
        name, _, revision = parts[1].partition("@")
        kind = "dataset" if data else "model"
        repository = f"{parts[0]}/{name}"
        commit = unquote(revision) or None
        return (hub_file(repository, parts[2], commit, kind=kind),)
    path = expand_user(uri)
    if uri.strip() and (path / "modules.json").is_file():
        return _model_files(uri, lambda name: _existing(path / name))
    if uri.strip() and is_there(path):
        require_ordinary(path)
        return (path,)
    is_hub_id = re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", uri, re.ASCII)
    if is_hub_id and path.suffix not in (".txt", ".vec", ".gz"):
        return _model_files(uri, lambda name: hub_file(uri, name, kind="model"))
    raise InputError(
        f'vectors "{uri}": no such file',
        file=uri,
        remedy=f"give a {SOURCES}, such as {GLOVE}",
    )


def _model_files(uri: str, file: Callable[[str], Path]) -> tuple[Path, Path]:
    """Return the files of the words and the weights of the module WordEmbeddings; `file` gives the
    path of a file of the model.
    """
    try:
        modules = json.loads(file("modules.json").read_text())
        paths = {}
        for m in modules:
            paths[str(m["type"]).rpartition(".")[2]] = str(m["path"])
    except (ValueError, TypeError, KeyError):
        raise InputError(f'vectors "{uri}": its modules.json is damaged', file=uri) from None
    if "WordEmbeddings" not in paths:
        raise InputError(
            f'vectors "{uri}": expected a module WordEmbeddings, not {", ".join(paths)}', file=uri
        )
    folder = Path(Path(paths["WordEmbeddings"]).name)  # never outside of the model
    words = file(str(folder / "whitespacetokenizer_config.json"))
    try:
        return words, file(str(folder / "model.safetensors"))
    except InputError:  # models of before safetensors
        return words, file(str(folder / "pytorch_model.bin"))


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise InputError("no such file", file=path)
    require_ordinary(path)
    return path


def _read_model(
    words_file: Path,
    weights_file: Path,
    limit: int | None,
) -> tuple[list[str], NDArray[np.float32]]:
    import torch
    from safetensors.torch import load_file

    try:
        words = json.loads(words_file.read_text("utf-8"))["vocab"]
        safe = weights_file.suffix == ".safetensors"
        if safe:
            state = load_file(weights_file)
        else:
            state = torch.load(weights_file, map_location="cpu", weights_only=True)
        matrix: NDArray[np.float32] = state["emb_layer.weight"].float().numpy()
    except Exception as error:  # json, safetensors, zipfile and pickle have errors of their own
        raise InputError(
            f"damaged word vectors ({type(error).__name__})",
            file=weights_file.parent,
            remedy="replace the files of this folder",
        ) from None
    is_whole = len(words) == len(matrix) > 0
    if not is_whole or not np.isfinite(matrix).all():
        raise InputError(
            f"expected finite vectors for the {len(words)} words of {words_file.name}",
            file=weights_file,
        )
    if not matrix[
        0
    ].any():  # sentence-transformers puts a word for padding before those of the file
        words = words[1:]
        matrix = matrix[1:]
    return words[:limit], matrix[:limit]


def _read_text(path: Path, limit: int | None) -> tuple[list[str], NDArray[np.float32]]:
    """Read words and vectors (n, d). A word with a blank in it, as some files have, can be no token:
    it is left out.
    """
    words: list[str] = []
    numbers = array("f")
    seen = 0
    zipped = path.name.lower().endswith(".gz")
    with open_stream(path, zipped=zipped) as stream, warnings.catch_warnings():
        # What is no number ends an array early: see `_floats`.
        warnings.simplefilter("ignore", DeprecationWarning)
        lines = enumerate(byte_lines(path, stream), 1)
        header, start, d = _read_start(path, lines)
        for number, line in chain([start], lines):
            seen += 1
            fields = line.rsplit(maxsplit=d)
            if len(fields) <= d:
                raise InputError(
                    f"{max(0, len(fields) - 1)} numbers after the word, not {d}",
                    file=path,
                    line=number,
                )
            if len(fields[0].split()) > 1:
                continue
            row = _floats(b" ".join(fields[1:]))
            if len(row) != d:
                raise InputError(
                    f"{_quote(b' '.join(fields[1:]))} is not {d} numbers",
                    file=path,
                    line=number,
                )
            if not np.isfinite(row).all():
                raise InputError("holds a number that is infinite, or none", file=path, line=number)
            words.append(fields[0].decode("utf-8", "replace"))
            numbers.frombytes(row.tobytes())
            if len(words) == limit:
                break
    if header and limit is None and header[0].isdigit() and seen < int(header[0]):
        raise InputError(
            f"ends after {seen} words; its first line announces {_quote(header[0])}", file=path
        )
    return words, np.frombuffer(numbers, dtype=np.float32).reshape(-1, d)


def _read_start(
    path: Path, lines: Iterator[tuple[int, bytes]]
) -> tuple[list[bytes], tuple[int, bytes], int]:
    """Read the header of a file of word vectors ([] if it has none), the line of its first word with
    its number, and the width of the vectors.
    """
    first = next(lines, None)
    if first is None:
        raise InputError("is empty; expected a word and its numbers on every line", file=path)
    header = first[1].split()
    start = first
    if len(header) == 2:
        start = next(lines, (2, b""))
    else:
        header = []
    d = len(start[1].split()) - 1
    if d < 1:
        raise InputError(
            "expected a word and its numbers, separated by blanks", file=path, line=start[0]
        )
    if header and header[1] != b"%d" % d:
        raise InputError(
            f"{d} numbers, but the first line announces {_quote(header[1])}",
            file=path,
            line=2,
        )
    return header, start, d


def _floats(text: bytes) -> NDArray[np.float32]:
    """Return the numbers of a line up to the first part that is none."""
    try:
        return np.fromstring(text, dtype=np.float32, sep=" ")
    except ValueError:
        return np.empty(0, dtype=np.float32)


def _quote(text: bytes) -> str:
    return repr(text[:40].decode("utf-8", "replace"))
