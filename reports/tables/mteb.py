"""MTEB's tables: averages by category, the data sets of each category, and the embedded tasks of
its kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from harness.results.record import Record, Score
from harness.tasks.mteb.benchmarks import (
    PAIRS_METRIC_V1,
    PREFIX,
    SUMMEVAL,
    SUMMEVAL_METRIC,
    mteb_averages,
    mteb_scores,
    names_of,
)
from reports.document.blocks import slug
from reports.document.table import Column, Table
from reports.load import RecordedResults, RecordedRow, RunScore
from reports.stats.significance import Significance
from reports.suite_targets import mteb_average, mteb_measures, title_of_benchmark
from reports.tables.score_table import ScoreTable
from reports.tables.suites import MEAN
from reports.targets import alone

_CATEGORIES = {"PairClassification": "Pair classification", "Summarization": "Summarisation"}
_QUIRK = (
    "SummEval as version 1 of mteb printed it, (mean correlation + mean p-value) / 2: the number of the published "
    "tables, and the one in the average. The corrected one is in a column of its own."
)
_PAIRS_V1 = f"average precision by cosine ({PAIRS_METRIC_V1}), as version 1 of mteb printed it"
_LEGEND = f"mteb's main score ×100, {MEAN}"


def mteb_tables(
    comparison: RecordedResults, significance: Significance | None = None
) -> Iterator[Table]:
    """Averages and data sets of every requested suite, then the tasks requested by name."""
    rest = _find_requested(comparison)
    if not rest:
        return
    suites = suites_of(comparison)
    for suite in suites:
        yield category_table(comparison, suite, significance)
        yield from dataset_tables(comparison, suite, significance)
        rest = [name for name in rest if name not in names_of(comparison.benchmarks[suite])]
    if not _find_scored(comparison).isdisjoint(rest):
        title = "Other MTEB tasks" if suites else "MTEB tasks"
        caption = "Tasks requested by name; they make no benchmark, so there is no average."
        yield _tasks(comparison, significance, "", "mteb-tasks", title, caption, rest, "")


def _find_requested(comparison: RecordedResults) -> list[str]:
    """mteb's names of the tasks that have a score or were missed, as first met."""
    names = []
    for task in comparison.requested_tasks:
        if task.startswith(PREFIX):
            names.append(task.removeprefix(PREFIX))
    return names


def suites_of(comparison: RecordedResults) -> list[str]:
    """The suites that were evaluated: all their tasks have a score or a reason why not, and are no
    part of others, save those that the file names.
    """
    named = comparison.file.benchmarks
    asked = set(_find_requested(comparison))
    whole = {}
    for suite, sets in comparison.benchmarks.items():
        if set(names_of(sets)) <= asked:
            whole[suite] = set(names_of(sets))
    found = []
    for suite, names in whole.items():
        larger: set[str] = set()
        for other, others in whole.items():
            is_named_again = others == names and other in named
            if len(others) > len(names) or is_named_again:
                larger |= others
        if suite in named or not names <= larger:
            found.append(suite)
    return found


def _find_scored(comparison: RecordedResults) -> set[str]:
    return {
        name for row in comparison.rows for r in row.finished for name in mteb_scores(r.scores, "")
    }


def category_table(
    comparison: RecordedResults, suite: str, significance: Significance | None = None
) -> Table:
    """The average of each category of a suite and that over its data sets."""
    rows = comparison.rows
    sets = comparison.benchmarks[suite]
    names = names_of(sets)
    averages = []
    for row in rows:
        averages.append({r.id: mteb_averages(r.scores, suite, sets) for r in row.finished})
    made = ScoreTable(comparison, significance)
    for category, members in sets.items():
        if len(members) > 1:
            size = f"{len(members)} data sets"
        else:
            size = _short(members[0], category)
        column = Column(
            category,
            _CATEGORIES.get(category, category),
            size,
            better="higher",
            notes=_notes(suite, category, members),
        )
        by_row = []
        for by_run in averages:
            by_row.append({run: by_category[category] for run, (by_category, _) in by_run.items()})
        made.add_average(column, by_row, mteb_average(comparison, suite, category), decides=False)
        for line, row in zip(made.cells, rows, strict=True):
            if not line[-1].notes and line[-1].state == "missing":
                line[-1] = line[-1].with_notes(*_reason(row, members))
    average = Column(
        "average",
        "Avg.",
        f"{len(names)} data sets",
        better="higher",
        notes=("over data sets, not categories",),
    )
    by_row = []
    for by_run in averages:
        by_row.append({run: overall for run, (_, overall) in by_run.items()})
    made.add_average(average, by_row, mteb_average(comparison, suite))
    caption = (
        "Mean of each category over its data sets; an average that lacks a data set is not shown."
    )
    return made.table(
        f"{slug(suite)}-categories", f"{title_of_benchmark(suite)} · categories", caption, _LEGEND
    )


