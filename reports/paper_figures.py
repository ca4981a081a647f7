"""Figures that a paper shows and comparisons do not: SCD's Figure 2 with its published points, DeCLUTR's ablations.

Each is None when nothing was measured that it could show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harness.records import Record
from harness.text import one_line
from reports.definition import ColumnSpec
from reports.document import Figure
from reports.figures import place_labels, short
from reports.joined import Join
from reports.measured import Measured
from reports.records import Row, base_name
from reports.statistics import mean_sd
from reports.style import COLOURS, GRID, INK, MUTED, finish, look, new, style

# What ablations are drawn by: the first of these that every run of the figure has.
SCORES = (
    ColumnSpec(title="SentEval Avg., dev", average="half", split="dev"),
    ColumnSpec(title="STS average (7 tasks, mean over subsets)", average="sts-mean"),
    ColumnSpec(title="STS-B test", task="STS-B", aggregation="all"),
    ColumnSpec(title="Embedded-STS-natural", task="Embedded-STS-natural", aggregation="all", source="embedded"),
)
_SPACE = ("Alignment", "Uniformity", "STS Avg.")


@dataclass(frozen=True)
class _Dot:
    name: str
    uniformity: float
    alignment: float
    score: float  # NaN where unknown
    measured: bool
    supervised: bool


def alignment_uniformity(join: Join) -> Figure | None:
    """Alignment against uniformity of our rows (filled) beside the published points (hollow), by STS average."""
    dots = [*_measured_dots(join), *_published_dots(join)]
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
        bases = sorted({base_name(row.base_model) for row in _space_rows(join)})
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


def _columns(join: Join) -> tuple[str, list[ColumnSpec]] | None:
    """The table that has alignment and uniformity, and these columns with the STS average where it has one."""
    for table in join.definition.tables:
        by_title = {c.title: c for c in join.columns(table)}
        if "Alignment" in by_title and "Uniformity" in by_title:
            return table.key, [by_title[t] for t in _SPACE if t in by_title]
    return None


_STS = ColumnSpec(title="STS Avg.", average="sts")


def _space_rows(join: Join) -> list[Row]:
    """The best known row of each of the paper's rows on each base model that has both numbers."""
    found = _columns(join)
    if found is None:
        return []
    rows: list[Row] = []
    for table in join.definition.tables:
        for spec in table.rows:
            for members in join.candidates(spec).values():
                best = next((r for r in members if all(join.measure(r, c).by_seed for c in found[1][:2])), None)
                if best is not None and all(best is not other for other in rows):
                    rows.append(best)
    return rows


def _measured_dots(join: Join) -> list[_Dot]:
    found = _columns(join)
    if found is None:
        return []
    rows = _space_rows(join)
    several = len({row.base_model for row in rows}) > 1
    dots = []
    for row in rows:
        a, u = (mean_sd(join.measure(row, c).values)[0] for c in found[1][:2])
        sts = join.measure(row, _STS).values
        name = f"{row.label} · {base_name(row.base_model)}" if several else row.label
        score = mean_sd(sts)[0] if sts else math.nan
        dots.append(_Dot(name, u, a, score, True, row.supervision == "supervised"))
    return dots


def _published_dots(join: Join) -> list[_Dot]:
    found = _columns(join)
    if found is None:
        return []
    key, columns = found
    points: dict[tuple[str, str], dict[str, float]] = {}
    supervised: set[tuple[str, str]] = set()
    for j in join.rows:
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


# --- DeCLUTR ----------------------------------------------------------------------------------------------------------

_LEVELS = tuple[Any, list[tuple[Row, float]]]  # level of a factor -> rows with their mean score


def _ablation(
    join: Join, keep: Callable[[Record], bool], *, amounts: bool = False
) -> tuple[str, list[tuple[Row, float]]] | None:
    """The DeCLUTR rows that `keep` takes, of the base model, text and updates that most share, with one score each.

    `amounts`: different amounts of that text belong together, each with the number of updates that most of it had.
    """
    rows = [row for row in join.library.find("declutr") if row.finished and keep(row.records[0])]
    groups: dict[tuple[str, str], dict[tuple[int, int], list[Row]]] = {}
    for row in rows:
        corpus = row.finished[0].corpus or {}
        place = groups.setdefault((row.base_model, str(corpus.get("uri"))), {})
        place.setdefault((_documents(row), _updates(row)), []).append(row)
    if not groups:
        return None
    budgets = max(sorted(groups.items()), key=lambda item: sum(map(len, item[1].values())))[1]
    best = dict(sorted(budgets.items(), key=lambda item: len(item[1])))  # the last of each amount has most rows
    chosen = {amount: best[amount, updates] for amount, updates in best}
    members = [r for a in sorted(chosen) for r in chosen[a]] if amounts else next(reversed(best.values()))
    for column in SCORES:
        found: list[tuple[Row, Measured]] = [(row, join.measure(row, column)) for row in members]
        have = [(row, mean_sd(m.values)[0]) for row, m in found if m.by_seed]
        if have:
            return column.title, have
    return None


