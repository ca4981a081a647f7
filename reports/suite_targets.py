"""What rows are compared by in the table of a suite: the number of each task, and the average that
the table prints.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness import registry
from harness.results.record import Score
from harness.tasks.mteb.benchmarks import BENCHMARK, PREFIX, mteb_scores, names_of
from harness.tasks.senteval.transfer import TRANSFER
from harness.tasks.suite import Suite
from reports.results import Results
from reports.targets import SOURCES, Measure, Target, alone, targets, tasks_of_most_rows

# The number of a task: the first of these that it has, else the metric that its suite names, else
# its first score.
_METRICS = (
    ("accuracy", ""),
    ("spearman", "all"),
    ("spearman", ""),
    ("recall", "mean of six recalls"),
)
# Suites whose tables print the mean of SentEval's seven, and what stands before the tasks' names.
TRANSFER_SUITES = {"transfer": "", "transfer-prototyping": "prototyping:"}
MTEB_TITLES = {
    "mteb-en-v1": "MTEB (English, v1)",
    "mteb-en-v2": "MTEB (English, v2)",
    "mteb-quick": "MTEB, quick selection",
    "nanobeir": "NanoBEIR",
    "rteb-open": "RTEB (English), public tasks",
    "hume": "HUME, English parts",
    "negation-paraphrase": "Negation and paraphrase",
}


def title_of_benchmark(suite: str) -> str:
    """Return what the tables of a suite of mteb's tasks are called."""
    return MTEB_TITLES.get(suite) or suite.removeprefix(BENCHMARK)


# Suites that describe a model rather than score it
_DESCRIPTIVE = (
    "geometry",
    "layers",
    "compression",
    "efficiency",
)


def find_suite(suite: str) -> Suite | None:
    """What the suite says of itself; None where no package that is installed has it."""
    return (
        registry.load(registry.SUITES, suite) if suite in registry.names(registry.SUITES) else None
    )


def main_measure(results: Results, suite: str, task: str, source: str) -> Measure | None:
    """The number of a task in the table of its suite; None where no run has any."""
    scores = []
    for s in results.scores:
        if (s.suite, s.task, s.source) == (suite, task, source):
            scores.append(s)
    about = find_suite(suite)
    if about is None or suite in _OURS:
        wanted = [*_METRICS]
    else:
        wanted = []
    named = [s for s in scores if about is not None and s.metric == about.metric]
    for metric, aggregation in wanted:
        if found := next(
            (s for s in scores if (s.metric, s.aggregation) == (metric, aggregation)), None
        ):
            return _of(found)
    if scores:
        return _of((named or scores)[0])
    return None


_OURS = ("downstream", "probing", "multilingual", "embedded-transfer", *TRANSFER_SUITES)


def _of(score: Score) -> Measure:
    return Measure(score.task, score.source, score.metric, score.aggregation, score.split)


def suite_measures(results: Results, suite: str) -> list[Measure]:
    """The numbers in the table of a suite, in its order."""
    found = []
    for task, source in results.columns(suite):
        measure = main_measure(results, suite, task, source)
        if measure is not None:
            found.append(measure)
    return found


def transfer_average(results: Results, suite: str) -> Target | None:
    """SentEval's mean of seven; None where not just those were evaluated."""
    measures = suite_measures(results, suite)
    prefix = TRANSFER_SUITES.get(suite)
    if prefix is None:
        return None
    tasks = {one.task.removeprefix(prefix) for one in measures}
    if tasks != set(TRANSFER):
        return None
    name = ", prototyping" if prefix else ""
    return Target(
        f"suite-{suite}",
        f"the average of the seven transfer tasks{name}",
        "transfer average",
        tuple(measures),
    )


def mteb_measures(results: Results, names: Sequence[str], suite: str = "") -> list[Measure]:
    """The scores of MTEB tasks that the table of `suite` prints; of tasks that some run has."""
    known: dict[str, Score] = {}
    for run in results.runs:
        for name, score in mteb_scores(run.scores, suite).items():
            known.setdefault(name, score)
    return [_of(known[name]) for name in names if name in known]


