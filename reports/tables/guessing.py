"""Rows of a table that no run is behind: what guessing scores, and what always naming the commonest class scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.results.facts import Facts
from reports.document.table import Cell, Column, TableRow, number
from reports.read.comparison_runs import Comparison
from reports.stats.targets import Target

BLOCK = "without a model"
_TITLES = {"chance": "guessing", "majority": "commonest class"}
_WORDS = {"guessing": "every class alike often", "commonest class": "always the one that the test data has most of"}


def guessing_rows(
    comparison: Comparison, columns: Sequence[Column], by_column: Mapping[int, Target], digits: Mapping[int, int]
) -> tuple[TableRow, ...]:
    """A row for each of them of which something is known; of an average only where it is known of every task.

    Args:
        digits: decimals of each column of scores.
    """
    facts = comparison.facts
    rows = []
    for kind, title in _TITLES.items():
        cells = [Cell(title), *(Cell("–", state="empty") for _ in columns[1:])]
        for j, target in by_column.items():
            values = [_value(facts.get(one.task), kind, one.metric) for one in target.measures]
            known = [value for value in values if value is not None]
            if known and len(known) == len(values):
                cells[j] = number(100 * sum(known) / len(known), digits=digits.get(j, 2))
        if any(cell.value for cell in cells):  # that guessing correlates with nothing need not be said
            rows.append(TableRow(tuple(cells), BLOCK, ranked=False))
    return tuple(rows)


def guessing_words(rows: Sequence[TableRow]) -> list[str]:
    """What such rows are, for the legend; nothing where there are none."""
    said = [f"{row.cells[0].text}: {_WORDS[row.cells[0].text]}" for row in rows]
    text = "; ".join(said)
    return [f"{text[:1].upper()}{text[1:]}."] if said else []


def _value(facts: Facts | None, kind: str, metric: str) -> float | None:
    if facts is None or facts.metric != metric:
        return None
    return facts.chance if kind == "chance" else facts.majority
