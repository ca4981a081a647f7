"""The figures of a paper's report; drawn here: alignment and uniformity (SCD, Figure 2; Farina and Pappadopulo, 3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from harness.runs.experiment import presets, read_experiment
from reports.document.blocks import Block, Figure, Section, Text
from reports.figures.cosine_histograms import histograms
from reports.figures.cost_tradeoff import tradeoff
from reports.figures.labels import place_labels, short
from reports.figures.layer_maps import layer_map
from reports.figures.style import GRID, INK, MUTED, finish, new, style
from reports.papers.definition import PaperColumn, PaperFigure, PaperTable
from reports.papers.matching import Matching
from reports.papers.option_figures import ablation, scan
from reports.read.comparison_runs import ResultRow, base_name
from reports.stats.estimate import mean_sd
from reports.stats.layer_grids import grids
from reports.stats.targets import targets

# Kind -> title of the figure where it was not drawn, and what it lacks.
_LACKS = {
    "alignment-uniformity": "Alignment and uniformity: no run has the suite geometry",
    "histograms": "Cosines by gold score: no run stored them, as the suites geometry and embedded do",
    "layers": "Score by layer and pooling: no run has the suite layers",
    "tradeoff": "Score and cost: no run has a whole STS average",
}
_SPACE = ("Alignment", "Uniformity")
_STS = PaperColumn(title="STS Avg.", score="average sts")
_NAMED = 24  # dots that have room for their names


def paper_figures(matching: Matching, shown: list[ResultRow]) -> list[Section]:
    """The section of figures; none without any. `shown`: our rows in the tables, which some figures show."""
    blocks: list[Block] = []
    absent = []
    for figure in matching.definition.figures:
        drawn = [one for one in _draw(matching, figure, shown) if one is not None]
        blocks += drawn
        absent += [] if drawn else [_absent(matching, figure)]
    if absent:
        blocks.append(Text(tuple(absent), bullets=True))
    return [Section("figures", "Figures", blocks)] if blocks else []


def _draw(matching: Matching, figure: PaperFigure, shown: list[ResultRow]) -> list[Figure | None]:
    library, name = matching.library, matching.definition.name
    comparison = library.as_comparison(name, shown)
    match figure.kind:
        case "alignment-uniformity":
            return [alignment_uniformity(matching)]
        case "histograms":
            target = next(iter(targets(comparison)), None)
            return [histograms(comparison, *key, target) for key in comparison.columns("geometry")]
        case "layers":
            rows = [r for r in library.rows if any(s.suite == "layers" for one in r.finished for s in one.scores)]
            layers = library.as_comparison(name, rows)
            return [layer_map(layers, grid) for grid in grids(layers)]
        case "tradeoff":
            return [tradeoff(comparison, next(iter(targets(comparison)), None))]
        case "scan":
            return [scan(matching, figure)]
    return [ablation(matching, figure)]


def blocks_of_file(name: str) -> list[str] | None:
    """The blocks of the experiment file of that name; None where none is installed."""
    return list(read_experiment(name).blocks) if name in presets() else None


def _absent(matching: Matching, figure: PaperFigure) -> str:
    """What the report says of a figure that could not be drawn."""
    if figure.kind in _LACKS:
        return f"Not drawn: {_LACKS[figure.kind]}."
    lack = "no study tried two values of each option" if figure.kind == "scan" else "no run has it"
    name, there = matching.definition.name, figure.key in (blocks_of_file(matching.definition.name) or [])
    how = f" To measure it: harness compare {name} --only {figure.key} --workdir WORKDIR" if there else ""
    return f"Not drawn: {figure.title}: {lack}.{how}"


@dataclass(frozen=True)
class _Dot:
    name: str
    uniformity: float
    alignment: float
    score: float  # NaN where unknown
    measured: bool
    supervised: bool

    @property
    def place(self) -> tuple[float, float]:
        return self.uniformity, self.alignment

    @property
    def kind(self) -> str:
        return f"{'measured here' if self.measured else 'published'}{', supervised' if self.supervised else ''}"


def alignment_uniformity(matching: Matching) -> Figure | None:
    """Alignment against uniformity of our rows (filled) and the published points (rings), coloured by STS average."""
    heads = {table.key: [column.head for column in matching.columns(table)] for table in matching.definition.tables}
    table = next((t for t in matching.definition.tables if {*_SPACE} <= {*heads[t.key]}), None)
    if table is None:
        return None
    columns = [next(c for c in matching.columns(table) if c.head == head) for head in _SPACE]
    ours = _space_rows(matching, columns)
    dots = [*_measured_dots(matching, ours), *_published_dots(matching, table)]
    if not dots:
        return None
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.lines import Line2D

    known = [d.score for d in dots if not math.isnan(d.score)]
    low, high = min(known, default=0), max(known, default=1)
    shade, cmap = Normalize(low, high if high > low else low + 1), colormaps["cividis"]
    with style():
        plot = new(7.2, 5.0)
        axes = plot.add_subplot()
        handles: dict[str, Any] = {}
        for d in dots:
            colour: Any = MUTED if math.isnan(d.score) else cmap(shade(d.score))
            edge, width = (INK, 0.8) if d.measured else (colour, 2.0)
            fill = colour if d.measured and not math.isnan(d.score) else "none"
            look: dict[str, Any] = {"marker": "*" if d.supervised else "o", "markersize": 12 if d.supervised else 8}
            look |= {"linestyle": "", "markeredgewidth": width}
            axes.plot(*d.place, **look, markerfacecolor=fill, markeredgecolor=edge, zorder=4 if d.measured else 3)
            face, edge = (GRID, INK) if d.measured else ("none", MUTED)
            handles[d.kind] = Line2D([], [], **look, label=d.kind, markerfacecolor=face, markeredgecolor=edge)
        axes.set_xlabel("uniformity (lower: more even)")
        axes.set_ylabel("alignment (lower: closer pairs)")
        axes.margins(0.14)
        plot.legend(handles=[handles[kind] for kind in sorted(handles)], loc="outside upper left", ncols=4, fontsize=8)
        if known:
            bar = plot.colorbar(ScalarMappable(shade, cmap), ax=axes, pad=0.02, aspect=30)
            bar.set_label("STS average")
            bar.outline.set_visible(False)
        place_labels(axes, [d.place for d in dots], [short(d.name) if i < _NAMED else "" for i, d in enumerate(dots)])
        unnamed = f" Not named: the last {len(dots) - _NAMED} points." if len(dots) > _NAMED else ""
        values = (f"{d.name} ({d.kind}): uniformity {d.uniformity:.2f}, alignment {d.alignment:.2f}" for d in dots)
        bases = sorted({base_name(row.base_model) for row, *_ in ours})
        filled = f"Filled: measured here ({', '.join(bases)})." if bases else "Nothing of it was measured here."
        return finish(
            plot, "alignment-uniformity", "Alignment and uniformity",
            f"Means over seeds on STS-B; the lower left is best. {filled} Rings: published points of other base "
            f"models, pair sets or statistics, for orientation only. Stars: supervised.{unnamed}",
            f"Scatter of {len(dots)} points. {'; '.join(values)}.",
        )  # fmt: skip


def _space_rows(matching: Matching, columns: list[PaperColumn]) -> list[tuple[ResultRow, float, float]]:
    """The first candidate of each of the paper's rows on each base model that has both numbers, with these."""
    found: dict[int, tuple[ResultRow, float, float]] = {}
    for spec in (spec for table in matching.definition.tables for spec in table.rows):
        for members in matching.candidates(spec).values():
            for row in members:
                values = [matching.measure(row, column).values for column in columns]
                if all(values):
                    found.setdefault(id(row), (row, mean_sd(values[0])[0], mean_sd(values[1])[0]))
                    break
    return list(found.values())


