"""What an encoder takes for the same: paraphrases against pairs with other roles, polarity, numbers
or entities.

All pairs of parts f to j of the embedded suite are scored as an STS set. For each of four tags
there is a margin test: a paraphrase must be nearer than a pair of that tag whose words overlap as
much.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.results.facts import PAIRS, Facts
from harness.results.outcomes import outcomes_frame
from harness.results.text_ids import pair_units
from harness.sources.embedded import embedded_rows
from harness.sources.pair_sets import EMBEDDED_PARTS, PHENOMENA
from harness.sources.senteval.labelled import LabelledSplit
from harness.tasks.base import Task, TaskResult, Vectors, finite
from harness.tasks.protocol import add_number
from harness.tasks.sts import STSTask, cosine, spearman
from harness.tasks.suite import Suite, TaskFamily

SUITE_NAME = "embedded-phenomena"
TAGS = ("roles", "negation", "number", "entity")
PARAPHRASES = ("words", "syntax")
# gold scores: a pair of a tag has at most the one, a paraphrase at least the other
CHANGED = 3.0
SAME = 4.0
NEAREST = 10  # paraphrases that each pair of a tag is compared with

Rows = list[dict[str, Any]]


def word_overlap(first: str, second: str) -> float:
    """Jaccard overlap of two sentences' lower-cased words, in [0, 1].

    >>> word_overlap("The dog bit the man.", "The man bit the dog.")
    1.0
    """
    left = set(re.findall(r"\w+", first.lower()))
    right = set(re.findall(r"\w+", second.lower()))
    shared = left & right
    return len(shared) / max(len(left | right), 1)


def _word_overlaps(rows: Rows) -> NDArray[np.float64]:
    first, second = _sides(rows)
    overlaps = [word_overlap(a, b) for a, b in zip(first, second, strict=True)]
    return np.array(overlaps)


def wins(
    paraphrases: NDArray[Any],
    changed: NDArray[Any],
    alike: NDArray[np.intp],
) -> NDArray[np.float64]:
    """(n,): the share of its paraphrases that have a higher similarity than each of n pairs; equal
    counts half.

    Args:
        paraphrases: their similarities, (m,).
        changed: similarities of the pairs, (n,).
        alike: the paraphrases that each pair is compared with, (n, k).

    >>> wins(np.array([0.9, 0.5]), np.array([0.7, 0.5]), np.array([[0, 1], [0, 1]])).tolist()
    [0.5, 0.75]
    """
    near = paraphrases[alike]
    own = changed[:, None]
    won = (near > own) + 0.5 * (near == own)
    shares: NDArray[np.float64] = won.mean(axis=1)
    return shares


def _test_rows() -> Rows:
    return [
        row for row in embedded_rows("sts", EMBEDDED_PARTS[PHENOMENA]) if row["split"] == "test"
    ]


def _sides(rows: Rows) -> tuple[list[str], list[str]]:
    first = [row["sentence1"] for row in rows]
    second = [row["sentence2"] for row in rows]
    return first, second


def _second(rows: Rows) -> NDArray[np.float64]:
    """What the second annotator gave, who did not see the first one's scores."""
    scores = [row["annotations"][1] for row in rows]
    return np.array(scores, dtype=np.float64)


class AllPairs(STSTask):
    """Spearman over all test pairs; the second annotator's against the first one's is what can be
    reached.
    """

    def evaluate(self, vectors: Vectors, *, pooling: str) -> TaskResult:
        result = super().evaluate(vectors, pooling=pooling)
        rows = _test_rows()
        first = [row["annotations"][0] for row in rows]
        agreement = spearman(_second(rows), first)
        facts = Facts(PAIRS, metric="spearman", chance=0.0, agreement=agreement)
        result.figures[self.name] = facts.plain()
        return result


