"""The scores of the `layers` tasks as grids of layers and poolings, one a pair set."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from reports.load import RecordedResults, RecordedRow, RunScore
from reports.targets import SOURCES

_TASK = re.compile(r"(?P<pairs>.+)@layer:(?P<layer>\d+):(?P<pooling>\w+)")


@dataclass(frozen=True)
class LayerGrid:
    """The layers and poolings that were scored on one pair set."""

    pairs: str
    source: str
    layers: tuple[int, ...]
    poolings: tuple[str, ...]

    def scores(self, row: RecordedRow, layer: int, pooling: str) -> list[RunScore]:
        task = f"{self.pairs}@layer:{layer}:{pooling}"
        return row.scores(task, self.source, "spearman", "all")

    def mean(self, row: RecordedRow, layer: int, pooling: str) -> float | None:
        """Spearman x 100, the mean over seeds."""
        values = []
        for _, score in self.scores(row, layer, pooling):
            values.append(100 * score.value)
        if values:
            return sum(values) / len(values)
        return None

    def rows(self, comparison: RecordedResults) -> dict[tuple[str, str], list[RecordedRow]]:
        """The rows that have any of it, by the key of the first: rows with equal numbers are one
        model, pooled differently by their methods.
        """
        alike: dict[tuple[object, ...], list[RecordedRow]] = {}
        for row in comparison.rows:
            found = []
            for layer, pooling in product(self.layers, self.poolings):
                scores = self.scores(row, layer, pooling)
                values = tuple(score.value for _, score in scores)
                found.append(values)
            if any(found):
                numbers = (row.base_model, tuple(found))
                alike.setdefault(numbers, []).append(row)
        return {rows[0].key: rows for rows in alike.values()}


def join_labels(rows: Sequence[RecordedRow], most: int) -> str:
    """Return the labels of rows, of many the first ones and how many more there are."""
    labels = [row.label for row in rows]
    text = ", ".join(labels[:most])
    more = len(labels) - most
    if more > 0:
        text += f" and {more} more"
    return text


def grids(comparison: RecordedResults) -> list[LayerGrid]:
    """What was scored, one for each pair set."""
    met: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for task, source in comparison.columns("layers"):
        match = _TASK.fullmatch(task)
        if match is None:
            continue
        pair_set = (match["pairs"], source)
        layer = int(match["layer"])
        cells = met.setdefault(pair_set, [])
        cells.append((layer, match["pooling"]))
    found = []
    for (pairs, source), cells in met.items():
        layers = {layer for layer, _ in cells}
        poolings = dict.fromkeys(pooling for _, pooling in cells)
        grid = LayerGrid(pairs, source, tuple(sorted(layers)), tuple(poolings))
        found.append(grid)
    return found


def pairs_text(grid: LayerGrid, rows: Sequence[RecordedRow]) -> str:
    """Return the pair set in words, with the number of pairs that rows were scored on."""
    sizes = set()
    for row, layer, pooling in product(rows, grid.layers, grid.poolings):
        for _, score in grid.scores(row, layer, pooling):
            sizes.add(score.n)
    source = SOURCES.get(grid.source, grid.source)
    numbers = [f"{n:,}" for n in sorted(sizes)]
    return f"{grid.pairs} ({source}), {' / '.join(numbers)} pairs"
