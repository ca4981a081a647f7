"""Which examples are looked at: those on which two rows differ most, or that most rows get wrong, of a kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.explore.examples import ExploredTask
from reports.explore.traits import overlap, words
from reports.read.comparison_runs import ResultRow, base_name

Range = tuple[float, float]


@dataclass(frozen=True)
class Filters:
    """What an example must be like; both ends of a range count.

    Attributes:
        gold, length, overlap: of the gold score, of the words of the longer text, of the share of common words.
        traits: key of a trait -> the numbers of its slices that pass.
        text: words that one of its texts has to hold, whatever their case.
    """

    gold: Range | None = None
    length: Range | None = None
    overlap: Range | None = None
    traits: Mapping[str, frozenset[int]] = field(default_factory=dict)
    text: str = ""

    def passed(self, task: ExploredTask) -> NDArray[np.bool_]:
        """(n,) which examples of a task pass; none of those whose texts are not known, where texts are asked about."""
        keep = np.ones(task.n, dtype=bool)
        if self.gold is not None:
            gold = [float(one) if _is_number(one) else np.nan for one in task.gold]
            keep &= np.array([self.gold[0] <= value <= self.gold[1] for value in gold])
        texts = task.known.texts
        if self.length is not None:
            longest = [max(len(words(text)) for text in some) if some else np.nan for some in texts]
            keep &= np.array([self.length[0] <= value <= self.length[1] for value in longest])
        if self.overlap is not None:
            shares = [overlap(*some) if len(some) == 2 else np.nan for some in texts]
            keep &= np.array([self.overlap[0] <= value <= self.overlap[1] for value in shares])
        for key, wanted in self.traits.items():
            numbers = task.traits[key][1] if key in task.traits else np.full(task.n, -1)
            keep &= np.isin(numbers, list(wanted))
        if self.text:
            asked = self.text.casefold()
            keep &= np.array([any(asked in text.casefold() for text in some) for some in texts])
        return keep


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class Shown:
    """One example.

    Attributes:
        number: its place in the task's data, from 1. ids: of its texts. texts: () where they are not known here.
        rows: labels. scores, errors: of each, means over its seeds.
        by: what it was chosen by: the second row's error less the first's, or the median error of all rows.
    """

    task: str
    source: str
    number: int
    ids: tuple[str, ...]
    texts: tuple[str, ...]
    gold: str
    rows: tuple[str, ...]
    scores: tuple[float, ...]
    errors: tuple[float, ...]
    by: float
    slices: Mapping[str, str]

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "task": self.task,
            "source": self.source,
            "example": self.number,
            "ids": list(self.ids),
            "texts": list(self.texts),
            "gold": self.gold,
            "scores": dict(zip(self.rows, self.scores, strict=True)),
            "errors": dict(zip(self.rows, self.errors, strict=True)),
            "by": self.by,
            "slices": dict(self.slices),
        }


def differing(task: ExploredTask, a: ResultRow, b: ResultRow, filters: Filters, most: int) -> list[Shown]:
    """The examples on which two rows differ most in error, whichever is right; positive where the first is."""
    by = task.errors[b.key] - task.errors[a.key]
    return _shown(task, [a, b], by, np.abs(by), filters, most)


def hard(task: ExploredTask, rows: list[ResultRow], filters: Filters, most: int) -> list[Shown]:
    """The examples that most of the rows get wrong, by the median of their errors."""
    by = np.median([task.errors[row.key] for row in rows], axis=0)
    return _shown(task, rows, by, by, filters, most)


def _shown(
    task: ExploredTask, rows: list[ResultRow], by: NDArray[Any], size: NDArray[Any], filters: Filters, most: int
) -> list[Shown]:
    order = np.argsort(-size, kind="stable")
    passed = filters.passed(task)
    places = [int(place) for place in order if passed[place] and size[place] > 0][:most]
    ids = task.examples.texts
    labels = [row.label for row in rows]
    names = [f"{r.label} ({base_name(r.base_model)})" if labels.count(r.label) > 1 else r.label for r in rows]
    return [
        Shown(
            task.task,
            task.source,
            place + 1,
            tuple(f"{int(one) % 2**64:016x}" for one in ids[place]) if ids is not None else (),
            task.known.texts[place],
            task.gold[place],
            tuple(names),
            tuple(round(float(task.scores[row.key][place]), 4) for row in rows),
            tuple(round(float(task.errors[row.key][place]), 4) for row in rows),
            round(float(by[place]), 4),
            {key: named[numbers[place]] for key, (named, numbers) in task.traits.items() if numbers[place] >= 0},
        )
        for place in places
    ]
