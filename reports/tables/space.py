"""The tables of the embedding space: its geometry, and the scores of layers and poolings."""

from __future__ import annotations

import math

from reports.document.table import Cell, Column, Table
from reports.load import RecordedResults, RecordedRow
from reports.records.layer_grids import LayerGrid, grids
from reports.tables.score_cells import mean_cell
from reports.tables.score_table import ScoreTable
from reports.targets import SOURCES, Measure

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


def geometry_tables(comparison: RecordedResults) -> list[Table]:
    """Alignment, uniformity and what else was measured of the space: one table for each data set."""
    tables = []
    for task, source in comparison.columns("geometry"):
        data = task.removeprefix("geometry:")
        made = ScoreTable(comparison, None)
        found = []
        for m in GEOMETRY:
            if any(row.scores(task, source, m) for row in comparison.rows):
                found.append(m)
        for metric in found or [
            "alignment",
            "uniformity",
        ]:  # of data that could not be had, with the reason
            title, digits = GEOMETRY[metric]
            noun = "near pairs" if metric == "alignment" else "sentences"
            measure = Measure(task, source, metric, "")
            made.add_task(
                Column(metric, title),
                measure,
                scale=1,
                digits=digits,
                noun=noun,
                decides=False,
            )
        title = f"Geometry of the space · {data}"
        caption = f"{data} ({SOURCES.get(source, source)}), L2-normalised embeddings."
        legend = (
            "Mean ± standard deviation over seeds. Lower alignment and lower uniformity are better only together: a "
            "collapsed space aligns perfectly. The other columns say how evenly the space is used."
        )
        tables.append(made.table(f"geometry-{source}-{data}", title, caption, legend))
    return tables


def extremes(
    comparison: RecordedResults,
    pairs: str,
    source: str,
) -> list[tuple[RecordedRow, list[tuple[str, Cell]]]]:
    """The best and the worst of all layers and poolings of each model, as (what it is, its score x
    100).

    [CLS] before the first layer is left out: it is the same vector for every sentence. Scores of
    another source of the pairs replace it only where there are none of `source`, with a note.
    """
    ends_of_rows = []
    known = [grid for grid in grids(comparison) if grid.pairs == pairs]
    for grid in [grid for grid in known if grid.source == source] or known:
        for members in grid.rows(comparison).values():
            row = members[0]
            scores = _scores_of_layers(grid, row)
            if len(scores) < 2:
                continue
            best = max(scores, key=scores.__getitem__)
            worst = min(scores, key=scores.__getitem__)
            lines = []
            for end, (layer, pooling) in (("best", best), ("worst", worst)):
                cell = mean_cell(
                    row,
                    grid.scores(row, layer, pooling),
                    grid.pairs,
                    scale=100,
                    digits=2,
                )
                if grid.source != source:
                    cell = cell.with_notes(
                        f"other protocol than the paper's: source {grid.source}, not {source}"
                    )
                what = "[CLS]" if pooling == "cls" else pooling
                lines.append((f"{end} of {len(scores)}: {what} of layer {layer}", cell))
            ends_of_rows.append((row, lines))
    return ends_of_rows


def _scores_of_layers(grid: LayerGrid, row: RecordedRow) -> dict[tuple[int, str], float]:
    """Return (layer, pooling) -> mean score, without the [CLS] token before the first layer."""
    scores = {}
    for layer in grid.layers:
        for pooling in grid.poolings:
            if (layer, pooling) == (0, "cls"):
                continue
            mean = grid.mean(row, layer, pooling)
            if mean is not None and not math.isnan(mean):
                scores[layer, pooling] = mean
    return scores
