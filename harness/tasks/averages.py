"""Averages over tasks, each over exactly its own. All numbers are in percent (times 100).

An average with a task missing is marked incomplete and has no value: a mean over fewer tasks is
another number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.results.record import Score


@dataclass(frozen=True)
class Average:
    """`value` is None where tasks are `missing`; `of` says over how many it goes."""

    value: float | None
    missing: tuple[str, ...]
    of: int

    def describe(self) -> str:
        """ "76.80 (18 of 18)", or that it is incomplete and by what."""
        if self.value is not None:
            return f"{self.value:.2f} ({self.of} of {self.of})"
        few = ", ".join(self.missing[:3])
        if len(self.missing) > 3:
            few += ", ..."
        known = self.of - len(self.missing)
        return f"incomplete ({known} of {self.of}; missing: {few})"


def mean_of(
    values: Mapping[str, float],
    tasks: Sequence[str],
    *,
    decimals: int | None = None,
) -> Average:
    """The plain mean over `tasks`; `decimals`: each value is rounded first, as some papers' scripts
    do.
    """
    missing = tuple(task for task in tasks if task not in values)
    if missing or not tasks:
        return Average(None, missing, len(tasks))
    chosen = []
    for task in tasks:
        value = values[task]
        if decimals is not None:
            value = round(value, decimals)
        chosen.append(value)
    mean = sum(chosen) / len(chosen)
    return Average(mean, (), len(tasks))


@dataclass(frozen=True)
class Number:
    """The one of a task's scores that enters an average."""

    task: str
    metric: str
    aggregation: str = ""
    split: str = "test"

    @property
    def tasks(self) -> tuple[str, ...]:
        return (self.task,)

    def value(self, values: Mapping[Number, float]) -> float | None:
        """In percent; None where it is not among `values`."""
        return values.get(self)


@dataclass(frozen=True)
class Mean:
    """The plain mean of its `parts`: numbers of tasks, and means in turn, each of which counts as
    one.

    `decimals`: the value of each part is rounded first, as some papers' scripts do.
    """

    title: str
    parts: tuple[Number | Mean, ...]
    decimals: int | None = None

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that it goes over, each once."""
        tasks: list[str] = []
        for part in self.parts:
            tasks.extend(part.tasks)
        return tuple(dict.fromkeys(tasks))

    def value(self, values: Mapping[Number, float]) -> float | None:
        """In percent; None where a part has none."""
        parts = [part.value(values) for part in self.parts]
        known = [value for value in parts if value is not None]
        if not known or len(known) < len(parts):
            return None
        if self.decimals is not None:
            known = [round(value, self.decimals) for value in known]
        return sum(known) / len(known)

    def lacking(self, values: Mapping[Number, float]) -> tuple[str, ...]:
        """Its tasks of which a number is not among `values`."""
        absent: dict[str, None] = {}
        for part in self.parts:
            if isinstance(part, Mean):
                absent |= dict.fromkeys(part.lacking(values))
            elif part not in values:
                absent[part.task] = None
        return tuple(absent)

    def over(self, values: Mapping[Number, float]) -> Average:
        """From numbers in percent."""
        value = self.value(values)
        lacking = self.lacking(values)
        return Average(value, lacking, len(self.tasks))

    def of(self, scores: Iterable[Score]) -> Average:
        """From the scores of one run."""
        return self.over(numbers_of(scores))


def numbers_of(scores: Iterable[Score]) -> dict[Number, float]:
    """What the scores of one run say, in percent."""
    numbers = {}
    for score in scores:
        number = Number(score.task, score.metric, score.aggregation, score.split)
        numbers[number] = 100 * score.value
    return numbers
