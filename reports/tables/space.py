"""The tables of the embedding space: its geometry, and the scores of layers and poolings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from reports.document.table import Cell, Column, Table, TableRow, best_and_second
from reports.read.comparison_runs import Comparison, ResultRow, base_name
from reports.stats.layer_grids import LayerGrid, grids, pairs_text, shared_name
from reports.stats.shown_rows import rows_shown
from reports.stats.targets import SOURCES, Measure, Target
from reports.tables.score_cells import anchor, mark_others, mean_cell
from reports.tables.score_table import ScoreTable

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
        data, made = task.removeprefix("geometry:"), ScoreTable(comparison, None)
        found = [m for m in GEOMETRY if any(row.scores(task, source, m) for row in comparison.rows)]
        for metric in found or ["alignment", "uniformity"]:  # of data that could not be had, with the reason
            title, digits = GEOMETRY[metric]
            noun = "near pairs" if metric == "alignment" else "sentences"
            measure = Measure(task, source, metric, "")
            made.add_task(Column(metric, title), measure, scale=1, digits=digits, noun=noun, decides=False)
        title = f"Geometry of the space · {data}"
        caption = f"{data} ({SOURCES.get(source, source)}), L2-normalised embeddings."
        legend = (
            "Mean ± standard deviation over seeds. Lower alignment and lower uniformity are better only together: a "
            "collapsed space aligns perfectly. The other columns say how evenly the space is used."
        )
        tables.append(made.table(f"geometry-{source}-{data}", title, caption, legend))
    return tables


def layer_tables(comparison: Comparison, target: Target | None = None) -> list[Table]:
    """For each pair set: a block for each row, a line for each pooling, a column for each layer."""
    return [_layer_table(comparison, grid, target) for grid in grids(comparison)]


def extremes(comparison: Comparison, pairs: str, source: str) -> list[tuple[ResultRow, list[tuple[str, Cell]]]]:
    """The best and the worst of all layers and poolings of each model, as (what it is, its score x 100).

    [CLS] before the first layer is left out: it is the same vector for every sentence. Scores of another source of
    the pairs replace it only where there are none of `source`, with a note.
    """
    ends_of_rows = []
    known = [grid for grid in grids(comparison) if grid.pairs == pairs]
    for grid in [grid for grid in known if grid.source == source] or known:
        for members in grid.rows(comparison).values():
            row = members[0]
            places = [(k, p) for k in grid.layers for p in grid.poolings if (k, p) != (0, "cls")]
            means = {place: grid.mean(row, *place) for place in places}
            scores = {place: s for place, s in means.items() if s is not None and not math.isnan(s)}
            if len(scores) < 2:
                continue
            ends = (("best", max(scores, key=scores.__getitem__)), ("worst", min(scores, key=scores.__getitem__)))
            lines = []
            for end, (layer, pooling) in ends:
                cell = mean_cell(row, grid.scores(row, layer, pooling), grid.pairs, scale=100, digits=2)
                if grid.source != source:
                    cell = cell.noted(f"other protocol than the paper's: source {grid.source}, not {source}")
                what = "[CLS]" if pooling == "cls" else pooling
                lines.append((f"{end} of {len(scores)}: {what} of layer {layer}", cell))
            ends_of_rows.append((row, lines))
    return ends_of_rows


def _layer_table(comparison: Comparison, grid: LayerGrid, target: Target | None) -> Table:
    alike = grid.rows(comparison)
    rows, others = rows_shown([members[0] for members in alike.values()], target)
    columns = [Column("pooling", "Pooling", numeric=False)]
    columns += [Column(f"layer {k}", str(k), "embeddings" if k == 0 else "", group="Layer") for k in grid.layers]
    several = len({row.base_model for row in rows}) > 1
    lines: list[tuple[ResultRow, list[Cell]]] = []
    for row in rows:
        for pooling in grid.poolings:
            ids = tuple(r.id for r in row.finished)
            cells = [Cell(pooling, link=anchor(row), records=ids)]
            for layer in grid.layers:
                scores = grid.scores(row, layer, pooling)
                deeper = any(grid.scores(row, k, pooling) for k in grid.layers if k >= layer)
                empty = Cell("", state="empty")
                cells.append(mean_cell(row, scores, grid.pairs, scale=100, digits=2) if deeper else empty)
            lines.append((row, cells))
    bodies = [cells for _, cells in lines]
    for j, layer in enumerate(grid.layers):
        ids_ = [{s.comparable for _, s in grid.scores(row, layer, cells[0].text)} for row, cells in lines]
        by_pooling = [[i for i, (_, cells) in enumerate(lines) if cells[0].text == p] for p in grid.poolings]
        for members in by_pooling:  # each layer and pooling is a protocol of its own
            part = [bodies[i] for i in members]
            mark_others([ids_[i] for i in members], part, j + 1)
    body = []
    for row in rows:
        name = shared_name(alike[row.key], 12) + (f" · {base_name(row.base_model)}" if several else "")
        body += [TableRow(tuple(c), name) for c in _best([cells for r, cells in lines if r.key == row.key])]
    legend = [
        "Spearman ×100, mean ± standard deviation over seeds; layer 0: before the first layer, where cls is constant."
    ]
    if any(len(members) > 1 for members in alike.values()):
        legend.append("Rows that share a block are one model.")
    without = [
        f"{row.label} ({'; '.join(dict.fromkeys(why))})" if why else row.label
        for row in comparison.rows
        if row.finished and not any(row in members for members in alike.values())
        for why in [
            [str(r.missing[f"layers:{grid.pairs}"]) for r in row.finished if f"layers:{grid.pairs}" in r.missing]
        ]
    ]
    legend += [f"Without these scores: {', '.join(without)}."] if without else []
    legend += [others.strip().replace("not drawn", "in all-scores.csv")] if others else []
    return Table(
        f"layers-{grid.source}-{grid.pairs}",
        f"Layers and poolings · {grid.pairs}",
        f"{pairs_text(grid, rows)}; what a model has after its pooling (a projection, a whitening) is left out.",
        tuple(columns),
        tuple(body),
        tuple(legend),
    )


def _best(lines: Sequence[list[Cell]]) -> list[list[Cell]]:
    """Best and second over all layers and poolings of a row, by the numbers as shown."""
    places = iter(best_and_second([cell for line in lines for cell in line]))
    return [[replace(cell, rank=next(places)) for cell in line] for line in lines]
