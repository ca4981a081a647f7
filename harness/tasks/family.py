"""Several tasks that come in by one entry point of `harness.tasks`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.sources.pair_sets import Source
from harness.tasks.base import Task


@dataclass(frozen=True)
class TaskFamily:
    """Tasks that one function makes.

    Attributes:
        names: of the tasks; making the family reads no data and imports nothing slow.
        make: `make(name, source)` gives the task of that name. `source` is where the user wants public data from
            ("senteval" or "mteb"); tasks whose data has one place leave it aside.
    """

    names: tuple[str, ...]
    make: Callable[[str, Source], Task]


@dataclass(frozen=True)
class OpenFamily(TaskFamily):
    """A family that knows more tasks than it lists.

    Attributes:
        prefix: what all its names begin with; users may leave it out.
        find: `find(name)` gives the full name of a task that is not listed; `InputError` where there is none.
        beyond: these tasks in words, for error messages.
    """

    prefix: str
    find: Callable[[str], str]
    beyond: str
