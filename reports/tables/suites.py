"""The tables of scores, one a suite: STS, embedded pairs, classification, other languages, and suites of others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Literal, NamedTuple

from harness.tasks.averages import Average, mean_of
from harness.tasks.senteval.transfer import TRANSFER
from reports.document.table import Column, Table, number_text
from reports.read.comparison_runs import Comparison, ResultRow
from reports.stats.significance import Significance
from reports.stats.suite_targets import main_measure, registered, transfer_average
from reports.stats.targets import SOURCES, Measure, Target, targets
from reports.tables.score_table import ScoreTable

MEAN = "mean ± standard deviation over seeds."
LANGUAGES = {
    "de": "German", "en": "English", "es": "Spanish", "fr": "French", "it": "Italian", "nl": "Dutch", "pl": "Polish",
    "pt": "Portuguese", "ru": "Russian", "zh": "Chinese",
}  # fmt: skip

_CLASSIFIED = "A small classifier on the frozen vectors, as in SentEval."
_ACCURACY = f"Accuracy ×100 where the head names nothing else, {MEAN}"


class _Known(NamedTuple):
    """How the table of a suite of ours is headed; `prefix` is left out of the names of tasks."""

    key: str
    title: str
    caption: str = _CLASSIFIED
    legend: str = _ACCURACY
    prefix: str = ""
    noun: str = "examples"


_KNOWN = {
    "transfer": _Known("accuracy-transfer", "Transfer tasks"),
    "transfer-prototyping": _Known(
        "accuracy-transfer-prototyping", "Transfer tasks, prototyping configuration", prefix="prototyping:"
    ),
    "downstream": _Known("accuracy-downstream", "Other downstream tasks"),
    "probing": _Known("accuracy-probing", "Probing tasks"),
    "embedded-transfer": _Known(
        "accuracy-embedded-transfer", "Embedded transfer tasks",
        f"{_CLASSIFIED} Natural and contrast parts are never averaged.", prefix="Embedded-",
    ),
    "multilingual": _Known(
        "multilingual", "Semantic textual similarity in other languages",
        "The test pairs of the STS benchmark, machine-translated (STSb Multi MT): the same in every language.",
        f"Spearman ×100, {MEAN}", "STS-B-", "pairs",
    ),
    "embedded-mteb": _Known(
        "embedded-mteb", "Embedded retrieval and clustering",
        "Scored by the mteb library on data that ships with the harness. Queries of the natural part share words with "
        "their passage, those of the contrast part almost none; clustering is by topic. Never averaged.",
        f"×100, {MEAN}", "Embedded-", "texts",
    ),
}  # fmt: skip
SCORES, RETRIEVAL = tuple(_KNOWN)[:-1], tuple(_KNOWN)[-1:]  # suites of the section "Scores", and of that of MTEB


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
        made.add_average(column, [_means(row, average.measures) for row in comparison.rows], average)
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


def _means(row: ResultRow, measures: Sequence[Measure], decimals: int | None = None) -> dict[str, Average]:
    """Run id -> the mean over some tasks, of numbers with so many decimals."""
    values = {r.id: {m.task: 100 * v for m in measures if (v := m.value(r)) is not None} for r in row.finished}
    tasks = [measure.task for measure in measures]
    return {run: mean_of(by_task, tasks, decimals=decimals) for run, by_task in values.items() if by_task}


def suite_tables(
    comparison: Comparison, significance: Significance | None = None, suites: Collection[str] = SCORES
) -> Iterator[Table]:
    """One table for each of these suites of ours that has scores; an average only where a paper takes one."""
    for suite in suites:
        if comparison.columns(suite):
            yield _suite_table(comparison, significance, suite)


def _suite_table(comparison: Comparison, significance: Significance | None, suite: str) -> Table:
    known, measures = _KNOWN[suite], list[Measure]()
    made = ScoreTable(comparison, significance)
    for task, source in comparison.columns(suite):
        found = main_measure(comparison, suite, task, source)
        measure = found or Measure(task, source, "accuracy", "")
        measures.append(measure)
        name = task.removeprefix(known.prefix)
        sub = "" if measure.metric in ("accuracy", "spearman") else measure.metric
        group, dash, part = name.partition("-")
        if suite == "embedded-mteb":
            group, sub = f"{group} · {sub.replace('_', ' ')}", ""
        elif suite != "embedded-transfer" or not dash:
            group, part = "", LANGUAGES.get(name, name) if suite == "multilingual" else name
        column = Column(task, part or name, sub, group=group, better="higher")
        made.add_task(column, measure, noun=known.noun, decides=found is not None)
    if {measure.task.removeprefix(known.prefix) for measure in measures} == set(TRANSFER):
        averages = [_means(row, measures, decimals=2) for row in comparison.rows]
        column = Column("average", "Avg.", f"{len(TRANSFER)} tasks", better="higher")
        made.add_average(column, averages, transfer_average(comparison, suite))
    return made.table(known.key, known.title, known.caption, known.legend)


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
    measures = {key: main_measure(comparison, name, *key) for key in comparison.columns(name)}
    values = [v for m in measures.values() if m for r in comparison.records if (v := m.value(r)) is not None]
    percent = suite.percent if suite is not None else all(abs(value) <= 1 for value in values)
    scale, digits = (100, 2) if percent else (1, 4)
    made = ScoreTable(comparison, significance if better == "higher" else None)
    for (task, source), found in measures.items():
        measure = found or Measure(task, source, "", "")
        chance = None if suite is None else suite.chance_of(task)
        sub = [measure.metric, measure.aggregation]
        sub += [f"chance {number_text(scale * chance, digits)}"] if chance is not None else []
        column = Column(f"{task} {source}", task, " · ".join(filter(None, sub)), better=better)
        decides = found is not None and percent
        made.add_task(column, measure, scale=scale, digits=digits, noun="examples", decides=decides)
    for average in suite.averages if suite is not None else ():
        column = Column(f"average {average.title}", average.title, better=better)
        made.add_average(column, [{r.id: average.of(r.scores) for r in row.finished} for row in comparison.rows], None)
    legend = f"{'×100, m' if percent else 'M'}{MEAN[1:]}"
    if suite is None:
        legend += " Nothing installed here says which way is better, so no number is marked."
    caption = suite.about if suite is not None else "Scores that no other table shows."
    return made.table(f"suite-{name}", f"Suite {name}", caption, legend)