def _config(row: Row, key: str) -> Any:
    return row.records[0].config.get(key)


def _by_level(rows: Sequence[tuple[Row, float]], level: Callable[[Row], Any]) -> list[_LEVELS]:
    found: dict[Any, list[tuple[Row, float]]] = {}
    for row, score in rows:
        found.setdefault(level(row), []).append((row, score))
    return sorted(found.items(), key=lambda item: (isinstance(item[0], str), item[0]))


def _strip(axes: Any, levels: Sequence[_LEVELS], title: str, name: str) -> None:
    """Every configuration as a dot, the mean of each level as a bar, the median's place left to the eye."""
    for i, (_, members) in enumerate(levels):
        values = [score for _, score in members]
        for k, value in enumerate(values):
            shift = 0.0 if len(values) == 1 else 0.24 * (k / (len(values) - 1) - 0.5)
            axes.plot([i + shift], [value], color=COLOURS[0], marker="o", markersize=4.5, linestyle="", alpha=0.75)
        mean = mean_sd(values)[0]
        axes.plot([i - 0.28, i + 0.28], [mean, mean], color=INK, linewidth=1.6, solid_capstyle="butt")
    axes.set_xticks(range(len(levels)), [str(level) for level, _ in levels], fontsize=7.5)
    axes.set_xlim(-0.6, len(levels) - 0.4)
    axes.set_title(title)
    axes.set_xlabel(name)
    axes.grid(axis="x", visible=False)


def declutr_sampling(join: Join) -> Figure | None:
    """DeCLUTR's Figure 2: the score by anchors, positives, temperature and where positives lie."""
    found = _ablation(join, lambda r: _plain(r) and r.config.get("objective") == "both")
    factors = (
        ("anchors", "Anchors", "anchors per document"),
        ("positives", "Positives", "positives per anchor"),
        ("temperature", "Temperature", "temperature"),
        ("strategy", "Sampling", "where positives lie"),
    )
    return _factors(
        found, factors, "declutr-sampling", "Anchors, positives, temperature and sampling (DeCLUTR, Figure 2)"
    )


def _plain(r: Record) -> bool:
    return not r.config.get("memory") and r.config.get("projection") is None


def _factors(
    found: tuple[str, list[tuple[Row, float]]] | None, factors: Sequence[tuple[str, str, str]], key: str, title: str
) -> Figure | None:
    if found is None:
        return None
    measure, rows = found
    panels = [(levels, head, name) for field, head, name in factors
              if len(levels := _by_level(rows, lambda r, f=field: _config(r, f))) > 1]  # type: ignore[misc]  # fmt: skip
    if not panels:
        return None
    with style():
        plot = new(7.2, 2.9)
        grid = plot.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (levels, head, name) in zip(grid, panels, strict=True):
            _strip(axes, levels, head, name)
        grid[0].set_ylabel(measure.replace(" (", "\n("), fontsize=8)
        said = "; ".join(
            f"{head}: " + ", ".join(f"{level}: {mean_sd([s for _, s in m])[0]:.2f}" for level, m in levels)
            for levels, head, _ in panels
        )
        base = base_name(rows[0][0].base_model)
        return finish(
            plot, key, title,
            f"{measure}, from {base}. A dot: one configuration, mean over its seeds; a bar: the mean of a level over "
            "whatever else differs between its runs.",
            f"Dots by level of each factor. {said}.",
        )  # fmt: skip


_OBJECTIVES = {"contrastive": "contrastive", "mlm": "masked LM", "both": "both"}


