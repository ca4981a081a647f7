"""The chance of the examples: how far scores move when the examples of all tasks are redrawn
together.

Texts repeat. A sentence is in several pairs of a task, and pairs of one task are in another: over
1,000 of STS-B's 1,379 test pairs are also in STS12-16. Examples that share a text are no
independent evidence. The variance of a score with influences x (`reports.stats.influence`) is

    by examples     sum_i x_i^2            each example drawn separately, as a bootstrap of pairs
    does by texts        sum of x_i x_j over examples i, j with a text in common

The second is the variance of dyadic data (Fafchamps & Gubert, Journal of Development Economics 83,
2007; Aronow, Samii & Assenova, Political Analysis 23, 2015), summed as the texts' squares less what
identical pairs then count twice (Cameron, Gelbach & Miller, Journal of Business & Economic
Statistics 29, 2011). The wider one decides: where examples move against one another the second may
come out lower. A bootstrap that redraws texts (Owen's pigeonhole) would come out higher, as it
draws what is a pair's own three times; one that draws connected groups of pairs the same, with more
chance, since a group may have a twentieth of all pairs. How often each covers on the real sets:
docs/statistics.md.

Plain numpy on arrays; nothing here knows records or tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reports.stats.estimate import Floats

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class FourthMoments:
    """How uneven the influences of single examples are: what a variance that is estimated from
    them varies by.

    Attributes:
        cubes: (rows, rows) sum of x_i^3 y_i over the examples.
        squares: (rows, rows) sum of x_i^2 y_i^2.
        count: degrees of freedom of the examples: how many less one for each task.
    """

    cubes: Floats
    squares: Floats
    count: int

    def of_rows(self, here: tuple[Ids, ...]) -> FourthMoments:
        cubes = self.cubes[here]
        squares = self.squares[here]
        return FourthMoments(cubes, squares, self.count)

    def freedom(self, a: int | Ids, b: int | Ids, variance: Floats) -> Floats:
        """Degrees of freedom of the variances (by examples) of the differences between rows.

        A sum of squares s over n examples with fourth moments q has the variance q - s^2 / n, which
        gives 2 s^2 / (q - s^2 / n) degrees of freedom (Satterthwaite, Biometrics Bulletin 2, 1946):
        n for normal influences, far fewer where few examples bring all, as with an accuracy near
        100 %. Never more than `count`.
        """
        fourth = (
            self.squares[a, a]
            + self.squares[b, b]
            + 6 * self.squares[a, b]
            - 4 * (self.cubes[a, b] + self.cubes[b, a])
        )
        most = max(self.count, 1)
        excess = fourth - variance**2 / most
        above_zero = np.maximum(excess, 1e-300)
        freedom = 2 * variance**2 / above_zero
        return np.asarray(np.clip(freedom, 1.0, most))


@dataclass(frozen=True)
class Chance:
    """Covariances of the means of some rows by the choice of examples.

    Attributes:
        by_examples, by_texts: (rows, rows); without ids of texts both are the same.
        interaction: (rows,) how much of each variance is seeds moving single examples. The spread
            of the seeds, which is measured on these examples, holds it already (two-way layout:
            Cornfield & Tukey, Annals of Mathematical Statistics 27, 1956), so that it is not
            counted here again.
        moments: of the influences; None where the covariances are known for certain.
    """

    by_examples: Floats
    by_texts: Floats
    interaction: Floats
    moments: FourthMoments | None = None

    @property
    def wider(self) -> Floats:
        """The covariances by which scores move more."""
        return max(self.by_examples, self.by_texts, key=np.trace)

    def of_rows(self, rows: Sequence[int]) -> Chance:
        """The covariances of some of the rows."""
        here = np.ix_(rows, rows)
        moments = None
        if self.moments is not None:
            moments = self.moments.of_rows(here)
        return Chance(
            self.by_examples[here],
            self.by_texts[here],
            self.interaction[list(rows)],
            moments,
        )

    def without_interaction(self) -> Chance:
        """The same for rows whose seeds are not judged: nothing else holds their interaction."""
        return replace(self, interaction=np.zeros_like(self.interaction))

    def of(self, row: int) -> float:
        """The variance of a mean: the wider one."""
        by_examples = float(self.by_examples[row, row])
        by_texts = float(self.by_texts[row, row])
        wide = max(by_examples, by_texts)
        return max(0.0, wide - float(self.interaction[row]))

    def freedom_of(self, row: int) -> float:
        """Degrees of freedom of the variance of a mean; infinite where it is known."""
        if self.moments is None:
            return float("inf")
        count = self.moments.count
        by_examples = float(self.by_examples[row, row])
        variance = max(by_examples, 1e-300)
        by_texts = float(self.by_texts[row, row])
        fourth = float(self.moments.squares[row, row])
        excess = fourth - variance**2 / max(count, 1)
        freedom = 2 * variance**2 / max(excess, 1e-300)
        clustered = variance / max(variance, by_texts)
        return max(1.0, min(freedom, count) * clustered)

    def freedom_between(self, a: int | Ids, b: int | Ids) -> Floats:
        """Degrees of freedom of the variances of the differences; infinite where they are known.

        Examples that share texts are fewer than they look: in proportion to the variances without
        and with that.
        """
        by_examples = variance_between(self.by_examples, a, b)
        by_texts = variance_between(self.by_texts, a, b)
        if self.moments is None:
            return np.full(np.shape(by_examples), np.inf)
        found = self.moments.freedom(a, b, by_examples)
        wider = np.maximum(by_examples, by_texts)
        clustered = by_examples / np.maximum(wider, 1e-300)
        return np.asarray(np.maximum(found * clustered, 1.0))

    def between(self, a: int | Ids, b: int | Ids) -> Floats:
        """The variances of the differences between rows `a` and rows `b`: the wider ones."""
        by_examples = variance_between(self.by_examples, a, b)
        by_texts = variance_between(self.by_texts, a, b)
        interaction = self.interaction[a] + self.interaction[b]
        wider = np.maximum(by_examples, by_texts)
        return np.asarray(np.maximum(wider - interaction, 0.0))


def variance_between(covariance: Floats, a: int | Ids, b: int | Ids) -> Floats:
    """Return the variances of the differences between rows `a` and rows `b`."""
    of_both = covariance[a, a] + covariance[b, b]
    return np.asarray(of_both - 2 * covariance[a, b])


def chance(tasks: Sequence[tuple[Sequence[Floats], Ids | None]]) -> Chance:
    """From what the examples of some tasks do to the scores of some rows.

    Args:
        tasks: of each the influences of its n examples, (seeds, n) or (n,) for each row, and the
            ids (n, 1 or 2) of their texts; None where they are not known. Equal ids of different
            tasks are one text.
    """
    rows = []
    for of_tasks in zip(*(of_rows for of_rows, _ in tasks), strict=True):
        rows.append(influence_of_row(of_tasks))
    sizes = []
    for of_rows, ids in tasks:
        *_, n = np.shape(of_rows[0])
        sizes.append((n, ids))
    return chance_of_rows(rows, sizes)


@dataclass(frozen=True)
class RowInfluence:
    """What the n examples of all tasks do to the mean of a row over its seeds.

    Attributes:
        mean: (n,) the mean influence.
        interaction: as in `Chance`.
    """

    mean: Floats
    interaction: float


def influence_of_row(of_tasks: Sequence[Floats]) -> RowInfluence:
    """From the influences (seeds, n) or (n,) of the examples of each task."""
    by_task = [np.atleast_2d(of_task) for of_task in of_tasks]
    influences = np.hstack(by_task)
    return RowInfluence(influences.mean(axis=0), _interaction(influences))


def chance_of_rows(rows: Sequence[RowInfluence], tasks: Sequence[tuple[int, Ids | None]]) -> Chance:
    """As `chance`, from what is known of each row, and the number of examples and ids of each task."""
    interaction = np.array([row.interaction for row in rows])
    means = np.stack([row.mean for row in rows])
    by_examples = np.asarray(means @ means.T)
    freedom = means.shape[1] - len(tasks)
    moments = FourthMoments(
        np.asarray(means**3 @ means.T),
        np.asarray(means**2 @ (means**2).T),
        freedom,
    )
    if all(ids is None for _, ids in tasks):
        return Chance(by_examples, by_examples, interaction, moments)
    first, second = _number_texts(tasks)
    by_texts = _covariance_by_texts(means, first, second)
    return Chance(by_examples, by_texts, interaction, moments)


def _covariance_by_texts(means: Floats, first: Ids, second: Ids) -> Floats:
    """(rows, rows) sums of the products of influences of examples that have a text in common.

    Args:
        means: (rows, n) influences.
        first, second: (n,) the texts of each example; twice the same where it has one.
    """
    columns = means.T
    two = first != second
    of_pairs = columns[two]
    texts = np.r_[first, second[two]]
    per_text = _sums(texts, np.vstack([columns, of_pairs]))

    # Identical pairs have both texts in common, and so were counted twice.
    lower = np.minimum(first, second)[two]
    upper = np.maximum(first, second)[two]
    texts_in_pairs = int(upper.max(initial=0)) + 1
    pair = lower * texts_in_pairs + upper
    per_pair = _sums(pair, of_pairs)
    counted_twice = per_pair.T @ per_pair
    return np.asarray(per_text.T @ per_text - counted_twice)


def _interaction(influences: Floats) -> float:
    """Return what the differences between the seeds of a row (seeds, n) add to the variance of their
    mean by examples.
    """
    n = len(influences)
    if n < 2:
        return 0.0
    squares = (influences - influences.mean(axis=0)) ** 2
    return float(squares.sum()) / (n - 1) / n


def _number_texts(tasks: Sequence[tuple[int, Ids | None]]) -> tuple[Ids, Ids]:
    """Return the two texts of each example as numbers from 0: twice the same where it has one, a
    number of its own where none is known.
    """
    known = []
    for _, ids in tasks:
        if ids is not None:
            known.append(ids.ravel())
    numbers = np.unique(np.concatenate(known))
    unused = len(numbers)
    first = []
    second = []
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

    names, group = np.unique(groups, return_inverse=True)
    count = len(groups)
    places = (group, np.arange(count))
    ones = np.ones(count)
    shape = (len(names), count)
    members = csr_matrix((ones, places), shape=shape)
    return np.asarray(members @ lines)
