"""Lines and fields of SentEval's text files, and what is said of those that are not what their format says."""

from __future__ import annotations

import re
from pathlib import Path

from harness.errors import InputError
from harness.files.reading import require_ordinary
from harness.sources.corpus.rows import decoded, without_end
from harness.sources.remote.cache_folder import cache_root

REPOSITORY = "princeton-nlp/datasets-for-simcse"
_SCORE = re.compile(r"[0-9]+(\.[0-9]*)?|\.[0-9]+")


def numbered_lines(file: Path, *, encoding: str = "utf-8", blank: bool = False) -> list[tuple[int, str]]:
    """Numbered lines from 1, split at newlines only; blank ones are kept only if they mean an empty sentence.

    Raises:
        InputError: no file, an empty one, or one that is no such text: UTF-16, NUL bytes, lone carriage returns.
    """
    if file.exists():
        require_ordinary(file)  # a pipe would be waited for
    try:
        raw = file.read_bytes()
    except FileNotFoundError:
        raise no_such_file(file) from None
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from None
    lines = raw.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if not lines[-1]:
        lines.pop()
    numbered = []
    for number, line in enumerate(lines, 1):
        text = without_end(file, number, decoded(file, number, line, encoding))
        if blank or text.strip():
            numbered.append((number, text))
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
    """What to say of a line that is not what its format says."""
    return InputError(f"{file}, line {number}: expected {expected}; the file is damaged or truncated")


def gold_score(file: Path, number: int, text: str) -> float:
    """A human score.

    Raises:
        InputError: not a plain decimal number from 0 to 5.
    """
    if not _SCORE.fullmatch(text.strip()) or not 0 <= float(text) <= 5:
        raise damaged(file, number, f"a score from 0 to 5, not {text.strip()[:40]!r}")
    return float(text)


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
    if file.parent.name in ("SNLI", "COCO"):
        text += f", or fetch it: `harness data prepare {file.parent.name.lower()}`"
    return InputError(f"{text}; {needed}" if needed else text)
