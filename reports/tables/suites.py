"""The tables of scores, one a suite: STS, embedded pairs, classification, other languages, and suites of others."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Literal

from harness.results.record import Score
from harness.tasks.averages import Average, mean_of
from harness.tasks.senteval.transfer import TRANSFER
from harness.tasks.suite import Suite
from reports.document.table import Column, Table, number_text
from reports.read.comparison_runs import Comparison, ResultRow
from reports.stats.significance import Significance
from reports.stats.suite_targets import main_measure, registered, transfer_average
from reports.stats.targets import SOURCES, Measure, Target, targets
from reports.tables.score_table import ScoreTable

MEAN = "mean ± standard deviation over seeds."
# Suite -> title, what stands before its tasks' names.
CLASSIFICATION = {
    "transfer": ("Transfer tasks", ""),
    "transfer-prototyping": ("Transfer tasks, prototyping configuration", "prototyping:"),
    "downstream": ("Other downstream tasks", ""),
    "probing": ("Probing tasks", ""),
    "embedded-transfer": ("Embedded transfer tasks", "Embedded-"),
}
LANGUAGES = {
    "de": "German", "en": "English", "es": "Spanish", "fr": "French", "it": "Italian", "nl": "Dutch", "pl": "Polish",
    "pt": "Portuguese", "ru": "Russian", "zh": "Chinese",
}  # fmt: skip


def sts_tables(comparison: Comparison, significance: Significance | None = None) -> Iterator[Table]:
    """One table for each source of the STS tasks, one for the embedded pairs."""
    groups: dict[str, list[Target]] = {}
    for target in targets(comparison):
        groups.setdefault("embedded" if target.key.startswith("embedded-") else target.key, []).append(target)
    for key, members in groups.items():
        yield _sts_table(comparison, significance, key, members)


def _sts_table(comparison: Comparison, significance: Significance | None, key: str, members: list[Target]) -> Table:
    made = ScoreTable(comparison, significance)
    for measure in (measure for target in members for measure in target.measures):
        made.add_task(Column(measure.task, measure.task, better="higher"), measure, noun="pairs")
    for measure in (measure for target in members for measure in target.others):
        few = ("most rows were not scored on it: it is in no average",)
        made.add_task(
            Column(measure.task, measure.task, better="higher", notes=few), measure, noun="pairs", decides=False
        )
    average = members[0]
    if len(average.measures) > 1:
        column = Column("average", "Avg.", f"{len(average.measures)} tasks", better="higher")
        made.add_average(column, [_means(row, average) for row in comparison.rows], average)
    if key == "embedded":
        title, caption = "Embedded suite", (
            "Tasks that ship with the harness, under their own names: natural pairs, where word overlap helps, and "
            "contrast pairs, where it says nothing. They are reported apart and never averaged."
        )  # fmt: skip
    else:
        source = average.measures[0].source
        title = f"Semantic textual similarity · {SOURCES.get(source, source)}"
        caption = 'Test splits, cosine similarity; aggregation "all": one correlation over all pairs of a task.'
    return made.table(f"scores-{key}", title, caption, f"Spearman ×100, {MEAN}")


def _means(row: ResultRow, target: Target) -> dict[str, Average]:
    """Run id -> the mean over the tasks of a target."""
    tasks = [one.task for one in target.measures]
    values = {
        r.id: {one.task: 100 * v for one in target.measures if (v := one.value(r)) is not None} for r in row.finished
    }
    return {run: mean_of(by_task, tasks) for run, by_task in values.items() if by_task}


def accuracy_tables(comparison: Comparison, significance: Significance | None = None) -> Iterator[Table]:
    """One table for each suite of `CLASSIFICATION` that has scores; an average only where a paper takes one."""
    for suite in CLASSIFICATION:
        if comparison.columns(suite):
            yield _accuracy_table(comparison, significance, suite)


def _accuracy_table(comparison: Comparison, significance: Significance | None, suite: str) -> Table:
    title, prefix = CLASSIFICATION[suite]
    made = ScoreTable(comparison, significance)
    tasks = comparison.columns(suite)
    for task, source in tasks:
        measure = main_measure(comparison, suite, task, source) or Measure(task, source, "accuracy", "")
        name = task.removeprefix(prefix)
        group, dash, part = name.partition("-") if suite == "embedded-transfer" else ("", "", name)
        group, name = (group, part) if dash else ("", name)  # both parts of a task under one head
        sub = "" if measure.metric == "accuracy" else measure.metric
        made.add_task(Column(task, name, sub, group=group, better="higher"), measure, noun="examples")
    if {task.removeprefix(prefix) for task, _ in tasks} == set(TRANSFER):
        averages = [_transfer_means(row, tasks, prefix) for row in comparison.rows]
        column = Column("average", "Avg.", f"{len(TRANSFER)} tasks", better="higher")
        made.add_average(column, averages, transfer_average(comparison, suite))
    apart = " Natural and contrast parts are never averaged." if suite == "embedded-transfer" else ""
    caption = f"A small classifier on the frozen vectors, as in SentEval.{apart}"
    return made.table(f"accuracy-{suite}", title, caption, f"Accuracy ×100 where the head names nothing else, {MEAN}")


def _transfer_means(row: ResultRow, tasks: list[tuple[str, str]], prefix: str) -> dict[str, Average]:
    """Run id -> SentEval's mean of seven."""
    values: dict[str, dict[str, float]] = {}
    for task, source in tasks:
        for record, s in row.scores(task, source, "accuracy"):
            values.setdefault(record.id, {})[task.removeprefix(prefix)] = 100 * s.value
    return {run: mean_of(by_task, TRANSFER, decimals=2) for run, by_task in values.items()}


