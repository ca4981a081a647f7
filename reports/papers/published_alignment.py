"""Alignment against uniformity with the paper's own points: SCD's Figure 2, Figure 3 of Farina and Pappadopulo."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.files.printable import one_line
from reports.document.blocks import Figure
from reports.figures.labels import place_labels, short
from reports.figures.style import GRID, INK, MUTED, finish, new, style
from reports.papers.definition import PaperColumn
from reports.papers.matching import Matching
from reports.read.comparison_runs import ResultRow, base_name
from reports.stats.estimate import mean_sd

_SPACE = ("Alignment", "Uniformity", "STS Avg.")


@dataclass(frozen=True)
class _Dot:
    name: str
    uniformity: float
    alignment: float
    score: float  # NaN where unknown
    measured: bool
    supervised: bool


def alignment_uniformity(matching: Matching) -> Figure | None:
    """Alignment against uniformity of our rows (filled) beside the published points (hollow), by STS average."""
    dots = [*_measured_dots(matching), *_published_dots(matching)]
    if not dots:
        return None
    from matplotlib import colormaps
    from matplotlib.colors import Normalize
    from matplotlib.lines import Line2D

    known = [d.score for d in dots if not math.isnan(d.score)]
    shade = Normalize(
        min(known, default=0), max(known, default=1) if len(set(known)) > 1 else min(known, default=0) + 1
    )
    cmap = colormaps["cividis"]
    with style():
        lines = 0 if len(dots) <= _NAMED else math.ceil(len(dots) / _KEY_COLUMNS)
        plot = new(7.2, 5.0 + _KEY_LINE * lines)
        axes, *key = plot.subplots(1 + bool(lines), 1, height_ratios=[5.0, _KEY_LINE * lines][: 1 + bool(lines)],
                                   squeeze=False)[:, 0]  # fmt: skip
        for d in dots:
            colour: Any = MUTED if math.isnan(d.score) else cmap(shade(d.score))
            filled = d.measured and not math.isnan(d.score)
            axes.plot(
                [d.uniformity],
                [d.alignment],
                linestyle="",
                marker="*" if d.supervised else "o",
                markersize=12.5 if d.supervised else 8,
                zorder=4 if d.measured else 3,
                markerfacecolor=colour if filled else "none",
                markeredgecolor=INK if d.measured else colour,
                markeredgewidth=0.8 if d.measured else 2.0,
            )
        axes.set_xlabel("uniformity (lower: more even)")
        axes.set_ylabel("alignment (lower: closer pairs)")
        axes.margins(0.14)
        kinds = {(d.measured, d.supervised) for d in dots}
        names = {
            (True, False): "measured here", (True, True): "measured here, supervised",
            (False, False): "published", (False, True): "published, supervised",
        }  # fmt: skip
        handles = [
            Line2D(
                [], [], linestyle="", marker="*" if kind[1] else "o", markersize=11 if kind[1] else 7.5, label=name,
                markerfacecolor=GRID if kind[0] else "none", markeredgecolor=INK if kind[0] else MUTED,
                markeredgewidth=0.8 if kind[0] else 1.8,
            )
            for kind, name in names.items()
            if kind in kinds
        ]  # fmt: skip
        plot.legend(handles=handles, loc="outside upper left", ncols=4, fontsize=8)
        if known:
            from matplotlib.cm import ScalarMappable

            bar = plot.colorbar(ScalarMappable(shade, cmap), ax=axes, pad=0.02, aspect=30)
            bar.set_label("STS average")
            bar.outline.set_visible(False)
        names_ = [str(i) if lines else short(d.name) for i, d in enumerate(dots, 1)]
        place_labels(axes, [(d.uniformity, d.alignment) for d in dots], names_)
        for below in key:
            _key(below, [d.name for d in dots], lines)
        said = "; ".join(
            f"{d.name} ({'measured' if d.measured else 'published'}): uniformity {d.uniformity:.2f}, "
            f"alignment {d.alignment:.2f}"
            for d in dots
        )
        bases = sorted({base_name(row.base_model) for row in _space_rows(matching)})
        ours = f" Filled: measured here ({', '.join(bases)})." if bases else " Nothing of it was measured here."
        return finish(
            plot, "alignment-uniformity", "Alignment and uniformity",
            f"Means over seeds on STS-B; the lower left is best.{ours} Rings: published points of other base models, "
            "pair sets or statistics, for orientation only. Stars: supervised.",
            f"Scatter of {len(dots)} points. {said}.",
        )  # fmt: skip


_NAMED = 24  # dots that have room for their names
_KEY_COLUMNS, _KEY_LINE = 3, 0.17  # inches a line


def _key(axes: Any, names: Sequence[str], lines: int) -> None:
    """The names of numbered dots, down the columns."""
    axes.axis("off")
    for i, name in enumerate(names):
        place = (i // lines) / _KEY_COLUMNS, 1 - (i % lines + 0.5) / lines
        axes.text(*place, f"{i + 1}", fontsize=7.5, ha="right", va="center", transform=axes.transAxes)
        text = one_line(name)
        text = text if len(text) <= 34 else f"{text[:33]}…"
        axes.text(place[0] + 0.01, place[1], text, fontsize=7.5, va="center", transform=axes.transAxes)


def _columns(matching: Matching) -> tuple[str, list[PaperColumn]] | None:
    """The table that has alignment and uniformity, and these columns with the STS average where it has one."""
    for table in matching.definition.tables:
        by_title = {c.title: c for c in matching.columns(table)}
        if "Alignment" in by_title and "Uniformity" in by_title:
            return table.key, [by_title[t] for t in _SPACE if t in by_title]
    return None


_STS = PaperColumn(title="STS Avg.", average="sts")


def _space_rows(matching: Matching) -> list[ResultRow]:
    """The best known row of each of the paper's rows on each base model that has both numbers."""
    space = _columns(matching)
    if space is None:
        return []
    rows: list[ResultRow] = []
    for table in matching.definition.tables:
        for spec in table.rows:
            for members in matching.candidates(spec).values():
                best = next((r for r in members if all(matching.measure(r, c).by_seed for c in space[1][:2])), None)
                if best is not None and all(best is not other for other in rows):
                    rows.append(best)
    return rows


