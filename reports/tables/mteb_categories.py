"""MTEB's tables: averages by category, the data sets of each category, and the embedded tasks of its kinds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from harness.results.record import Record, Score
from harness.tasks.averages import Average
from harness.tasks.mteb.benchmarks import (
    MTEB_SUITES,
    PAIRS_METRIC_V1,
    PREFIX,
    SUMMEVAL,
    SUMMEVAL_METRIC,
    mteb_averages,
    mteb_scores,
    names_of,
)
from reports.document.table import Column, Table
from reports.read.comparison_runs import Comparison, ResultRow
from reports.stats.significance import Significance
from reports.stats.suite_targets import MTEB_TITLES, main_measure, mteb_average, mteb_measures
from reports.stats.targets import Target, alone
from reports.tables.judged import judged_rows
from reports.tables.score_cells import (
    HEAD,
    average_cell,
    head_cells,
    mark_others,
    mark_unlike,
    mean_cell,
    score_cell,
    size_text,
)

_CATEGORIES = {"PairClassification": "Pair classification", "Summarization": "Summarisation"}
_QUIRK = (
    "SummEval as version 1 of mteb printed it, (mean correlation + mean p-value) / 2: the number of the published "
    "tables, and the one in the average. The corrected one is in a column of its own."
)
_LEGEND = "mteb's main score ×100, mean ± standard deviation over seeds."


def mteb_tables(comparison: Comparison, significance: Significance | None = None) -> list[Table]:
    """Averages and data sets of every requested suite, then the tasks requested by name.

    Without `significance`, no marks.
    """
    tables: list[Table] = []
    rest = _asked(comparison)
    for suite in suites_of(comparison):
        table = category_table(comparison, suite, significance)
        tables += [table] if table is not None else []
        tables += dataset_tables(comparison, suite, significance)
        rest = [name for name in rest if name not in names_of(MTEB_SUITES[suite])]
    if not _scored(comparison).isdisjoint(rest):
        title = "Other MTEB tasks" if tables else "MTEB tasks"
        caption = "Tasks requested by name; they make no benchmark, so there is no average."
        tables.append(_tasks(comparison, significance, "", "mteb-tasks", title, caption, rest, None))
    return tables


def _asked(comparison: Comparison) -> list[str]:
    """mteb's names of the tasks that have a score or were missed, as first met."""
    tasks = (name for r in comparison.records for name in [*(s.task for s in r.scores), *r.missing])
    return list(dict.fromkeys(task.removeprefix(PREFIX) for task in tasks if task.startswith(PREFIX)))


def suites_of(comparison: Comparison) -> list[str]:
    """The suites that were evaluated: all their tasks have a score or a reason why not, and are no part of others."""
    asked = set(_asked(comparison))
    whole = {suite: set(names_of(sets)) for suite, sets in MTEB_SUITES.items() if set(names_of(sets)) <= asked}
    return [
        suite
        for suite, names in whole.items()
        if not names <= {n for s, others in whole.items() if len(others) > len(names) for n in others}
    ]


def _reason(row: ResultRow, names: Sequence[str]) -> tuple[str, ...]:
    """Why a row has none of some data sets: what the first of them says."""
    return next((why for name in names if (why := row.reasons(PREFIX + name, named=False))), ())[:1]


def _scores(row: ResultRow, suite: str) -> dict[str, dict[str, Score]]:
    """Record id -> the score of each task that the table of the suite prints. MS MARCO's is that of its dev split."""
    return {r.id: mteb_scores(r.scores, suite) for r in row.finished}


def _scored(comparison: Comparison) -> set[str]:
    return {name for row in comparison.rows for by_task in _scores(row, "").values() for name in by_task}


def _averages(row: ResultRow, suite: str) -> dict[str, tuple[dict[str, Average], Average]]:
    return {r.id: mteb_averages(r.scores, suite) for r in row.finished}


