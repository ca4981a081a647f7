"""`harness data prepare`: download what SentEval names, verify it, convert it, and put it where the tasks look."""

from __future__ import annotations

import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from harness.errors import InputError
from harness.files.atomic import open_folder, settle
from harness.machine.progress import Reporter
from harness.sources.corpus.rows import LONGEST, decoded
from harness.sources.remote.cache_folder import writing
from harness.sources.remote.download import download, verify
from harness.sources.senteval.penn import penn_tokens
from harness.sources.senteval.plain_pickle import read_plain_pickle
from harness.sources.senteval.prepared import PREPARED, PreparedData, is_prepared, prepared_root

_CAPTIONS = 5  # of an image: SentEval takes the first five
_MEGABYTE = 1e6


def prepare(name: str, progress: Reporter, source: str | None = None) -> Path:
    """The folder with the files of `name`, made unless it is there; then verified.

    Args:
        source: a folder that has the files to convert, or another address of such a folder.

    Raises:
        InputError: a file that cannot be had, is not the one of the first download, or is not what it should be.
        RunError: a connection broke; the next call goes on.
    """
    data = PREPARED[name]
    final, checksums = prepared_root() / data.folder, prepared_root() / "checksums.json"
    if is_prepared(data):
        progress.start(f"{name}: verifying")
        for file in data.made:
            verify(final / file, f"{data.folder}/{file}", checksums)
        progress.done(f"{len(data.made)} files in {final}, as they were made")
        return final
    downloads, ours = prepared_root() / "downloads" / name, source is None or "://" in source
    files = []
    for file in data.downloads:
        progress.start(f"{name}: {file}")
        if ours:
            had = download(f"{(source or data.address).rstrip('/')}/{file}", downloads / file, _telling(progress))
        else:
            had = Path(source or "").expanduser() / file
            if not had.is_file():
                raise InputError(f"{had}: no such file; --from needs a folder with {', '.join(data.downloads)}")
        sha256 = verify(had, f"{name}/{file}", checksums)
        progress.done(f"{had.stat().st_size / _MEGABYTE:,.1f} MB, sha256 {sha256[:16]}")
        files.append(had)
    progress.start(f"{name}: converting")
    with writing(f"the files of {name}", prepared_root()):
        prepared_root().mkdir(parents=True, exist_ok=True)
        folder = open_folder(final)
        try:
            _CONVERSIONS[name](data, files, folder)
            settle(folder)
            shutil.rmtree(final, ignore_errors=True)  # an incomplete one
            folder.rename(final)
            for made in data.made:
                verify(final / made, f"{data.folder}/{made}", checksums)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    if ours:
        shutil.rmtree(downloads, ignore_errors=True)
    progress.done(f"{len(data.made)} files in {final}")
    return final


def _telling(progress: Reporter) -> Callable[[int, int], None]:
    def tell(have: int, total: int) -> None:
        of = f" of {total / _MEGABYTE:,.0f}" if total else ""
        progress.step(int(have / _MEGABYTE), int(total / _MEGABYTE), f"{have / _MEGABYTE:,.0f}{of} MB")

    return tell


def _copy(data: PreparedData, files: list[Path], folder: Path) -> None:
    for file in files:
        with file.open("rb") as stream:  # a page of the web in the place of a file is told here
            first = decoded(file, 1, stream.readline(LONGEST))
        if first.split("\t")[0] not in ("tr", "va", "te") or first.count("\t") != 2:
            raise InputError(f"{file}, line 1: expected tr, va or te, a label and a sentence, separated by tabs")
        shutil.copyfile(file, folder / file.name)


def _coco(data: PreparedData, files: list[Path], folder: Path) -> None:
    for file in files:
        features, captions = coco_part(file)
        np.save(folder / f"{file.stem}.npy", features)
        (folder / f"{file.stem}.txt").write_text("".join(line + "\n" for line in captions), encoding="utf-8")


def coco_part(file: Path) -> tuple[np.ndarray[Any, Any], list[str]]:
    """(n, d) float32 features and 5n captions of one of SentEval's pickles, as its loader (senteval/rank.py) reads it.

    Raises:
        InputError: another structure than that.
    """
    try:
        tree = _by_text(read_plain_pickle(file))
        features = np.asarray(tree["features"], dtype=np.float32)
        if features.ndim != 2:
            raise ValueError(f"features have {features.ndim} dimensions, not 2")
        lines = []
        for image in range(len(features)):
            ids = tree["image_to_caption_ids"][image][:_CAPTIONS]
            if len(ids) < _CAPTIONS:
                raise ValueError(f"image {image} has {len(ids)} captions, not {_CAPTIONS}")
            for caption in ids:
                text = _by_text(tree["captions"][caption])["cleaned_caption"]
                text = text.decode("utf-8") if isinstance(text, bytes) else str(text)
                lines.append(" ".join([*text.split(), "."]))  # the loader puts a full stop after each
        return features, lines
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InputError(f"{file}: not SentEval's pickle of captions and features ({error!r})") from None


def _by_text(tree: Any) -> dict[str, Any]:
    """A dict whose keys may be texts of Python 2."""
    if not isinstance(tree, dict):
        raise TypeError(f"a dict expected, not {type(tree).__name__}")
    return {key.decode() if isinstance(key, bytes) else key: value for key, value in tree.items()}


def _snli(data: PreparedData, files: list[Path], folder: Path) -> None:
    try:
        with zipfile.ZipFile(files[0]) as archive:
            for part in ("train", "dev", "test"):
                with (
                    (folder / f"s1.{part}").open("w", encoding="utf-8") as first,
                    (folder / f"s2.{part}").open("w", encoding="utf-8") as second,
                    (folder / f"labels.{part}").open("w", encoding="utf-8") as labels,
                ):
                    for label, premise, hypothesis in _snli_rows(archive, files[0], f"snli_1.0/snli_1.0_{part}.txt"):
                        labels.write(label + "\n")
                        first.write(penn_tokens(premise) + "\n")
                        second.write(penn_tokens(hypothesis) + "\n")
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise InputError(f"{files[0]}: damaged or truncated zip archive ({error}); delete it") from None


def _snli_rows(archive: zipfile.ZipFile, file: Path, member: str) -> Iterator[tuple[str, str, str]]:
    """Gold label and both sentences of the pairs on whose label annotators agreed; nothing is unpacked to the disk."""
    try:
        stream = archive.open(member)
    except KeyError:
        raise InputError(f"{file}: has no {member}") from None
    with stream:
        for number, line in enumerate(iter(lambda: stream.readline(LONGEST), b""), 1):
            fields = decoded(Path(f"{file}/{member}"), number, line).rstrip("\r\n").split("\t")
            if len(fields) < 7 or (number == 1 and fields[0] != "gold_label"):
                raise InputError(f"{file}/{member}, line {number}: expected SNLI's columns, separated by tabs")
            if number > 1 and fields[0] != "-":
                yield fields[0], fields[5], fields[6]


_CONVERSIONS: dict[str, Callable[[PreparedData, list[Path], Path], None]] = {
    "probing": _copy,
    "coco": _coco,
    "snli": _snli,
}
