"""Readers of SentEval's transfer, probing and caption files: labelled sentences and pairs, and how many there must be.

Sentences are split at white space and joined by single spaces. Each part is sorted as SentEval sorts it before it draws
folds and batches (number of words, of both sentences for pairs, then the label): its random states speak of that order.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import InputError
from harness.files.reading import read_toml
from harness.sources.senteval.prepared import given_or_prepared, prepared_folder
from harness.sources.senteval.similarity import (
    SICK_LABELS,
    damaged,
    numbered_lines,
    read_stsb,
    senteval_root,
    sick_rows,
    table_rows,
)

PREPARATION = "SentEval's files; words joined by single spaces; an empty sentence is read as a full stop"
_TREC = {"train": "TREC/train_5500.label", "test": "TREC/TREC_10.label"}
TREC_LABELS = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
SNLI_LABELS = ("entailment", "neutral", "contradiction")
BINARY = {  # task -> files of label 1 and label 0
    "MR": ("MR/rt-polarity.pos", "MR/rt-polarity.neg"),
    "CR": ("CR/custrev.pos", "CR/custrev.neg"),
    "SUBJ": ("SUBJ/subj.objective", "SUBJ/subj.subjective"),
    "MPQA": ("MPQA/mpqa.pos", "MPQA/mpqa.neg"),
}
PROBING = {
    "Length": "sentence_length.txt",
    "WordContent": "word_content.txt",
    "Depth": "tree_depth.txt",
    "TopConstituents": "top_constituents.txt",
    "BigramShift": "bigram_shift.txt",
    "Tense": "past_present.txt",
    "SubjNumber": "subj_number.txt",
    "ObjNumber": "obj_number.txt",
    "OddManOut": "odd_man_out.txt",
    "CoordinationInversion": "coordination_inversion.txt",
}

SIZES: dict[str, dict[str, int]] = {  # data set -> subset or part -> scored pairs or examples
    **read_toml(Path(__file__).with_suffix(".toml")),
    **{task: {"train": 100_000, "dev": 10_000, "test": 10_000} for task in PROBING},
}

_CAPTIONS = 5  # of an image
Example = tuple[str, str, float]  # sentence, second sentence ("" where the task has one), label or score


@dataclass(frozen=True)
class LabelledSplit:
    """n examples: first sentences, second ones (empty for tasks of one sentence), (n,) int64 labels or scores."""

    first: list[str]
    second: list[str]
    labels: NDArray[Any]

    def __len__(self) -> int:
        return len(self.first)


@dataclass(frozen=True)
class Labelled:
    """A task's parts by name ("all", or "train", "dev", "test"), its number of classes and a fingerprint of all.

    `classes` is 0 where the labels are scores.
    """

    parts: dict[str, LabelledSplit]
    classes: int
    sha256: str


def downstream_folder(root: Path | None = None) -> Path:
    """The folder that holds MR, SST, STS ...: below `root` or HARNESS_SENTEVAL where given, else the hub's copy.

    A HARNESS_SENTEVAL with probing files alone leaves the downstream ones to the hub.

    Raises:
        InputError: a given folder does not exist; the hub cannot be reached.
    """
    given = _given(root)
    if given is not None and (given / "downstream").is_dir():
        return given / "downstream"
    if given is None or (root is None and ((given / "probing").is_dir() or given.name == "probing")):
        return senteval_root()
    return given


def probing_folder(root: Path | None = None) -> Path:
    """The folder of the probing files, which no hub offers: below `root` or HARNESS_SENTEVAL, or downloaded once.

    Raises:
        InputError: a given folder does not exist; the files cannot be downloaded.
    """
    given = _given(root)
    if given is None:
        return prepared_folder("probing")
    return given / "probing" if (given / "probing").is_dir() else given


def _given(root: Path | None) -> Path | None:
    named = os.environ.get("HARNESS_SENTEVAL")
    given = root or (Path(named).expanduser() if named else None)
    if given is not None and not given.is_dir():
        raise InputError(f"{given}: no such folder; give SentEval's data folder (it holds downstream and probing)")
    return given


def read_task(task: str, root: Path) -> Labelled:
    """A task of SentEval's `downstream` folder by its name in the papers.

    Raises:
        InputError: a missing, truncated or damaged file: which, where and what was expected.
    """
    if task in BINARY:
        positive, negative = BINARY[task]
        return _labelled({"all": [*_plain(root / positive, 1), *_plain(root / negative, 0)]}, classes=2)
    every = ("train", "dev", "test")
    readers: dict[str, tuple[Callable[[str], list[Example]], Sequence[str], int]] = {  # by part; parts; classes
        "SST2": (lambda part: _sst2(root / f"SST/binary/sentiment-{part}"), every, 2),
        "SST5": (lambda part: _sst5(root / f"SST/fine/sentiment-{part}"), every, 5),
        "TREC": (lambda part: _trec(root / _TREC[part]), tuple(_TREC), len(TREC_LABELS)),
        "MRPC": (lambda part: _mrpc(root / f"MRPC/msr_paraphrase_{part}.txt"), ("train", "test"), 2),
        "SICK-E": (lambda part: _sick(root, part, entailment=True), every, 3),
        "SICK-R": (lambda part: _sick(root, part, entailment=False), every, 0),
        "STS-B": (lambda part: list(zip(*read_stsb(root, part), strict=True)), every, 0),
        "SNLI": (lambda part: _snli(given_or_prepared(root, "SNLI"), part), every, 3),
    }  # fmt: skip
    read, parts, classes = readers[task]
    return _labelled({part: read(part) for part in parts}, classes=classes, second_first=task == "SNLI")


def read_probing(task: str, folder: Path) -> Labelled:
    """A probing task: lines of part (tr, va or te), label and sentence, separated by tabs.

    Labels are numbered in the order of their names, those of the training part being all there are.

    Raises:
        InputError: see `read_task`; also a label that the training part lacks.
    """
    file = folder / PROBING[task]
    rows: dict[str, list[tuple[int, str, str]]] = {"tr": [], "va": [], "te": []}
    for number, line in numbered_lines(file):
        fields = line.rstrip().split("\t")
        if len(fields) != 3 or fields[0] not in rows:
            raise damaged(file, number, "tr, va or te, a label and a sentence, separated by tabs")
        rows[fields[0]].append((number, fields[1], fields[2]))
    names = sorted({label for _, label, _ in rows["tr"]})
    place = {name: i for i, name in enumerate(names)}
    parts: dict[str, list[Example]] = {}
    for key, part in (("tr", "train"), ("va", "dev"), ("te", "test")):
        for number, label, _ in rows[key]:
            if label not in place:
                raise InputError(f'{file}, line {number}: label "{label}" does not occur in the training part (tr)')
        parts[part] = [(text, "", place[label]) for _, label, text in rows[key]]
        if not parts[part]:
            raise InputError(f"{file}: no {part} examples; the file is empty or truncated")
    return _labelled(parts, classes=len(names))


def _labelled(parts: dict[str, list[Example]], *, classes: int, second_first: bool = False) -> Labelled:
    """`second_first`: SNLI's order, by its second sentence first and by the label's name last."""
    digest = hashlib.sha256()
    made = {}
    for name, rows in parts.items():
        clean = [(a.split(), b.split(), label) for a, b, label in rows]
        if second_first:
            clean.sort(key=lambda row: (len(row[1]), len(row[0]), SNLI_LABELS[int(row[2])]))
        else:
            clean.sort(key=lambda row: (len(row[0]), len(row[1]), row[2]))
        first = [" ".join(a) or "." for a, _, _ in clean]
        pairs = any(b for _, b, _ in clean)
        second = [" ".join(b) or "." for _, b, _ in clean] if pairs else []
        labels = np.array([label for _, _, label in clean], dtype=np.int64 if classes else np.float64)
        digest.update(repr((name, first, second, labels.tolist())).encode("utf-8", "surrogatepass"))
        made[name] = LabelledSplit(first, second, labels)
    return Labelled(made, classes, digest.hexdigest())


def _plain(file: Path, label: int) -> list[Example]:
    return [(text, "", label) for _, text in numbered_lines(file, encoding="latin-1", blank=True)]


def _sentences(
    file: Path, pattern: str, labels: Sequence[str], expected: str, encoding: str = "utf-8"
) -> list[Example]:
    """Lines that `pattern` describes by its groups "label" and "text"; a label's number is its place in `labels`."""
    rows: list[Example] = []
    for number, line in numbered_lines(file, encoding=encoding):
        match = re.fullmatch(pattern, line.strip())
        if match is None:
            raise damaged(file, number, expected)
        rows.append((match["text"], "", labels.index(match["label"])))
    return rows


