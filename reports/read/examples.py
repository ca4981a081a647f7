"""What the runs of a comparison saved of their scores, example by example: pairs, and the outcomes
of other tasks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from harness.results.outcomes import SCORE, score_of
from harness.results.store import PAIR_METRIC, RunFolder
from harness.results.text_ids import PAIR_IDS, text_id
from harness.tasks.mteb.benchmarks import PREFIX

if TYPE_CHECKING:
    import pyarrow as pa

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
_NO_OUTCOMES = np.empty(0)
_OWN_UNITS = 2**32  # ids of texts are 64 random bits; a number below is a set's or a fold's


# Subset -> numbers of pairs; "" -> numbers of other examples.
LeftOut = Mapping[str, frozenset[int]]


@dataclass(frozen=True)
class Examples:
    """The n examples of one score of one run.

    Attributes:
        score: (task, source, split, metric).
        part: (n,) number of the part of the task that an example belongs to; the score is the mean
            over parts.
        target, outcome: (n,), as in `harness.results.outcomes`; gold score and cosine of a pair.
        texts: (n, 1 or 2) ids of the texts: examples that share one are resampled together.
        digest: the same for runs that were scored on the same examples.
    """

    score: tuple[str, str, str, str]
    part: Ids
    target: Floats
    outcome: Floats
    texts: Ids
    digest: bytes

    @property
    def value(self) -> float:
        """The score."""
        *_, metric = self.score
        scores = []
        for part in np.unique(self.part):
            here = self.part == part
            target = self.target[here]
            outcome = self.outcome[here]
            weights = np.ones(len(target))
            scores.append(score_of(metric, target, outcome, weights))
        return float(np.mean(scores))


class ExampleReader:
    """Reads what runs saved; of pairs the test ones, whose score is Spearman's over all of a task.

    What runs that were scored on the same examples share (texts, gold scores, parts) is made once.
    """

    def __init__(self, left_out: Mapping[tuple[str, str], LeftOut] = MappingProxyType({})) -> None:
        """Args:
        left_out: task and source -> numbers of pairs or examples to go without.
        """
        self.left_out = left_out
        self._known: dict[bytes, list[_Group]] = {}

    def read(self, folder: RunFolder) -> list[Examples]:
        """Return the examples of a run by score; none where it saved none.

        Raises:
            OSError, ValueError, KeyError: a file that is damaged. InputError: it cannot be read.
        """
        table = folder.examples_table()
        if table is None:
            return []
        columns = _Columns.of_table(table)
        groups = self._known.get(columns.digest)
        if groups is None:
            groups = list(self._group(columns))
            self._known[columns.digest] = groups
        outcome = _read_floats(table, "outcome")
        return [replace(one.shared, outcome=one.outcome(outcome)) for one in groups]

    def _group(self, columns: _Columns) -> Iterator[_Group]:
        is_pair = columns.is_equal("metric", PAIR_METRIC)
        tested = np.flatnonzero(is_pair & columns.is_equal("split", "test"))
        for rows in columns.split(tested, ("task", "source")):
            task, source = columns.texts_of_row(("task", "source"), rows[0])
            remains = self._remaining_pairs(columns, rows, (task, source))
            if len(remains):
                yield _group_pairs(columns, remains, task, source)
        for rows in columns.split(np.flatnonzero(~is_pair), SCORE):
            task, source, split, metric = columns.texts_of_row(SCORE, rows[0])
            without = self.left_out.get((task, source), {})
            is_left_out = np.isin(columns.numbers["example"][rows], list(without.get("", ())))
            remains = rows[~is_left_out]
            if len(remains):
                yield _group_outcomes(columns, remains, (task, source, split, metric))

    def _remaining_pairs(self, columns: _Columns, rows: Ids, key: tuple[str, str]) -> Ids:
        """Return those of the rows whose pairs are not left out."""
        without = self.left_out.get(key, {})
        if not without:
            return rows
        remains = []
        for row in rows:
            (subset,) = columns.texts_of_row(("subset",), row)
            number = int(columns.numbers["example"][row])
            remains.append(number not in without.get(subset, ()))
        found: Ids = rows[np.array(remains)]
        return found


@dataclass(frozen=True)
class _Group:
    """The rows (n,) of a file that are the examples of one score.

    Attributes:
        shared: the examples, with the outcomes of no run.
        is_rounded: outcomes are in 32 bits, as tasks return them.
    """

    rows: Ids
    shared: Examples
    is_rounded: bool

    def outcome(self, column: Floats) -> Floats:
        """Return the outcomes (n,) of these rows."""
        found = column[self.rows]
        if self.is_rounded:
            return _round_to_32_bits(found)
        return np.asarray(np.nan_to_num(found))


@dataclass(frozen=True)
class _Columns:
    """The columns of a file that say which examples it has.

    Attributes:
        texts: name -> (codes (rows,), the text of each code).
        numbers: name -> (rows,).
        known: name -> (rows,) False where a column of ids has no number.
        digest: of all of them.
    """

    texts: Mapping[str, tuple[Ids, list[str]]]
    numbers: Mapping[str, NDArray[Any]]
    known: Mapping[str, NDArray[np.bool_]]
    digest: bytes

    @classmethod
    def of_table(cls, table: pa.Table) -> Self:
        """Raises:
        ValueError, KeyError: a column is missing, or holds something else.
        """
        texts = {name: _read_texts(table, name) for name in (*SCORE, "subset")}
        numbers: dict[str, NDArray[Any]] = {"target": _read_floats(table, "target")}
        known = {}
        for name in ("example", "unit", *PAIR_IDS):
            numbers[name], known[name] = _read_ids(table, name)
        parts: list[NDArray[Any]] = [*numbers.values(), *known.values()]
        for codes, names in texts.values():
            parts += [codes, np.array(names, dtype=object)]
        return cls(texts, numbers, known, _digest(*parts))

    def is_equal(self, name: str, text: str) -> NDArray[np.bool_]:
        """True for the rows (rows,) that have a text in a column."""
        codes, names = self.texts[name]
        if text not in names:
            return np.zeros(len(codes), dtype=bool)
        return np.asarray(codes == names.index(text))

    def texts_of_row(self, names: Sequence[str], row: int) -> tuple[str, ...]:
        """Return the texts of a row in some columns."""
        found = []
        for name in names:
            codes, texts = self.texts[name]
            found.append(texts[codes[row]])
        return tuple(found)

    def split(self, rows: Ids, names: Sequence[str]) -> list[Ids]:
        """Return the rows with equal texts in some columns, groups in the order of their first row."""
        group = np.zeros(len(rows), dtype=np.int64)
        for name in names:
            codes, texts = self.texts[name]
            group = group * len(texts) + codes[rows]
        numbers = _number_by_appearance(group)
        count = int(numbers.max(initial=-1)) + 1
        return [rows[numbers == number] for number in range(count)]

    def number_subsets(self, rows: Ids) -> Ids:
        """Return the subset of each row as a number from 0, (n,)."""
        codes, _ = self.texts["subset"]
        return _number_by_appearance(codes[rows])

    def ids(self, name: str, rows: Ids) -> Ids:
        """Return a column of ids (n,) of some rows.

        Raises:
            ValueError: one of them is missing.
        """
        if not self.known[name][rows].all():
            raise ValueError(f"{name}: a number is missing")
        found: Ids = self.numbers[name][rows]
        return found


def _read_texts(table: pa.Table, name: str) -> tuple[Ids, list[str]]:
    """Return the code of each text of a column, (rows,), and the texts by code."""
    column = table.column(name).combine_chunks().dictionary_encode()
    if column.null_count:
        raise ValueError(f"{name}: a text is missing")
    return column.indices.to_numpy().astype(np.int64), column.dictionary.to_pylist()


def _read_ids(table: pa.Table, name: str) -> tuple[Ids, NDArray[np.bool_]]:
    """Return a column of whole numbers, 0 where there is none, and where there is one."""
    column = table.column(name).cast("int64")
    known = column.is_valid().to_numpy()
    numbers = column.fill_null(0).to_numpy()
    return numbers.astype(np.int64), known


def _read_floats(table: pa.Table, name: str) -> Floats:
    """Return a column of numbers (rows,), NaN where there is none."""
    return np.asarray(table.column(name).cast("float64").to_numpy())


def _round_to_32_bits(values: Floats) -> Floats:
    return values.astype(np.float32).astype(np.float64)


def _number_by_appearance(values: Ids) -> Ids:
    """Return equal values as equal numbers, from 0 in the order in which they first appear, (n,)."""
    _, first, places = np.unique(values, return_index=True, return_inverse=True)
    number = np.argsort(np.argsort(first))
    return number[places]


def _group_pairs(columns: _Columns, rows: Ids, task: str, source: str) -> _Group:
    gold = columns.numbers["target"][rows]
    texts = np.stack([columns.ids(name, rows) for name in PAIR_IDS], axis=1)
    digest = _digest(columns.ids("example", rows), gold)
    by_mteb = source == "mteb"  # whose score is the mean over subsets, under a name of its own
    if by_mteb:
        part = columns.number_subsets(rows)
    else:
        part = np.zeros(len(gold), np.int64)
    if by_mteb and task.startswith(PREFIX):
        metric = "cosine_spearman"
    else:
        metric = "spearman"
    score = (task, source, "test", metric)
    shared = Examples(score, part, gold, _NO_OUTCOMES, texts, digest)
    return _Group(rows, shared, is_rounded=False)


def _group_outcomes(columns: _Columns, rows: Ids, score: tuple[str, str, str, str]) -> _Group:
    part = columns.number_subsets(rows)
    if len(part) and part.max() + 1 == len(part):
        part[:] = 0  # one number a part, as a set's in clustering: the parts are what is drawn
    unit = columns.ids("unit", rows)
    task, source, *_ = score
    own = text_id(f"{source}:{task}")
    is_of_task = np.abs(unit) < _OWN_UNITS
    ids = np.where(is_of_task, unit ^ own, unit)
    target = _round_to_32_bits(columns.numbers["target"][rows])
    names = columns.ids("example", rows)
    digest = _digest(names, unit, np.nan_to_num(target))
    shared = Examples(score, part, target, _NO_OUTCOMES, ids[:, None], digest)
    return _Group(rows, shared, is_rounded=True)


def _digest(*columns: NDArray[np.generic]) -> bytes:
    """Of columns of numbers or texts."""
    found = hashlib.blake2b(digest_size=16)
    for column in columns:
        if column.dtype == object:
            lines = "\n".join(map(str, column))
            data = lines.encode("utf-8", "surrogatepass")
        else:
            data = np.ascontiguousarray(column).tobytes()
        found.update(data)
        found.update(b"%d;" % len(column))
    return found.digest()
