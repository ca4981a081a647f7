"""MTEB's benchmarks as suites, and every text task of mteb by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.results.record import Score
from harness.tasks.averages import Average, mean_of
from harness.tasks.mteb.benchmarks import (
    BENCHMARK,
    EMBEDDED,
    MTEB_SUITES,
    PREFIX,
    mteb_values,
    names_of,
)
from harness.tasks.mteb.task import MTEBTask, make_embedded_task, mteb_task
from harness.tasks.suite import OpenFamily, Suite

if TYPE_CHECKING:
    from harness.sources.pair_sets import Source

_RETRIEVAL = ("Embedded-Retrieval-natural", "Embedded-Retrieval-contrast")


@dataclass(frozen=True)
class BenchmarkMean:
    """The mean over data sets of a benchmark, of the number of each that its table prints."""

    title: str
    benchmark: str
    names: tuple[str, ...]

    def of(self, scores: Iterable[Score]) -> Average:
        return mean_of(mteb_values(scores, self.benchmark), self.names)


def benchmark_suite(benchmark: str, about: str) -> Suite:
    """One of `MTEB_SUITES`, with the average of each category and that over all data sets."""
    categories = MTEB_SUITES[benchmark]
    means = []
    for category, names in categories.items():
        title = f"{benchmark}, {category}"
        means.append(BenchmarkMean(title, benchmark, names))
    means.append(
        BenchmarkMean(f"{benchmark}, average over data sets", benchmark, names_of(categories))
    )
    return Suite(
        tuple(PREFIX + name for name in names_of(categories)),
        about,
        averages=tuple(means),
    )


EN_V1 = benchmark_suite(
    "mteb-en-v1", "the 56 English data sets of MTEB's paper, on which papers of 2022-2024 report"
)
EN_V2 = benchmark_suite("mteb-en-v2", "the 41 tasks of MMTEB's English benchmark")
QUICK = benchmark_suite(
    "mteb-quick", "one to three small MTEB sets of each category: minutes on a laptop"
)
NANOBEIR = benchmark_suite("nanobeir", "thirteen retrieval sets of BEIR, cut to 50 queries each")
RTEB_OPEN = benchmark_suite(
    "rteb-open", "the tasks of RTEB (English) with public data: law, finance, code, health"
)
HUME = benchmark_suite(
    "hume", "small parts of 16 sets that people were scored on too; the English ones"
)
NEGATION = benchmark_suite(
    "negation-paraphrase", "mteb's tasks on negation, counterfactuals and paraphrases"
)
EMBEDDED_SUITE = Suite(
    (*_RETRIEVAL, "Embedded-Clustering"), "retrieval and clustering by mteb on embedded data"
)
_BENCHMARKS = (EN_V1, EN_V2, QUICK, NANOBEIR, RTEB_OPEN, HUME, NEGATION)
EMBEDDED_RETRIEVAL = Suite(_RETRIEVAL, "both parts of the embedded retrieval task")


def _task(name: str, source: Source) -> MTEBTask:
    if name.startswith(EMBEDDED):
        return make_embedded_task(name)
    return mteb_task(name)


def _find(name: str) -> str:
    from harness.tasks.mteb.adapter import open_task  # imports mteb: seconds

    task = mteb_task(name)
    open_task(task.task_name, task.subset)
    return task.name


def open_benchmark(name: str) -> Suite:
    """Any benchmark of mteb as a suite, from "mteb-benchmark:NAME": its tasks with the splits and
    subsets that it takes, the average of each type of task and that over all.

    Raises:
        InputError: mteb knows no such benchmark, or it has tasks beyond text.
    """
    from harness.tasks.mteb.adapter import benchmark_tasks  # imports mteb: seconds

    benchmark = name.removeprefix(BENCHMARK)
    kinds = benchmark_tasks(benchmark)
    means = []
    for kind, tasks in _sort_by_kind(kinds).items():
        title = f"{benchmark}, {kind}"
        means.append(BenchmarkMean(title, benchmark, tasks))
    title = f"{benchmark}, average over data sets"
    means.append(BenchmarkMean(title, benchmark, tuple(kinds)))
    about = f"{benchmark}, as the installed mteb defines it"
    tasks_of_suite = tuple(PREFIX + task for task in kinds)
    return Suite(tasks_of_suite, about, averages=tuple(means))


def benchmarks_of(suites: Iterable[object]) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the tasks by type of each suite of the form "mteb-benchmark:NAME"; others are left out.

    Raises:
        InputError: as `open_benchmark`.
    """
    names = [name for name in suites if isinstance(name, str) and name.startswith(BENCHMARK)]
    if not names:
        return {}
    from harness.tasks.mteb.adapter import benchmark_tasks  # imports mteb: seconds

    return {
        name: _sort_by_kind(benchmark_tasks(name.removeprefix(BENCHMARK)))
        for name in dict.fromkeys(names)
    }


def _sort_by_kind(kinds: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return type -> tasks, of task -> type."""
    found = {}
    for kind in dict.fromkeys(kinds.values()):
        of_kind = [task for task in kinds if kinds[task] == kind]
        found[kind] = tuple(of_kind)
    return found


TASKS = OpenFamily(
    names=tuple(
        dict.fromkeys(task for suite in (*_BENCHMARKS, EMBEDDED_SUITE) for task in suite.tasks)
    ),
    make=_task,
    prefix=PREFIX,
    find=_find,
    beyond=f"every text task of mteb as {PREFIX}NAME or {PREFIX}NAME/SUBSET",
    suite_prefix=BENCHMARK,
    open_suite=open_benchmark,
)
