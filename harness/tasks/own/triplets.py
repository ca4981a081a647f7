"""Triplets of a file: the share of anchors that are nearer to their positive than to their negative,
as `TripletEvaluator` of sentence-transformers.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from harness.files.hashing import sha256_of_text
from harness.results.facts import Facts
from harness.results.text_ids import pair_units
from harness.sources.senteval.labelled import LabelledSplit
from harness.tasks.base import TaskResult, Vectors, finite
from harness.tasks.own.file_task import FileTask
from harness.tasks.protocol import add_accuracy
from harness.tasks.sts import COSINE, cosine

_UNIT = "the triplet; triplets that share anchor or positive are drawn together"


class FileTriplets(FileTask):
    """The test part of triplets."""

    kind = "triplets"

    @cached_property
    def sides(self) -> tuple[list[str], list[str], list[str]]:
        """Anchors, positives and negatives."""
        rows = self.own.rows("test")
        return rows["anchor"].tolist(), rows["positive"].tolist(), rows["negative"].tolist()

    @property
    def tested(self) -> LabelledSplit:
        """Anchors and positives, which have no labels."""
        return LabelledSplit(*self.sides[:2], labels=np.empty(0))

    @property
    def sha256(self) -> str:
        return sha256_of_text(repr(self.sides))

    def texts(self) -> list[str]:
        return [text for side in self.sides for text in side]

    def evaluate(self, vectors: Vectors, *, pooling: str) -> TaskResult:
        result = TaskResult(notes=list(self.data_remarks))
        damaged = 0
        sides = []
        for texts in self.sides:
            x, bad = finite(vectors(texts))
            damaged += bad
            sides.append(x)
        result.note_damaged(self.name, damaged)
        anchor, positive, negative = sides
        right = cosine(anchor, positive) > cosine(anchor, negative)
        anchors, positives, _ = self.sides
        units = pair_units(anchors, positives)
        add_accuracy(result, self, right, units, pooling, preparation=self.preparation, **COSINE)
        result.figures[self.name] = Facts(_UNIT, metric="accuracy", chance=0.5).plain()
        return result
