"""The scores of the `layers` tasks as grids of layers and poolings, one a pair set."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness.results.record import Record, Score
from reports.load import RecordedResults, RecordedRow
from reports.targets import SOURCES

_TASK = re.compile(r"(?P<pairs>.+)@layer:(?P<layer>\d+):(?P<pooling>\w+)")


@dataclass(frozen=True)
class LayerGrid:
    """The layers and poolings that were scored on one pair set."""

    pairs: str
    source: str
    layers: tuple[int, ...]
    poolings: tuple[str, ...]

    def scores(self, row: RecordedRow, layer: int, pooling: str) -> list[tuple[Record, Score]]:
        return row.scores(f"{self.pairs}@layer:{layer}:{pooling}", self.source, "spearman", "all")

    def mean(self, row: RecordedRow, layer: int, pooling: str) -> float | None:
        """Spearman x 100, the mean over seeds."""
        values = []
        for _, s in self.scores(row, layer, pooling):
            values.append(100 * s.value)
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
            for layer in self.layers:
                for pooling in self.poolings:
                    found.append(tuple(s.value for _, s in self.scores(row, layer, pooling)))
            values = tuple(found)
            if any(values):
                alike.setdefault((row.base_model, values), []).append(row)
        return {rows[0].key: rows for rows in alike.values()}


def shared_name(rows: Sequence[RecordedRow], most: int) -> str:
    labels = [row.label for row in rows]
    return ", ".join(labels[:most]) + (
        f" and {len(labels) - most} more" if len(labels) > most else ""
    )


def grids(comparison: RecordedResults) -> list[LayerGrid]:
    """What was scored, one for each pair set."""
    met: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for task, source in comparison.columns("layers"):
        if match := _TASK.fullmatch(task):
            met.setdefault((match["pairs"], source), []).append(
                (int(match["layer"]), match["pooling"])
            )
    found = []
    for (pairs, source), cells in met.items():
        found.append(
            LayerGrid(
                pairs,
                source,
                tuple(sorted({layer for layer, _ in cells})),
                tuple(dict.fromkeys(p for _, p in cells)),
            )
        )
    return found


def pairs_text(grid: LayerGrid, rows: Sequence[RecordedRow]) -> str:
    sizes = set()
    for row in rows:
        for k in grid.layers:
            for p in grid.poolings:
                for _, s in grid.scores(row, k, p):
                    sizes.add(s.n)
    source = SOURCES.get(grid.source, grid.source)
    numbers = " / ".join(f"{n:,}" for n in sorted(sizes))
    return f"{grid.pairs} ({source}), {numbers} pairs"
