"""The files of a BEIR folder: corpus.jsonl, queries.jsonl and qrels/test.tsv."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.files.tables import read_table, require_texts, to_numbers

_CORPUS = "corpus.jsonl"
_QUERIES = "queries.jsonl"


@dataclass(frozen=True)
class Folder:
    """The test part of a BEIR folder.

    Attributes:
        passages: id -> (title, text).
        queries: id -> text, of those with a graded passage.
        relevant: query -> passage -> grade.
    """

    passages: dict[str, tuple[str, str]]
    queries: dict[str, str]
    relevant: dict[str, dict[str, int]]

    @property
    def unanswered(self) -> int:
        """Number of queries of which no passage has a grade above 0."""
        best = [max(grades.values()) for grades in self.relevant.values()]
        return sum(grade <= 0 for grade in best)


def read_beir(folder: Path) -> Folder:
    """Read passages, queries and the grades of the test part.

    Raises:
        InputError: a missing or damaged file, an id that is not there, a grade that is no whole
            number, two grades of one passage, or no test part.
    """
    passages = _read_texts(folder / _CORPUS)
    queries = {}
    for query, (_, text) in _read_texts(folder / _QUERIES).items():
        queries[query] = text
    grades = folder / "qrels" / "test.tsv"
    files = sorted((folder / "qrels").glob("*.tsv"))
    if not grades.is_file() and len(files) == 1:
        grades = files[0]
    if not grades.is_file():
        message = "no grades of the test part"
        raise InputError(
            message, file=folder / "qrels" / "test.tsv", remedy="name the file test.tsv"
        )
    relevant = _read_grades(grades, passages, queries)
    asked = {}
    for query, text in queries.items():
        if query in relevant:
            asked[query] = text
    found = Folder(passages, asked, relevant)
    if found.unanswered == len(relevant):
        message = "no passage is relevant to any query"
        raise InputError(message, file=grades, key='column "score"', remedy="write grades above 0")
    return found


def _read_texts(file: Path) -> dict[str, tuple[str, str]]:
    """Return id -> title and text."""
    table = read_table(file)
    for name in ("_id", "text"):
        if name not in table.columns:
            remedy = f"its keys are {', '.join(table.columns)}"
            raise InputError(f'no key "{name}"', key=name, file=file, remedy=remedy)
    require_texts(table, ("_id", "text"), str(file))
    titles = [""] * len(table)
    if "title" in table.columns:
        require_texts(table, ("title",), str(file))
        titles = table["title"].tolist()
    texts = {}
    for line, one, title, text in zip(
        table.index,
        table["_id"],
        titles,
        table["text"],
        strict=True,
    ):
        if one in texts:
            raise InputError(f'the id "{one}" occurs twice', file=file, line=line)
        texts[one] = (str(title), text)
    return texts


def _read_grades(
    file: Path,
    passages: dict[str, Any],
    queries: dict[str, str],
) -> dict[str, dict[str, int]]:
    table = read_table(file)
    names = ("query-id", "corpus-id", "score")
    for name in names:
        if name not in table.columns:
            remedy = f"its columns are {', '.join(table.columns)}"
            raise InputError(f'no column "{name}"', key=name, file=file, remedy=remedy)
    relevant: dict[str, dict[str, int]] = {}
    grades = to_numbers(table, "score", str(file))
    rows = zip(
        table.index,
        table["query-id"],
        table["corpus-id"],
        grades,
        strict=True,
    )
    for line, query, passage, grade in rows:
        ids = ((query, queries, _QUERIES), (passage, passages, _CORPUS))
        for one, known, where in ids:
            if one not in known:
                message = f'"{one}" is no id of {where}'
                raise InputError(message, file=file, line=line)
        of_query = relevant.setdefault(query, {})
        earlier = of_query.setdefault(passage, int(grade))
        if earlier != grade:
            if not grade.is_integer():
                message = f"expected a whole number, not {grade:g}"
            else:
                message = f'"{passage}" has two grades for "{query}", {earlier} and {grade:g}'
            raise InputError(message, file=file, line=line, key='column "score"')
    return relevant
