"""A table for every suite that has none of its own, such as one that another package brings."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from harness.results.record import Score
from harness.tasks.suite import Suite
from reports.document.table import Column, Table, number_text
from reports.read.comparison_runs import Comparison
from reports.stats.significance import Significance
from reports.stats.suite_targets import registered
from reports.stats.targets import Measure, Target, alone
from reports.tables.judged import judged_rows
from reports.tables.score_cells import HEAD, average_cell, head_cells, mark_unlike, score_cell


def suite_tables(
    comparison: Comparison, significance: Significance | None = None, *, shown: Collection[str]
) -> list[Table]:
    """One table for each suite with scores that is not among those `shown` elsewhere, in the order met."""
    scores = (s for r in comparison.records for s in r.scores if s.split != "dev")
    wanted = (suite for suite in dict.fromkeys(s.suite for s in scores) if suite not in shown)
    return [_table(comparison, significance, suite) for suite in wanted]


def _table(comparison: Comparison, significance: Significance | None, name: str) -> Table:
    rows, suite = comparison.rows, registered(name)
    columns, cells = list(HEAD), [list(head_cells(row)) for row in rows]
    better: Literal["higher", "lower", ""] = "" if suite is None else "higher" if suite.higher_is_better else "lower"
    by_task = {key: _main_scores(comparison, name, *key, suite) for key in comparison.columns(name)}
    percent = _percent(by_task.values(), suite)
    scale, digits = (100, 2) if percent else (1, 4)
    by_column: dict[int, Target] = {}
    for (task, source), scores in by_task.items():
        metric, aggregation = (scores[0].metric, scores[0].aggregation) if scores else ("", "")
        chance = None if suite is None else suite.chance_of(task)
        said = [" ".join((metric, aggregation)).strip()]
        said += [f"n = {' / '.join(f'{n:,}' for n in sorted({s.n for s in scores}))}"] if scores else []
        said += [f"chance {number_text(scale * chance, digits)}"] if chance is not None else []
        columns.append(Column(f"{task} {source}", task, " · ".join(filter(None, said)), better=better))
        for line, row in zip(cells, rows, strict=True):
            line.append(score_cell(row, task, source, metric, aggregation, scale=scale, digits=digits))
        mark_unlike(rows, cells, len(columns) - 1, task, source, metric, aggregation)
        if scores and percent:
            by_column[len(columns) - 1] = alone(Measure(task, source, metric, aggregation, scores[0].split))
    for average in suite.averages if suite is not None else ():
        columns.append(Column(f"average {average.title}", average.title, better=better))
        for line, row in zip(cells, rows, strict=True):
            line.append(average_cell(row, {r.id: average.of(r.scores) for r in row.finished}))
    legend = [f"{'×100, m' if percent else 'M'}ean ± standard deviation over seeds."]
    if suite is None:
        legend.append("Nothing installed here says which way is better, so no number is marked.")
    elif suite.chance is not None:
        legend.append("Chance: what guessing gives.")
    judged = list(by_column) if better == "higher" else []
    body, said = judged_rows(comparison, significance if judged else None, columns, cells, by_column, judged)
    caption = suite.about if suite is not None else "Scores that no other table shows."
    return Table(f"suite-{name}", f"Suite {name}", caption, tuple(columns), body, (*legend, *said))


def _main_scores(comparison: Comparison, name: str, task: str, source: str, suite: Suite | None) -> list[Score]:
    """The scores of a task in the table: those in the suite's metric, else in the first that was given."""
    scores = [
        s
        for row in comparison.rows
        for r in row.finished
        for s in r.scores
        if (s.suite, s.task, s.source) == (name, task, source) and s.split != "dev"
    ]
    wanted = [s for s in scores if suite is not None and s.metric == suite.metric] or scores
    return [s for s in wanted if (s.metric, s.aggregation) == (wanted[0].metric, wanted[0].aggregation)]


def _percent(by_task: Collection[list[Score]], suite: Suite | None) -> bool:
    """Whether numbers are shown times 100: as the suite says, else where all of them are fractions or correlations."""
    return suite.percent if suite is not None else all(abs(s.value) <= 1 for scores in by_task for s in scores)
