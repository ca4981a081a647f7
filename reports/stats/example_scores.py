"""The scores of a comparison's runs with what each example does to them, of runs that were scored
on the same ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from harness.results.facts import DRAWS, Facts
from harness.results.outcomes import is_mean
from reports.read.examples import Examples, Ids
from reports.results import Results
from reports.stats.estimate import Floats
from reports.stats.influence import Influence, influence_with

ScoreKey = tuple[str, str, str, str]  # task, source, split, metric


@dataclass(frozen=True)
class Scored:
    """One run's score and the influence (n,) of each of its n examples.

    Attributes:
        is_share: the score is the mean of outcomes between 0 and 1, such as an accuracy.
        at_bounds: the share of the outcomes that are 0 or 1: all of an accuracy, few of others.
    """

    value: float
    influence: Floats
    digest: bytes = b""
    is_share: bool = False
    at_bounds: float = 0.0


class ExampleScores:
    """Reads the examples once, when the first score is requested.

    Attributes:
        given: score -> run id -> what it is made of, where examples are not known.
    """

    def __init__(
        self,
        results: Results,
        *,
        examples: Mapping[str, Sequence[Examples]] | None = None,
        given: dict[ScoreKey, dict[str, Scored]] | None = None,
    ) -> None:
        """Args:
        examples: run id -> examples, instead of those of the results.
        """
        self.results = results
        self.given = given
        self._examples = examples
        # (record id, task, source) of scores on other examples than the rest
        self.on_other_examples: set[tuple[str, str, str]] = set()
        self._usual: dict[ScoreKey, dict[str, Scored]] = {}
        self._tasks: dict[tuple[ScoreKey, bytes], _Task] = {}

    @cached_property
    def _runs(self) -> dict[ScoreKey, dict[str, Scored]]:
        """Score -> record id -> what it is made of."""
        if self.given is not None:
            return self.given
        found: dict[ScoreKey, dict[str, Scored]] = {}
        known = self._examples
        if known is None:
            known = self.results.examples
        for run, every in known.items():
            for examples in every:
                of_score = found.setdefault(examples.score, {})
                of_score[run] = self._score_run(examples)
        return found

    def _score_run(self, examples: Examples) -> Scored:
        key = (examples.score, examples.digest)
        if key not in self._tasks:
            task, *_ = examples.score
            self._tasks[key] = _Task(examples, self.results.facts.get(task))
        return self._tasks[key].score(examples.outcome)

    def of(self, score: ScoreKey) -> dict[str, Scored]:
        """Record id -> score, of the runs that were scored on the examples that most were."""
        if score not in self._usual:
            runs = self._runs.get(score, {})
            counts = Counter(scored.digest for scored in runs.values())
            usual = max(counts, key=counts.__getitem__, default=b"")
            on_usual = {}
            for run, scored in runs.items():
                if scored.digest == usual:
                    on_usual[run] = scored
                else:
                    self.on_other_examples.add((run, *score[:2]))
            self._usual[score] = on_usual
        return self._usual[score]

    def texts(self, score: ScoreKey) -> Ids | None:
        """(n, 1 or 2) ids of the texts of the examples that `of` is about; None where no run stored
        them.
        """
        for scored in self.of(score).values():
            task = self._tasks.get((score, scored.digest))
            return None if task is None else task.texts
        return None


class _Task:
    """The examples of a score without the outcomes: what all runs share that were scored on them."""

    def __init__(self, examples: Examples, facts: Facts | None) -> None:
        *_, metric = examples.score
        target = examples.target
        self.texts = examples.texts
        self._digest = examples.digest
        self._is_mean = is_mean(metric, target)
        self._parts: list[tuple[Ids, Callable[[Floats], Influence]]] = []
        for part in np.unique(examples.part):
            here = np.flatnonzero(examples.part == part)
            self._parts.append((here, influence_with(metric, target[here])))
        n = len(target)
        self._widening = _widening(len(np.unique(examples.texts, axis=0)))
        # Squared deviations from a mean of n lie below those from the true one by (n - 1) / n.
        self._draws = 1.0
        if facts is not None and facts.unit == DRAWS:
            self._draws = float(np.sqrt(n / len(self._parts)))

    def score(self, outcome: Floats) -> Scored:
        """Return the score of a run with these outcomes, and the influence of each example."""
        moved = np.zeros(len(outcome))
        values = []
        for here, influence in self._parts:
            value, of_part = influence(outcome[here])
            values.append(value)
            moved[here] = of_part
        count = len(self._parts)
        return Scored(
            float(np.mean(values)),
            moved * self._draws * self._widening / count,
            self._digest,
            is_share=self._is_mean and is_within_bounds(outcome),
            at_bounds=share_at_bounds(outcome),
        )


def is_within_bounds(outcome: Floats) -> bool:
    """True if every outcome lies between 0 and 1."""
    above = outcome >= 0
    below = outcome <= 1
    return bool(np.all(above & below))


def share_at_bounds(outcome: Floats) -> float:
    """Return the share of outcomes that are 0 or 1."""
    return float(np.isin(outcome, (0.0, 1.0)).mean())


def _widening(units: int) -> float:
    if units > 1:
        ratio = units / (units - 1)
        return float(np.sqrt(ratio))
    return 1.0
