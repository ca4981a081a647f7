"""A suite: tasks under one name, and what a reader of their table has to know. It comes in by an
entry point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from harness.results.record import Score
from harness.sources.pair_sets import Source
from harness.tasks.averages import Average
from harness.tasks.base import Task


class SuiteAverage(Protocol):
    """An average that a suite prints under its scores, such as `harness.tasks.averages.Mean`.

    >>> from harness.tasks.averages import Mean
    >>> Mean("My average", ("a", "b"), "accuracy").title
    'My average'
    """

    @property
    def title(self) -> str: ...

    def of(self, scores: Iterable[Score]) -> Average:
        """The average over exactly its own tasks, in percent."""


@dataclass(frozen=True)
class Suite:
    """Tasks under one name (entry points `harness.suites`).

        >>> suite = Suite(("word-order",), "sentences and their words shuffled", metric="accuracy", chance=0.5)
        >>> suite.chance_of("word-order")
        0.5

    Attributes:
        tasks: their names (entry points `harness.tasks`), in the order of a table's columns.
        about: one line, for `harness list suites`.
        metric: the metric in the suite's table; "" is the first one of each task.
        chance: what guessing gives in that metric, in the unit of `Score.value`: one number for all
            tasks, or one for each task that has one; None where it is not known.
        higher_is_better: whether a larger number of that metric is the better one.
        percent: whether it is printed times 100.
        averages: printed below the scores of the whole suite.
    """

    tasks: tuple[str, ...]
    about: str
    metric: str = ""
    chance: Mapping[str, float] | float | None = None
    higher_is_better: bool = True
    percent: bool = True
    averages: tuple[SuiteAverage, ...] = field(default=())

    def chance_of(self, task: str) -> float | None:
        """What guessing gives in one task; None where it is not known."""
        if isinstance(self.chance, Mapping):
            return self.chance.get(task)
        return self.chance


@dataclass(frozen=True)
class TaskFamily:
    """Tasks that one function makes.

        >>> from harness.tasks.senteval.suites import probing_task
        >>> family = TaskFamily(("Length", "Depth"), lambda name, source: probing_task(name))
        >>> family.make("Depth", "senteval").name
        'Depth'

    Attributes:
        names: of the tasks; making the family reads no data and imports nothing slow.
        make: `make(name, source)` gives the task of that name. `source` is where the user wants
            public data from ("senteval" or "mteb"); tasks whose data has one place leave it aside.
    """

    names: tuple[str, ...]
    make: Callable[[str, Source], Task]


@dataclass(frozen=True)
class OpenFamily(TaskFamily):
    """A family that knows more tasks than it lists.

        >>> from harness.tasks.mteb.benchmark_suites import TASKS
        >>> TASKS.prefix
        'mteb:'

    Attributes:
        prefix: what all its names begin with; users may leave it out.
        find: `find(name)` gives the full name of a task that is not listed; `InputError` where
            there is none.
        beyond: these tasks in words, for error messages.
        suite_prefix: what the names of suites begin with that `open_suite` makes; "" for none.
        open_suite: `open_suite(name)` gives the suite of a full name; `InputError` where there is
            none.
    """

    prefix: str
    find: Callable[[str], str]
    beyond: str
    suite_prefix: str = ""
    open_suite: Callable[[str], Suite] | None = None
