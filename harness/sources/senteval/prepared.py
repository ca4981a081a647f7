"""SentEval's data that no hub has: downloaded from where its toolkit takes it, and checked, when it
is first used.

HARNESS_CACHE/senteval-data/ has a folder for each of `PREPARED`; `downloads/` holds what is not
converted yet. The addresses are those of the last versions of Conneau & Kiela's toolkit
(data/downstream/get_transfer_data.bash).
"""

from __future__ import annotations

import logging
import pickle
import re
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from harness.errors import HarnessError, InputError, OutOfReach
from harness.files.reading import read_toml
from harness.sources.remote.cache_folder import cache_root, make_once

_LOG = logging.getLogger(__name__)
CAPTIONS = 5  # of an image: SentEval takes the first five
_SILENCE = 60.0  # seconds without a byte after which a connection is given up


@dataclass(frozen=True)
class PreparedData:
    """Files of the web that tasks read once they are converted.

    Attributes:
        folder: of the converted files, by the name that SentEval gives it.
        address: the folder that `downloads` lie in.
        sha256: of the one download, where it is known; pooch compares it.
        untried: we could not reach the address; the conversion was tested on made files of the same
            structure.
    """

    folder: str
    address: str
    downloads: Sequence[str]
    items: str
    size: str
    licence: str
    paper: str
    purpose: str
    sha256: str | None = None
    untried: bool = True


PREPARED: dict[str, PreparedData] = {
    name: PreparedData(**entry)
    for name, entry in read_toml(Path(__file__).with_suffix(".toml")).items()
}
_FAILURES: dict[str, HarnessError] = {}  # of this process: ten probing tasks try to download once


def get_prepared_root() -> Path:
    """The folder of prepared data. It is not created here."""
    return cache_root() / "senteval-data"


def prepare_folder(name: str) -> Path:
    """The folder with the converted files of `PREPARED[name]`, downloaded and converted unless it
    is there.

    Raises:
        InputError: a file that cannot be had or is not what it should be; a full disk.
        OutOfReach: the address does not answer.
    """
    data = PREPARED[name]
    downloads = get_prepared_root() / "downloads" / name

    def make(folder: Path) -> None:
        _LOG.info("%s: %s from %s; licence: %s", name, data.size, data.address, data.licence)
        downloads.mkdir(parents=True, exist_ok=True)
        files = []
        for file in data.downloads:
            address = f"{data.address}/{file}"
            files.append(_download(address, downloads, data.sha256))
        _CONVERSIONS[name](files, folder)

    if name in _FAILURES:
        raise _FAILURES[name]
    try:
        folder = get_prepared_root() / data.folder
        final = make_once(folder, f"the files of {name}", make)
    except HarnessError as error:
        _FAILURES[name] = error
        raise
    shutil.rmtree(downloads, ignore_errors=True)
    return final


def find_or_prepare(folder: Path, name: str) -> Path:
    """`folder`/`name` ("SNLI" or "COCO") where that is there, else the prepared data of that name.

    Nothing is downloaded for a folder that the user named: what is not in it is missing.
    """
    is_named = not folder.is_relative_to(cache_root())
    own = folder / name
    if own.is_dir():
        return own
    if is_named and not (get_prepared_root() / name).is_dir():
        return own
    return prepare_folder(name.lower())


def _download(address: str, folder: Path, sha256: str | None) -> Path:
    import pooch  # type: ignore[import-untyped]
    from huggingface_hub import is_offline_mode
    from requests import ConnectionError as NoConnection
    from requests import RequestException, Timeout

    if is_offline_mode():
        raise OutOfReach(
            "not in the local cache, and HF_HUB_OFFLINE is set",
            file=address,
            remedy="unset it to download",
        )
    name = address.rpartition("/")[2]
    pooch.get_logger().setLevel("WARNING")
    try:
        load = pooch.HTTPDownloader(timeout=_SILENCE)
        file = pooch.retrieve(address, sha256, fname=name, path=folder, downloader=load)
        return Path(file)
    except (NoConnection, Timeout) as error:
        raise OutOfReach(
            f"out of reach ({type(error).__name__})",
            file=address,
            remedy=(
                "check the network, or set HARNESS_SENTEVAL to a SentEval data folder with "
                "these files"
            ),
        ) from None
    except (RequestException, ValueError) as error:  # ValueError: another checksum
        raise InputError(
            f"cannot be downloaded ({str(error).splitlines()[0]})", file=address
        ) from None


def _copy(files: list[Path], folder: Path, check: Callable[[Path], object]) -> None:
    for file in files:
        try:
            check(file)
        except InputError:  # a page of the web may come in the place of a file
            file.unlink()
            raise
        shutil.copyfile(file, folder / file.name)


def _check_probing(file: Path) -> None:
    with file.open("rb") as stream:
        first = stream.readline()
    parts = (b"tr", b"va", b"te")
    if first.split(b"\t")[0] not in parts or first.count(b"\t") != 2:
        raise InputError(
            "expected tr, va or te, a label and a sentence, separated by tabs", file=file, line=1
        )


