"""Where does a row win? Scores by slice, and how far every row is from the best one there, as tables and a figure."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from reports.document.blocks import Block, Figure
from reports.document.table import Cell, Column, Table, TableRow, number, number_text, ranked
from reports.explore.examples import ExploredTask, rows_of, trait_titles
from reports.explore.slices import FEWEST, Slice, slices_of
from reports.figures.labels import row_name
from reports.figures.style import COLOURS, INK, MUTED, finish, new, style
from reports.read.comparison_runs import Comparison, ResultRow
from reports.stats.estimate import Estimate
from reports.stats.shown_rows import rows_shown
from reports.tables.score_cells import HEAD, block_of, head_cells

MOST_TASKS = 3  # of a report
SURE = "*"
_PANELS = 4
_WIDEST = 2.0  # from 100 points behind to 100 ahead: an interval beyond says nothing
_WIDE = "its few seeds differ too much for an interval"
_RULES = (
    "Slices are cut by rules on words: length, words of the longer text; word overlap, the share of words that both "
    "texts have; negation, not, no, never and the like; numbers, digits and their names; names, capitals inside of a "
    "sentence."
)


def slice_blocks(comparison: Comparison, tasks: Sequence[ExploredTask]) -> list[Block]:
    """Two tables and a figure of each of the first tasks that have slices: those of pairs before others."""
    able = [task for task in tasks if any(key != "gold" for key in task.traits) and len(rows_of(comparison, task)) > 1]
    able.sort(key=lambda task: task.metric != "spearman")
    chosen = able[:MOST_TASKS]
    found = slices_of(comparison, chosen)
    blocks: list[Block] = []
    for task in chosen:
        own = [one for one in found if one.task is task]
        if len(own) > 1:
            blocks += _of_task(comparison, task, own, len(found))
    return blocks


def _of_task(comparison: Comparison, task: ExploredTask, own: list[Slice], looks: int) -> list[Block]:
    rows = [row for row in rows_of(comparison, task) if own[0].mean(row) is not None]
    key = f"slices-{task.source}-{task.task}"
    corrected = f"Levels are corrected for all pairs of rows and for the {looks} slices of this page."
    columns = [_column(one) for one in own]
    cells = [[*head_cells(row)[:1], *(_score(one, row) for one in own)] for row in rows]
    for j, one in enumerate(own, 1):
        leaders = one.significance.leaders(rows, one.target)
        tied = {row.key for row in leaders.tied} if leaders is not None else set()
        for line, row in zip(cells, rows, strict=True):
            line[j] = replace(line[j], tied=row.key in tied)
    body = [TableRow(tuple(line), block_of(row)) for line, row in zip(cells, rows, strict=True)]
    unit = own[0].target.unit
    narrow = (
        "Only rows within a slice can be compared: how gold scores are spread differs between slices."
        if task.metric == "spearman"
        else "Only rows within a slice can be compared: slices are not equally hard."
    )
    head = (HEAD[0], *columns)
    caption = f"{unit} within slices of {task.task}, mean over seeds. Slices of fewer than {FEWEST} are left out."
    scores = Table(key, f"By slice · {task.task}", caption, head, ranked(head, body), (narrow, _RULES, corrected))
    best = max(rows, key=lambda row: _whole(task, own, row))
    others = [row for row in rows if row.key != best.key]
    apart = [one.against(others, best) for one in own]
    lines = []
    for i, row in enumerate(others):
        differences = [_difference(apart[j][i]) for j in range(len(own))]
        lines.append(TableRow((head_cells(row)[0], *differences), block_of(row)))
    signed = tuple(replace(column, better="") for column in columns)
    gaps = Table(
        f"{key}-differences", f"Against {best.label}, by slice · {task.task}",
        f"Points that a row is ahead of {best.label}, the best on the whole task, with simultaneous 95 % intervals.",
        (HEAD[0], *signed), tuple(lines), (f"{SURE} more than chance. {corrected}",),
    )  # fmt: skip
    figure = _figure(comparison, task, own, best, others, apart, corrected)
    return [scores, gaps, figure]


def _whole(task: ExploredTask, own: Sequence[Slice], row: ResultRow) -> float:
    """The row's mean over all slices of one trait, weighted by their examples: near its score on the whole task."""
    trait = own[0].trait
    parts = [(one.n, one.mean(row) or 0.0) for one in own if one.trait == trait]
    return float(np.average([mean for _, mean in parts], weights=[n for n, _ in parts]))