def _reason(row: RecordedRow, names: Sequence[str]) -> tuple[str, ...]:
    """Why a row has none of some data sets: what the first of them says."""
    for name in names:
        reasons = row.reasons(PREFIX + name, named=False)
        if reasons:
            return reasons[:1]
    return ()


def _notes(suite: str, category: str, names: Sequence[str]) -> tuple[str, ...]:
    pairs = (_PAIRS_V1,) if suite == "mteb-en-v1" and category == "PairClassification" else ()
    return (*pairs, *((_QUIRK,) if SUMMEVAL in names else ()))


def dataset_tables(
    comparison: RecordedResults,
    suite: str,
    significance: Significance | None = None,
) -> Iterator[Table]:
    """One table for each category with any score: its data sets and their average."""
    scored = _find_scored(comparison)
    for category, members in comparison.benchmarks[suite].items():
        if not scored.isdisjoint(members):
            name = _CATEGORIES.get(category, category)
            caption = f"The data sets of the category {name.lower() if name != 'STS' else name}."
            title = f"{title_of_benchmark(suite)} · {name}"
            yield _tasks(
                comparison,
                significance,
                suite,
                f"{slug(suite)}-{category}",
                title,
                caption,
                members,
                category,
            )


def _tasks(
    comparison: RecordedResults,
    significance: Significance | None,
    suite: str,
    key: str,
    title: str,
    caption: str,
    names: Sequence[str],
    category: str,
) -> Table:
    """`category`: whose average is shown; none where it is empty."""
    made = ScoreTable(comparison, significance)
    by_run = {}
    for row in comparison.rows:
        for r in row.finished:
            by_run[r.id] = mteb_scores(r.scores, suite)
    for name in names:
        scored = []
        for row in comparison.rows:
            own = []
            for r in row.finished:
                if name in by_run[r.id]:
                    own.append((r, by_run[r.id][name]))
            scored.append(own)
        column = Column(
            PREFIX + name,
            _short(name, category),
            _sub(scored),
            better="higher",
            notes=_notes(suite, category, [name]),
        )
        measures = mteb_measures(comparison, [name], suite)
        target = alone(measures[0]) if measures else None
        made.add_scores(column, PREFIX + name, scored, target)
    if SUMMEVAL in names:
        _add_corrected(made)
    if category and len(names) > 1:
        column = Column("average", "Avg.", f"{len(names)} data sets", better="higher")
        sets = comparison.benchmarks[suite]
        averages = []
        for row in comparison.rows:
            of_row = {}
            for r in row.finished:
                by_category, *_ = mteb_averages(r.scores, suite, sets)
                of_row[r.id] = by_category[category]
            averages.append(of_row)
        made.add_average(column, averages, mteb_average(comparison, suite, category))
    return made.table(key, title, caption, _LEGEND)


def _add_corrected(made: ScoreTable) -> None:
    """Add the number of SummEval without the defect of its version 1."""
    by_row = []
    for row in made.comparison.rows:
        scores = []
        for record in row.finished:
            score = _find_corrected(record)
            if score is not None:
                scores.append((record, score))
        by_row.append(scores)
    column = Column("summeval-corrected", SUMMEVAL, "corrected", better="higher")
    made.add_scores(column, PREFIX + SUMMEVAL, by_row)


def _find_corrected(record: Record) -> Score | None:
    found = (
        s for s in record.scores if s.task == PREFIX + SUMMEVAL and s.metric != SUMMEVAL_METRIC
    )
    return next(found, None)


def _short(name: str, category: str) -> str:
    """A data set's name without that of its category, which the table's title says."""
    if category and category != "STS":
        return name.replace(category, "").replace("..", ".") or name
    return name


def _sub(parts: Iterable[Sequence[RunScore]]) -> str:
    """The metric and how many texts or pairs, as mteb counts them."""
    scores = []
    for part in parts:
        for _, s in part:
            scores.append(s)
    sizes = sorted({s.n for s in scores} - {0})
    metrics = []
    for m in dict.fromkeys(s.metric for s in scores):
        metrics.append(m.replace("_", " "))
    return " · ".join(
        [" / ".join(metrics), *([f"n = {' / '.join(f'{n:,}' for n in sizes)}"] if sizes else [])]
    )