def _measured_dots(matching: Matching, rows: list[tuple[ResultRow, float, float]]) -> list[_Dot]:
    several = len({row.base_model for row, *_ in rows}) > 1
    dots = []
    for row, alignment, uniformity in rows:
        sts = matching.measure(row, _STS).values
        name = f"{row.label} · {base_name(row.base_model)}" if several else row.label
        score = mean_sd(sts)[0] if sts else math.nan
        dots.append(_Dot(name, uniformity, alignment, score, True, row.supervision == "supervised"))
    return dots


def _published_dots(matching: Matching, space: PaperTable) -> list[_Dot]:
    points: dict[tuple[str, str], dict[str, float]] = {}
    supervised: dict[tuple[str, str], bool] = {}
    for one in matching.numbers:
        if one.place is not None and one.place.table is space and one.value is not None:
            model = one.published["model"], one.published["base_model"]
            points.setdefault(model, {}).setdefault(one.place.column.head, one.value)
            supervised[model] = one.place.row.supervised
    several = len({base for _, base in points}) > 1
    dots = [
        _Dot(
            f"{name.removesuffix(' (+)')}{f' · {base}' if several else ''}",
            values["Uniformity"], values["Alignment"], values.get("STS Avg.", math.nan), False, supervised[name, base],
        )
        for (name, base), values in points.items() if all(head in values for head in _SPACE)
    ]  # fmt: skip
    # A point that the text repeats without its STS average is left out.
    placed = {(round(d.uniformity, 2), round(d.alignment, 2)) for d in dots if not math.isnan(d.score)}
    return [d for d in dots if not math.isnan(d.score) or (round(d.uniformity, 2), round(d.alignment, 2)) not in placed]