def _measured_dots(matching: Matching) -> list[_Dot]:
    space = _columns(matching)
    if space is None:
        return []
    rows = _space_rows(matching)
    several = len({row.base_model for row in rows}) > 1
    dots = []
    for row in rows:
        a, u = (mean_sd(matching.measure(row, c).values)[0] for c in space[1][:2])
        sts = matching.measure(row, _STS).values
        name = f"{row.label} · {base_name(row.base_model)}" if several else row.label
        score = mean_sd(sts)[0] if sts else math.nan
        dots.append(_Dot(name, u, a, score, True, row.supervision == "supervised"))
    return dots


def _published_dots(matching: Matching) -> list[_Dot]:
    space = _columns(matching)
    if space is None:
        return []
    key, columns = space
    points: dict[tuple[str, str], dict[str, float]] = {}
    supervised: set[tuple[str, str]] = set()
    for j in matching.rows:
        if j.place is None or j.place.table.key != key or j.value is None:
            continue
        model = (j.published["model"], j.published["base_model"])
        for column in columns:
            if j.place.column is column:
                points.setdefault(model, {}).setdefault(column.title, j.value)
        if j.place.row.supervised:
            supervised.add(model)
    several = len({base for _, base in points}) > 1
    dots: list[_Dot] = []
    for (name, base), values in points.items():
        if "Alignment" not in values or "Uniformity" not in values:
            continue
        label = f"{name.removesuffix(' (+)')}{f' · {base}' if several else ''}"
        place = values["Uniformity"], values["Alignment"]
        dots.append(_Dot(label, *place, values.get("STS Avg.", math.nan), False, (name, base) in supervised))
    # A point of the text repeats one of the figure, without its colour.
    placed = {(round(d.uniformity, 2), round(d.alignment, 2)) for d in dots if not math.isnan(d.score)}
    return [d for d in dots if not math.isnan(d.score) or (round(d.uniformity, 2), round(d.alignment, 2)) not in placed]