def multilingual_table(comparison: Comparison, significance: Significance | None = None) -> Table | None:
    """The STS benchmark's test pairs in the languages that were scored."""
    tasks = comparison.columns("multilingual")
    if not tasks:
        return None
    made = ScoreTable(comparison, significance)
    for task, source in tasks:
        language = LANGUAGES.get(task.rsplit("-", 1)[-1], task)
        made.add_task(Column(task, language, better="higher"), Measure(task, source), noun="pairs")
    caption = "The test pairs of the STS benchmark, machine-translated (STSb Multi MT): the same in every language."
    title = "Semantic textual similarity in other languages"
    return made.table("multilingual", title, caption, f"Spearman ×100, {MEAN}")


def other_tables(
    comparison: Comparison, significance: Significance | None = None, *, shown: Collection[str]
) -> Iterator[Table]:
    """One table for each suite with scores that is not among those `shown` elsewhere, in the order met."""
    scores = (s for r in comparison.records for s in r.scores if s.split != "dev")
    for suite in dict.fromkeys(s.suite for s in scores):
        if suite not in shown:
            yield _other_table(comparison, significance, suite)


def _other_table(comparison: Comparison, significance: Significance | None, name: str) -> Table:
    suite = registered(name)
    better: Literal["higher", "lower", ""] = "" if suite is None else "higher" if suite.higher_is_better else "lower"
    by_task = {key: _main_scores(comparison, name, *key, suite) for key in comparison.columns(name)}
    percent = suite.percent if suite is not None else all(abs(s.value) <= 1 for one in by_task.values() for s in one)
    scale, digits = (100, 2) if percent else (1, 4)
    made = ScoreTable(comparison, significance if better == "higher" else None)
    for (task, source), scores in by_task.items():
        metric, how = (scores[0].metric, scores[0].aggregation) if scores else ("", "")
        chance = None if suite is None else suite.chance_of(task)
        sub = [" ".join((metric, how)).strip()]
        sub += [f"n = {' / '.join(f'{n:,}' for n in sorted({s.n for s in scores}))}"] if scores else []
        sub += [f"chance {number_text(scale * chance, digits)}"] if chance is not None else []
        column = Column(f"{task} {source}", task, " · ".join(filter(None, sub)), better=better)
        measure = Measure(task, source, metric, how, scores[0].split if scores else "test")
        made.add_task(column, measure, scale=scale, digits=digits, decides=bool(scores) and percent)
    for average in suite.averages if suite is not None else ():
        column = Column(f"average {average.title}", average.title, better=better)
        made.add_average(column, [{r.id: average.of(r.scores) for r in row.finished} for row in comparison.rows], None)
    legend = f"{'×100, m' if percent else 'M'}{MEAN[1:]}"
    if suite is None:
        legend += " Nothing installed here says which way is better, so no number is marked."
    caption = suite.about if suite is not None else "Scores that no other table shows."
    return made.table(f"suite-{name}", f"Suite {name}", caption, legend)


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
