"""SentEval's downstream files (in the layout of princeton-nlp/SimCSE) and the readers of their STS part."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from harness.errors import InputError
from harness.files.reading import require_ordinary
from harness.sources.corpus.rows import decoded
from harness.sources.remote.archive import unpack_once
from harness.sources.remote.cache_folder import cache_root
from harness.sources.remote.hub import hub_file

REPOSITORY, ARCHIVE = "princeton-nlp/datasets-for-simcse", "senteval.tar"

# Subsets of each year in the order of SentEval's senteval/sts.py. STS13 lacks SMT for licence reasons.
STS_SUBSETS = {
    "STS12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "STS13": ("FNWN", "headlines", "OnWN"),
    "STS14": ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    "STS15": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "STS16": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}
_STSB = {split: f"STS/STSBenchmark/sts-{split}.csv" for split in ("train", "dev", "test")}
_SICK = {
    "train": "SICK/SICK_train.txt",
    "dev": "SICK/SICK_trial.txt",
    "test": "SICK/SICK_test_annotated.txt",
}

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


def no_such_file(file: Path, needed: str = "") -> InputError:
    """What to say of a file that a SentEval folder lacks; of the hub's copy, where to name another folder.

    Args:
        needed: what the files must be, for data that SentEval has in another form.
    """
    ours = cache_root() / "senteval"
    if not file.is_relative_to(ours):
        return InputError(f"{file}: no such file; {needed or 'the SentEval folder is not complete'}")
    name = "/".join(file.parts[-2:])
    text = f"{name}: not in the copy of {REPOSITORY}; set HARNESS_SENTEVAL to a SentEval data folder that has it"
    return InputError(f"{text}; {needed}" if needed else text)


def _inside(folder: Path) -> Path:
    for pattern in ("STS", "*/STS", "*/*/STS", "*/*/*/STS"):
        for sts in sorted(folder.glob(pattern)):
            if sts.is_dir():
                return sts.parent
    raise InputError(f"{folder}: is not SentEval's downstream data: there is no folder STS in it")


def read_year(root: Path, task: str) -> Iterator[tuple[str, ScoredPairs]]:
    """The subsets of STS12 ... STS16 with their scored pairs; pairs that were never scored are left out."""
    folder = root / "STS" / f"{task}-en-test"
    for subset in STS_SUBSETS[task]:
        texts, scores = folder / f"STS.input.{subset}.txt", folder / f"STS.gs.{subset}.txt"
        pairs, golds = _lines(texts), _lines(scores)
        if len(pairs) != len(golds):
            raise InputError(f"{texts}: {len(pairs)} lines, but {scores.name} has {len(golds)}")
        kept = [(n, pair, gold) for n, (pair, gold) in enumerate(zip(pairs, golds, strict=True), 1) if gold.strip()]
        yield subset, _scored(texts, [(n, [*pair.split("\t"), gold]) for n, pair, gold in kept], (0, 1, -1))


def read_stsb(root: Path, split: str) -> ScoredPairs:
    """STS-B, "train", "dev" or "test": columns genre, file, year, id, score, sentence 1, sentence 2; no header."""
    file = root / _STSB[split]
    return _scored(file, [(n, line.split("\t")) for n, line in enumerate(_lines(file), 1)], (5, 6, 4))


def read_sick(root: Path, split: str) -> ScoredPairs:
    """SICK relatedness, split "train", "dev" (the trial set) or "test": pair_ID, sentence A, sentence B, score, ..."""
    file = root / _SICK[split]
    return _scored(file, [(n, line.split("\t")) for n, line in enumerate(_lines(file), 1)][1:], (1, 2, 3))


def _lines(file: Path) -> list[str]:
    """The lines of a UTF-8 file, split at newlines only."""
    try:
        if file.exists():
            require_ordinary(file)  # a pipe would be waited for
        raw = file.read_bytes()
    except FileNotFoundError:
        raise no_such_file(file) from None
    lines = raw.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [decoded(file, number, line).removesuffix("\r") for number, line in enumerate(lines, 1)]


def _scored(file: Path, rows: list[tuple[int, list[str]]], places: tuple[int, int, int]) -> ScoredPairs:
    """Sentences are split at white space and joined by single spaces, as SentEval's evaluators do."""
    first: list[str] = []
    second: list[str] = []
    golds: list[float] = []
    for number, row in rows:
        try:
            a, b, gold = (row[place] for place in places)
            golds.append(float(gold))
        except (IndexError, ValueError):
            raise InputError(f"{file}, line {number}: not two sentences with a score, separated by tabs") from None
        first.append(" ".join(a.split()))
        second.append(" ".join(b.split()))
    return first, second, golds
