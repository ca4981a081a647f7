"""The STS benchmark's test pairs in other languages: STSb Multi MT (P. May 2021), translated with DeepL."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import InputError
from harness.sources.remote.hub import hub_file

if TYPE_CHECKING:
    from collections.abc import Iterable

REPOSITORY = "PhilipMay/stsb_multi_mt"
LANGUAGES = ("de", "en", "es", "fr", "it", "nl", "pl", "pt", "ru", "zh")
TASKS = {f"STS-B-{language}": language for language in LANGUAGES}
PREPARATION = "raw text, machine-translated"
_PAIRS = 1379  # in every language, in one order

Columns = tuple[list[str], list[str], list[float]]  # first sentences, second sentences, scores from 0 to 5


def read_language(language: str) -> Columns:
    """The test split of one language.

    Raises:
        InputError: the hub cannot be reached or lacks it, or the file is damaged.
    """
    try:
        file = hub_file(REPOSITORY, f"stsb-{language}-test.csv")
    except InputError as error:
        try:  # how the hub itself has kept it since data sets may hold no code
            file = hub_file(REPOSITORY, f"{language}/test-00000-of-00001.parquet")
        except InputError:
            raise error from None
        return _read_parquet(file)
    return read_csv(file)


def read_csv(file: Path) -> Columns:
    """A CSV file without a header: sentence, sentence, score.

    Raises:
        InputError: a line that is none, or too few of them.
    """
    rows: list[list[str]] = []
    whole = 0  # lines of the rows that were read; a quote that is never closed swallows all that follow
    with file.open(encoding="utf-8", newline="") as stream:
        reader = csv.reader(stream, strict=True)
        try:
            for row in reader:
                rows.append(row)
                whole = reader.line_num
        except (csv.Error, UnicodeDecodeError) as error:
            raise InputError(
                f"{file}, line {whole + 1}: not readable as CSV ({error}); delete it to download it again"
            ) from None
    return _checked(file, rows)


def _read_parquet(file: Path) -> Columns:
    import pandas as pd

    try:
        frame = pd.read_parquet(file, columns=["sentence1", "sentence2", "similarity_score"])
    except (OSError, ValueError) as error:
        raise InputError(
            f"{file}: not readable ({str(error).splitlines()[0]}); delete it to download it again"
        ) from None
    return _checked(file, frame.itertuples(index=False))


def _checked(file: Path, rows: Iterable[Any]) -> Columns:
    first: list[str] = []
    second: list[str] = []
    gold: list[float] = []
    for number, row in enumerate(rows, 1):
        try:
            a, b, score = row
            value = float(score)
        except ValueError:
            raise InputError(
                f"{file}, row {number}: expected two sentences and a score, got {len(row)} values"
            ) from None
        if not 0 <= value <= 5:
            raise InputError(f"{file}, row {number}: score {score}; expected a number from 0 to 5")
        first.append(a)
        second.append(b)
        gold.append(value)
    if len(gold) != _PAIRS:
        raise InputError(f"{file}: {len(gold)} pairs, expected {_PAIRS}; the file is truncated: delete it")
    return first, second, gold
