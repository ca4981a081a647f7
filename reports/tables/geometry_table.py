"""The tables of the geometry of the embedding space."""

from __future__ import annotations

from reports.document.table import Column, Table, TableRow
from reports.read.comparison_runs import Comparison
from reports.stats.targets import SOURCES
from reports.tables.score_cells import HEAD, block_of, head_cells, mark_unlike, score_cell, size_text

# Metric -> title, digits. None is ranked: a collapsed space has the best alignment of all.
GEOMETRY = {
    "alignment": ("Alignment", 3),
    "uniformity": ("Uniformity", 3),
    "effective_rank": ("Effective rank", 1),
    "rankme": ("RankMe", 1),
    "isoscore": ("IsoScore", 3),
    "partition_isotropy": ("Partition isotropy", 3),
    "mean_cosine": ("Mean cosine", 3),
    "std": ("Spread", 3),
}


def geometry_tables(comparison: Comparison) -> list[Table]:
    """Alignment, uniformity and what else was measured of the space: one table for each data set."""
    tables = []
    for task, source in comparison.columns("geometry"):
        data = task.removeprefix("geometry:")
        columns, cells = list(HEAD), [list(head_cells(row)) for row in comparison.rows]
        found = [m for m in GEOMETRY if any(row.scores(task, source, m) for row in comparison.rows)]
        shown = found or ["alignment", "uniformity"]  # of data that could not be had, with the reason
        for metric, (title, digits) in GEOMETRY.items():
            if metric not in shown:
                continue
            size = size_text(
                comparison.rows, task, source, metric, "", "near pairs" if metric == "alignment" else "sentences"
            )
            columns.append(Column(metric, title, size))
            for line, row in zip(cells, comparison.rows, strict=True):
                line.append(score_cell(row, task, source, metric, "", scale=1, digits=digits))
            mark_unlike(comparison.rows, cells, len(columns) - 1, task, source, metric, "")
        body = tuple(TableRow(tuple(c), block_of(r)) for r, c in zip(comparison.rows, cells, strict=True))
        legend = (
            "Alignment (distance within near pairs, of a gold score above 4 unless the protocol says otherwise) and "
            "uniformity (spread over the sphere): lower is better, and only both together mean anything: a collapsed "
            "space aligns perfectly. Effective rank: how many directions carry the variance; RankMe: the same with the "
            "mean left in. IsoScore: share of the "
            "directions in use. Partition isotropy: 1 when even. Mean cosine: near 1 in a narrow cone. "
            "Spread: 1 when even over the sphere, 0 when collapsed.",
        )
        caption = (
            f"{data} ({SOURCES.get(source, source)}), L2-normalised embeddings, mean ± standard deviation over seeds."
        )
        tables.append(
            Table(f"geometry-{source}-{data}", f"Geometry of the space · {data}", caption, tuple(columns), body, legend)
        )
    return tables
