"""Sentence pairs with human similarity scores: SentEval's files, MTEB's data sets, translations,
the embedded suite.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.config import nearest
from harness.errors import InputError
from harness.files.printable import first_line
from harness.sources.embedded import embedded_rows
from harness.sources.remote.hub import hub_file, hub_split
from harness.sources.senteval import labelled as senteval

Source = Literal["senteval", "mteb", "embedded", "stsb-multi-mt", "file"]
YEARS = ("STS12", "STS13", "STS14", "STS15", "STS16")
EMBEDDED_STS = ("Embedded-STS-natural", "Embedded-STS-contrast")
PHENOMENA = "Embedded-Phenomena"
_ANNOTATED_TWICE = ("f", "g", "h", "i", "j")
EMBEDDED_PARTS = {
    EMBEDDED_STS[0]: ("d", "e", *_ANNOTATED_TWICE),  # of the latter the pairs marked as natural
    EMBEDDED_STS[1]: ("a", "b", "c"),
    PHENOMENA: _ANNOTATED_TWICE,
}

# Repository and revision of each set, those that MTEB's own tasks name: the text of a score must
# not change unseen.
MTEB_SETS = {
    "STS12": ("mteb/sts12-sts", "a0d554a64d88156834ff5ae9920b964011b16384"),
    "STS13": ("mteb/sts13-sts", "7e90230a92c190f1bf69ae9002b8cea547a64cca"),
    "STS14": ("mteb/sts14-sts", "6031580fec1f6af667f0bd2da0a551cf4f0b2375"),
    "STS15": ("mteb/sts15-sts", "ae752c7c21bf194d8b67fd573edf7ae58183cbe3"),
    "STS16": ("mteb/sts16-sts", "4d8694f8f0e0100860b497b999b3dbed754a0513"),
    "STS-B": ("mteb/stsbenchmark-sts", "b0fddb56ed78048fa8b90373c8a3cfc37b684831"),
    "SICK-R": ("mteb/sickr-sts", "20a6d6f312dd54037fe07a32d58e5e168867909d"),
}
# The STS benchmark's test pairs in other languages, translated with DeepL: STSb Multi MT (P. May
# 2021).
# in every language, in one order
_TRANSLATIONS = "PhilipMay/stsb_multi_mt"
_PAIRS = 1379
LANGUAGES = ("de", "en", "es", "fr", "it", "nl", "pl", "pt", "ru", "zh")
TRANSLATED = {f"STS-B-{language}": language for language in LANGUAGES}
_ALL_SPLITS = ("train", "dev", "test")
_Named = tuple[str, senteval.ScoredPairs]


@dataclass(frozen=True)
class Subset:
    """n first sentences, n second sentences and their gold scores: (n,) float64, on the set's own
    scale.
    """

    name: str
    sentences1: list[str]
    sentences2: list[str]
    gold: NDArray[np.float64]


@dataclass(frozen=True)
class PairSet:
    """One split of one task. `sha256` covers subset names, sentences and scores; `preparation` says
    how the text looks.

    STS12-16 of SentEval have one subset for each of the year's parts, the embedded sets one for
    each part; all others have one subset, named like the split.
    """

    task: str
    source: Source
    split: str
    subsets: tuple[Subset, ...]
    sha256: str
    preparation: str
    whole: bool = True  # or some of the pairs alone

    def unusual_sizes(self) -> list[str]:
        """One sentence about subsets of SentEval's files that have not the published number of
        pairs, or none.
        """
        sizes = {subset.name: len(subset.gold) for subset in self.subsets}
        if self.source == "senteval" and self.whole:
            return senteval.unusual_sizes(self.task, sizes)
        return []

    def draw(self, count: int) -> PairSet:
        """So many of the pairs, drawn once for all by what the set holds, in their order.

        Raises:
            InputError: it has fewer.
        """
        total = sum(len(subset.gold) for subset in self.subsets)
        if count > total:
            place = f"{self.task} {self.split} ({self.source})"
            raise InputError(f"{place} has {total:,} pairs, and not {count:,}", file=place)
        chosen = set(
            np.random.default_rng(int(self.sha256, 16)).permutation(total)[:count].tolist()
        )
        subsets = []
        first = 0
        for subset in self.subsets:
            own = []
            for row in range(len(subset.gold)):
                if first + row in chosen:
                    own.append(row)
            first += len(subset.gold)
            left, right = (
                [texts[row] for row in own] for texts in (subset.sentences1, subset.sentences2)
            )
            gold = subset.gold[own].tolist()
            subsets.append(_subset(subset.name, left, right, gold))
        kept = tuple(subset for subset in subsets if len(subset.gold))
        return replace(self, subsets=kept, sha256=_fingerprint(kept), whole=False)


def is_pair_set(name: str) -> bool:
    """Return whether a name is that of a set of scored pairs, of any source.

    >>> is_pair_set("STS-B"), is_pair_set("MR")
    (True, False)
    """
    return any(name in readers for readers in _READERS.values())


def load_sts(task: str, *, source: Source, split: str = "test") -> PairSet:
    """Read one task.

    Args:
        task: "STS12" ... "STS16", "STS-B", "SICK-R" (senteval, mteb), those of `EMBEDDED_PARTS`
            (embedded), "STS-B-de" and other languages (stsb-multi-mt).
        source: where from. SentEval's files are Moses-tokenised (STS also lower-cased); MTEB's
            STS-B and SICK-R are raw text, and its SICK-R "test" is the whole of SICK (9,927 pairs,
            against 4,927 of SentEval).
        split: "test"; "dev" and "train" where the set has them (SICK-R: dev is the trial set;
            embedded: no train).

    Raises:
        InputError: unknown task, source or split; data that cannot be had or read.
    """
    if source not in _READERS:
        raise InputError(
            f'unknown source "{source}"{nearest(source, list(_READERS))}; known: '
            + ", ".join(_READERS),
            key="source",
        )
    readers = _READERS[source]
    if task not in readers:
        known = list(dict.fromkeys([*readers, *_READERS["embedded"]]))
        raise InputError(
            f'unknown task "{task}" of source {source}{nearest(task, known)}; known: '
            + ", ".join(known),
            key="task",
            remedy='a file of scored pairs is named with its suffix, as "pairs.csv"',
        )
    splits, preparation, read = readers[task]
    if split not in splits:
        raise InputError(
            f"{task} of source {source} has no {split} split, only: {', '.join(splits)}",
            key="split",
        )
    subsets = tuple([_subset(name, *pairs) for name, pairs in read(task, split)])
    return PairSet(task, source, split, subsets, _fingerprint(subsets), preparation)


def pair_set(
    name: str,
    source: Source,
    split: str,
    sentences1: list[str],
    sentences2: list[str],
    gold: list[float],
    preparation: str,
) -> PairSet:
    """Return pairs that are at hand as a set of one subset, named like the split."""
    subsets = (_subset(split, sentences1, sentences2, gold),)
    return PairSet(name, source, split, subsets, _fingerprint(subsets), preparation)


def _fingerprint(subsets: tuple[Subset, ...]) -> str:
    digest = hashlib.sha256(b"harness-pairs-1\n")
    for subset in subsets:
        texts = (subset.name, str(len(subset.gold)), *subset.sentences1, *subset.sentences2)
        for text in texts:
            raw = text.encode()
            digest.update(b"%d:%b" % (len(raw), raw))
        digest.update(subset.gold.astype("<f8").tobytes())
    return digest.hexdigest()


def _subset(name: str, sentences1: list[str], sentences2: list[str], gold: list[float]) -> Subset:
    scores = np.asarray(gold, dtype=np.float64)
    scores.flags.writeable = False
    return Subset(name, sentences1, sentences2, scores)


def _senteval(task: str, split: str) -> Iterable[_Named]:
    """From HARNESS_SENTEVAL's files where it has any STS set, else from the hub's copy."""
    folder = senteval.downstream_folder()
    if not (folder / "STS").is_dir():
        folder = senteval.senteval_root()
    if task in YEARS:
        return senteval.read_year(folder, task)
    return [(split, senteval.read_pairs(task, folder, split))]


def _mteb(task: str, split: str) -> list[_Named]:
    repository, revision = MTEB_SETS[task]
    name = "validation" if split == "dev" else split
    data = hub_split(repository, name, revision)
    columns = [list(data[column]) for column in ("sentence1", "sentence2", "score")]
    return [(split, (columns[0], columns[1], columns[2]))]


def read_translated_file(file: Path) -> senteval.ScoredPairs:
    """A Parquet file, or a CSV file without a header: sentence, sentence, score.

    Raises:
        InputError: it is neither, a score is none, or there are too few pairs.
    """
    import pandas as pd

    names = ["sentence1", "sentence2", "similarity_score"]
    try:
        if file.suffix == ".parquet":
            frame = pd.read_parquet(file, columns=names)
        else:
            frame = pd.read_csv(
                file,
                names=names,
                index_col=False,
                dtype=str,
                keep_default_na=False,
            )
        gold = frame["similarity_score"].astype(float).to_numpy()
    except (OSError, ValueError) as error:  # pandas' and pyarrow's errors are ValueErrors
        raise InputError(
            f"not readable ({first_line(error)})",
            file=file,
            remedy="delete it to download it again",
        ) from None
    for row in np.flatnonzero(~((gold >= 0) & (gold <= 5))):
        message = f"score {gold[row]}; expected a number from 0 to 5"
        raise InputError(message, file=file, key=f"row {row + 1}")
    if len(gold) != _PAIRS:
        raise InputError(
            f"{len(gold)} pairs, expected {_PAIRS}; the file is truncated: delete it", file=file
        )
    first = frame["sentence1"].tolist()
    second = frame["sentence2"].tolist()
    return first, second, gold.tolist()


def _read_translated(task: str, split: str) -> list[_Named]:
    language = TRANSLATED[task]
    try:
        file = hub_file(_TRANSLATIONS, f"stsb-{language}-test.csv")
        return [(split, read_translated_file(file))]
    except InputError as error:
        try:  # how the hub itself stores it since data sets may hold no code
            file = hub_file(_TRANSLATIONS, f"{language}/test-00000-of-00001.parquet")
            return [(split, read_translated_file(file))]
        except InputError:
            raise error from None


def _read_embedded(task: str, split: str) -> Iterable[_Named]:
    for part in EMBEDDED_PARTS[task]:
        written = embedded_rows("sts", (part,))
        rows = [row for row in written if row["split"] == split]
        if task == EMBEDDED_STS[0]:
            rows = [row for row in rows if row.get("natural", True)]
        left, right, gold = (
            [row[key] for row in rows] for key in ("sentence1", "sentence2", "score")
        )
        yield part, (left, right, gold)


_Reader = tuple[
    tuple[str, ...], str, Callable[[str, str], Iterable[_Named]]
]  # splits, preparation, how to read
_LOWERED = "Moses-tokenised and lower-cased"
_READERS: dict[Source, dict[str, _Reader]] = {
    "senteval": {
        **dict.fromkeys(YEARS, (("test",), _LOWERED, _senteval)),
        "STS-B": (_ALL_SPLITS, _LOWERED, _senteval),
        "SICK-R": (_ALL_SPLITS, "Moses-tokenised, case unchanged", _senteval),
    },
    "mteb": {
        **dict.fromkeys(YEARS, (("test",), _LOWERED, _mteb)),
        "STS-B": (_ALL_SPLITS, "raw text", _mteb),
        "SICK-R": (("test",), "raw text, train + trial + test", _mteb),
    },
    "embedded": dict.fromkeys(EMBEDDED_PARTS, (("dev", "test"), "raw text", _read_embedded)),
    "stsb-multi-mt": dict.fromkeys(
        TRANSLATED, (("test",), "raw text, machine-translated", _read_translated)
    ),
}
