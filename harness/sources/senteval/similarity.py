"""SentEval's downstream files (in the layout of princeton-nlp/SimCSE): their lines, and readers of their STS part."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from harness.errors import InputError
from harness.sources.corpus.rows import byte_lines, decoded, opened, without_end
from harness.sources.remote.cache_folder import cache_root, unpack_once
from harness.sources.remote.hub import hub_file

REPOSITORY, ARCHIVE = "princeton-nlp/datasets-for-simcse", "senteval.tar"
_SCORE = re.compile(r"[0-9]+(\.[0-9]*)?|\.[0-9]+")

# Subsets of each year in the order of SentEval's senteval/sts.py. STS13 lacks SMT for licence reasons.
STS_SUBSETS = {
    "STS12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "STS13": ("FNWN", "headlines", "OnWN"),
    "STS14": ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    "STS15": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "STS16": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}
_SICK = {"train": "SICK_train.txt", "dev": "SICK_trial.txt", "test": "SICK_test_annotated.txt"}
SICK_LABELS = ("CONTRADICTION", "NEUTRAL", "ENTAILMENT")

ScoredPairs = tuple[list[str], list[str], list[float]]  # first sentences, second sentences, gold scores


def senteval_root(path: Path | None = None) -> Path:
    """SentEval's `downstream` folder (it holds STS, SICK, MR ...).

    Args:
        path: an unpacked copy (`downstream` or a folder above it); without it senteval.tar is taken from the hub and
            unpacked once into the harness's cache.

    Raises:
        InputError: hub out of reach, damaged or unsafe archive, disk full, or a folder without these files.
    """
    if path is not None:
        return _inside(path)
    return _unpacked(hub_file(REPOSITORY, ARCHIVE), cache_root() / "senteval")


@cache
def _unpacked(archive: Path, into: Path) -> Path:
    return _inside(unpack_once(archive, into))


def _inside(folder: Path) -> Path:
    for pattern in ("STS", "*/STS", "*/*/STS", "*/*/*/STS"):
        for sts in sorted(folder.glob(pattern)):
            if sts.is_dir():
                return sts.parent
    raise InputError(f"{folder}: is not SentEval's downstream data: there is no folder STS in it")


def read_year(root: Path, task: str) -> Iterator[tuple[str, ScoredPairs]]:
    """The subsets of STS12 ... STS16 with their scored pairs; pairs that were never scored are left out.

    Raises:
        InputError: a file is missing or damaged, or the two of a subset differ in length: which, where, what was
            expected.
    """
    folder = root / "STS" / f"{task}-en-test"
    for subset in STS_SUBSETS[task]:
        texts, scores = folder / f"STS.input.{subset}.txt", folder / f"STS.gs.{subset}.txt"
        lines, golds = numbered_lines(texts, blank=True), numbered_lines(scores, blank=True)
        if len(lines) != len(golds):
            raise InputError(f"{texts}: {len(lines)} lines, but {scores.name} has {len(golds)}")
        pairs = [_pair(texts, number, line.split("\t"), "two sentences, a tab between") for number, line in lines]
        kept = [
            (*pair, gold_score(scores, number, gold))
            for pair, (number, gold) in zip(pairs, golds, strict=True)
            if gold.strip()
        ]
        if not kept:
            raise InputError(f"{scores}: holds no score")
        yield subset, _columns(kept)


def read_stsb(root: Path, split: str) -> ScoredPairs:
    """STS-B, "train", "dev" or "test": genre, file, year, id, score, two sentences, at most two sources; no header.

    Raises:
        InputError: see `read_year`.
    """
    file = root / "STS/STSBenchmark" / f"sts-{split}.csv"
    rows = []
    for number, line in numbered_lines(file):
        fields = line.split("\t")
        what = "four fields, a score from 0 to 5 and two sentences, by tabs"
        if len(fields) > 9:
            raise damaged(file, number, what)
        pair = _pair(file, number, fields[5:7], what)
        rows.append((*pair, gold_score(file, number, fields[4])))
    return _columns(rows)


def read_sick(root: Path, split: str) -> ScoredPairs:
    """SICK relatedness, split "train", "dev" (the trial set) or "test".

    Raises:
        InputError: see `read_year`.
    """
    return _columns([(a, b, score) for a, b, score, _ in sick_rows(root, split)])


def sick_rows(root: Path, split: str) -> list[tuple[str, str, float, str]]:
    """SICK's pairs with relatedness score and entailment judgment.

    Raises:
        InputError: see `read_year`.
    """
    file = root / "SICK" / _SICK[split]
    rows = []
    for number, fields in table_rows(file, "pair_ID"):
        what = f"an id, two sentences, a score from 0 to 5 and a judgment ({', '.join(SICK_LABELS)}), by tabs"
        if len(fields) != 5 or fields[4] not in SICK_LABELS:
            raise damaged(file, number, what)
        rows.append((*_pair(file, number, fields[1:3], what), gold_score(file, number, fields[3]), fields[4]))
    return rows


def _pair(file: Path, number: int, sentences: list[str], expected: str) -> tuple[str, str]:
    """Sentences are split at white space and joined by single spaces, as SentEval's evaluators do."""
    words = [" ".join(sentence.split()) for sentence in sentences]
    if len(words) != 2 or not all(words):
        raise damaged(file, number, expected)
    return words[0], words[1]


