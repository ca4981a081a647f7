"""A budget becomes a number of updates for each row: `Row.max_steps`, with as many epochs as that needs.

A row that makes as many updates anyway is the same run as without the budget, and keeps its id.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from harness.comparison.budget import BudgetSettings
from harness.comparison.rows import Row
from harness.comparison.run_length import RunLength, length_of, lengthened
from harness.comparison.timed_updates import TimedUpdates
from harness.errors import InputError, RunError

if TYPE_CHECKING:
    from harness.sources import Corpus


def budgeted(
    rows: Sequence[Row],
    budget: BudgetSettings,
    corpus_of: Callable[[Row], Corpus | None],
    times: TimedUpdates,
    precision: str,
    *,
    tolerant: bool = False,
) -> list[Row]:
    """The rows under a budget; those that are not trained by updates as they are.

    Raises:
        InputError: a row cannot have the budget.
        RunError: its updates cannot be timed. Where it is tolerated, a row keeps either as its fault.
    """
    if not budget.bounds:
        return list(rows)
    done = []
    for row in rows:
        try:
            done.append(_budgeted(row, budget, corpus_of(row), times, precision))
        except (InputError, RunError) as error:
            if not tolerant:
                raise
            done.append(replace(row, fault=str(error)))
    return done


def _budgeted(row: Row, budget: BudgetSettings, corpus: Corpus | None, times: TimedUpdates, precision: str) -> Row:
    if row.fault or corpus is None:
        return row
    length = length_of(row, corpus)
    if length is None:
        if not row.method.uses_dev(row.config):  # learns without updates
            return row
        if budget.kind != "updates":
            raise InputError(
                f'budget: row "{row.label}" trains parts with batches of their own, which a budget of {budget.kind} '
                "does not reach; leave the row out, or take equal updates"
            )
        return replace(row, max_steps=budget.updates)
    updates = _updates(row, budget, corpus, length, times, precision)
    return replace(row, config=lengthened(row.config, updates, length.epoch), max_steps=updates)


def _updates(
    row: Row, budget: BudgetSettings, corpus: Corpus, length: RunLength, times: TimedUpdates, precision: str
) -> int:
    if budget.updates is not None:
        return budget.updates
    if budget.sentences is not None:
        return math.ceil(budget.sentences / length.batch)
    assert budget.seconds is not None
    one = times.of(row, corpus, precision, length.epoch)
    if budget.seconds < one:
        raise InputError(
            f'budget: row "{row.label}" makes no update in {budget.seconds:g} s, as one takes {one:.3g} s; give more '
            "seconds, or smaller batches"
        )
    return int(budget.seconds / one)
