"""What a reader has to know of a task to judge its scores: what guessing gives, what is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

KEY = "facts"  # among what a run keeps of a task in details.json

SENTENCES = "the example; equal texts are drawn together"
PAIRS = "the pair; pairs that share sentences are drawn together"
IMAGES = "the image with its captions"
SETS = "the set that is clustered"
DRAWS = "the collection, of which the clustered sets are overlapping draws: their spread counts undivided"
QUERIES = "the query; equal queries are drawn together"


@dataclass(frozen=True)
class Facts:
    """Of one task.

    Attributes:
        unit: what a bootstrap over the test data draws, in words; "" where no outcomes are stored.
        lacks: why none are.
        metric: the metric that the next four are values of.
        chance: what guessing all classes alike gives, as `Score.value`; None where it has no
            meaning.
        majority: what always naming the commonest class of the test data gives.
        agreement: what the scores of a second annotator give, where the data has them.
        human: what people score on the same examples, as published.
    """

    unit: str = ""
    lacks: str = ""
    metric: str = ""
    chance: float | None = None
    majority: float | None = None
    agreement: float | None = None
    human: float | None = None

    def plain(self) -> dict[str, dict[str, Any]]:
        """As a part of what a run keeps of the task."""
        return {
            KEY: {name: value for name, value in asdict(self).items() if value not in (None, "")}
        }


def facts_of(figures: Mapping[str, Any]) -> dict[str, Facts]:
    """The facts of each task, from the figures of a run; tasks without facts are left out.

    Raises:
        TypeError, AttributeError: damaged, or of a later version.
    """
    facts = {}
    for task, figure in figures.items():
        if KEY in figure:
            facts[task] = Facts(**figure[KEY])
    return facts
