"""What differs between the rows of a comparison, and which of it usually matters: for a plan and for records alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from harness.comparison.fact_texts import FACTS, Fact
from harness.comparison.row_facts import NOT_RECORDED, RowFacts, of_plan

if TYPE_CHECKING:
    from harness.comparison.plan import Plan


@dataclass(frozen=True)
class Differences:
    """The columns in which rows differ.

    Attributes:
        rows: (label, base model) of each.
        columns: those with a difference, or with something that is not recorded for some rows only; the marked first.
        cells: column's key -> a text for each row; "" where a row has no such thing.
        marked: keys of the columns whose difference usually matters, between rows of one base model.
        unrecorded: titles of the columns of which nothing is recorded.
    """

    rows: tuple[tuple[str, str], ...]
    columns: tuple[Fact, ...]
    cells: Mapping[str, tuple[str, ...]]
    marked: tuple[str, ...] = ()
    unrecorded: tuple[str, ...] = field(default=())

    @property
    def mattering(self) -> list[Fact]:
        """The marked columns."""
        return [fact for fact in self.columns if fact.key in self.marked]


def planned(plan: Plan) -> Differences:
    """Those between the rows of a plan that can be run here."""
    first = {(cell.row.label, cell.base_model): cell for cell in reversed(plan.cells) if not cell.fault}
    order = dict.fromkeys((cell.row.label, cell.base_model) for cell in plan.cells)
    return differences({key: [of_plan(plan, first[key])] for key in order if key in first})


def differences(rows: Mapping[tuple[str, str], Sequence[RowFacts]]) -> Differences:
    """Those between rows: (label, base model) -> the facts of its runs, or of the plan of them."""
    columns, cells, marked, unrecorded = [], {}, [], []
    for fact in FACTS:
        said = {key: [text for run in runs if (text := fact.of(run)) is not None] for key, runs in rows.items()}
        values = {key: joined(texts) for key, texts in said.items() if texts}
        different = set(values.values())
        if different == {NOT_RECORDED}:
            unrecorded.append(fact.title)
        mixed = fact.within and any(len(set(texts)) > 1 for texts in said.values())
        if len(different) < 2 and not mixed:
            continue
        columns.append(fact)
        cells[fact.key] = tuple(values.get(key, "") for key in rows)
        if mixed or (fact.why and any(_matters(fact, rows, alike) for alike in _comparable(fact, values))):
            marked.append(fact.key)
    columns.sort(key=lambda fact: fact.key not in marked)
    return Differences(tuple(rows), tuple(columns), cells, tuple(marked), tuple(unrecorded))


def _comparable(fact: Fact, values: Mapping[tuple[str, str], str]) -> list[dict[tuple[str, str], str]]:
    """Values by base model, as rows are compared; of the base models themselves, all together."""
    if fact.key == "base":
        return [dict(values)]
    return [{key: text for key, text in values.items() if key[1] == base} for base in {base for _, base in values}]


def _matters(
    fact: Fact, rows: Mapping[tuple[str, str], Sequence[RowFacts]], values: Mapping[tuple[str, str], str]
) -> bool:
    return len(set(values.values())) > 1 and not fact.alike([run for key in values for run in rows[key]])


def joined(texts: Iterable[str]) -> str:
    """What the runs of a row say: one text where they agree."""
    each = list(Counter(texts))
    return " / ".join(each) if len(each) < 4 else f"{each[0]} / ... / {each[-1]}"


def told(plan: Plan, workdir: Path) -> str:
    """One line on differences that usually matter, before anything is trained; empty where there are none."""
    found = planned(plan).mattering
    if not found:
        return ""
    names = ", ".join(fact.title.lower() for fact in found)
    return f"rows differ in {names}: the report says in what, and harness compare --dry-run before it"
