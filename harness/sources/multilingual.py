"""The STS benchmark's test pairs in other languages: STSb Multi MT (P. May 2021), translated with DeepL."""

from __future__ import annotations

from pathlib import Path

from harness.errors import InputError
from harness.files.printable import first_line
from harness.sources.remote.hub import hub_file

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
        return read_file(hub_file(REPOSITORY, f"stsb-{language}-test.csv"))
    except InputError as error:
        try:  # how the hub itself stores it since data sets may hold no code
            return read_file(hub_file(REPOSITORY, f"{language}/test-00000-of-00001.parquet"))
        except InputError:
            raise error from None


def read_file(file: Path) -> Columns:
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
            frame = pd.read_csv(file, names=names, index_col=False, dtype=str, keep_default_na=False)
        gold = frame["similarity_score"].astype(float)
    except (OSError, ValueError) as error:  # pandas' and pyarrow's errors are ValueErrors
        raise InputError(f"{file}: not readable ({first_line(error)}); delete it to download it again") from None
    if not gold.between(0, 5).all():
        row = gold.between(0, 5).idxmin()
        raise InputError(f"{file}, row {row + 1}: score {gold[row]}; expected a number from 0 to 5")
    if len(gold) != _PAIRS:
        raise InputError(f"{file}: {len(gold)} pairs, expected {_PAIRS}; the file is truncated: delete it")
    return frame["sentence1"].tolist(), frame["sentence2"].tolist(), gold.tolist()