def _column(one: Slice) -> Column:
    return Column(f"{one.trait}-{one.name}", one.name, f"{one.n:,}", group=trait_titles()[one.trait], better="higher")


def _score(one: Slice, row: ResultRow) -> Cell:
    value = one.mean(row)
    if value is None:
        return Cell("–", state="empty")
    runs = one.significance.by_seed(row, one.target)
    ids = tuple(one.task.runs.get(row.key, {}))
    return number(value, digits=1, n=len(runs.seeds) if runs is not None else None, records=ids)


def _says_something(estimate: Estimate) -> bool:
    return estimate.high - estimate.low <= _WIDEST


def _difference(found: Any) -> Cell:
    if found is None:
        return Cell("–", state="empty")
    estimate: Estimate = found.estimate
    text = number_text(100 * estimate.value, 1, signed=True)
    if not found.judged:
        return Cell(text, value=100 * estimate.value, state="value", notes=("one seed: not judged",))
    if not _says_something(estimate):
        return Cell(text, value=100 * estimate.value, state="value", notes=(f"not known: {_WIDE}",))
    ends = f"[{number_text(100 * estimate.low, 1)}, {number_text(100 * estimate.high, 1)}]"
    mark = SURE if found.verdict in ("better", "worse") else ""
    return Cell(text + mark, ends, 100 * estimate.value, state="value", digits=1)


def _figure(
    comparison: Comparison, task: ExploredTask, own: list[Slice], best: ResultRow, others: list[ResultRow],
    apart: list[list[Any]], corrected: str,
) -> Figure:  # fmt: skip
    """A panel a row: its difference to the best row in every slice."""
    shown, left = rows_shown(others, own[0].target, _PANELS)
    places = [next(i for i, row in enumerate(others) if row.key == one.key) for one in shown]
    said = []
    with style():
        plot = new(7.2, 1.1 + 0.24 * len(own))
        grid = plot.subplots(1, len(shown), sharey=True, sharex=True, squeeze=False)[0]
        for axes, row, place in zip(grid, shown, places, strict=True):
            for y, one in enumerate(own):
                found = apart[y][place]
                if found is None:
                    continue
                low, value, high = (100 * x for x in (found.estimate.low, found.estimate.value, found.estimate.high))
                sure = found.verdict in ("better", "worse")
                colour = COLOURS[0] if sure else MUTED
                if found.judged and _says_something(found.estimate):
                    axes.plot([low, high], [y, y], color=colour, linewidth=1.6 if sure else 1.0)
                axes.plot([value], [y], "o", color=colour, markersize=4, markerfacecolor=colour if sure else "white")
                if sure:
                    said.append(f"{row.label} {found.verdict} in {one.title} ({value:+.1f})")
            axes.axvline(0, color=INK, linewidth=0.8)
            axes.set_title(textwrap.fill(row_name(row, comparison), 18), fontsize=7.5)
            axes.grid(axis="y", visible=False)
            axes.tick_params(axis="y", length=0)
            axes.tick_params(labelsize=7.5)
            axes.locator_params(axis="x", nbins=4)
        grid[0].set_yticks(range(len(own)), [f"{one.title} ({one.n:,})" for one in own])
        grid[0].set_ylim(len(own) - 0.4, -0.6)
        plot.supxlabel(f"points ahead of {row_name(best, comparison)}", fontsize=8.5)
        found_text = "; ".join(said) if said else "no difference is more than chance"
        return finish(
            plot,
            f"slices-{task.source}-{task.task}",
            f"Where does a row win? · {task.task}",
            f"Difference to {best.label}, the best on the whole task, within each slice (number of examples), with "
            f"simultaneous 95 % intervals; filled: more than chance. {corrected}{left}",
            f"Differences to {best.label} for {len(shown)} rows in {len(own)} slices: {found_text}.",
        )