def _columns(rows: list[tuple[str, str, float]]) -> ScoredPairs:
    return [a for a, _, _ in rows], [b for _, b, _ in rows], [score for _, _, score in rows]


def numbered_lines(file: Path, *, encoding: str = "utf-8", blank: bool = False) -> list[tuple[int, str]]:
    """Lines of a text file with their numbers from 1, split at newlines only.

    Args:
        blank: blank lines are empty sentences; else they are left out.

    Raises:
        InputError: no file, an empty one, or one that is no such text: UTF-16, NUL bytes, lone carriage returns.
    """
    if not file.exists():
        raise no_such_file(file)
    with opened(file, False) as stream:
        raw = enumerate(byte_lines(file, stream), 1)
        lines = [(number, without_end(file, number, decoded(file, number, line, encoding))) for number, line in raw]
    numbered = [(number, line) for number, line in lines if blank or line.strip()]
    if not numbered:
        raise InputError(f"{file}: is empty")
    return numbered


def table_rows(file: Path, header: str) -> list[tuple[int, list[str]]]:
    """Line number and fields of a tab-separated file whose first line begins with the column `header`.

    Raises:
        InputError: as `numbered_lines`; another first line, or nothing after it.
    """
    (first, names), *lines = numbered_lines(file)
    if names.strip().split("\t")[0] != header:
        raise damaged(file, first, f'the names of the columns, "{header}" the first')
    if not lines:
        raise InputError(f"{file}: no examples; the file is empty or truncated")
    return [(number, line.strip().split("\t")) for number, line in lines]


def damaged(file: Path, number: int, expected: str) -> InputError:
    """The error for a line that does not have the expected format."""
    return InputError(f"{file}, line {number}: expected {expected}; the file is damaged or truncated")


def gold_score(file: Path, number: int, text: str) -> float:
    """A human score.

    Raises:
        InputError: not a plain decimal number from 0 to 5.
    """
    if not _SCORE.fullmatch(text.strip()) or not 0 <= float(text) <= 5:
        raise damaged(file, number, f"a score from 0 to 5, not {text.strip()[:40]!r}")
    return float(text)


def no_such_file(file: Path) -> InputError:
    """The error for a file that a SentEval folder lacks."""
    if not file.is_relative_to(cache_root() / "senteval"):
        return InputError(f"{file}: no such file; the SentEval folder is not complete")
    name = "/".join(file.parts[-2:])
    return InputError(f"{name}: not in the copy of {REPOSITORY}; set HARNESS_SENTEVAL to a folder that has it")
