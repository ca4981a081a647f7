"""What the runs of a comparison saved of their scores, example by example: pairs, and the outcomes
of other tasks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from harness.results.outcomes import score_of
from harness.results.store import RunFolder
from harness.results.text_ids import PAIR_IDS, text_id
from harness.tasks.mteb.benchmarks import PREFIX

if TYPE_CHECKING:
    import pandas as pd

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
_OWN_UNITS = 2**32  # ids of texts are 64 random bits; a number below is a set's or a fold's


# Subset -> numbers of pairs; "" -> numbers of other examples.
LeftOut = Mapping[str, frozenset[int]]


@dataclass(frozen=True)
class Examples:
    """The n examples of one score of one run.

    Attributes:
        score: (task, source, split, metric).
        part: (n,) number of the part of the task that an example belongs to; the score is the mean
            over parts.
        target, outcome: (n,), as in `harness.results.outcomes`; gold score and cosine of a pair.
        texts: (n, 1 or 2) ids of the texts: examples that share one are resampled together.
        digest: the same for runs that were scored on the same examples.
    """

    score: tuple[str, str, str, str]
    part: Ids
    target: Floats
    outcome: Floats
    texts: Ids
    digest: bytes

    @property
    def value(self) -> float:
        """The score."""
        *_, metric = self.score
        scores = []
        for part in np.unique(self.part):
            here = self.part == part
            target = self.target[here]
            outcome = self.outcome[here]
            weights = np.ones(len(target))
            scores.append(score_of(metric, target, outcome, weights))
        return float(np.mean(scores))


def read_examples(
    folder: RunFolder, left_out: Mapping[tuple[str, str], LeftOut] = MappingProxyType({})
) -> Iterator[Examples]:
    """All that a run saved; of pairs the test ones, whose score is Spearman's over all of a task.

    `left_out`: task and source -> pairs or examples to go without.

    Raises:
        OSError, ValueError, KeyError: a file that is damaged.
    """
    pairs, outcomes = folder.pairs_and_outcomes()
    tested = pairs[pairs["split"] == "test"]
    for (task, source), rows in tested.groupby(["task", "source"], sort=False):
        without = left_out.get((str(task), str(source)), {})
        if without:
            remains = []
            for subset, number in zip(rows["subset"], rows["pair"], strict=True):
                remains.append(number not in without.get(subset, ()))
            rows = rows[remains]
        if len(rows):
            yield _pairs(str(task), str(source), rows)
    for about, rows in outcomes.groupby(["task", "source", "split", "metric"], sort=False):
        task, source, split, metric = map(str, about)
        without = left_out.get((task, source), {})
        is_left_out = rows["example"].isin(without.get("", ()))
        rows = rows[~is_left_out]
        if len(rows):
            yield _outcomes((task, source, split, metric), rows)


def _pairs(task: str, source: str, rows: pd.DataFrame) -> Examples:
    gold = rows["gold"].to_numpy(dtype=np.float64)
    of_sides = [rows[name].to_numpy(dtype=np.int64) for name in PAIR_IDS]
    texts = np.stack(of_sides, axis=1)
    scores = rows["score"].to_numpy(dtype=np.float64)
    outcome = np.nan_to_num(scores)
    digest = _digest(rows["pair"].to_numpy(), gold)
    by_mteb = source == "mteb"  # whose score is the mean over subsets, under a name of its own
    if by_mteb:
        part = _number_subsets(rows)
    else:
        part = np.zeros(len(gold), np.int64)
    if by_mteb and task.startswith(PREFIX):
        metric = "cosine_spearman"
    else:
        metric = "spearman"
    score = (task, source, "test", metric)
    return Examples(score, part, gold, outcome, texts, digest)


def _number_subsets(rows: pd.DataFrame) -> Ids:
    """Return the subset of each row as a number from 0, (n,)."""
    numbers, _ = rows["subset"].factorize()
    return numbers.astype(np.int64)


def _outcomes(score: tuple[str, str, str, str], rows: pd.DataFrame) -> Examples:
    part = _number_subsets(rows)
    if len(part) and part.max() + 1 == len(part):
        part[:] = 0  # one number a part, as a set's in clustering: the parts are what is drawn
    unit = rows["unit"].to_numpy(dtype=np.int64)
    task, source, *_ = score
    own = text_id(f"{source}:{task}")
    is_of_task = np.abs(unit) < _OWN_UNITS
    ids = np.where(is_of_task, unit ^ own, unit)
    target = rows["target"].to_numpy(dtype=np.float64)
    outcome = rows["outcome"].to_numpy(dtype=np.float64)
    names = rows["example"].to_numpy()
    digest = _digest(names, unit, np.nan_to_num(target))
    return Examples(score, part, target, outcome, ids[:, None], digest)


def _digest(*columns: NDArray[np.generic]) -> bytes:
    """Of columns of numbers or texts."""
    found = hashlib.blake2b(digest_size=16)
    for column in columns:
        if column.dtype == object:
            lines = "\n".join(map(str, column))
            data = lines.encode("utf-8", "surrogatepass")
        else:
            data = np.ascontiguousarray(column).tobytes()
        found.update(data)
        found.update(b"%d;" % len(column))
    return found.digest()
