"""What every row made of every example of a task: its score, and how wrong that is.

Rows are compared by errors, not by scores: a cosine of 0.8 is high in one space and low in another. The error of a pair
is how far its place among all pairs by cosine is from its place by gold score, as a share of all places (0: the same
place, 1: first instead of last); that of a classified text is 1 where it is wrong; that of a query 1 less its score.
Both are means over the seeds of a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from harness.errors import InputError
from harness.results.outcomes import is_mean
from harness.results.run_folder import RunFolder
from reports.explore.known_texts import Known, known_texts
from reports.explore.traits import TRAITS
from reports.read.comparison_runs import Comparison, ResultRow
from reports.read.examples import Examples, read_examples
from reports.stats.estimate import Floats

_SETS = ("v_measure",)  # scores of sets, of which no example can be shown
_USUAL = ("spearman", "accuracy")  # of several scores of one task the one that is shown

Key = tuple[str, str]  # of a row


@dataclass
class ExploredTask:
    """The n examples of one score of a task, as all rows that were scored on the same ones see them.

    Attributes:
        runs: row key -> record id -> the examples of each of its runs that were scored on these.
    """

    examples: Examples
    runs: Mapping[Key, Mapping[str, Examples]]

    @property
    def task(self) -> str:
        return self.examples.score[0]

    @property
    def source(self) -> str:
        return self.examples.score[1]

    @property
    def metric(self) -> str:
        return self.examples.score[3]

    @property
    def n(self) -> int:
        return len(self.examples.outcome)

    @cached_property
    def known(self) -> Known:
        """The texts, where the data can be had here."""
        return known_texts(self.examples)

    @cached_property
    def gold(self) -> list[str]:
        """Gold scores of pairs, classes; "" where there is none."""
        target = self.examples.target
        if np.isnan(target).all():
            return self.known.gold
        return [f"{value:g}" for value in np.round(target, 3).tolist()]

    @cached_property
    def scores(self) -> dict[Key, Floats]:
        """Row key -> (n,) mean over seeds of the cosine, of right or wrong, or of the query's score."""
        return {key: np.mean([run.outcome for run in runs.values()], axis=0) for key, runs in self.runs.items()}

    @cached_property
    def errors(self) -> dict[Key, Floats]:
        """Row key -> (n,) mean error over seeds, 0 to 1."""
        return {key: np.mean([error(run) for run in runs.values()], axis=0) for key, runs in self.runs.items()}

    @cached_property
    def traits(self) -> dict[str, tuple[tuple[str, ...], NDArray[np.int64]]]:
        """Trait -> the names of its slices, and the number of the slice of each example, -1 without texts."""
        found = {}
        have = [place for place, texts in enumerate(self.known.texts) if texts]
        for trait in TRAITS:
            named, numbers = trait.slices([self.known.texts[place] for place in have])
            if named:
                found[trait.key] = named, _spread(numbers, have, self.n)
        if (gold := self._by_gold()) is not None:
            found["gold"] = gold
        return found

    def _by_gold(self) -> tuple[tuple[str, ...], NDArray[np.int64]] | None:
        """Gold scores in three equal ranges of their scale; classes as they are."""
        target = self.examples.target
        if not np.isnan(target).any() and np.ptp(target) > 0:
            low, high = float(target.min()), float(target.max())
            ends = np.linspace(low, high, 4)
            named = tuple(f"{a:.3g} to {b:.3g}" for a, b in pairwise(ends))
            return named, np.clip(np.searchsorted(ends[1:-1], target, side="right"), 0, 2)
        classes = sorted(set(self.known.gold) - {""})
        if not 1 < len(classes) <= 12:
            return None
        place = {label: number for number, label in enumerate(classes)}
        named = tuple(f"class {label}" for label in classes)
        return named, np.array([place.get(label, -1) for label in self.known.gold])


def trait_titles() -> dict[str, str]:
    """Title of each way to slice, by key."""
    return {**{trait.key: trait.title for trait in TRAITS}, "gold": "Gold"}


def _spread(numbers: Sequence[int], places: Sequence[int], n: int) -> NDArray[np.int64]:
    whole = np.full(n, -1)
    whole[list(places)] = numbers
    return whole


def error(examples: Examples) -> Floats:
    """(n,) how wrong a run is on each example, 0 to 1 (see above)."""
    metric, target, outcome = examples.score[3], examples.target, examples.outcome
    if is_mean(metric, target):
        return np.asarray(np.clip(1 - outcome, 0, 1))
    if metric == "f1":
        return np.asarray(outcome != target, dtype=np.float64)
    from scipy.stats import rankdata

    apart = np.abs(rankdata(outcome) - rankdata(target))
    return np.asarray(apart / max(len(target) - 1, 1))


def explored_tasks(comparison: Comparison, wanted: Callable[[str, str], bool] | None = None) -> list[ExploredTask]:
    """Every task of a comparison whose runs kept what each example scored, in the order met, one score each.

    Args:
        wanted: of (task, source), which to read; all without it. Damaged runs are left out, with a warning.
    """
    found: dict[tuple[str, str, str, str], dict[Key, dict[str, Examples]]] = {}
    for row in comparison.rows:
        for record in row.finished:
            try:
                for examples in read_examples(RunFolder(comparison.workdir, record.id), comparison.left_out):
                    task, source, _, metric = examples.score
                    if metric not in _SETS and (wanted is None or wanted(task, source)):
                        found.setdefault(examples.score, {}).setdefault(row.key, {})[record.id] = examples
            except (OSError, ValueError, KeyError, InputError) as fault:
                comparison.warnings.append(f"examples of run {record.id} are unreadable ({type(fault).__name__})")
    tasks: dict[tuple[str, str], ExploredTask] = {}
    for score, by_row in found.items():
        one = _same_examples(by_row)
        if score[:2] not in tasks or (score[3] in _USUAL and tasks[score[:2]].metric not in _USUAL):
            tasks[score[:2]] = one
    return list(tasks.values())


def _same_examples(by_row: Mapping[Key, Mapping[str, Examples]]) -> ExploredTask:
    """The runs that were scored on the examples that most were."""
    every = [run for runs in by_row.values() for run in runs.values()]
    usual = Counter(run.digest for run in every).most_common(1)[0][0]
    alike = {key: {name: run for name, run in runs.items() if run.digest == usual} for key, runs in by_row.items()}
    same = [run for run in every if run.digest == usual]
    first = next((run for run in same if run.texts is not None), same[0])
    return ExploredTask(first, {key: runs for key, runs in alike.items() if runs})


def restricted(examples: Examples, mask: NDArray[np.bool_]) -> Examples:
    """Some of the examples of a run."""
    texts = examples.texts[mask] if examples.texts is not None else None
    return replace(
        examples, part=examples.part[mask], target=examples.target[mask], outcome=examples.outcome[mask], texts=texts
    )


def rows_of(comparison: Comparison, task: ExploredTask) -> list[ResultRow]:
    """The rows that have the task, in the order of the comparison."""
    return [row for row in comparison.rows if row.key in task.runs]