class MarginTask:
    """How often a paraphrase is nearer than a pair of one tag: the mean over pairs of `wins`, 0.5
    by chance.

    Each pair is compared with the `NEAREST` paraphrases that are closest to it in word overlap, so
    that an encoder cannot win by counting words.
    """

    suite = SUITE_NAME
    source = "embedded"

    def __init__(self, tag: str) -> None:
        """Of one of `TAGS`."""
        self.name = f"{PHENOMENA}-{tag}"
        self.tag = tag

    @cached_property
    def paraphrases(self) -> Rows:
        paraphrases = [row for row in _test_rows() if row["tag"] in PARAPHRASES]
        return [row for row in paraphrases if row["score"] >= SAME]

    @cached_property
    def changed(self) -> Rows:
        of_tag = [row for row in _test_rows() if row["tag"] == self.tag]
        return [row for row in of_tag if row["score"] <= CHANGED]

    @property
    def tested(self) -> LabelledSplit:
        """The pairs of the tag, which the outcomes number."""
        first, second = _sides(self.changed)
        labels = np.zeros(len(self.changed), dtype=np.int64)
        return LabelledSplit(first, second, labels)

    @property
    def sha256(self) -> str:
        keys = ("sentence1", "sentence2", "score")
        rows = []
        for row in (*self.paraphrases, *self.changed):
            rows.append([row[key] for key in keys])
        content = json.dumps([len(self.paraphrases), rows])
        return hashlib.sha256(content.encode()).hexdigest()

    def texts(self) -> Sequence[str]:
        return [
            text
            for rows in (self.paraphrases, self.changed)
            for side in _sides(rows)
            for text in side
        ]

    def evaluate(self, vectors: Vectors, *, pooling: str) -> TaskResult:
        result = TaskResult()
        damaged = 0
        cosines = []
        for rows in (self.paraphrases, self.changed):
            first, second = _sides(rows)
            u, bad_u = finite(vectors(first))
            v, bad_v = finite(vectors(second))
            damaged += bad_u + bad_v
            cosines.append(cosine(u, v))
        result.note_damaged(self.name, damaged)
        alike = self._nearest_paraphrases()
        shares = wins(cosines[0], cosines[1], alike)
        about = {
            "metric": "accuracy",
            "against": f"{NEAREST} paraphrases of like word overlap",
            "similarity": "cosine",
        }
        add_number(
            result,
            self,
            value=float(shares.mean()),
            n=len(shares),
            pooling=pooling,
            **about,
        )
        about = {
            "task": self.name,
            "source": self.source,
            "split": "test",
            "metric": "accuracy",
        }
        units = pair_units(*_sides(self.changed))
        result.outcomes = outcomes_frame(**about, outcome=shares, unit=units)
        won = wins(_second(self.paraphrases), _second(self.changed), alike)
        agreement = float(won.mean())
        facts = Facts(PAIRS, "", "accuracy", 0.5, agreement=agreement)
        result.figures[self.name] = facts.plain()
        return result

    def _nearest_paraphrases(self) -> NDArray[np.intp]:
        """(n, `NEAREST`): for each pair of the tag the paraphrases nearest in overlap, equal ones
        in their order.
        """
        same = _word_overlaps(self.paraphrases)
        other = _word_overlaps(self.changed)
        order: NDArray[np.intp] = np.argsort(
            np.abs(same[None] - other[:, None]),
            axis=1,
            kind="stable",
        )[:, :NEAREST]
        return order


def _task(name: str, source: str) -> Task:
    if name == PHENOMENA:
        return AllPairs(PHENOMENA, "embedded", suite=SUITE_NAME)
    return MarginTask(name.removeprefix(f"{PHENOMENA}-"))


TASKS = TaskFamily((PHENOMENA, *(f"{PHENOMENA}-{tag}" for tag in TAGS)), _task)
SUITE = Suite(
    TASKS.names,
    "a paraphrase must be nearer than a pair with another role, negation, number or entity",
    chance={PHENOMENA: 0.0, **dict.fromkeys(TASKS.names[1:], 0.5)},
)
