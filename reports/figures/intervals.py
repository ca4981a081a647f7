"""The figure that a report begins with: all rows with their intervals, best first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reports.document.blocks import Figure
from reports.figures.labels import row_name
from reports.figures.style import COLOURS, MUTED, finish, new, style
from reports.load import RecordedResults
from reports.records.measured_cost import CLOCKS, speeds, training_clock, training_cost
from reports.results import ResultRow, Results, find_start
from reports.stats.significance import Significance
from reports.stats.verdicts import Ranking
from reports.targets import rows_shown

_MOST_ROWS = 24  # rows
_WIDTH_OF_COSTS = (
    5  # inches: a narrower figure, as wide as a column of a paper, has no room for costs
)
_START = " Square: an untrained start that was added to the rows of the file; it is in no group."
_UNJUDGED = " Rows with too few seeds are not judged: one of them may be better than the blue ones."
_DASHED = " Dashed: the untrained start of a row."
_MOST_GROUPS = 8  # lines of one base model that fit beside the intervals
_CAPTION = (
    "Bar: 95 % interval over seeds and examples; rows share the examples, so rows whose "
    "bars overlap can differ significantly. Open dot: fewer than three seeds. "
    "Blue: may be the best (95 %). A vertical line joins rows that do not differ "
    "significantly when all pairs are tested; pairs that the file names are tested apart."
)


def overview(
    results: Results, significance: Significance, most_rows: int = _MOST_ROWS
) -> Figure | None:
    """Rows by the first target, best first; None with fewer than two rows that stored their
    examples.

    An interval covers the choice of seeds and of examples
    (`Significance.interval_of_mean`). A vertical line joins rows that do not differ
    significantly (`Ranking.groups`), all pairs of a base model corrected together.
    """
    target = significance.first
    if target is None:
        return None
    shown, omitted = rows_shown(results.rows, target, most_rows)
    keys = {row.key for row in shown}
    blocks = [Ranking(some, significance, target) for some in results.blocks.values()]
    rows = []
    for block in blocks:
        rows += [row for row in _in_order(block) if row.key in keys]
    if len(rows) < 2:
        return None
    # The first row is at the top.
    places = {row.key: place for place, row in enumerate(reversed(rows))}
    descriptions: list[str] = []
    caption = _CAPTION
    title = "All rows, best first"
    if any(block.unjudged for block in blocks):
        title += "; those with too few seeds last"
        caption += _UNJUDGED
    if any(block.left_out for block in blocks):
        caption += _START
    starts = _means_of_starts(blocks, rows)
    if starts:
        caption += _DASHED
    with style():
        plot = new(7.2, 0.75 + 0.27 * len(rows))
        with_costs = plot.get_figwidth() > _WIDTH_OF_COSTS
        if with_costs:
            widths = [5, 3]
            room = 2 * _MOST_GROUPS + 4
        else:
            widths = [5, 1]
            room = _MOST_GROUPS
        axes, side = plot.subplots(1, 2, sharey=True, width_ratios=widths)
        for block in blocks:
            descriptions += _draw_block(axes, block, places, starts, results)
            _draw_groups(side, block, places)
        name_lines([axes], [row_name(row, results) for row in reversed(rows)])
        axes.set_title(target.short)
        axes.set_xlabel(target.unit)
        side.axis("off")
        side.set_xlim(-0.5, room)
        if with_costs:
            _write_costs(side, results, places)
        return finish(
            plot,
            "overview",
            title,
            f"{caption}{omitted}",
            f"{target.title}: {'; '.join(descriptions)}.",
        )


def _means_of_starts(
    blocks: Sequence[Ranking], shown: Sequence[ResultRow]
) -> dict[tuple[str, str], float]:
    """Return the mean of the untrained start of each shown row that has one, in points, and that
    of the start itself.
    """
    means = {}
    for block in blocks:
        known = [*block.rows, *block.left_out]
        for row in shown:
            start, _ = find_start(row, known)
            if row not in block.rows or start is None:
                continue
            means[row.key] = block.mean(start)
            if start in shown:
                means[start.key] = block.mean(start)
    return means


def _mark_start(axes: Any, y: int, mean: float) -> None:
    """Draw the height of a row, dashed, at the mean of its start; rows with one start join."""
    axes.plot([mean, mean], [y - 0.5, y + 0.5], "--", color=MUTED, linewidth=1, zorder=1)


def _in_order(block: Ranking) -> list[ResultRow]:
    """Return the rows of a block with its added untrained starts, each before the first row that
    scores less.
    """
    rows = list(block.rows)
    for start in block.left_out:
        mean = block.mean(start)
        lower = (i for i, row in enumerate(rows) if block.mean(row) < mean)
        rows.insert(next(lower, len(rows)), start)
    return rows


def name_lines(panels: Sequence[Any], names: Sequence[str]) -> None:
    """Write names on the left, from below, of panels that share their vertical axis."""
    for axes in panels:
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
    panels[0].set_yticks(range(len(names)), names)
    panels[0].set_ylim(-0.6, len(names) - 0.4)


def _draw_row(
    axes: Any,
    y: int,
    row: ResultRow,
    block: Ranking,
    *,
    leading: bool,
) -> str:
    """Draw the mean of a row, in points, with its interval; the same in words."""
    colour = COLOURS[0] if leading else MUTED
    mean = block.mean(row)
    if row not in block.judged:
        axes.plot(
            [mean],
            [y],
            "o",
            color=colour,
            markerfacecolor="white",
            markersize=5,
        )
        return f"{mean:.2f} (too few seeds)"
    interval = block.significance.interval_of_mean(row, block.target)
    low = 100 * interval.low
    high = 100 * interval.high
    axes.plot(
        [low, high],
        [y, y],
        color=colour,
        linewidth=4,
        alpha=0.35,
        solid_capstyle="butt",
    )
    axes.plot([mean], [y], "o", color=colour, markersize=5)
    return f"{mean:.2f} ({low:.2f} to {high:.2f})"


def _draw_block(
    axes: Any,
    block: Ranking,
    places: dict[tuple[str, str], int],
    starts: dict[tuple[str, str], float],
    results: Results,
) -> list[str]:
    """Draw the rows of a block that have a place, with their starts; the same in words."""
    descriptions = []
    for row in _in_order(block):
        if row.key not in places:
            continue
        place = places[row.key]
        text = f"{row_name(row, results)} {_draw(axes, place, row, block)}"
        start = starts.get(row.key)
        if start is not None:
            _mark_start(axes, place, start)
            if row.is_trained:
                text += f", from {start:.2f} untrained"
        descriptions.append(text)
    return descriptions


def _draw(axes: Any, y: int, row: ResultRow, block: Ranking) -> str:
    """Draw a row; the same in words."""
    if row in block.left_out:
        return _draw_start(axes, y, row, block)
    return _draw_row(axes, y, row, block, leading=row in block.candidates)


def _draw_groups(side: Any, block: Ranking, places: dict[tuple[str, str], int]) -> None:
    """Draw a line through the rows of each group."""
    groups = [group for group in block.groups() if len(group) > 1]
    for x, group in enumerate(groups[:_MOST_GROUPS]):
        keys = [block.rows[place].key for place in group]
        heights = [places[key] for key in keys if key in places]
        across = [x] * len(heights)
        side.plot(across, heights, color=MUTED, linewidth=1.2, marker="o", markersize=3)


def _draw_start(axes: Any, y: int, row: ResultRow, block: Ranking) -> str:
    """Draw the mean of an added untrained start, in points; the same in words."""
    mean = block.mean(row)
    axes.plot(
        [mean],
        [y],
        "s",
        color=MUTED,
        markerfacecolor="white",
        markersize=5,
    )
    return f"{mean:.2f} (untrained start)"


def _write_costs(side: Any, results: Results, places: dict[tuple[str, str], int]) -> None:
    """Write training time and speed of inference of each row next to it, where records say them."""
    if not isinstance(results, RecordedResults):
        return
    rows = [row for row in results.rows if row.key in places]
    rows.sort(key=lambda row: -places[row.key])
    if not any(record.cost for row in rows for record in row.records):
        return
    clock = training_clock(results.rows)
    speed = speeds(results)
    right = [(_MOST_GROUPS + 4, f"training,\n{CLOCKS[clock]}")]
    if speed:
        right.append((2 * _MOST_GROUPS + 4, "sentences\na second"))
    for x, title in right:
        side.text(
            x,
            len(rows) - 0.45,
            title,
            ha="right",
            va="bottom",
            fontsize=7.5,
            color=MUTED,
        )
    for row in rows:
        cost = training_cost(row, clock)
        texts = ["–" if cost is None else f"{cost:,.0f}"]
        if speed:
            texts.append(f"{speed[row.key].median:,.0f}" if row.key in speed else "–")
        for (x, _), text in zip(right, texts, strict=True):
            side.text(
                x,
                places[row.key],
                text,
                ha="right",
                va="center",
                fontsize=8,
            )
