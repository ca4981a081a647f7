"""Rows with intervals: all rows best first, gains over the untrained start, every seed, and where spread comes from."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from reports.document.blocks import Figure
from reports.figures.labels import row_name, short
from reports.figures.style import COLOURS, INK, MUTED, finish, new, style
from reports.read.comparison_runs import Comparison, ResultRow
from reports.stats.estimate import Floats, Interval
from reports.stats.measured_cost import CLOCKS, speeds, training_clock, training_cost
from reports.stats.shown_rows import rows_shown
from reports.stats.significance import Difference, Significance
from reports.stats.simultaneous import FEWEST_SEEDS, mean_over_seeds
from reports.stats.spread_sources import ALL, PAIRS, decompositions
from reports.stats.targets import Target, common_unit
from reports.stats.verdicts import Block, starts

_MOST_ROWS = 24  # rows
_MOST_GROUPS = 8  # lines of one base model that fit beside the intervals


def overview(comparison: Comparison, significance: Significance) -> Figure | None:
    """Rows by the first target, best first; None with fewer than two rows that stored their examples.

    An interval covers the choice of seeds and of examples (`reports.stats.simultaneous.mean_over_seeds`). A vertical
    line joins rows that do not differ significantly (`Block.groups`), all pairs of a base model corrected together.
    """
    target = significance.first
    if target is None:
        return None
    shown, omitted = rows_shown(comparison.rows, target, _MOST_ROWS)
    keys = {row.key for row in shown}
    blocks = [Block(some, significance, target) for some in comparison.blocks.values()]
    rows = [row for block in blocks for row in block.rows if row.key in keys]
    if len(rows) < 2:
        return None
    places = {row.key: len(rows) - 1 - i for i, row in enumerate(rows)}  # the first row is at the top
    descriptions = []
    with style():
        plot = new(7.2, 0.75 + 0.27 * len(rows))
        axes, side = plot.subplots(1, 2, sharey=True, width_ratios=[5, 3])
        for block in blocks:
            for row in (row for row in block.rows if row.key in keys):
                text = _draw_row(axes, places[row.key], row, block, leading=row in block.candidates)
                descriptions.append(f"{row_name(row, comparison)} {text}")
            for x, group in enumerate([group for group in block.groups() if len(group) > 1][:_MOST_GROUPS]):
                heights = [places[key] for place in group if (key := block.rows[place].key) in places]
                side.plot([x] * len(heights), heights, color=MUTED, linewidth=1.2, marker="o", markersize=3)
        name_lines([axes], [row_name(row, comparison) for row in reversed(rows)])
        axes.set_title(target.short)
        axes.set_xlabel(target.unit)
        _write_costs(side, comparison, rows, places)
        return finish(
            plot,
            "overview",
            "All rows, best first",
            "Bar: 95 % interval over seeds and examples; rows share the examples, so rows whose bars overlap can "
            "differ significantly. Open dot: fewer than three seeds. Blue: may be the best (95 %). A vertical line "
            "joins rows that do not differ significantly."
            f"{omitted}",
            f"{target.title}: {'; '.join(descriptions)}.",
        )


def name_lines(panels: Sequence[Any], names: Sequence[str]) -> None:
    """Write names on the left, from below, of panels that share their vertical axis."""
    for axes in panels:
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
    panels[0].set_yticks(range(len(names)), names)
    panels[0].set_ylim(-0.6, len(names) - 0.4)


def _draw_row(axes: Any, y: int, row: ResultRow, block: Block, *, leading: bool) -> str:
    """Draw the mean of a row, in points, with its interval; the same in words."""
    colour = COLOURS[0] if leading else MUTED
    scores, mean = block.runs(row), block.mean(row)
    if row not in block.judged:
        axes.plot([mean], [y], "o", color=colour, markerfacecolor="white", markersize=5)
        return f"{mean:.2f} (too few seeds)"
    interval = mean_over_seeds(scores, block.significance.examples_variance(row, block.target))
    low, high = 100 * interval.low, 100 * interval.high
    axes.plot([low, high], [y, y], color=colour, linewidth=4, alpha=0.35, solid_capstyle="butt")
    axes.plot([mean], [y], "o", color=colour, markersize=5)
    return f"{mean:.2f} ({low:.2f} to {high:.2f})"


def _write_costs(side: Any, comparison: Comparison, rows: list[ResultRow], places: dict[tuple[str, str], int]) -> None:
    """Write training time and speed of inference of each row next to it."""
    side.axis("off")
    side.set_xlim(-0.5, 2 * _MOST_GROUPS + 4)
    if not any(record.cost for row in rows for record in row.records):
        return
    clock, speed = training_clock(comparison.rows), speeds(comparison)
    right = [(_MOST_GROUPS + 4, f"training,\n{CLOCKS[clock]}"), (2 * _MOST_GROUPS + 4, "sentences\na second")]
    for x, title in right:
        side.text(x, len(rows) - 0.45, title, ha="right", va="bottom", fontsize=7.5, color=MUTED)
    for row in rows:
        cost = training_cost(row, clock)
        texts = ["–" if cost is None else f"{cost:,.0f}"]
        texts.append(f"{speed[row.key].median:,.0f}" if row.key in speed else "–")
        for (x, _), text in zip(right, texts, strict=True):
            side.text(x, places[row.key], text, ha="right", va="center", fontsize=8)


def forest(comparison: Comparison, significance: Significance) -> Figure | None:
    """Differences to the untrained base with their intervals, a panel for each target."""
    if not significance.targets:
        return None
    family = starts(comparison)
    pairs = family.pairs
    results = {t.key: significance.differences(pairs, t, family.name) for t in significance.targets}
    kept = [i for i in range(len(pairs)) if any(differences[i] for differences in results.values())]
    panels = [target for target in significance.targets if any(results[target.key])]
    if not kept:
        return None

    def height(i: int) -> float:
        """Rows are in the order of the first target that has them."""
        return next(d.estimate.value for target in panels if (d := results[target.key][i]) is not None)

    kept.sort(key=height)
    said = []
    with style():
        plot = new(7.2, 0.85 + 0.3 * len(kept))
        grid = plot.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, target in zip(grid, panels, strict=True):
            axes.axvline(0, color=MUTED, linewidth=1)
            for y, i in enumerate(kept):
                d = results[target.key][i]
                if d is not None:
                    _interval(axes, y, d)
                    said.append(f"{target.short}: {pairs[i][0].label} {100 * d.estimate.value:+.2f} ({d.verdict})")
            axes.locator_params(axis="x", nbins=5)
            axes.set_title(target.short)
        names = [f"{row_name(pairs[i][0], comparison)} − {short(pairs[i][1].label)}" for i in kept]
        name_lines(grid, names)
        plot.supxlabel(f"difference in points of {common_unit(panels)}", fontsize=8.5)
        return finish(
            plot,
            "differences",
            "Difference to the untrained start",
            f"Each trained row minus what it starts from, with 95 % intervals corrected for {family.name}. Filled "
            "triangles: the interval excludes zero; open circles: it does not, or the row has fewer than three seeds.",
            f"Dot and interval for each trained row. {'; '.join(said)}.",
        )


def _interval(axes: Any, y: int, d: Difference) -> None:
    e = d.estimate
    colour = {"better": COLOURS[0], "worse": COLOURS[1]}.get(d.verdict, MUTED)
    marker = {"better": ">", "worse": "<"}.get(d.verdict, "o")
    fill = colour if d.verdict in ("better", "worse") else "white"
    axes.plot([100 * e.low, 100 * e.high], [y, y], color=colour, linewidth=2, solid_capstyle="round")
    axes.plot([100 * e.value], [y], marker=marker, color=colour, markerfacecolor=fill, markersize=6.5)


_STRIPS = 3


def strip(comparison: Comparison, significance: Significance) -> Figure | None:
    """Scores by seed, a panel for each of the first targets; None where no row has two seeds with stored examples.

    Rows with one seed are drawn as a dot alone: what another seed would give is not known. The interval of the others
    holds the chance of the seeds and of the examples (`reports.stats.simultaneous.mean_over_seeds`).
    """
    panels: list[tuple[Target, dict[tuple[str, str], tuple[Floats, Interval]]]] = []
    for target in significance.targets[:_STRIPS]:
        panel = {}
        for row in comparison.rows:
            runs = significance.by_seed(row, target)
            if runs is not None:
                variance = significance.examples_variance(row, target)
                panel[row.key] = 100 * runs.scores, mean_over_seeds(runs.scores, variance)
        if any(len(values) > 1 for values, _ in panel.values()):
            panels.append((target, panel))
    if not panels:
        return None
    rows = [row for row in comparison.rows if any(row.key in panel for _, panel in panels)]

    def height(row: ResultRow) -> float:
        """Rows are in the order of the first panel that has them."""
        return next(panel[row.key][1].value for _, panel in panels if row.key in panel)

    rows.sort(key=height)
    said = []
    with style():
        plot = new(7.2, 0.85 + 0.28 * len(rows))
        grid = plot.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (target, panel) in zip(grid, panels, strict=True):
            for y, row in enumerate(rows):
                if row.key in panel:
                    values, estimate = panel[row.key]
                    _strip(axes, y, values, estimate)
                    said.append(_strip_text(target, row_name(row, comparison), values, estimate))
            axes.locator_params(axis="x", nbins=5)
            axes.set_title(textwrap.fill(target.short, 15) if len(panels) > 2 else target.short)
        name_lines(grid, [row_name(row, comparison) for row in rows])
        plot.supxlabel(common_unit([target for target, _ in panels]), fontsize=8.5)
        return finish(
            plot,
            "seeds",
            "Every seed",
            "Each dot is a seed. Bar and tick: the mean with its 95 % interval, which holds the chance of seeds and of "
            "examples. Open dots: fewer than three seeds, no interval.",
            f"Dots by row. {'; '.join(said)}.",
        )


def _strip(axes: Any, y: int, values: Floats, estimate: Interval) -> None:
    if len(values) < FEWEST_SEEDS:
        axes.plot(values, [y] * len(values), "o", color=MUTED, markerfacecolor="white", markersize=5)
        return
    low, high, mean = 100 * estimate.low, 100 * estimate.high, 100 * estimate.value
    axes.plot([low, high], [y, y], color=COLOURS[5], linewidth=5, solid_capstyle="butt", zorder=2)
    axes.plot([mean, mean], [y - 0.3, y + 0.3], color=INK, linewidth=1.4, zorder=3)
    # Seeds side by side in height, so that equal scores stay apart.
    heights = y + np.linspace(-0.18, 0.18, len(values))
    axes.plot(values, heights, "o", color=COLOURS[0], markersize=4, markeredgecolor="white", markeredgewidth=0.5)


def _strip_text(target: Target, name: str, values: Floats, estimate: Interval) -> str:
    if len(values) < FEWEST_SEEDS:
        return f"{target.short}: {name} {values.mean():.2f} ({len(values)} seeds)"
    interval = f"{100 * estimate.low:.2f} to {100 * estimate.high:.2f}"
    return f"{target.short}: {name} {100 * estimate.value:.2f}, {interval}, {len(values)} seeds"


MOST_PANELS = 4
_WIDTH = 2.2  # a panel is so many times as wide as its largest deviation: the interval of two runs has no end in sight


def spread_figure(comparison: Comparison, significance: Significance) -> Figure | None:
    """Standard deviation by source with its interval, a panel for each of the first rows that have one."""
    found = decompositions(comparison, significance)[:MOST_PANELS]
    target = significance.first
    if not found or target is None:
        return None
    names = list(dict.fromkeys(source.name for d in found for source in d.sources))
    names.sort(key=lambda name: (name == ALL, name != PAIRS))  # from below: the pairs, the streams, all of them
    said = []
    with style():
        plot = new(7.2, 0.95 + 0.3 * len(names))
        grid = plot.subplots(1, len(found), sharey=True, squeeze=False)[0]
        for axes, d in zip(grid, found, strict=True):
            for source in d.sources:
                y = names.index(source.name)
                low, high = source.interval
                colour = {ALL: INK, PAIRS: MUTED}.get(source.name, COLOURS[0])
                axes.plot([low, high], [y, y], color=colour, linewidth=2, solid_capstyle="butt")
                axes.plot([source.deviation], [y], "o", color=colour, markersize=5.5)
                said.append(f"{d.row.label}, {source.name}: {source.deviation:.2f} ({low:.2f} to {high:.2f})")
            axes.set_xlim(0, _WIDTH * max(source.deviation for source in d.sources) or 1)
            axes.locator_params(axis="x", nbins=5)
            axes.set_title(row_name(d.row, comparison))
        name_lines(grid, names)
        plot.supxlabel(f"standard deviation in points, {target.short}", fontsize=8.5)
        return finish(
            plot,
            "spread",
            "Where the spread comes from",
            "Standard deviation of scores when one source alone is redrawn, with its 95 % interval. Blue: one "
            "stream of random numbers, the others held; black: all of them; grey: the test pairs. An interval "
            "that reaches the edge goes on beyond it.",
            f"Dot and interval for each source. {'; '.join(said)}.",
        )
