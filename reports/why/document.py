"""The answer of `harness why` in words, as a table and as a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from reports.document.blocks import Document, Figure, Section, Text
from reports.document.table import EMPTY, Cell, Column, Table, TableRow, number, number_text
from reports.figures.style import COLOURS, GRID, INK, MUTED, finish, new, style
from reports.stats.estimate import Interval
from reports.stats.verdicts import ALIKE, OPEN
from reports.why.explanation import Explanation, FactorShare, Interaction, Smallest

_WIDTH = 4.6  # inches
_LONGEST = 36  # characters of a name above its bar, beside the number on the right


def points(value: float) -> str:
    """Return a signed difference in points, "+2.40"."""
    return number_text(100 * value, 2, signed=True)


def interval_text(estimate: Interval) -> str:
    """Return "[1.90, 2.90]", in points."""
    low = number_text(100 * estimate.low, 2)
    high = number_text(100 * estimate.high, 2)
    return f"[{low}, {high}]"


def judge_share(found: Explanation, estimate: Interval) -> str:
    """Return what an interval says of a difference; empty where it excludes 0."""
    margin = found.equivalence / 100
    if -margin < estimate.low and estimate.high < margin:
        return ALIKE
    if estimate.low <= 0 <= estimate.high:
        return OPEN
    return ""


def headline(found: Explanation) -> str:
    """Return the difference of the two rows in one sentence."""
    value = found.whole.value
    size = number_text(abs(100 * value), 2)
    side = "worse"
    if value >= 0:
        side = "better"
    text = f"{found.a} is {size} points {side} than {found.b} on {found.target.title}"
    text += f" {interval_text(found.whole)}"
    known = judge_share(found, found.whole)
    if known:
        text += f" ({known})"
    return f"{text}."


def answer_lines(found: Explanation, notes: Sequence[str] = ()) -> list[str]:
    """Return the answer as a terminal shows it."""
    names = [share.settings for share in found.shares]
    width = max(map(len, names))
    lines = [f"{headline(found)} Of these points:"]
    for one in found.shares:
        name = f"  {one.settings:{width}}"
        value = points(one.share.value)
        interval = interval_text(one.share)
        known = judge_share(found, one.share)
        line = f"{name}  {value:>7} {interval}  {known}"
        lines.append(line.rstrip())
    lines += [sentence for sentence in sentences(found) if sentence]
    return [*lines, *notes]


def sentences(found: Explanation) -> list[str]:
    """Return what the shares do not show: the smallest change, interactions, and how it was made."""
    return [
        _describe_smallest(found),
        _describe_interaction(found),
        _describe_runs(found),
    ]


def _describe_runs(found: Explanation) -> str:
    seeds = _count(found.seeds, "seed")
    orders = _describe_orders(found)
    level = _describe_level(found)
    return f"{found.runs} runs of {len(found.rows)} rows, {seeds} each{orders}{level}."


def _describe_smallest(found: Explanation) -> str:
    smallest = found.smallest
    margin = f"{found.equivalence:g}"
    if not smallest.factors:
        return f"{found.b} is within {margin} points of {found.a} as it is."
    if smallest.gap is None:
        return f"No change of fewer settings brings {found.b} within {margin} points of {found.a}."
    names = " and ".join(f'"{name}"' for name in smallest.factors)
    gap = f"{points(smallest.gap.value)} {interval_text(smallest.gap)}"
    return (
        f"The smallest change that brings {found.b} within {margin} points of {found.a}: {names} "
        f"(what is left: {gap})."
    )


def _describe_interaction(found: Explanation) -> str:
    one = found.interaction
    if one is None:
        return ""
    points_together = 100 * one.estimate.value
    side = "less"
    if points_together > 0:
        side = "more"
    size = number_text(abs(points_together), 2)
    return (
        f'"{one.one}" and "{one.other}" together add {size} points {side} than each alone '
        f"{interval_text(one.estimate)}."
    )


def _describe_orders(found: Explanation) -> str:
    if not found.orders:
        return ""
    return f"; over {found.orders} orders of the changes, drawn once for all"


def _describe_level(found: Explanation) -> str:
    if found.level >= 0.05:
        return ""
    return (
        "; this design was analysed before with fewer seeds, so the intervals are at "
        f"{_confidence(found)}"
    )


def _confidence(found: Explanation) -> str:
    """Return the confidence of all intervals: "95 %"."""
    share = 100 * (1 - found.level)
    return f"{share:.3g} %"


def _count(number: int, noun: str) -> str:
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun}s"


def as_data(found: Explanation) -> dict[str, Any]:
    """Return every number as plain values; differences in points."""
    rows = []
    for row in found.rows:
        rows.append(
            {
                "row": row.label,
                "factors": list(row.factors),
                "mean": row.mean,
                "sd": row.sd,
                "runs": row.runs,
            }
        )
    return {
        "a": found.a,
        "b": found.b,
        "on": found.target.title,
        "difference": _as_numbers(found.whole),
        "p": found.whole.p,
        "factors": [_share_as_data(share) for share in found.shares],
        "interaction": _interaction_as_data(found.interaction),
        "smallest_change": _smallest_as_data(found.smallest),
        "rows": rows,
        "orders": found.orders,
        "seeds": found.seeds,
        "level": found.level,
        "equivalence": found.equivalence,
    }


def _share_as_data(share: FactorShare) -> dict[str, Any]:
    return {
        "factor": share.name,
        "settings": share.settings,
        **_as_numbers(share.share),
        "p": share.share.p,
        "first": _as_points(share.first),
        "last": _as_points(share.last),
    }


def _interaction_as_data(interaction: Interaction | None) -> dict[str, Any] | None:
    if interaction is None:
        return None
    return {
        "factors": [interaction.one, interaction.other],
        **_as_numbers(interaction.estimate),
    }


def _smallest_as_data(smallest: Smallest) -> dict[str, Any]:
    gap = None
    if smallest.gap is not None:
        gap = _as_numbers(smallest.gap)
    return {"factors": list(smallest.factors), "gap": gap}


def _as_points(value: float | None) -> float | None:
    if value is None:
        return None
    return 100 * value


def _as_numbers(estimate: Interval) -> dict[str, float]:
    return {
        "value": 100 * estimate.value,
        "low": 100 * estimate.low,
        "high": 100 * estimate.high,
    }


def document(found: Explanation, command: str, notes: Sequence[str] = ()) -> Document:
    """Return the report of an explanation."""
    said = tuple(filter(None, sentences(found)))
    answer = Section(
        "shares",
        "What makes the difference",
        [waterfall(found), shares_table(found), Text(said)],
    )
    if notes:
        answer.blocks.append(Text(tuple(notes), bullets=True))
    rows = Section("rows", "The rows between", [rows_table(found)], folded=True)
    factors = len(found.shares)
    facts = [
        (str(factors), "factor" if factors == 1 else "factors"),
        (str(len(found.rows)), "rows"),
        (str(found.runs), "runs"),
        (str(found.seeds), "seed" if found.seeds == 1 else "seeds"),
    ]
    title = f"Why {found.a} and {found.b} differ"
    origin = {"command": command}
    return Document(title, headline(found), facts, [answer, rows], origin=origin)


def shares_table(found: Explanation) -> Table:
    """Return the share of each factor, the largest first, and their sum."""
    columns = (
        Column("factor", "Factor", numeric=False),
        Column("share", "Share", sub="points"),
        Column("first", "Changed first", sub="points", aside=True),
        Column("last", "Changed last", sub="points", aside=True),
        Column("says", "", numeric=False),
    )
    lines = [
        TableRow(
            (
                Cell(share.settings),
                _estimate_cell(share.share),
                _change(share.first),
                _change(share.last),
                Cell(judge_share(found, share.share)),
            )
        )
        for share in found.shares
    ]
    whole = TableRow(
        (
            Cell(f"{found.a} against {found.b}"),
            _estimate_cell(found.whole),
            EMPTY,
            EMPTY,
            Cell(judge_share(found, found.whole)),
        ),
        block="sum",
    )
    caption = (
        f"Shares of the difference on {found.target.title}, {found.target.unit}: what each factor "
        f"adds in the mean over all orders of changes from {found.b} to {found.a}."
    )
    legend = (
        f"The {_confidence(found)} intervals hold for all factors together, over seeds and examples. "
        "Where changed first and last differ, factors act together.",
    )
    return Table("why-shares", "Shares", caption, columns, (*lines, whole), legend)


def _estimate_cell(estimate: Interval) -> Cell:
    return replace(number(100 * estimate.value, signed=True), spread=interval_text(estimate))


def _change(value: float | None) -> Cell:
    if value is None:
        return EMPTY
    return number(100 * value, signed=True)


def rows_table(found: Explanation) -> Table:
    """Return the rows of the design with their scores."""
    columns = (
        Column("row", "Row", numeric=False),
        Column("taken", f"From {found.a}", numeric=False),
        Column("score", found.target.short, sub=found.target.unit),
        Column("runs", "Runs"),
    )
    lines = tuple(
        TableRow(
            (
                Cell(row.label),
                Cell(", ".join(row.factors) or "nothing"),
                number(row.mean, sd=row.sd, n=row.runs),
                number(row.runs, digits=0),
            )
        )
        for row in found.rows
    )
    caption = f"Each row has some settings of {found.a} and the others of {found.b}."
    return Table("why-rows", "Rows", caption, columns, lines)


def waterfall(found: Explanation) -> Figure:
    """Return the way from the second row to the first one, a bar for each factor: as narrow as a
    column of a paper, so names are above their bars.
    """
    start = found.rows[0].mean
    end = found.rows[-1].mean
    height = len(found.shares) + 1
    described = []
    with style():
        plot = new(_WIDTH, 0.8 + 0.4 * (height + 1))
        axes = plot.add_subplot()
        _draw_end(axes, found.b, start, height)
        level = start
        for number_, share in enumerate(found.shares, 1):
            described.append(_draw_share(axes, found, share, level, height - number_))
            level += 100 * share.share.value
        axes.plot(
            [level, level],
            [0, 1],
            color=GRID,
            linewidth=0.8,
            zorder=0,
        )
        _draw_end(axes, found.a, end, 0)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_ylim(-0.45, height + 0.85)
        axes.use_sticky_edges = False
        axes.margins(x=0.03)
        axes.grid(visible=False)
        axes.set_xlabel(f"{found.target.short}, {found.target.unit}")
        ends = f"From {found.b} ({start:.2f}) to {found.a} ({end:.2f})"
        return finish(
            plot,
            "why-waterfall",
            f"From {found.b} to {found.a}",
            f"A bar is the share of a factor, its line the {_confidence(found)} interval for all factors "
            "together. Pale: the interval holds 0, or less than matters.",
            f"{ends}: {'; '.join(described)}.",
        )


def _draw_end(axes: Any, name: str, mean: float, place: int) -> None:
    """Draw one of the two rows."""
    _write_above(axes, place, name, number_text(mean, 2))
    axes.plot([mean], [place], marker="o", markersize=5, color=INK)


def _draw_share(
    axes: Any,
    found: Explanation,
    share: FactorShare,
    level: float,
    place: int,
) -> str:
    """Draw the bar of a share from the level that the shares before it reach; its alternative text."""
    value = 100 * share.share.value
    low = level + 100 * share.share.low
    high = level + 100 * share.share.high
    if value >= 0:
        colour = COLOURS[0]
    else:
        colour = COLOURS[1]
    pale = bool(judge_share(found, share.share))
    axes.plot(
        [level, level],
        [place, place + 1],
        color=GRID,
        linewidth=0.8,
        zorder=0,
    )
    axes.barh(
        place,
        value,
        left=level,
        height=0.34,
        color=colour,
        alpha=0.35 if pale else 1,
    )
    axes.plot([low, high], [place, place], color=INK, linewidth=1)
    text = f"{points(share.share.value)} {interval_text(share.share)}"
    _write_above(axes, place, share.name, text)
    return f"{share.name} {text}"


def _write_above(axes: Any, place: int, name: str, text: str) -> None:
    """Write a name on the left and a number on the right, above what is drawn at a place."""
    own = {"transform": axes.get_yaxis_transform(), "va": "bottom"}
    axes.text(0, place + 0.25, _shorten(name), **own)
    axes.text(
        1,
        place + 0.25,
        text,
        ha="right",
        color=MUTED,
        **own,
    )


def _shorten(name: str) -> str:
    if len(name) <= _LONGEST:
        return name
    return f"{name[: _LONGEST - 1]}…"