def _sst2(file: Path) -> list[Example]:
    return _sentences(file, r"(?P<text>[^\t]+)\t(?P<label>[01])", "01", "a sentence, a tab and the label 0 or 1")


def _sst5(file: Path) -> list[Example]:
    return _sentences(file, r"(?P<label>[0-4]) (?P<text>.+)", "01234", "a label from 0 to 4, a space and a sentence")


def _trec(file: Path) -> list[Example]:
    expected = f"CLASS:subclass and a question, CLASS one of {', '.join(TREC_LABELS)}"
    pattern = rf"(?P<label>{'|'.join(TREC_LABELS)}):[^ ]* (?P<text>.+)"
    return _sentences(file, pattern, TREC_LABELS, expected, "latin-1")


def _mrpc(file: Path) -> list[Example]:
    rows: list[Example] = []
    for number, fields in table_rows(file, "Quality"):
        if len(fields) != 5 or fields[0] not in ("0", "1") or not all(field.strip() for field in fields):
            raise damaged(file, number, "0 or 1, two ids and two sentences, separated by tabs")
        rows.append((fields[3], fields[4], int(fields[0])))
    return rows


def _sick(root: Path, part: str, *, entailment: bool) -> list[Example]:
    return [(a, b, SICK_LABELS.index(label) if entailment else score) for a, b, score, label in sick_rows(root, part)]


