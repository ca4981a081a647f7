"""The chance of the examples: how far scores move when the examples of all tasks are redrawn together.

Texts repeat. A sentence is in several pairs of a task, and pairs of one task are in another: over 1,000 of
STS-B's 1,379 test pairs are also in STS12-16. Examples that share a text are no independent evidence. The variance of a
score with influences x (`reports.stats.influence`) is

    by examples     sum_i x_i^2            each example drawn separately, as a bootstrap of pairs does
    by texts        sum of x_i x_j over examples i, j with a text in common

The second is the variance of dyadic data (Fafchamps & Gubert, Journal of Development Economics 83, 2007; Aronow, Samii
& Assenova, Political Analysis 23, 2015), summed as the texts' squares less what identical pairs then count twice
(Cameron, Gelbach & Miller, Journal of Business & Economic Statistics 29, 2011). The wider one decides: where examples
move against one another the second may come out lower. A bootstrap that redraws texts (Owen's pigeonhole) would come
out higher, as it draws what is a pair's own three times; one that draws connected groups of pairs the same, with more
chance, since a group may have a twentieth of all pairs. How often each covers on the real sets: docs/statistics.md.

Plain numpy on arrays; nothing here knows records or tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reports.stats.estimate import Floats

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Chance:
    """Covariances of some scores by the choice of examples.

    Attributes:
        by_examples, by_texts: (scores, scores); without ids of texts both are the same.
    """

    by_examples: Floats
    by_texts: Floats

    def of(self, a: int) -> float:
        """The variance of a score: the wider one."""
        return max(float(way[a, a]) for way in (self.by_examples, self.by_texts))

    def between(self, a: int, b: int) -> float:
        """The variance of the difference of two scores: the wider one."""
        ways = (self.by_examples, self.by_texts)
        return max(0.0, *(float(way[a, a] + way[b, b] - 2 * way[a, b]) for way in ways))


def chance(tasks: Sequence[tuple[Floats, Ids | None]]) -> Chance:
    """From what the examples of some tasks do to some scores.

    Args:
        tasks: of each the influences (scores, n) of its n examples, and the ids (n, texts of an example) of their
            texts, one or two; None where they are not known. Equal ids of different tasks are one text.
    """
    influences = np.hstack([part for part, _ in tasks])
    by_examples = np.asarray(influences @ influences.T)
    if all(ids is None for _, ids in tasks):
        return Chance(by_examples, by_examples)
    first, second = _numbered([(part.shape[1], ids) for part, ids in tasks])
    two = first != second
    lower, upper = np.minimum(first, second)[two], np.maximum(first, second)[two]
    per_text = _sums(np.r_[first, second[two]], np.vstack([influences.T, influences.T[two]]))
    # Identical pairs have both texts in common, and so were counted twice.
    per_pair = _sums(lower * (int(upper.max(initial=0)) + 1) + upper, influences.T[two])
    return Chance(by_examples, np.asarray(per_text.T @ per_text - per_pair.T @ per_pair))


def _numbered(tasks: Sequence[tuple[int, Ids | None]]) -> tuple[Ids, Ids]:
    """The two texts of each example as numbers from 0: twice the same where it has one, a number of its own where none
    is known."""
    known = np.concatenate([ids.ravel() for _, ids in tasks if ids is not None])
    numbers = np.unique(known)
    unused = len(numbers)
    first, second = [], []
    for n, ids in tasks:
        if ids is None:
            places = unused + np.arange(n)[:, None]
            unused += n
        else:
            places = np.searchsorted(numbers, ids)
        first.append(places[:, 0])
        second.append(places[:, -1])
    return np.concatenate(first), np.concatenate(second)


def _sums(groups: Ids, lines: Floats) -> Floats:
    """(groups, scores): the sum of the lines (n, scores) of each group."""
    from scipy.sparse import csr_matrix

    names, place = np.unique(groups, return_inverse=True)
    count = len(groups)
    return np.asarray(csr_matrix((np.ones(count), (place, np.arange(count))), shape=(len(names), count)) @ lines)
