"""The report of scores that others made: the answer, a figure of all rows, the table, and every pair."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from harness.files.printable import join_some
from reports.document.blocks import Document, Figure, Section, Text
from reports.document.table import Cell, Column, Table, TableRow, number, number_text, ranked
from reports.figures.intervals import name_lines
from reports.figures.style import COLOURS, MUTED, finish, new, style
from reports.read.score_tables import read_scores
from reports.scores.score_table import ScoreTable, verdict_on_scores
from reports.stats.simultaneous import mean_over_seeds

_MOST_TASKS = 12  # columns of the table


def describe_scores(source: Path, on: str = "") -> Document:
    """The document; arguments as in `verdict_on_scores`.

    Raises:
        InputError: bad input, with file, line and column.
    """
    frame = read_scores(source)
    table = ScoreTable.of(frame, on, str(source))
    pairs: list[dict[str, Any]] = verdict_on_scores(frame, on=on).data
    answer = _answer(table, pairs)
    limits = f"{table.limits[0].upper()}{table.limits[1:]}." if table.limits else "Seeds and examples are known."
    facts = [(str(len(table.rows)), "rows"), (str(len(table.tasks)), "tasks" if len(table.tasks) > 1 else "task")]
    facts.append((str(sum(map(len, table.runs))), "runs"))
    sections = [
        Section("scores", "Scores", [_figure(table), _scores(table)]),
        Section("pairs", "All pairs", [_pairs(table, pairs)], "Every difference, with its interval.", folded=True),
        Section("limits", "Limits", [Text((limits,))]),
    ]
    return Document(f"Scores of {source.name}", answer, facts, sections, answer=answer)


def _answer(table: ScoreTable, pairs: list[dict[str, Any]]) -> str:
    best = table.rows[0]
    if table.known is None:
        return (
            f"{best} scores highest on {table.title}, which may be chance: neither several runs of a row nor scores of "
            "single examples are known."
        )
    others = [row for row in table.candidates if row != best]
    place = "scores highest" if others else f"is the best of {len(table.rows)} rows"
    alike = f"; the best may also be {join_some(others, 6)}" if others else ""
    found = sum(pair["verdict"] in ("better", "worse") for pair in pairs)
    return (
        f"{best} ({number_text(table.runs[0].mean(), 2)}) {place} on {table.title}{alike} (95 % confidence). "
        f"{found} of {len(pairs)} pairs differ significantly."
    )


def _figure(table: ScoreTable) -> Figure:
    """A dot and an interval for each row, best first."""
    count, said = len(table.rows), []
    with style():
        plot = new(7.2, 0.75 + 0.27 * count)
        axes = plot.subplots()
        for place, (row, runs) in enumerate(zip(table.rows, table.runs, strict=True)):
            y, mean = count - 1 - place, float(runs.mean())
            colour = COLOURS[0] if row in table.candidates else MUTED
            axes.plot([mean], [y], "o", color=colour, markersize=5)
            said.append(f"{row} {mean:.2f}")
            if table.known is not None:
                of_examples = table.known.examples.of(place)
                interval = mean_over_seeds(runs if table.seeded else runs[:1], of_examples)
                axes.plot([interval.low, interval.high], [y, y], color=colour, linewidth=4, alpha=0.35)
        name_lines([axes], list(reversed(table.rows)))
        axes.set_title(table.title)
        axes.set_xlabel("points")
        caption = (
            "Bar: 95 % interval over what is known of seeds and examples. Blue: may be the best (95 %). Rows share the "
            "examples, so rows whose bars overlap can differ significantly."
        )
        return finish(plot, "overview", "All rows, best first", caption, f"{table.title}: {'; '.join(said)}.")


def _scores(table: ScoreTable) -> Table:
    tasks = table.tasks[:_MOST_TASKS] if len(table.tasks) > 1 else []
    columns = [
        Column("row", "Row", numeric=False),
        Column("mean", "Mean" if tasks else table.title, better="higher"),
        Column("runs", "Runs", aside=True),
        *(Column(f"task-{task}", task, better="higher") for task in tasks),
    ]
    rows = []
    for place, (row, runs) in enumerate(zip(table.rows, table.runs, strict=True)):
        spread = float(np.std(runs, ddof=1)) if len(runs) > 1 else None
        scores = [number(float(table.by_task[task][place].mean())) for task in tasks]
        mean = number(float(runs.mean()), sd=spread, n=len(runs))
        rows.append(TableRow((Cell(row), mean, Cell(str(len(runs))), *scores)))
    left = len(table.tasks) - len(tasks)
    legend = [f"The mean is that of {len(table.tasks)} tasks; {left} are not shown."] if tasks and left else []
    caption = "Means over runs in points, ± standard deviation over runs."
    return Table("scores", "Scores of all rows", caption, tuple(columns), tuple(ranked(columns, rows)), tuple(legend))


def _pairs(table: ScoreTable, pairs: list[dict[str, Any]]) -> Table:
    columns = (
        Column("pair", "Pair", numeric=False), Column("difference", "Difference"), Column("interval", "95 % interval"),
        Column("p", "p"), Column("verdict", "Verdict", numeric=False),
    )  # fmt: skip
    rows = []
    for pair in pairs:
        known = pair["p"] is not None
        low, high = (number_text(pair[key], 2, signed=True) if known else "–" for key in ("low", "high"))
        cells = (
            Cell(f"{pair['a']} − {pair['b']}"), number(pair["difference"], signed=True), Cell(f"[{low}, {high}]"),
            Cell("–" if not known else "< 0.001" if pair["p"] < 1e-3 else f"{pair['p']:.3f}"), Cell(pair["verdict"]),
        )  # fmt: skip
        rows.append(TableRow(cells))
    caption = f"Differences in points, corrected for {table.family}." if table.known else "Differences in points."
    return Table("pairs", "All pairs", caption, columns, tuple(rows))
