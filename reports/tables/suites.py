"""The tables of scores, one a suite: STS, embedded pairs, classification, other languages, and
suites of others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from harness.tasks.averages import Average, mean_of
from harness.tasks.senteval.transfer import TRANSFER
from harness.tasks.suite import Suite
from reports.document.table import Better, Column, Table, number_text
from reports.load import RecordedResults, RecordedRow
from reports.stats.significance import Significance
from reports.suite_targets import TRANSFER_SUITES, find_suite, main_measure, transfer_average
from reports.tables.score_table import ScoreTable
from reports.targets import SOURCES, Measure, Target, targets

MEAN = "mean ± standard deviation over seeds."
LANGUAGES = {
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "it": "Italian",
    "nl": "Dutch",
    "pl": "Polish",
    "pt": "Portuguese",
    "ru": "Russian",
    "zh": "Chinese",
}

_CLASSIFIED = "A small classifier on the frozen vectors, as in SentEval."


class _Known(NamedTuple):
    """How the table of a suite is headed.

    `prefix` is left out of the names of tasks; `grouped`: what is before the dash in a name is over
    several columns.
    """

    title: str
    caption: str
    prefix: str = ""
    noun: str = "examples"
    grouped: bool = False


_KNOWN = {
    "transfer": _Known("Transfer tasks", _CLASSIFIED),
    "transfer-prototyping": _Known(
        "Transfer tasks, prototyping configuration", _CLASSIFIED, "prototyping:"
    ),
    "downstream": _Known("Other downstream tasks", _CLASSIFIED),
    "probing": _Known("Probing tasks", _CLASSIFIED),
    "embedded-transfer": _Known(
        "Embedded transfer tasks",
        f"{_CLASSIFIED} Natural and contrast parts are never averaged.",
        "Embedded-",
        grouped=True,
    ),
    "multilingual": _Known(
        "Semantic textual similarity in other languages",
        "The test pairs of the STS benchmark, machine-translated (STSb Multi MT): the same in every language.",
        "STS-B-",
        "pairs",
    ),
    "own-similarity": _Known(
        "Your scored pairs", "Cosine similarity and the scores of the file.", noun="pairs"
    ),
    "own-pair-classification": _Known(
        "Your labelled pairs",
        "Pairs of the file by falling cosine: average precision.",
        noun="pairs",
    ),
    "own-triplets": _Known(
        "Your triplets", "Share of anchors that are nearer to the positive.", noun="triplets"
    ),
    "own-classification": _Known("Your labelled texts", _CLASSIFIED, noun="texts"),
    "own-clustering": _Known(
        "Your labelled texts as clusters", "Clustered by the mteb library.", noun="texts"
    ),
    "own-retrieval": _Known(
        "Your queries and passages", "Scored by the mteb library.", noun="queries"
    ),
    "embedded-mteb": _Known(
        "Embedded retrieval and clustering",
        "Scored by the mteb library. Queries of the natural part share words with their passage, those of the contrast "
        "part almost none; clustering is by topic. Never averaged.",
        "Embedded-",
        "texts",
        grouped=True,
    ),
}
# Suites that describe a model rather than score it
NOT_SCORED = (
    "geometry",
    "layers",
    "compression",
    "efficiency",
)
# Of these metrics a higher score is better, whichever task has them.
_HIGHER = frozenset(
    {"spearman", "pearson", "kendall", "cosine_spearman", "cosine_pearson"}
    | {"accuracy", "f1", "ap", "map", "mrr", "auc", "precision", "recall"}
    | {
        "cosine_ap",
        "cosine_accuracy",
        "ndcg",
        "ndcg_at_10",
        "recall_at_1",
        "recall_at_10",
        "v_measure",
    }
)
RETRIEVAL = ("embedded-mteb",)  # in the section of MTEB


def sts_tables(
    comparison: RecordedResults, significance: Significance | None = None
) -> Iterator[Table]:
    """One table for each source of the STS tasks, one for the embedded pairs."""
    groups: dict[str, list[Target]] = {}
    for target in targets(comparison):
        groups.setdefault(
            "embedded" if target.key.startswith("embedded-") else target.key, []
        ).append(target)
    for key, members in groups.items():
        yield _sts_table(comparison, significance, key, members)


def _sts_table(
    comparison: RecordedResults,
    significance: Significance | None,
    key: str,
    members: list[Target],
) -> Table:
    made = ScoreTable(comparison, significance)
    for measure in (measure for target in members for measure in target.measures):
        made.add_task(Column(measure.task, measure.task, better="higher"), measure, noun="pairs")
    for measure in (measure for target in members for measure in target.others):
        few = ("most rows were not scored on it: it is in no average",)
        made.add_task(
            Column(measure.task, measure.task, better="higher", notes=few),
            measure,
            noun="pairs",
            decides=False,
        )
    average = members[0]
    if len(average.measures) > 1:
        column = Column("average", "Avg.", f"{len(average.measures)} tasks", better="higher")
        made.add_average(
            column,
            [_means(row, average.measures) for row in comparison.rows],
            average,
        )
    if key == "embedded":
        title = "Embedded suite"
        caption = (
            "Pairs of sentences that ship with the harness: natural pairs, where word overlap helps, and contrast "
            "pairs, where it does not. There is no average of the two."
        )
    else:
        source = average.measures[0].source
        title = f"Semantic textual similarity · {SOURCES.get(source, source)}"
        caption = 'Test splits, cosine similarity; aggregation "all": one correlation over all pairs of a task.'
    return made.table(f"scores-{key}", title, caption, f"Spearman ×100, {MEAN}")


def _means(
    row: RecordedRow,
    measures: Sequence[Measure],
    decimals: int | None = None,
) -> dict[str, Average]:
    """Run id -> the mean over some tasks, of numbers with so many decimals."""
    values = {}
    for r in row.finished:
        of_run = {}
        for measure in measures:
            value = measure.value(r)
            if value is not None:
                of_run[measure.task] = 100 * value
        values[r.id] = of_run
    tasks = [measure.task for measure in measures]
    return {
        run: mean_of(by_task, tasks, decimals=decimals)
        for run, by_task in values.items()
        if by_task
    }


def suite_tables(
    comparison: RecordedResults,
    significance: Significance | None = None,
    suites: Collection[str] = tuple(_KNOWN),
) -> Iterator[Table]:
    """One table for each of these suites that has scores; an average only where a paper or the
    suite takes one.
    """
    for suite in suites:
        if comparison.columns(suite):
            yield _suite_table(comparison, significance, suite)


def other_tables(
    comparison: RecordedResults,
    significance: Significance | None = None,
    *,
    shown: Collection[str],
) -> Iterator[Table]:
    """One table for each suite with scores that is not among those `shown` elsewhere, in the order
    met.
    """
    others = [suite for suite in comparison.suites if suite not in shown]
    return suite_tables(comparison, significance, others)


def _better(about: Suite | None, measures: Sequence[Measure]) -> Better:
    """Return which numbers of a suite are the better ones; "" where neither a suite that is
    installed nor the names of its metrics say so.
    """
    if about is not None:
        return "higher" if about.higher_is_better else "lower"
    if measures and all(one.metric in _HIGHER for one in measures):
        return "higher"
    return ""


def _suite_table(
    comparison: RecordedResults,
    significance: Significance | None,
    suite: str,
) -> Table:
    about = find_suite(suite)
    known = _KNOWN.get(suite) or _describe_unknown(suite, about)
    measures = {key: main_measure(comparison, suite, *key) for key in comparison.columns(suite)}
    found = [one for one in measures.values() if one is not None]
    better = _better(about, found)
    if about is None:
        percent = _all_below_one(comparison, found)
    else:
        percent = about.percent
    if percent:
        scale = 100
        digits = 2
        legend = f"×100, {MEAN}"
    else:
        scale = 1
        digits = 4
        legend = MEAN.capitalize()
    guessed = None if suite in _KNOWN else about
    made = ScoreTable(comparison, significance if better == "higher" else None)
    keys = _keys_of_columns(list(measures))
    for (task, source), measure in measures.items():
        shown = measure or Measure(task, source, "", "")
        sub = _describe_metric(shown, guessed, scale, digits)
        group, title = _heads_of(task, suite, known)
        key = keys[task, source]
        column = Column(key, title, sub, group=group, better=better)
        decides = measure is not None and percent
        made.add_task(
            column,
            shown,
            scale=scale,
            digits=digits,
            noun=known.noun,
            decides=decides,
        )
    if suite in TRANSFER_SUITES:
        _add_transfer_average(made, comparison, suite, measures)
    if guessed is not None:
        _add_averages(made, comparison, guessed, better)
    if not better:
        legend += " Nothing installed here says which way is better, so no number is marked."
    return made.table(f"suite-{suite}", known.title, known.caption, legend)


def _keys_of_columns(tasks: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return the key of the column of each (task, source): its source is in it where several have
    a task of that name.
    """
    names = [task for task, _ in tasks]
    keys = {}
    for task, source in tasks:
        if names.count(task) == 1:
            keys[task, source] = task
        else:
            keys[task, source] = f"{task} {source}"
    return keys