def mteb_average(results: Results, suite: str, category: str = "") -> Target | None:
    """The mean over the data sets of a benchmark, or of one of its categories; None where a data
    set has no score.
    """
    sets = results.benchmarks[suite]
    if category:
        names = sets[category]
    else:
        names = names_of(sets)
    measures = mteb_measures(results, names, suite)
    if len(measures) < len(names):
        return None
    title = title_of_benchmark(suite)
    if category:
        key = f"{suite}:{category}"
    else:
        key = suite
    if len(names) == 1:
        return alone(measures[0])
    if category:
        what = f"{category} in {title}"
    else:
        what = title
    return Target(
        key,
        f"the average of the {len(names)} data sets of {what}",
        f"{what} average",
        tuple(measures),
    )


def known_targets(results: Results) -> Iterator[tuple[tuple[str, ...], Target]]:
    """All that rows can be compared by, with the words that select each (the first one is
    shown): averages first, then tasks."""
    usual = targets(results)
    for target in usual:
        words: tuple[str, ...] = (target.short, target.key)
        if target.key.startswith("sts-") and len(target.measures) > 1:
            words = ("STS", *words)
        yield words, target
    for suite in results.suites:
        if suite == "mteb":
            yield from _mteb(results)
        elif suite not in ("sts", "embedded"):
            yield from _suite(results, suite)
    for suite in ("sts", "embedded"):
        for task, source in results.columns(suite):
            if not task.startswith("geometry:"):
                yield (task,), alone(Measure(task, source))


def primary_target(results: Results) -> Target | None:
    """Return the score that the comparison's file names as `primary`; None where it names none,
    or no run has it.
    """
    wanted = results.primary.lower()
    if not wanted:
        return None
    for words, target in known_targets(results):
        if wanted in [word.lower() for word in words]:
            return target
    return None


def name_target(results: Results, target: Target) -> str:
    """Return its title, and whether it is the primary score or a secondary one where the file
    names a primary score.
    """
    if not results.primary:
        return target.title
    if target == primary_target(results):
        role = "the primary score"
    else:
        role = "a secondary score"
    return f"{target.title} ({role})"


def _mteb(results: Results) -> Iterator[tuple[tuple[str, ...], Target]]:
    for suite, sets in results.benchmarks.items():
        for category in ("", *sets):
            if (target := mteb_average(results, suite, category)) is not None:
                yield (target.key,), target
    names: dict[str, None] = {}
    for kind in results.score_kinds:
        if kind.suite == "mteb":
            names[kind.task.removeprefix(PREFIX)] = None
    for measure in mteb_measures(results, list(names)):
        yield (measure.task.removeprefix(PREFIX), measure.task), alone(measure)


def _suite(results: Results, suite: str) -> Iterator[tuple[tuple[str, ...], Target]]:
    about = find_suite(suite)
    lower_is_better = about is not None and not about.higher_is_better
    if lower_is_better or any(word in suite for word in _DESCRIPTIVE):
        return
    measures = suite_measures(results, suite)
    kinds = {(measure.metric, measure.source) for measure in measures}
    own_tasks = suite.startswith(("embedded", "own-"))
    if (average := transfer_average(results, suite)) is not None:
        yield (suite, average.short), average
    elif not own_tasks and len(measures) > 1 and len(kinds) == 1:
        yield (suite,), _average_of_suite(results, suite, measures)
    for measure in measures:
        title = ""
        if measure.source != "file":
            title = f"{measure.task} ({SOURCES.get(measure.source, measure.source)})"
        last = measure.task.rsplit(":", 1)[-1]
        yield (measure.task, last), alone(measure, title)


def _average_of_suite(results: Results, suite: str, measures: Sequence[Measure]) -> Target:
    """Return the mean of the tasks of a suite that most rows have."""
    tasks = [(measure.task, measure.source) for measure in measures]
    most, _ = tasks_of_most_rows(results.rows, tasks)
    kept = tuple(measure for measure in measures if (measure.task, measure.source) in most)
    return Target(
        f"suite-{suite}",
        f"the average of {len(kept)} {suite} tasks",
        f"{suite} average",
        kept,
    )
