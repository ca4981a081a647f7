"""Scored pairs of a file: Spearman (the main score) and Pearson of the cosines, as of STS tasks."""

from __future__ import annotations

from functools import cached_property

from harness.errors import InputError
from harness.sources.pair_sets import PairSet, pair_set
from harness.tasks.base import TaskResult, Vectors
from harness.tasks.own.data import OwnData, gold_scores
from harness.tasks.own.file_task import PREPARATION, SOURCE, FileTask
from harness.tasks.sts import STSTask


class FileSimilarity(FileTask, STSTask):
    """The test part of scored pairs."""

    kind = "similarity"
    split = "test"

    @cached_property
    def data(self) -> PairSet:
        return read_scored_pairs(self.own, "test")

    def evaluate(self, vectors: Vectors, *, pooling: str) -> TaskResult:
        result = super().evaluate(vectors, pooling=pooling)
        result.notes += self.data_remarks
        return result


def read_scored_pairs(own: OwnData, part: str) -> PairSet:
    """Return the pairs of one part; of a file that is the dev set as a whole, all of them.

    Raises:
        InputError: the file has other columns, no such pairs, or equal gold scores.
    """
    if own.kind != "similarity":
        message = f"is of the kind {own.kind}; scored pairs select checkpoints"
        remedy = "give a file with sentence1, sentence2 and score"
        raise InputError(message, file=own.where, remedy=remedy)
    if part == "dev" and own.split == "whole":
        rows = own.rows("test")
    else:
        rows = own.rows(part)
    gold = gold_scores(rows, own.where)
    left = rows["sentence1"].tolist()
    right = rows["sentence2"].tolist()
    return pair_set(own.name, SOURCE, part, left, right, gold.tolist(), PREPARATION)