def _snli(folder: Path, part: str) -> list[Example]:
    first, second, labels = (numbered_lines(folder / f"{name}.{part}", blank=True) for name in ("s1", "s2", "labels"))
    if not len(first) == len(second) == len(labels):
        raise InputError(
            f"{folder}: s1.{part}, s2.{part} and labels.{part} have {len(first)}, {len(second)} and {len(labels)} "
            "lines; they must have one line an example; a file is truncated"
        )
    rows: list[Example] = []
    for (_, a), (_, b), (number, label) in zip(first, second, labels, strict=True):
        if label.strip() not in SNLI_LABELS:
            raise damaged(folder / f"labels.{part}", number, f"one of {', '.join(SNLI_LABELS)}")
        rows.append((a, b, SNLI_LABELS.index(label.strip())))
    return rows


def read_captions(folder: Path, part: str) -> tuple[NDArray[Any], list[str]]:
    """`part`.npy, (n, d) features of n images, and `part`.txt, five captions of each, one a line in the images' order.

    Raises:
        InputError: a file is missing, damaged or does not fit the other.
    """
    features, texts = folder / f"{part}.npy", folder / f"{part}.txt"
    if not features.is_file():
        needed = f"{part}.npy (image features, one row an image) and {part}.txt (five captions an image, one a line)"
        raise InputError(f"{features}: no such file; caption retrieval needs {needed}")
    lines = [line for _, line in numbered_lines(texts, blank=True)]
    try:
        images: NDArray[Any] = np.load(features, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise InputError(f"{features}: not a NumPy matrix ({str(error).splitlines()[0]})") from None
    if images.ndim != 2 or not np.issubdtype(images.dtype, np.floating) or not np.isfinite(images).all():
        raise InputError(f"{features}: expected an (images, features) matrix of finite floating-point numbers")
    if len(lines) != _CAPTIONS * len(images):
        raise InputError(f"{texts}: {len(lines)} captions for {len(images)} images; expected {_CAPTIONS} an image")
    return images, [" ".join(line.split()) or "." for line in lines]


def unusual_sizes(data: str, counts: Mapping[str, int]) -> list[str]:
    """One sentence about the parts (or subsets) of `data` whose count is not the published one; none where all are."""
    known = SIZES.get(data, {})
    others = [f"{n:,} in {part} (not {known[part]:,})" for part, n in counts.items() if n != known.get(part, n)]
    if not others:
        return []
    return [
        f"examples: {', '.join(others)}; files cut short or of another edition, not comparable with published scores"
    ]