def _add_transfer_average(
    made: ScoreTable,
    comparison: RecordedResults,
    suite: str,
    measures: Mapping[tuple[str, str], Measure | None],
) -> None:
    """Add SentEval's mean of seven, where just those were to be evaluated."""
    names = {task.removeprefix(_KNOWN[suite].prefix) for task, _ in measures}
    if names != set(TRANSFER):
        return
    seven = []
    for key, one in measures.items():
        seven.append(one or Measure(*key, "accuracy", ""))
    averages = [_means(row, seven, decimals=2) for row in comparison.rows]
    column = Column("average", "Avg.", f"{len(TRANSFER)} tasks", better="higher")
    made.add_average(column, averages, transfer_average(comparison, suite))


def _describe_metric(measure: Measure, about: Suite | None, scale: float, digits: int) -> str:
    """Return the metric of a task, and what guessing gives where its suite says so."""
    if measure.metric:
        texts = [measure.metric.replace("_", " ")]
    else:
        texts = []
    if about is not None:
        chance = about.chance_of(measure.task)
    else:
        chance = None
    if chance is not None:
        texts.append(f"chance {number_text(scale * chance, digits)}")
    return " · ".join(texts)


def _add_averages(
    made: ScoreTable,
    comparison: RecordedResults,
    about: Suite,
    better: Better,
) -> None:
    """Add the averages that a suite of another package takes."""
    for average in about.averages:
        column = Column(f"average {average.title}", average.title, better=better)
        by_row = []
        for row in comparison.rows:
            by_row.append({record.id: average.of(record.scores) for record in row.finished})
        made.add_average(column, by_row, None)


def _describe_unknown(suite: str, about: Suite | None) -> _Known:
    """Return title and caption of a suite of another package, by what it says of itself."""
    if about is None:
        return _Known(f"Suite {suite}", "Scores that no other table shows.")
    text = about.about.rstrip(".")
    return _Known(f"Suite {suite}", f"{text[0].upper()}{text[1:]}.")


def _all_below_one(comparison: RecordedResults, measures: Sequence[Measure]) -> bool:
    """True if all scores lie between -1 and 1, so that they are shown times 100."""
    for measure in measures:
        for record in comparison.records:
            value = measure.value(record)
            if value is not None and abs(value) > 1:
                return False
    return True


def _heads_of(task: str, suite: str, known: _Known) -> tuple[str, str]:
    """Return the head above some columns ("" for none), and the head of a task's own column."""
    name = task.removeprefix(known.prefix)
    if suite == "multilingual":
        return "", LANGUAGES.get(name, name)
    if known.grouped:
        group, dash, part = name.partition("-")
    else:
        group = ""
        dash = ""
        part = name
    return (group if dash else ""), (part or name)
