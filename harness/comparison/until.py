"""`harness compare --until decided`: seeds are added where a decision is open, in an order that is fixed beforehand.

After each round of runs the comparison is looked at: a plugin (entry points `harness.deciders`) reads the records and
says which rows stay in contention; these get one more seed each. All that a look says follows from the records of the
runs up to it. So nothing has to be remembered: after a kill the same command comes by the same looks, whose runs it
finds kept, to where it was. The looks stand in the comparison's manifest, for the report: its verdicts are corrected
for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from harness import registry
from harness.comparison.experiment import Experiment
from harness.comparison.plan import Plan, PlannedCell
from harness.comparison.rows import Row
from harness.errors import InputError
from harness.results.record import Record

FIRST = 3  # seeds at the first look: two say next to nothing of their spread
MOST = 15

Key = tuple[str, str]  # base model and label of a row


@dataclass(frozen=True)
class Until:
    """What seeds are added for, and up to where.

        >>> Until(most=8, hours=2.0).equivalence
        0.5

    Attributes:
        most: seeds of a row, those of the experiment included. The level of every look depends on it.
        order: the seeds that follow the experiment's; the integers after its largest when left out.
        runs, hours: of the whole comparison, kept runs included; a round that would begin beyond is not begun. Hours
            are those of training and scoring that the records say.
        equivalence: points; less is no difference that matters.
    """

    most: int = MOST
    order: tuple[int, ...] = ()
    runs: int | None = None
    hours: float | None = None
    equivalence: float = 0.5


@dataclass(frozen=True)
class Look:
    """What a decider says of the records so far.

    Attributes:
        contending: the rows that are to get another seed.
        said: where each row stands, in words for the manifest: label, base model, state and why.
        by: what rows were compared by, in words; empty where nothing can be compared.
    """

    contending: frozenset[Key]
    said: tuple[dict[str, Any], ...] = ()
    by: str = ""


class Decider(Protocol):
    """A plugin of `harness.deciders`."""

    rule: str
    """What its looks are made by, in a line for the manifest."""

    def __call__(self, workdir: Path, comparison: str) -> Look:
        """The rows in contention, by the manifest and the records of a comparison alone.

        The manifest's "until" has "first", "most", "equivalence" and the "looks" up to this one, each with its number
        of seeds; every cell has the number of the "look" that it was first part of, from 1.
        """


def checked_until(until: Until, experiment: Experiment) -> Until:
    """With the whole order of seeds settled.

    Raises:
        InputError: it cannot be used with this experiment.
    """
    if experiment.blocks or any(entry.seeds for entry in experiment.methods):
        raise InputError(
            "--until: adds seeds that all rows have in common; this file has parts, or rows with their own"
        )
    if until.equivalence < 0:
        raise InputError(f"--equivalence {until.equivalence:g}: a number of points, 0 or more")
    for name, value in (("runs", until.runs), ("hours", until.hours)):
        if value is not None and value <= 0:
            raise InputError(f"--budget {value:g}{name}: expected more than 0")
    first = max(len(experiment.seeds), FIRST)
    if until.most < first:
        own = f"the experiment names {first}" if first > FIRST else f"the first look takes {FIRST}"
        raise InputError(f"--most-seeds {until.most}: {own}")
    again = sorted(set(until.order) & set(experiment.seeds))
    if again or len(set(until.order)) < len(until.order):
        twice = again[0] if again else next(s for s in until.order if until.order.count(s) > 1)
        raise InputError(f"--more-seeds: {twice} stands twice, there or in the experiment's seeds {experiment.seeds}")
    wanted = until.most - len(experiment.seeds)
    following = range(max(experiment.seeds) + 1, max(experiment.seeds) + 1 + wanted)
    order = until.order or tuple(following)
    if len(order) < wanted:
        raise InputError(
            f"--more-seeds: {len(experiment.seeds)} of the experiment and {len(order)} more are fewer than "
            f"--most-seeds {until.most}"
        )
    if not registry.names(registry.DECIDERS):
        raise InputError(f"--until: no decider is installed (entry points {registry.DECIDERS.entry_points})")
    return replace(until, order=order[:wanted])


@dataclass
class Looks:
    """The course of a comparison that adds seeds: which runs there are, and what each look said."""

    until: Until
    seeds: tuple[int, ...]  # in the order in which every row gets them
    looks: list[dict[str, Any]] = field(default_factory=list)
    ended: Literal["", "decided", "seeds", "budget"] = ""
    _since: dict[tuple[str, str, int], int] = field(default_factory=dict)  # label, base model, seed -> look

    @classmethod
    def of(cls, until: Until, experiment: Experiment, kept: Mapping[str, Any] | None = None) -> Looks:
        """`until` as `checked_until` gave it; `kept` is the manifest that an earlier call left.

        Raises:
            InputError: the earlier call had other seeds or another number of them.
        """
        looks = cls(until, (*experiment.seeds, *until.order))
        earlier = (kept or {}).get("until") or {}
        if earlier.get("looks") and (earlier["seeds"], earlier["first"]) != (list(looks.seeds), looks.first):
            raise InputError(
                f"--until: this comparison was looked at as one of at most {earlier['most']} seeds, "
                f"{_shown(earlier['seeds'])}, and not {_shown(looks.seeds)}; what is changed after a look makes "
                f'another comparison: give it a name of its own (--set name="{experiment.name}-2"), all runs are kept'
            )
        return looks

    @property
    def first(self) -> int:
        """Seeds of a row at the first look."""
        return max(FIRST, len(self.seeds) - len(self.until.order))

    def begun(self, plan: Plan) -> Plan:
        """The plan of the first look.

        Raises:
            InputError: the budget is smaller than that.
        """
        begun = self._with(plan, {_key(row): self.first for row in plan.rows})
        if self.until.runs is not None and len(_runs(begun)) > self.until.runs:
            raise InputError(
                f"--budget {self.until.runs}runs: the first look takes {len(_runs(begun))}, {self.first} of every row"
            )
        return begun

    def look_of(self, cell: PlannedCell) -> int:
        """The first look that a run is part of, from 1."""
        return self._since[cell.row.label, cell.base_model, cell.seed]

    def manifest(self) -> dict[str, Any]:
        """As the comparison's manifest keeps it under "until"."""
        u = self.until
        return {
            "kind": "decided",
            "rule": _decider().rule,
            "first": self.first,
            "most": u.most,
            "seeds": list(self.seeds),
            "equivalence": u.equivalence,
            **({"runs": u.runs} if u.runs is not None else {}),
            **({"hours": u.hours} if u.hours is not None else {}),
            "looks": self.looks,
            "ended": self.ended,
        }

    def open(self) -> None:
        """All runs of the next look are there: the manifest that is written now has it."""
        self.looks.append({"seeds": self.first + len(self.looks)})

    def close(self, plan: Plan, workdir: Path, records: Sequence[Record]) -> Plan | None:
        """Have the look decided on, by the manifest as it is written; the plan of the next round, None at the end."""
        look = _decider()(workdir, plan.experiment.name)
        self.looks[-1].update({"by": look.by, "rows": list(look.said)})
        counts: dict[Key, int] = {}
        for cell in plan.cells:
            key = _key(cell.row)
            counts[key] = counts.get(key, 0) + 1
        number = self.first + len(self.looks)
        going = {key: number for key in counts if key in look.contending}
        if not going:
            self.ended = "decided"
        elif number > self.until.most:
            self.ended = "seeds"
        else:
            more = self._with(plan, counts | going)
            if len(more.cells) == len(plan.cells):  # no seed enters the rows that are open
                self.ended = "decided"
            elif self._beyond(more, records):
                self.ended = "budget"
            else:
                return more
        return None

    def told(self) -> str:
        """One line about the last look."""
        look = self.looks[-1]
        groups: dict[str, list[str]] = {}
        for row in look.get("rows", ()):
            groups.setdefault(row["state"], []).append(row["row"])
        said = "; ".join(f"{state}: {', '.join(names)}" for state, names in groups.items())
        line = f"look {len(self.looks)}, {look['seeds']} seeds: {said or 'nothing to compare'}"
        return f"{line} ({_ENDINGS[self.ended]})" if self.ended else line

    def _with(self, plan: Plan, counts: dict[Key, int]) -> Plan:
        """The plan in which every row has the first so many seeds of the order."""
        rows = [self._row(row, counts[_key(row)]) for row in plan.rows]
        more = replace(plan, rows=rows)
        for cell in more.cells:
            self._since.setdefault((cell.row.label, cell.base_model, cell.seed), len(self.looks) + 1)
        return more

    def _row(self, row: Row, count: int) -> Row:
        blocks = next(iter(row.seeds.values()), ("",))
        return replace(row, seeds=dict.fromkeys(self.seeds[:count], blocks))

    def _beyond(self, plan: Plan, records: Sequence[Record]) -> bool:
        spent = {r.id: r.seconds for r in records}
        over = self.until.hours is not None and sum(spent.values()) >= 3600 * self.until.hours
        return over or (self.until.runs is not None and len(_runs(plan)) > self.until.runs)


_ENDINGS = {
    "decided": "no decision is open that more seeds would settle",
    "seeds": "as many seeds as were to be had",
    "budget": "the budget is spent",
}


def _key(row: Row) -> Key:
    """As records know the row: a method that starts from something else has one row, not one a base model."""
    return row.method.base_for(row.config, row.base_model), row.label


def _shown(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds)) if len(seeds) < 7 else f"{', '.join(map(str, seeds[:4]))}, ..., {seeds[-1]}"


def _runs(plan: Plan) -> set[str]:
    return {cell.id for cell in plan.cells}


def _decider() -> Decider:
    decider: Decider = registry.load(registry.DECIDERS, registry.names(registry.DECIDERS)[0])
    return decider
