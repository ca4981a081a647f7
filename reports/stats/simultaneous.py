"""Many rows compared at once, each with few seeds: simultaneous intervals, and p-values that agree with them.

A row is a mean over seeds, scored on examples that all rows share. Three things make its comparison with others hard:
the spread of seeds is known from two to ten values, it is not the same for every row, and what is compared is often
chosen by the data (the best row). Welch's freedom with the studentized range (Games & Howell 1976) separates equal rows
in 12-29 % of comparisons of 20 rows with two or three seeds; one variance pooled over rows (Tukey-Kramer) holds 5 %
only where the spreads are equal. Dunnett's C on each row's own variance holds, and finds next to nothing. Here:

- a row's variance is its own, drawn towards the variance of all rows, and never below that (`seed_spread`);
- the critical value of a difference is the average of those of its parts, weighted by their variances (Cochran 1964;
  Dunnett, JASA 75, 1980, "Pairwise multiple comparisons in the unequal variance case", procedure C);
- the chance of the examples is known (`reports.stats.clusters`), so it has infinite freedom.

How often equal rows are separated by it, over rows, seeds and spreads, and how often unlike ones are is in
docs/statistics.md, by tools/campaigns/error_rates.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from reports.stats.estimate import Estimate, Floats

ALPHA = 0.05
# Where quantiles are tabulated: p-values from 1 to 1e-12, with ALPHA itself, so that p and interval agree exactly.
_P = np.unique(np.r_[np.geomspace(1e-12, 1.0, 241), ALPHA])[::-1]
_INVERSE_FREEDOM = np.r_[0.0, np.geomspace(1e-3, 1.0, 40)]


@dataclass(frozen=True)
class SeedSpread:
    """What seeds add to the variance of each row's mean, and how well that is known.

    Attributes:
        variance: (..., rows), 0 where no seed enters.
        freedom: (..., rows) degrees of freedom, infinite where no seed enters.
    """

    variance: Floats
    freedom: Floats


def seed_spread(variances: Floats, seeds: Floats) -> SeedSpread:
    """The variance of each row's mean over its seeds, from its own seeds and those of the others.

    v is the mean of the rows' variances s_i^2, weighted by their freedoms f_i = n_i - 1; u their root mean square, less
    what chance adds to it. Where spreads are unlike, u / v is above 1 and v is too low for some rows, all the more the
    fewer seeds could say so: v is raised to v g with g = max(1, u / v)^(1 / f), f the mean freedom, and counts with
    sum(f_i) / g^2 degrees of freedom (their effective number: Satterthwaite 1946). A row whose own variance is larger
    keeps (d v g + f_i s_i^2) / (d + f_i) with d + f_i degrees of freedom and d = max(0, f_i - 1.5). That form (a prior
    of d values: Smyth, Statistical Applications in Genetics and Molecular Biology 3, 2004) is an estimate; the floor,
    g and d are choices, made by simulation so that no more than 5 % of equal rows are separated.

    Args:
        variances: (..., rows) sample variances of the scores by seed (n - 1 in the denominator).
        seeds: (rows,) how many, or of the shape of the variances; 0 for a row into which no seed enters. One seed says
            nothing: leave such rows out.
    """
    own = np.asarray(variances, dtype=np.float64)
    counts = np.broadcast_to(np.asarray(seeds, dtype=np.float64), own.shape)
    random = counts > 0
    if (counts[random] < 2).any():
        raise ValueError("a row with one seed has no known spread")
    freedom = np.where(random, counts - 1, 0.0)
    safe = np.where(random, freedom, 1.0)
    total = np.maximum(freedom.sum(axis=-1, keepdims=True), 1.0)
    mean = (own * freedom).sum(axis=-1, keepdims=True) / total
    square = (own**2 * freedom / (1 + 2 / safe)).sum(axis=-1, keepdims=True) / total
    unlike = np.sqrt(np.divide(square, mean**2, out=np.ones_like(mean), where=mean > 0))
    caution = np.maximum(1.0, unlike) ** (random.sum(axis=-1, keepdims=True) / total)
    floor = mean * caution
    prior = np.maximum(0.0, freedom - 1.5)
    above = own > floor
    variance = np.where(above, (prior * floor + freedom * own) / (prior + safe), floor) / np.where(random, counts, 1.0)
    common = np.maximum(freedom, total / caution**2)
    known = np.where(above, np.minimum(prior + freedom, total), common)
    return SeedSpread(np.where(random, variance, 0.0), np.where(random, known, np.inf))


class Family(Protocol):
    """A set of comparisons: the |t| that one of them may reach by chance with probability p."""

    def points(self, freedom: Floats, p: Floats) -> Floats:
        """Critical values, (..., len(p)) for freedoms (...,)."""
        ...


@dataclass(frozen=True)
class AllPairs:
    """Every pair of `rows` rows, and so the best row of them against the others, whichever the data make the best.

    Tukey's studentized range over sqrt(2): for what is chosen by the data no smaller value holds, since with equal rows
    the best is separated from some row whenever the range is wide enough. Tukey and Kramer's form for unequal variances
    is conservative (Hayter, Annals of Statistics 12, 1984).
    """

    rows: int

    def points(self, freedom: Floats, p: Floats) -> Floats:
        table = _range_points(self.rows)
        columns = np.stack([np.interp(np.log(p), np.log(_P[::-1]), line[::-1]) for line in table])  # (freedoms, p)
        place = np.interp(1 / np.maximum(freedom, 1.0), _INVERSE_FREEDOM, np.arange(len(_INVERSE_FREEDOM)))
        below = np.minimum(place.astype(int), len(_INVERSE_FREEDOM) - 2)
        share = (place - below)[..., None]
        return np.asarray(np.exp((1 - share) * columns[below] + share * columns[below + 1]) / math.sqrt(2))


@dataclass(frozen=True)
class Planned:
    """`count` differences that were named beforehand, such as each trained row against its untrained base.

    Student's t at 1 - (1 - p)^(1 / m) (Sidak, JASA 62, 1967), which holds however the differences are correlated. m is
    the count, and half as much again where there are several: rows borrow their spread from one another, and where
    spreads are unlike, m = count lets 5 to 9 % of comparisons of 10 to 40 rows with two or three seeds find one that is
    not there (by simulation).
    """

    count: int

    def points(self, freedom: Floats, p: Floats) -> Floats:
        from scipy.special import ndtri, stdtrit

        m = 1.5 * self.count if self.count > 1 else 1
        one = -np.expm1(np.log1p(-np.minimum(p, 1 - 1e-12)) / m) / 2
        known = np.isinf(freedom)[..., None]
        student = stdtrit(np.where(known, 1.0, np.asarray(freedom)[..., None]), one)
        return np.asarray(-np.where(known, ndtri(one), student))


@lru_cache(maxsize=64)
def _range_points(rows: int) -> Floats:
    """ln of the studentized range's quantiles for `rows` means, (freedoms, p-values) as tabulated above.

    P(range > q) of normal means of known variance is 1 - k integral phi(z) (Phi(z) - Phi(z - q))^(k - 1) dz; divided by
    an independent s with f degrees of freedom, it is averaged over the density of s (in ln s, where it is smooth).
    `scipy.stats.studentized_range` computes the same, 0.2 seconds a number.
    """
    from scipy.special import ndtr
    from scipy.stats import chi2

    z = np.linspace(-9, 9, 361)
    weight = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
    x = np.linspace(0, 16, 1601)
    tail = 1 - rows * (ndtr(z) - ndtr(z - x[:, None])) ** (rows - 1) @ weight
    tail = np.clip(tail, 0.0, 1.0)
    q = np.geomspace(1e-4, 1e14, 1300)
    lines = []
    for inverse in _INVERSE_FREEDOM:
        if inverse == 0:
            exceeds = np.interp(q, x, tail, right=0.0)
        else:
            f = 1 / inverse
            low, high = (math.log(bound / f) / 2 for bound in (chi2.ppf(1e-16, f), chi2.isf(1e-16, f)))
            y = np.linspace(low, high, 321)
            density = chi2.pdf(f * np.exp(2 * y), f) * np.exp(2 * y)
            exceeds = np.interp(q[:, None] * np.exp(y), x, tail, right=0.0) @ (density / density.sum())
        falls = -np.log(np.maximum(np.minimum.accumulate(exceeds), 1e-17))
        lines.append(np.interp(-np.log(_P), falls, np.log(q)))
    return np.array(lines)


def critical_values(
    first: SeedSpread, second: SeedSpread, pairs: Floats, family: Family, p: Floats
) -> tuple[Floats, Floats]:
    """Standard errors (...,) of differences of two means, and their critical values (..., len(p)).

    Args:
        first, second: spreads of the two sides, arrays of one shape (...,).
        pairs: (...,) the variance of the differences that comes from the choice of examples.
    """
    parts = np.stack(np.broadcast_arrays(first.variance, second.variance, pairs), axis=-1)
    total = parts.sum(axis=-1)
    shares = parts / np.where(total > 0, total, 1.0)[..., None]
    points = shares[..., 0, None] * family.points(first.freedom, p)
    points += shares[..., 1, None] * family.points(second.freedom, p)
    points += shares[..., 2, None] * family.points(np.array(np.inf), p)
    return np.sqrt(total), points


def simultaneous(
    values: Floats, first: SeedSpread, second: SeedSpread, pairs: Floats, family: Family, alpha: float | Floats = ALPHA
) -> list[Estimate]:
    """Differences with intervals that all hold at once with probability 1 - alpha, and p-values corrected alike.

    p <= alpha (of each difference, where they have their own) exactly where the interval excludes 0; p is not known
    below 1e-12.

    Args:
        values, pairs: (differences,); first, second: spreads of the same shape.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.size == 0:
        return []
    errors, points = critical_values(first, second, np.asarray(pairs), family, _P)
    wanted = np.log(np.broadcast_to(alpha, values.shape))
    rising = np.log(_P[::-1])
    half = errors * [np.interp(one, rising, line[::-1]) for one, line in zip(wanted, points, strict=True)]
    estimates = []
    for value, error, line, width in zip(values, errors, points, half, strict=True):
        p = float(np.exp(np.interp(abs(value) / error, line, np.log(_P)))) if error > 0 else float(value == 0)
        estimates.append(Estimate(float(value), float(value - width), float(value + width), p))
    return estimates


def mean_over_seeds(by_seed: Floats, examples: float) -> Estimate:
    """One row's mean over seeds with an interval that holds the chance of seeds and of examples.

    By its own seeds alone. Simulated coverage of 95 % intervals, spreads of seeds from far below to far above the
    examples': 94-98 % with two seeds, 95-97 % with three and more (with Satterthwaite's freedom 91 % at worst). With
    one seed the interval has the chance of the examples only.

    Args:
        by_seed: (s,) scores of the s seeds.
        examples: what the choice of examples, the same for every seed, adds to the variance of their mean.
    """
    n = len(by_seed)
    spread = SeedSpread(np.array([np.var(by_seed, ddof=1) / n]), np.array([n - 1.0])) if n > 1 else _none(1)
    return simultaneous(np.array([np.mean(by_seed)]), spread, _none(1), np.array([examples]), Planned(1))[0]


def _none(rows: int) -> SeedSpread:
    return SeedSpread(np.zeros(rows), np.full(rows, np.inf))
