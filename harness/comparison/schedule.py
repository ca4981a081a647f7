"""One selection rule: all rows of a comparison are scored on the dev set after the same numbers of updates.

A row that is looked at more often has more weights to choose the best of: the best of 60 scores is higher than the best
of 5 by luck alone. So the comparison's schedule (`every` of its table [dev]) wins over a method's own `eval_every`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from harness.comparison.experiment import DevSettings, Experiment
from harness.comparison.rows import Row, resolve_rows
from harness.errors import InputError

OWN = "own"
KEY = "eval_every"  # of the config of a method that the training loop trains


@dataclass(frozen=True)
class Schedule:
    """When the rows of a comparison are scored on its dev set.

    Attributes:
        every: updates between two scores of every row; None where each row keeps its own, or none is scored.
        instead_of: label of a row -> its own number, of those whose number is another one.
    """

    every: int | None = None
    instead_of: dict[str, int] = field(default_factory=dict)

    @property
    def note(self) -> str:
        """What was changed, in a sentence; empty where nothing was."""
        if not self.instead_of:
            return ""
        by_own: dict[int, list[str]] = {}
        for label, own in self.instead_of.items():
            by_own.setdefault(own, []).append(label)
        changed = "; ".join(f"{_names(labels)} alone: every {own:,}" for own, labels in by_own.items())
        return (
            f"all rows are scored on the dev set every {self.every:,} updates, so that none has more weights to choose "
            f'from than another ({changed}; [dev] every = "own" keeps what each row says)'
        )

    @property
    def overrides(self) -> list[str]:
        """What a command needs beside the experiment, so that a part of it has the schedule of the whole."""
        return [f"dev.every={self.every}"] if self.instead_of else []


def scheduled(rows: Sequence[Row], dev: DevSettings | None) -> tuple[list[Row], Schedule]:
    """The rows under the schedule of their comparison, and which that is.

    It is what `dev.every` says; where that says nothing, the densest of the rows: none then has fewer looks than its
    own recipe gives it. Rows whose weights no dev score selects, and those that cannot be run, have no part in it.
    """
    own = {row.label: n for row in rows if (n := _own(row)) is not None}
    if dev is None or dev.every == OWN or not own:
        return list(rows), Schedule()
    every = dev.every if isinstance(dev.every, int) else min(own.values())
    changed = {row.label: n for row in rows if (n := _own(row)) not in (None, every) and n is not None}
    made = [_looked_at(row, every) if _own(row) not in (None, every) else row for row in rows]
    return made, Schedule(every, changed)


def settled(experiment: Experiment, where: str) -> Experiment:
    """The experiment with its schedule as a number, where its rows say unlike ones: parts of it then have the same.

    As it is where a row cannot be resolved: it may be in no part that is asked for, and if it is, that is told later.
    """
    if experiment.dev is None or experiment.dev.every is not None:
        return experiment
    try:
        _, schedule = scheduled(resolve_rows(experiment, where, tolerant=True), experiment.dev)
    except InputError:
        return experiment
    if not schedule.instead_of:
        return experiment
    dev = experiment.dev.model_copy(update={"every": schedule.every})
    return experiment.model_copy(update={"dev": dev})


def _own(row: Row) -> int | None:
    """Updates between two dev scores, of a row whose weights they select; one that keeps its last has nothing to choose
    from."""
    value = getattr(row.config, KEY, None)
    last = getattr(row.config, "select", "best") == "last" and getattr(row.config, "patience", None) is None
    return value if isinstance(value, int) and not (row.fault or last) and row.method.uses_dev(row.config) else None


def _looked_at(row: Row, every: int) -> Row:
    return replace(row, config=row.config.model_copy(update={KEY: every}))


def _names(labels: Iterable[str]) -> str:
    names = list(labels)
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
