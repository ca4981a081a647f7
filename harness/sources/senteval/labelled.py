"""SentEval's files: labelled sentences and pairs, scored pairs, and how many there must be.

Sentences are split at white space and joined by single spaces. Each part of a labelled set is
sorted as SentEval sorts it before it draws folds and batches (number of words, of both sentences
for pairs, then the label): its random states speak of that order.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import InputError
from harness.files.reading import expand_user, read_toml
from harness.sources.corpus.rows import byte_lines, decode_line, open_stream, without_end
from harness.sources.remote.cache_folder import cache_root, unpack_once
from harness.sources.remote.hub import hub_file
from harness.sources.senteval.prepared import find_or_prepare, prepare_folder

REPOSITORY = "princeton-nlp/datasets-for-simcse"
ARCHIVE = "senteval.tar"
PREPARATION = (
    "SentEval's files; words joined by single spaces; an empty sentence is read as a full stop"
)
SNLI_LABELS = ("entailment", "neutral", "contradiction")
_TABLE = read_toml(Path(__file__).with_suffix(".toml"))
BINARY: dict[str, tuple[str, str]] = _TABLE["binary"]  # task -> files of label 1 and label 0
PROBING: dict[str, str] = _TABLE["probing"]  # task -> file
SIZES: dict[str, dict[str, int]] = {  # data set -> subset or part -> scored pairs or examples
    **_TABLE["sizes"],
    **{task: {"train": 100_000, "dev": 10_000, "test": 10_000} for task in PROBING},
}

Example = tuple[
    str, str, float
]  # sentence, second sentence ("" where the task has one), label or score
ScoredPairs = tuple[
    list[str], list[str], list[float]
]  # first sentences, second sentences, gold scores
_PARTS = ("train", "dev", "test")
_SCORE = re.compile(r"[0-9]+(\.[0-9]*)?|\.[0-9]+")


@dataclass(frozen=True)
class LabelledSplit:
    """n examples: first sentences, second ones (empty for tasks of one sentence), (n,) int64 labels
    or scores.
    """

    first: list[str]
    second: list[str]
    labels: NDArray[Any]

    def __len__(self) -> int:
        return len(self.first)


@dataclass(frozen=True)
class Labelled:
    """A task's parts by name ("all", or "train", "dev", "test"), its number of classes and a
    fingerprint of all.

    `classes` is 0 where the labels are scores.
    """

    parts: dict[str, LabelledSplit]
    classes: int
    sha256: str


@dataclass(frozen=True)
class _Format:
    """Files with an example a line.

    Attributes:
        file: "{}" stands for the part. line: a regular expression with the groups a, b (the second
            sentence, or nothing), and label or score. expected: the same in words.
        labels: what the group "label" may be, in the order of their numbers; without them "score"
            is read.
        parts: part -> its name in `file`. header: the first column in the first line; "": there is
            no such line.
    """

    file: str
    line: str
    expected: str
    labels: Sequence[str] = ()
    parts: Mapping[str, str] = field(default_factory=lambda: {part: part for part in _PARTS})
    header: str = ""
    encoding: str = "utf-8"


_FORMATS = {name: _Format(**entry) for name, entry in _TABLE["formats"].items()}


def downstream_folder(root: Path | None = None) -> Path:
    """The folder that holds MR, SST, STS ...: below `root` or HARNESS_SENTEVAL where given, else
    the hub's copy.

    A HARNESS_SENTEVAL with probing files alone leaves the downstream ones to the hub.

    Raises:
        InputError: a given folder does not exist; the hub cannot be reached.
    """
    given = _find_named_folder(root)
    if given is not None and (given / "downstream").is_dir():
        return given / "downstream"
    if given is None or (
        root is None and ((given / "probing").is_dir() or given.name == "probing")
    ):
        return senteval_root()
    return given


def probing_folder(root: Path | None = None) -> Path:
    """The folder of the probing files, which no hub offers: below `root` or HARNESS_SENTEVAL, or
    downloaded once.

    Raises:
        InputError: a given folder does not exist; the files cannot be downloaded.
    """
    given = _find_named_folder(root)
    if given is None:
        return prepare_folder("probing")
    if (given / "probing").is_dir():
        return given / "probing"
    return given


def _find_named_folder(root: Path | None) -> Path | None:
    named = os.environ.get("HARNESS_SENTEVAL")
    given = root or (expand_user(named) if named else None)
    if given is not None and not given.is_dir():
        raise InputError(
            f"{given}: no such folder",
            file=given,
            remedy="give SentEval's data folder (it holds downstream and probing)",
        )
    return given


def senteval_root() -> Path:
    """The `downstream` folder of senteval.tar, which is taken from the hub and unpacked once into
    the cache.

    Raises:
        InputError: hub out of reach, damaged or unsafe archive, disk full.
    """
    archive = hub_file(REPOSITORY, ARCHIVE)
    folder = unpack_once(archive, cache_root() / "senteval")
    found = next(folder.rglob("STS"), None)
    if found is None:
        raise InputError(
            "is not SentEval's downstream data: there is no folder STS in it", file=folder
        )
    return found.parent


def read_task(task: str, root: Path) -> Labelled:
    """A task of SentEval's `downstream` folder by its name in the papers.

    Raises:
        InputError: a missing, truncated or damaged file: which, where and what was expected.
    """
    if task in BINARY:
        files = zip(BINARY[task], (1, 0), strict=True)
        plain = []
        for file, label in files:
            for text in _lines(root / file, "latin-1"):
                plain.append((text, "", label))
        return in_order({"all": plain}, 2)
    if task == "SNLI":
        folder = find_or_prepare(root, "SNLI")
        parts = {part: _snli(folder, part) for part in _PARTS}
        return in_order(parts, 3, snli=True)
    written = _FORMATS[task]
    return in_order(
        {part: _examples(root, written, part) for part in written.parts}, len(written.labels)
    )


def read_pairs(task: str, root: Path, split: str) -> ScoredPairs:
    """The scored pairs of "STS-B" or "SICK-R", "train", "dev" (of SICK the trial set) or "test".

    Raises:
        InputError: see `read_task`.
    """
    return _columns(_examples(root, _FORMATS[task], split))


def read_year(root: Path, task: str) -> Iterator[tuple[str, ScoredPairs]]:
    """The subsets of STS12 ... STS16 with their scored pairs; pairs that were never scored are left
    out.

    Raises:
        InputError: a file is missing or damaged, or the two of a subset differ in length: which,
            where, what was expected.
    """
    folder = root / "STS" / f"{task}-en-test"
    for subset in SIZES[task]:
        texts = folder / f"STS.input.{subset}.txt"
        scores = folder / f"STS.gs.{subset}.txt"
        lines = read_numbered_lines(texts, blank=True)
        golds = read_numbered_lines(scores, blank=True)
        if len(lines) != len(golds):
            golds_there = f"{scores.name} has {len(golds)}"
            message = f"{len(lines)} lines, but {golds_there}"
            raise InputError(message, file=texts)
        kept = []
        for (number, line), (_, gold) in zip(lines, golds, strict=True):
            first, _, second = line.partition("\t")
            has_both = bool(first.split()) and bool(second.split())
            if "\t" in second or not has_both:
                raise line_error(texts, number, "two sentences, a tab between")
            if gold.strip():
                score = gold_score(scores, number, gold)
                kept.append((first, second, score))
        if not kept:
            raise InputError("holds no score", file=scores)
        yield subset, _columns(kept)


def read_probing(task: str, folder: Path) -> Labelled:
    """A probing task: lines of part (tr, va or te), label and sentence, separated by tabs.

    Labels are numbered in the order of their names, those of the training part being all there are.

    Raises:
        InputError: see `read_task`; also a label that the training part lacks.
    """
    file = folder / PROBING[task]
    rows: dict[str, list[tuple[int, str, str]]] = {"tr": [], "va": [], "te": []}
    for number, line in read_numbered_lines(file):
        fields = line.rstrip().split("\t")
        if len(fields) != 3 or fields[0] not in rows:
            raise line_error(
                file, number, "tr, va or te, a label and a sentence, separated by tabs"
            )
        part, label, text = fields
        rows[part].append((number, label, text))
    place = {}
    labels = {label for _, label, _ in rows["tr"]}
    for i, name in enumerate(sorted(labels)):
        place[name] = i
    parts: dict[str, list[Example]] = {}
    for part, found in zip(_PARTS, rows.values(), strict=True):
        for number, label, _ in found:
            if label not in place:
                raise InputError(
                    f'label "{label}" does not occur in the training part (tr)',
                    file=file,
                    line=number,
                )
        if not found:
            raise InputError(f"no {part} examples; the file is empty or truncated", file=file)
        examples: list[Example] = []
        for _, label, text in found:
            examples.append((text, "", place[label]))
        parts[part] = examples
    return in_order(parts, len(place))


def unusual_sizes(data: str, counts: Mapping[str, int]) -> list[str]:
    """One sentence about the parts (or subsets) of `data` whose count is not the published one;
    none where all are.
    """
    known = SIZES.get(data, {})
    others = []
    for part, n in counts.items():
        if n != known.get(part, n):
            usual = known[part]
            others.append(f"{n:,} in {part} (not {usual:,})")
    if not others:
        return []
    return [
        f"examples: {', '.join(others)}; files cut short or of another edition, not comparable with published scores"
    ]


def build_labelled(rows: Sequence[Mapping[str, Any]]) -> Labelled:
    """Rows with "split" (train, test), "label" and either "text" or "sentence1" and "sentence2", in
    their order.

    Classes are numbered in the order of their names.

    Raises:
        InputError: a row lacks one of these columns.
    """
    for number, row in enumerate(rows, 1):
        lacking = [name for name in ("split", "label") if name not in row]
        if not {"text", "sentence1"} & row.keys():
            lacking.append("text")
        if lacking:
            message = f"expected a column of that name, not only {', '.join(map(str, row))}"
            raise InputError(
                message,
                key=f'row {number}: "{lacking[0]}"',
                remedy='rename it (a byte-order mark is left out with encoding="utf-8-sig", another '
                "separator is read with csv.DictReader(..., delimiter=...))",
            )
    if not rows:
        raise InputError("expected some with split, label and text, not none", key="rows")
    classes = sorted({row["label"] for row in rows})
    if "sentence1" in rows[0]:
        first = "sentence1"
        second = "sentence2"
    else:
        first = "text"
        second = ""
    parts: dict[str, list[Example]] = {"train": [], "test": []}
    for row in rows:
        if row["split"] in parts:
            label = classes.index(row["label"])
            example = (row[first], row.get(second, ""), label)
            parts[row["split"]].append(example)
    return _assemble(parts, len(classes))


def _assemble(parts: Mapping[str, Sequence[Example]], classes: int) -> Labelled:
    digest = hashlib.sha256()
    made = {}
    for name, rows in parts.items():
        first = [a or "." for a, _, _ in rows]
        if any(b for _, b, _ in rows):
            second = [b or "." for _, b, _ in rows]
        else:
            second = []
        labels = np.array(
            [label for _, _, label in rows], dtype=np.int64 if classes else np.float64
        )
        content = repr((name, first, second, labels.tolist()))
        digest.update(content.encode("utf-8", "surrogatepass"))
        made[name] = LabelledSplit(first, second, labels)
    return Labelled(made, classes, digest.hexdigest())


def in_order(
    parts: Mapping[str, Sequence[Example]],
    classes: int,
    *,
    snli: bool = False,
    as_written: bool = False,
) -> Labelled:
    """The examples as SentEval orders them; SNLI's by the second sentence first and by the label's
    name last.

    Args:
        as_written: leave texts as they are; else their words are joined by single spaces.
    """

    def place(row: Example) -> tuple[Any, ...]:
        a, b, label = row
        lengths = (len(a.split()), len(b.split()))
        if snli:
            return (*reversed(lengths), SNLI_LABELS[int(label)])
        return (*lengths, label)

    made: dict[str, list[Example]] = {}
    for name, rows in parts.items():
        examples = sorted(rows, key=place)
        if not as_written:
            examples = [(_join_words(a), _join_words(b), label) for a, b, label in examples]
        made[name] = examples
    return _assemble(made, classes)


def _join_words(text: str) -> str:
    return " ".join(text.split())


def _examples(root: Path, written: _Format, part: str) -> list[Example]:
    file = root / written.file.format(written.parts[part])
    lines = read_numbered_lines(file, encoding=written.encoding)
    if written.header:
        first, names = lines.pop(0)
        if names.strip().split("\t")[0] != written.header:
            raise line_error(file, first, f'the names of the columns, "{written.header}" the first')
        if not lines:
            raise InputError("no examples; the file is empty or truncated", file=file)
    rows: list[Example] = []
    for number, line in lines:
        match = re.fullmatch(written.line, line.strip())
        if match is None:
            raise line_error(file, number, written.expected)
        label = (
            written.labels.index(match["label"])
            if written.labels
            else gold_score(file, number, match["score"])
        )
        rows.append((match["a"], match["b"], label))
    return rows


def _snli(folder: Path, part: str) -> list[Example]:
    first = _lines(folder / f"s1.{part}")
    second = _lines(folder / f"s2.{part}")
    labels = _lines(folder / f"labels.{part}")
    if not len(first) == len(second) == len(labels):
        raise InputError(
            f"s1.{part}, s2.{part} and labels.{part} have {len(first)}, {len(second)} and "
            f"{len(labels)} lines; they must have one line an example; a file is truncated",
            file=folder,
        )
    for number, label in enumerate(labels, 1):
        if label.strip() not in SNLI_LABELS:
            known = ", ".join(SNLI_LABELS)
            raise line_error(folder / f"labels.{part}", number, f"one of {known}")
    numbers = [SNLI_LABELS.index(label.strip()) for label in labels]
    return list(zip(first, second, numbers, strict=True))


def _columns(rows: list[Example]) -> ScoredPairs:
    first = []
    second = []
    scores = []
    for a, b, score in rows:
        first.append(_join_words(a))
        second.append(_join_words(b))
        scores.append(score)
    return first, second, scores


def _lines(file: Path, encoding: str = "utf-8") -> list[str]:
    """All lines, blank ones included."""
    numbered = read_numbered_lines(file, encoding=encoding, blank=True)
    return [line for _, line in numbered]


def read_numbered_lines(
    file: Path,
    *,
    encoding: str = "utf-8",
    blank: bool = False,
) -> list[tuple[int, str]]:
    """Lines of a text file with their numbers from 1, split at newlines only.

    Args:
        blank: blank lines are empty sentences; else they are left out.

    Raises:
        InputError: no file, an empty one, or one that is no such text: UTF-16, NUL bytes, lone
            carriage returns.
    """
    if not file.exists():
        raise _no_such_file(file)
    with open_stream(file, False) as stream:
        lines = []
        for number, raw in enumerate(byte_lines(file, stream), 1):
            decoded = decode_line(file, number, raw, encoding)
            line = without_end(file, number, decoded)
            if blank or line.strip():
                lines.append((number, line))
    if not lines:
        raise InputError("is empty", file=file)
    return lines


def line_error(file: Path, number: int, expected: str) -> InputError:
    """The error for a line that does not have the expected format."""
    return InputError(
        f"expected {expected}; the file is damaged or truncated", file=file, line=number
    )


def gold_score(file: Path, number: int, text: str) -> float:
    """A human score.

    Raises:
        InputError: not a plain decimal number from 0 to 5.
    """
    written = text.strip()
    if not _SCORE.fullmatch(written) or not 0 <= float(text) <= 5:
        raise line_error(file, number, f"a score from 0 to 5, not {written[:40]!r}")
    return float(text)


def _no_such_file(file: Path) -> InputError:
    if not file.is_relative_to(cache_root() / "senteval"):
        return InputError("no such file; the SentEval folder is not complete", file=file)
    name = "/".join(file.parts[-2:])
    return InputError(
        f"{name}: not in the copy of {REPOSITORY}",
        file=name,
        remedy="set HARNESS_SENTEVAL to a folder that has it",
    )