def read_captions(file: Path) -> tuple[np.ndarray[Any, Any], list[str]]:
    """(n, d) float32 features and 5n captions of one of SentEval's pickles of COCO, as its
    senteval/rank.py reads it.

    Raises:
        InputError: no file, not a pickle of such data, or one that names anything but arrays of
            numbers.
    """
    if not file.is_file():
        raise InputError(
            "no such file; caption retrieval needs SentEval's train.pkl, valid.pkl and test.pkl",
            file=file,
        )
    try:
        with file.open("rb") as stream:
            tree = _by_text(_PlainUnpickler(stream, encoding="bytes").load())
        features = np.asarray(tree["features"], dtype=np.float32)
        if features.ndim != 2 or not np.isfinite(features).all():
            raise ValueError("features are no matrix of finite numbers")
        lines = []
        for image in range(len(features)):
            ids = tree["image_to_caption_ids"][image][:CAPTIONS]
            if len(ids) < CAPTIONS:
                few = f"image {image} has {len(ids)} captions"
                raise ValueError(f"{few}, not {CAPTIONS}")
            for caption in ids:
                text = _by_text(tree["captions"][caption])["cleaned_caption"]
                if isinstance(text, bytes):
                    text = text.decode("utf-8")
                else:
                    text = str(text)
                lines.append(
                    " ".join([*text.split(), "."])
                )  # the loader puts a full stop after each
        return features, lines
    except (
        pickle.UnpicklingError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        EOFError,
        OverflowError,
    ) as no:
        raise InputError(
            f"not SentEval's pickle of captions and features ({str(no)[:200]!r})", file=file
        ) from None


class _PlainUnpickler(pickle.Unpickler):
    """A reader of plain data and arrays of numbers: it refuses every other name before anything is
    done with it.
    """

    def find_class(self, module: str, name: str) -> Any:
        if module in ("numpy.core.multiarray", "numpy._core.multiarray") and name in (
            "_reconstruct",
            "scalar",
        ):
            return getattr(np._core.multiarray, name)  # type: ignore[attr-defined]
        if (module, name) == ("numpy", "ndarray"):
            return np.ndarray
        if (module, name) == ("numpy", "dtype"):
            return _number_type
        if (module, name) == ("_codecs", "encode"):  # how Python 3 writes bytes in protocols 0 to 2
            return lambda text, encoding="latin1": text.encode("latin-1")
        raise pickle.UnpicklingError(f"it names {module}.{name}")


def _number_type(name: Any, *_: Any) -> np.dtype[Any]:
    kind: np.dtype[Any] = np.dtype(name)
    if kind.kind not in "biuf":
        raise TypeError(f"an array of {kind}")
    return kind


def _by_text(tree: dict[Any, Any]) -> dict[str, Any]:
    """A dict whose keys may be texts of Python 2."""
    by_text = {}
    for key, value in tree.items():
        name = key.decode() if isinstance(key, bytes) else key
        by_text[name] = value
    return by_text


def _convert_snli(files: list[Path], folder: Path) -> None:
    """Gold label and both sentences of the pairs on whose label annotators agreed; nothing else is
    unpacked.
    """
    try:
        with zipfile.ZipFile(files[0]) as archive:
            for part in ("train", "dev", "test"):
                columns = list(
                    zip(*_snli_rows(archive, f"snli_1.0/snli_1.0_{part}.txt"), strict=True)
                )
                for name, lines in zip(("labels", "s1", "s2"), columns, strict=True):
                    (folder / f"{name}.{part}").write_text(
                        "".join(line + "\n" for line in lines), encoding="utf-8"
                    )
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        LookupError,
        ValueError,
        NotImplementedError,
    ) as error:
        files[0].unlink()
        raise InputError(
            f"damaged or truncated zip archive ({error}); it was deleted, run again", file=files[0]
        ) from None


def _snli_rows(archive: zipfile.ZipFile, member: str) -> Iterator[tuple[str, str, str]]:
    with archive.open(member) as stream:
        for number, line in enumerate(stream, 1):
            fields = line.decode("utf-8").rstrip("\r\n").split("\t")
            has_header = number > 1 or fields[0] == "gold_label"
            if len(fields) < 7 or not has_header:
                raise ValueError(
                    f"{member}, line {number}: expected SNLI's columns, separated by tabs"
                )
            if number > 1 and fields[0] != "-":
                first = penn_tokens(fields[5])
                second = penn_tokens(fields[6])
                yield fields[0], first, second


_RULES = [
    (re.compile(pattern), replacement)
    for pattern, replacement in read_toml(Path(__file__).with_name("penn_treebank.toml"))["rules"]
]


def penn_tokens(sentence: str) -> str:
    """A sentence with its tokens separated by blanks, one at its end included."""
    for pattern, replacement in _RULES:
        sentence = pattern.sub(replacement, sentence)
    return sentence


_CONVERSIONS: dict[str, Callable[[list[Path], Path], None]] = {
    "probing": partial(_copy, check=_check_probing),
    "coco": partial(_copy, check=read_captions),
    "snli": _convert_snli,
}
