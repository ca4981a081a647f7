"""The figures of a paper's report; drawn here: alignment and uniformity (SCD, Figure 2; Farina and
Pappadopulo, 3).
"""

from __future__ import annotations

import math
from dataclasses import replace

from harness.runs.experiment import presets, read_experiment
from reports.document.blocks import Block, Figure, Section, Text
from reports.figures.alignment_scatter import Dot, draw_dots
from reports.figures.cosine_histograms import histograms
from reports.figures.cost_tradeoff import tradeoff
from reports.figures.labels import kind_of, short
from reports.figures.layer_maps import layer_map
from reports.load import RecordedRow
from reports.papers.definition import PaperColumn, PaperFigure, PaperTable
from reports.papers.option_figures import ablation, scan
from reports.papers.paper_results import PaperResults
from reports.records.layer_grids import grids
from reports.results import base_name
from reports.stats.estimate import mean_sd
from reports.targets import targets

# Kind -> title of the figure where it was not drawn, and what it lacks.
_LACKS = {
    "alignment-uniformity": "Alignment and uniformity: no run has the suite geometry",
    "histograms": "Cosines by gold score: no run has them; the suites geometry and embedded store them",
    "layers": "Score by layer and pooling: no run has the suite layers",
    "tradeoff": "Score and cost: no run has a whole STS average",
}
_SPACE = ("Alignment", "Uniformity")
_STS = PaperColumn(title="STS Avg.", score="average sts")
_NAMED = 24  # dots that have room for their names


def paper_figures(paper: PaperResults, shown: list[RecordedRow]) -> list[Section]:
    """The section of figures; none without any. `shown`: our rows in the tables, which some figures
    show.
    """
    blocks: list[Block] = []
    absent: list[str] = []
    for figure in paper.definition.figures:
        drawn = [one for one in _draw(paper, figure, shown) if one is not None]
        blocks += drawn
        if not drawn:
            absent.append(_absent(paper, figure))
    if absent:
        blocks.append(Text(tuple(absent), bullets=True))
    if blocks:
        return [Section("figures", "Figures", blocks)]
    return []


def _draw(
    paper: PaperResults, figure: PaperFigure, shown: list[RecordedRow]
) -> list[Figure | None]:
    library = paper.library
    name = paper.definition.name
    comparison = replace(library, name=name, rows=tuple(shown))
    match figure.kind:
        case "alignment-uniformity":
            return [alignment_uniformity(paper)]
        case "histograms":
            target = next(iter(targets(comparison)), None)
            return [histograms(comparison, *key, target) for key in comparison.columns("geometry")]
        case "layers":
            rows = []
            for r in library.rows:
                if any(s.suite == "layers" for one in r.finished for s in one.scores):
                    rows.append(r)
            layers = replace(library, name=name, rows=tuple(rows))
            return [layer_map(layers, grid) for grid in grids(layers)]
        case "tradeoff":
            return [tradeoff(comparison, next(iter(targets(comparison)), None))]
        case "scan":
            return [scan(paper, figure)]
    return [ablation(paper, figure)]


def blocks_of_file(name: str) -> list[str] | None:
    """The blocks of the experiment file of that name; None where none is installed."""
    if name in presets():
        return list(read_experiment(name).blocks)
    return None


def _absent(paper: PaperResults, figure: PaperFigure) -> str:
    """What the report says of a figure that could not be drawn."""
    if figure.kind in _LACKS:
        return f"Not drawn: {_LACKS[figure.kind]}."
    lack = "no study tried two values of each option" if figure.kind == "scan" else "no run has it"
    name = paper.definition.name
    there = figure.key in (blocks_of_file(paper.definition.name) or [])
    if there:
        how = f" To measure it: harness compare {name} --only {figure.key} --workdir WORKDIR"
    else:
        how = ""
    return f"Not drawn: {figure.title}: {lack}.{how}"


def alignment_uniformity(paper: PaperResults) -> Figure | None:
    """Our rows and the points of the first table that has both columns, coloured by STS average."""
    found = _find_space(paper)
    if found is None:
        return None
    table, columns = found
    ours = _find_measured_dots(paper, columns)
    dots = [*ours, *_find_published_dots(paper, table)]
    filled = "Filled: measured here." if ours else "Nothing of it was measured here."
    caption = (
        f"Means over seeds on STS-B; the lower left is best. {filled} Rings: published points "
        "of other base models, pair sets or statistics, for orientation only."
    )
    if len(dots) > _NAMED:
        caption += f" Not named: the last {len(dots) - _NAMED} points."
    for i, dot in enumerate(dots):
        name = short(dot.name) if i < _NAMED else ""
        dots[i] = replace(dot, name=name)
    return draw_dots(
        dots, "alignment-uniformity", "Alignment and uniformity", caption, "STS average"
    )


def _find_space(paper: PaperResults) -> tuple[PaperTable, list[PaperColumn]] | None:
    """Return the first table that has both columns, and these."""
    for table in paper.definition.tables:
        by_head: dict[str, PaperColumn] = {}
        for column in paper.columns(table):
            by_head.setdefault(column.head, column)
        if all(head in by_head for head in _SPACE):
            return table, [by_head[head] for head in _SPACE]
    return None


def _find_measured_dots(paper: PaperResults, columns: list[PaperColumn]) -> list[Dot]:
    """The first candidate of each of the paper's rows on each base model that has both numbers."""
    found: dict[int, tuple[RecordedRow, list[float]]] = {}
    for table in paper.definition.tables:
        for spec in table.rows:
            for members in paper.candidates(spec).values():
                for row in members:
                    values = [paper.measure(row, column).values for column in columns]
                    if all(values):
                        means = [mean_sd(value)[0] for value in values]
                        found.setdefault(id(row), (row, means))
                        break
    several = len({row.base_model for row, _ in found.values()}) > 1
    dots = []
    for row, (alignment, uniformity) in found.values():
        name = row.label
        if several:
            name += f" · {base_name(row.base_model)}"
        score = math.nan
        sts = paper.measure(row, _STS).values
        if sts:
            score, _ = mean_sd(sts)
        label = f"{name} (measured here)"
        dots.append(Dot(name, label, uniformity, alignment, score, kind_of(row)))
    return dots


def _find_published_dots(paper: PaperResults, space: PaperTable) -> list[Dot]:
    points: dict[tuple[str, str], dict[str, float]] = {}
    kinds: dict[tuple[str, str], str] = {}
    for one in paper.numbers:
        if one.place is not None and one.place.table is space and one.value is not None:
            model = one.published["model"], one.published["base_model"]
            points.setdefault(model, {}).setdefault(one.place.column.head, one.value)
            if one.place.row.supervised:
                kinds[model] = "supervised"
            else:
                kinds[model] = "trained"
    several = len({base for _, base in points}) > 1
    dots = []
    for (label, base), values in points.items():
        if all(head in values for head in _SPACE):
            name = label.removesuffix(" (+)")
            if several:
                name += f" · {base}"
            alignment, uniformity = (values[head] for head in _SPACE)
            dots.append(
                Dot(
                    name,
                    f"{name} (published)",
                    uniformity,
                    alignment,
                    values.get("STS Avg.", math.nan),
                    kinds[label, base],
                    published=True,
                )
            )
    # A point that the text repeats without its STS average is left out.
    scored = [dot for dot in dots if not math.isnan(dot.score)]
    places = {_round_place(dot) for dot in scored}
    return [dot for dot in dots if not math.isnan(dot.score) or _round_place(dot) not in places]


def _round_place(dot: Dot) -> tuple[float, float]:
    return round(dot.uniformity, 2), round(dot.alignment, 2)
