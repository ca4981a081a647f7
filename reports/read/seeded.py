"""Does a seed enter a row? One run of it then says nothing about the next."""

from __future__ import annotations

from functools import lru_cache

from harness import registry
from harness.errors import InputError
from reports.read.comparison_runs import SEEDLESS, ResultRow


def seeded(row: ResultRow) -> bool:
    """Whether another seed may give another score.

    Rows with several runs are, and a run of updates, whose batches are drawn. Any other single run: as the method says
    of itself; of a method that is not installed here, as its supervision lets guess.
    """
    if row.supervision == "untrained":
        return False
    if len(row.finished) > 1 or row.records[0].training.get("steps"):
        return True
    said = deterministic(row.records[0].method)
    return row.supervision not in SEEDLESS if said is None else not said


@lru_cache(maxsize=256)
def deterministic(method: str) -> bool | None:
    """What a method's card says; None of one that is not installed. Imports the method."""
    try:
        return bool(registry.load(registry.METHODS, method).card.deterministic)
    except InputError:
        return None