def declutr_objective(join: Join) -> Figure | None:
    """DeCLUTR's Figure 3: what the objectives contribute, and the score by the amount of text."""
    found = _ablation(join, lambda r: _plain(r) and _has(r, _defaults(join)), amounts=True)
    if found is None:
        return None
    measure, rows = found
    amounts = sorted({_documents(row) for row, _ in rows})
    objectives = [o for o in _OBJECTIVES if any(_config(row, "objective") == o for row, _ in rows)]
    if len(objectives) < 2 and len(amounts) < 2:
        return None
    with style():
        plot = new(7.2 if len(amounts) > 1 else 4.6, 2.9)
        grid = plot.subplots(1, 2 if len(amounts) > 1 else 1, sharey=True, squeeze=False)[0]
        most = amounts[-1]
        values = {
            o: [s for row, s in rows if _config(row, "objective") == o and _documents(row) == most] for o in objectives
        }
        for i, members in enumerate(values.values()):
            if members:
                grid[0].bar([i], [mean_sd(members)[0]], width=0.62, color=COLOURS[i], edgecolor=INK, linewidth=0.6)
                grid[0].plot([i] * len(members), members, "o", color=INK, markersize=3.5)
        lowest = min(s for _, s in rows)
        grid[0].set_ylim(bottom=max(0, lowest - 0.25 * lowest))
        grid[0].set_xticks(range(len(objectives)), [_OBJECTIVES[o] for o in objectives])
        grid[0].set_title(f"Objective, {most:,} documents")
        grid[0].set_ylabel(measure.replace(" (", "\n("), fontsize=8)
        grid[0].grid(axis="x", visible=False)
        if len(amounts) > 1:
            for i, objective in enumerate(objectives):
                own = [(row, s) for row, s in rows if _config(row, "objective") == objective]
                line = [(amount, mean_sd([s for _, s in same])[0]) for amount, same in _by_level(own, _documents)]
                grid[1].plot([x for x, _ in line], [y for _, y in line], label=_OBJECTIVES[objective], **look(i))
            grid[1].set_title("Amount of text")
            grid[1].set_xlabel("documents")
            updates = {_documents(row): _updates(row) for row, _ in rows}
            grid[1].set_xticks(
                amounts, [f"{amount:,}\n({updates[amount]:,} updates)" for amount in amounts], fontsize=7.5
            )
            plot.legend(loc="outside lower center", ncols=3, fontsize=8)
        said = "; ".join(f"{_OBJECTIVES[o]} {mean_sd(v)[0]:.2f}" for o, v in values.items() if v)
        return finish(
            plot, "declutr-objective", "Objectives and amount of text (DeCLUTR, Figure 3)",
            f"{measure}, from {base_name(rows[0][0].base_model)}. Bars: mean of the runs (dots). The axis does not "
            "begin at 0.",
            f"Bars by objective: {said}.",
        )  # fmt: skip


def _documents(row: Row) -> int:
    return int((row.finished[0].corpus or {}).get("count") or 0)


def _updates(row: Row) -> int:
    return int(row.finished[0].training.get("planned_steps") or 0)


def _has(record: Record, settings: dict[str, Any]) -> bool:
    return all(record.config.get(key) == value for key, value in settings.items())


def _defaults(join: Join) -> dict[str, Any]:
    """The sampling that most DeCLUTR rows share, so that its factors do not mix with the objective."""
    rows = [r.records[0].config for r in join.library.find("declutr") if r.finished]
    shared: dict[str, Any] = {}
    for key in ("anchors", "positives", "temperature", "strategy", "anchor_grid"):
        values = [config.get(key) for config in rows]
        if values:
            shared[key] = max(sorted(set(values), key=str), key=values.count)
    return shared


def _head(row: Row) -> tuple[int, str]:
    width = _config(row, "projection") or 0
    return width, str(_config(row, "projection_activation") or "relu") if width else ""


def _head_name(width: int, activation: str) -> str:
    return f"{width}\n{'ReLU' if activation == 'relu' else activation}" if width else "none"


def declutr_extensions(join: Join) -> Figure | None:
    """DeCLUTR's Figure S1: projection heads and memory banks, which did not help."""
    found = _ablation(join, lambda r: r.config.get("objective") == "both")
    if found is None:
        return None
    measure, rows = found
    usual = _defaults(join)
    plain = [(row, s) for row, s in rows if _plain(row.records[0]) and _has(row.records[0], usual)]
    heads = [(row, s) for row, s in rows if _config(row, "projection") and not _config(row, "memory")]
    banks = [(row, s) for row, s in rows if _config(row, "memory") and not _config(row, "projection")]
    panels = []
    if heads:
        levels = _by_level([*heads, *plain], _head)
        panels.append(
            ([(_head_name(*k), v) for k, v in levels], "Projection head", "width, function between its layers")
        )
    if banks:
        levels = _by_level([*banks, *plain], lambda r: _config(r, "memory") or 0)
        panels.append(([("none" if k == 0 else k, v) for k, v in levels], "Memory bank", "embeddings kept"))
    if not panels:
        return None
    with style():
        plot = new(7.2 if len(panels) > 1 else 4.2, 2.9)
        grid = plot.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (shown, head, name) in zip(grid, panels, strict=True):
            _strip(axes, shown, head, name)
        grid[0].set_ylabel(measure.replace(" (", "\n("), fontsize=8)
        return finish(
            plot, "declutr-extensions", "Projection head and memory bank (DeCLUTR, Figure S1)",
            f"{measure}, from {base_name(rows[0][0].base_model)}. A dot: one configuration, mean over its seeds.",
            "Dots by width of the projection head and size of the memory bank.",
        )  # fmt: skip
