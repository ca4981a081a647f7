"""The figures that a paper's definition asks for, each drawn from our runs by the kind that it is of."""

from __future__ import annotations

from collections.abc import Callable

from reports.document.blocks import Block, Figure, Section, Text
from reports.figures.cosine_histograms import histograms
from reports.figures.cost_tradeoff import tradeoff
from reports.figures.layer_maps import layer_map
from reports.papers.ablation_figures import additions, amounts, levels
from reports.papers.figure_spec import PaperFigure
from reports.papers.hyperparameter_scans import scan
from reports.papers.matching import Matching
from reports.papers.published_alignment import alignment_uniformity
from reports.read.comparison_runs import ResultRow
from reports.stats.layer_grids import grids
from reports.stats.targets import targets


def figures(matching: Matching, shown: list[ResultRow]) -> Section:
    """The section of figures; `shown`: our rows in the tables, which are what some of them show."""
    comparison = matching.library.as_comparison(matching.definition.name, shown)
    target = next(iter(targets(comparison)), None)

    def cosines(_: PaperFigure) -> list[Figure | None]:
        return [histograms(comparison, task, source, target) for task, source in comparison.columns("geometry")]

    kinds: dict[str, Callable[[PaperFigure], list[Figure | None]]] = {
        "alignment-uniformity": lambda _: [alignment_uniformity(matching)],
        "histograms": cosines,
        "layers": lambda _: _layers(matching),
        "tradeoff": lambda _: [tradeoff(comparison, target)],
        "scan": lambda figure: [scan(matching, figure)],
        "levels": lambda figure: [levels(matching, figure)],
        "amounts": lambda figure: [amounts(matching, figure)],
        "additions": lambda figure: [additions(matching, figure)],
    }
    blocks: list[Block] = []
    absent = []
    for figure in matching.definition.figures:
        drawn = [one for one in kinds[figure.kind](figure) if one is not None]
        blocks += drawn
        absent += [] if drawn else [figure.missing_text]
    if absent:
        blocks.append(Text(tuple(f"Not drawn: {text}" for text in absent), bullets=True))
    return Section("figures", "Figures", blocks)


def _layers(matching: Matching) -> list[Figure | None]:
    rows = [row for row in matching.library.rows if any(s.suite == "layers" for r in row.finished for s in r.scores)]
    comparison = matching.library.as_comparison(matching.definition.name, rows)
    return [layer_map(comparison, grid) for grid in grids(comparison)]