def category_table(comparison: Comparison, suite: str, significance: Significance | None = None) -> Table | None:
    """The average of each category of a suite and that over its data sets; None where the suite was not requested."""
    rows, sets = comparison.rows, MTEB_SUITES[suite]
    names = names_of(sets)
    if set(_asked(comparison)).isdisjoint(names):
        return None
    averages = [_averages(row, suite) for row in rows]
    columns, cells = list(HEAD), [list(head_cells(row)) for row in rows]
    by_column: dict[int, Target] = {}
    for category, members in sets.items():
        if (mean := mteb_average(comparison, suite, category)) is not None:
            by_column[len(columns)] = mean
        size = f"{len(members)} data sets" if len(members) > 1 else _short(members[0], category)
        notes = (_QUIRK,) if SUMMEVAL in members else ()
        columns.append(Column(category, _CATEGORIES.get(category, category), size, better="higher", notes=notes))
        for line, row, by_run in zip(cells, rows, averages, strict=True):
            cell = average_cell(row, {run: by_category[category] for run, (by_category, _) in by_run.items()})
            line.append(cell if cell.notes or cell.state != "missing" else cell.noted(*_reason(row, members)))
    deciding = []
    if (overall_mean := mteb_average(comparison, suite)) is not None:
        deciding = [len(columns)]
        by_column[len(columns)] = overall_mean
    columns.append(Column("average", "Avg.", f"{len(names)} data sets", better="higher"))
    for line, row, by_run in zip(cells, rows, averages, strict=True):
        line.append(average_cell(row, {run: overall for run, (_, overall) in by_run.items()}))
    if SUMMEVAL in names:
        columns.append(Column("summeval-corrected", "SummEval", "corrected, not in Avg.", better="higher"))
        for line, row in zip(cells, rows, strict=True):
            line.append(mean_cell(row, _corrected(row), PREFIX + SUMMEVAL, scale=100, digits=2))
    legend = [
        _LEGEND,
        "Avg. is the mean over data sets, not over categories. An average that lacks a data set is not shown: a mean "
        "over fewer is another number.",
    ]
    legend += _metric_note(suite)
    body, said = judged_rows(comparison, significance if deciding else None, columns, cells, by_column, deciding)
    caption = "Mean of each category over its data sets."
    title = f"{MTEB_TITLES[suite]} · categories"
    return Table(f"{suite}-categories", title, caption, tuple(columns), body, (*legend, *said))


def _metric_note(suite: str) -> list[str]:
    if suite != "mteb-en-v1":
        return []
    return [f"Pair classification: average precision by cosine ({PAIRS_METRIC_V1}), as version 1 printed it."]


def _corrected(row: ResultRow) -> list[tuple[Record, Score]]:
    """SummEval's number without the defect of version 1."""
    return [
        (r, s)
        for r in row.finished
        for s in [s for s in r.scores if s.task == PREFIX + SUMMEVAL and s.metric != SUMMEVAL_METRIC][:1]
    ]


def dataset_tables(comparison: Comparison, suite: str, significance: Significance | None = None) -> list[Table]:
    """One table for each category with any score: its data sets and their average."""
    tables = []
    scored = _scored(comparison)
    for category, members in MTEB_SUITES[suite].items():
        if scored.isdisjoint(members):
            continue
        name = _CATEGORIES.get(category, category)
        caption = f"The data sets of the category {name.lower() if name != 'STS' else name}."
        key, title = f"{suite}-{category}", f"{MTEB_TITLES[suite]} · {name}"
        tables.append(_tasks(comparison, significance, suite, key, title, caption, members, category))
    return tables


def _tasks(
    comparison: Comparison,
    significance: Significance | None,
    suite: str,
    key: str,
    title: str,
    caption: str,
    names: Sequence[str],
    category: str | None,
) -> Table:
    rows = comparison.rows
    columns, cells = list(HEAD), [list(head_cells(row)) for row in rows]
    scores = [_scores(row, suite) for row in rows]
    by_column: dict[int, Target] = {}
    for name in names:
        for measure in mteb_measures(comparison, [name], suite):
            by_column[len(columns)] = alone(measure)
        by_row = [
            [(r, by_run[r.id][name]) for r in row.finished if name in by_run[r.id]]
            for row, by_run in zip(rows, scores, strict=True)
        ]
        notes = (_QUIRK,) if name == SUMMEVAL else ()
        columns.append(Column(PREFIX + name, _short(name, category), _sub(by_row), better="higher", notes=notes))
        for line, row, part in zip(cells, rows, by_row, strict=True):
            line.append(mean_cell(row, part, PREFIX + name, scale=100, digits=2))
        mark_others([{s.comparable for _, s in part} for part in by_row], cells, len(columns) - 1)
    if SUMMEVAL in names:
        columns.append(Column("summeval-corrected", SUMMEVAL, "corrected", better="higher"))
        for line, row in zip(cells, rows, strict=True):
            line.append(mean_cell(row, _corrected(row), PREFIX + SUMMEVAL, scale=100, digits=2))
    deciding = list(by_column)
    if category is not None and len(names) > 1:
        if (mean := mteb_average(comparison, suite, category)) is not None:
            deciding = [len(columns)]
            by_column[len(columns)] = mean
        columns.append(Column("average", "Avg.", f"{len(names)} data sets", better="higher"))
        for line, row in zip(cells, rows, strict=True):
            line.append(average_cell(row, {run: by[category] for run, (by, _) in _averages(row, suite).items()}))
    body, said = judged_rows(comparison, significance, columns, cells, by_column, deciding)
    legend = (_LEGEND, *(_metric_note(suite) if category == "PairClassification" else ()), *said)
    return Table(key, title, caption, tuple(columns), body, legend)


def _short(name: str, category: str | None) -> str:
    """A data set's name without that of its category, which the table's title says."""
    return name.replace(category, "").replace("..", ".") or name if category and category != "STS" else name


def _sub(parts: Iterable[Sequence[tuple[Record, Score]]]) -> str:
    """The metric and how many texts or pairs, as mteb counts them."""
    scores = [s for part in parts for _, s in part]
    sizes = sorted({s.n for s in scores} - {0})
    metrics = [m.replace("_", " ") for m in dict.fromkeys(s.metric for s in scores)]
    return " · ".join([" / ".join(metrics), *([f"n = {' / '.join(f'{n:,}' for n in sizes)}"] if sizes else [])])


# Metric of the embedded tasks -> what its columns stand under.
_EMBEDDED: Mapping[str, str] = {"ndcg_at_10": "Retrieval · nDCG@10", "v_measure": "Clustering · V-measure"}


def embedded_table(comparison: Comparison, significance: Significance | None = None) -> Table | None:
    """Retrieval and clustering over the embedded data: tasks of mteb's kinds without a hub."""
    tasks = comparison.columns("embedded-mteb")
    if not tasks:
        return None
    rows = comparison.rows
    columns, cells = list(HEAD), [list(head_cells(row)) for row in rows]
    by_column: dict[int, Target] = {}
    for task, source in tasks:
        measure = main_measure(comparison, "embedded-mteb", task, source)
        metric, how = (measure.metric, measure.aggregation) if measure is not None else ("", "")
        if measure is not None:
            by_column[len(columns)] = alone(measure)
        title = task.removeprefix("Embedded-").removeprefix("Retrieval-").replace("Clustering", "by topic")
        size = size_text(rows, task, source, metric, how, "texts")
        columns.append(Column(task, title, size, group=_EMBEDDED.get(metric, metric), better="higher"))
        for line, row in zip(cells, rows, strict=True):
            line.append(score_cell(row, task, source, metric, how, scale=100, digits=2))
        mark_unlike(rows, cells, len(columns) - 1, task, source, metric, how)
    body, said = judged_rows(comparison, significance, columns, cells, by_column, list(by_column))
    return Table(
        "embedded-mteb",
        "Embedded retrieval and clustering",
        "Scored by the mteb library on data that ships with the harness. Queries of the natural part share words with "
        "their passage, those of the contrast part almost none; clustering is by topic.",
        tuple(columns),
        body,
        (
            "×100, mean ± standard deviation over seeds. Unlike data and unlike metrics: reported apart and never "
            "averaged.",
            *said,
        ),
    )
