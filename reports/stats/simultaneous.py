"""Several differences between rows judged at once: p-values and intervals that hold for a whole
family.

A row is a mean over seeds, scored on examples that all rows share. The variance of a difference has
three parts:

- examples: computed from what each example does to the scores (`reports.stats.clusters`), with the
  degrees of freedom that so many examples give;
- seeds of either row: estimated from few seeds, so variances are moderated between rows
  (`moderate`: Smyth 2004).

A t is the difference over its standard error, with the degrees of freedom of `combine_freedom`. A
family of a few differences is judged by the largest |t| that it reaches by chance, drawn
with the correlations that its differences have (Hothorn, Bretz & Westfall, Biometrical Journal 50,
2008; unequal variances: Hasler & Hothorn, the same volume). For all pairs that is Games & Howell's
test, against one row Dunnett's. A family of many pairs is explored with the false discovery rate of
Benjamini & Hochberg (JRSS B 57, 1995; for all pairs: Williams, Jones & Tukey 1999) and the
intervals that go with it (Benjamini & Yekutieli, JASA 100, 2005). Either way an interval excludes 0
exactly where p is at most the level.

How often it is wrong and what it finds is in docs/statistics.md, by tools/campaigns/error_rates.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtr, chdtri, polygamma, stdtr, stdtrit

from reports.stats.clusters import Chance, variance_between
from reports.stats.estimate import Estimate, Floats, Interval

ALPHA = 0.05
EXPLORED = 12  # rows from which on all pairs are explored by their false discovery rate
MANY_SEEDS = 20  # see `fewest_for_welch`
ALONE = 10  # seeds from which on a row's spread is its own alone
FEWEST_SEEDS = 3  # two give one difference, from which a spread cannot be told
DRAWS = (
    20_000  # of a family under "no difference": the simulation error of a p-value of 0.05 is 0.0015
)
_POINTS = 60
_LOW = 0.5  # share of the spreads, by chance, that count as if they were higher
_OWN_PART = 0.4  # of a row's own seeds where it is compared with the others
_TINY = 1e-300
_CERTAIN = 1e5  # degrees of freedom of a known variance
_NOTHING = 1e-9  # a standard error below it: the two rows are the same run

Pairs = NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """What is known of the means of k rows.

    Attributes:
        means: (k,).
        seeds: (k,) what seeds add to the variance of each mean; 0 where no seed enters.
        freedom: (k,) degrees of freedom of that; infinite where no seed enters.
        examples: what the choice of examples adds, of all rows together.
        own_seeds: (k,) how many seeds the part of seeds is estimated from, where those are the row's
            own alone: 0 where it borrows from other rows, infinite where no seed enters. Left out,
            all rows borrow.
    """

    means: Floats
    seeds: Floats
    freedom: Floats
    examples: Chance
    own_seeds: Floats | None = None

    def of(self, places: Sequence[int]) -> Rows:
        """Some of the rows."""
        some = list(places)
        if self.own_seeds is None:
            own_seeds = None
        else:
            own_seeds = self.own_seeds[some]
        return Rows(
            self.means[some],
            self.seeds[some],
            self.freedom[some],
            self.examples.of_rows(some),
            own_seeds,
        )


def moderate(variances: Floats, seeds: Floats) -> tuple[Floats, Floats]:
    """The variance of one run of each row, and its degrees of freedom, from the seeds of all rows.

    A row of ten seeds or more has its own variance and its own degrees of freedom (Welch). A row of
    fewer borrows from the others by empirical Bayes: the prior's degrees of freedom of Smyth
    (Statistical Applications in Genetics and Molecular Biology 3, 2004; `eBayes` of the R package
    limma) say how much the rows tell about each other's spread. Three departures from limma keep
    the error near its level where spreads are unlike:

    - Variances are moderated towards the pooled one, and upwards only: a row whose few seeds lie
      close together by chance would win too easily, and one that varies more than the others is not
      to borrow their calm.
    - A row that varies more than the others borrows fewer degrees of freedom, by the square of
      others / own. Among the others its own seeds count 0.4 of what they do in the pooled
      variance: with all of it, one of two rows would always look half as calm as the other.
    - For the prior, a variance counts at least as much as the median that chance gives around
      the pooled one, so that one row that hardly varies does not end all borrowing (robust eBayes:
      Phipson et al., Annals of Applied Statistics 10, 2016).

    Args:
        variances: (..., rows) sample variances over seeds (n - 1 in the denominator).
        seeds: (rows,) how many: two or more of each.
    """
    own = np.asarray(variances, dtype=np.float64)
    own_freedom = np.asarray(seeds, dtype=np.float64) - 1
    if own.shape[-1] < 2:
        return own, np.broadcast_to(own_freedom, own.shape)

    total = own_freedom.sum()
    squares = (own * own_freedom).sum(axis=-1, keepdims=True)
    pooled = squares / total
    prior = _prior_freedom(own, own_freedom, pooled)
    with np.errstate(invalid="ignore"):  # an infinite prior
        finite_share = prior / (prior + own_freedom)
    share = np.where(np.isinf(prior), 1.0, finite_share)
    towards_pooled = share * pooled + (1 - share) * own
    moderated = np.maximum(own, towards_pooled)

    away = (1 - _OWN_PART) * own_freedom
    of_others = pooled * total - own * away
    others = of_others / (total - away)
    calm = others / np.maximum(own, _TINY)
    surplus = np.minimum(calm, 1.0) ** 2
    most = np.minimum(prior, total - own_freedom)
    borrowed = most * surplus

    few = own_freedom + 1 < ALONE
    variance = np.where(few, moderated, own)
    freedom = own_freedom + np.where(few, borrowed, 0.0)
    return variance, freedom


def _prior_freedom(own: Floats, freedom: Floats, pooled: Floats) -> Floats:
    """(..., 1) how many degrees of freedom the spreads of all rows are worth to each row; infinite
    where they differ no more than chance makes them.
    """
    least = chdtri(freedom, 1 - _LOW) / freedom
    chance = [_log_moments(float(count)) for count in freedom]
    expected, variance = np.array(chance).T
    counted = np.maximum(own, least * pooled)
    logs = np.log(np.maximum(counted, _TINY)) - expected
    seen = logs.var(axis=-1, ddof=1, keepdims=True)
    spread = seen - variance.mean()
    at_least = np.maximum(spread, 1e-6)
    prior = 2 * _inverse_trigamma(at_least)
    return np.where(spread > 1e-6, prior, np.inf)


@cache
def _log_moments(freedom: float) -> tuple[float, float]:
    """Mean and variance of the logarithm of a sample variance over its true one, where it counts at
    least as much as its median.
    """
    shares = (np.arange(100_000) + 0.5) / 100_000
    ratio = chdtri(freedom, 1 - shares) / freedom
    least = chdtri(freedom, 1 - _LOW) / freedom
    logs = np.log(np.maximum(ratio, least))
    return float(logs.mean()), float(logs.var())


def keep_own_freedom(variances: Floats, seeds: Floats) -> tuple[Floats, Floats]:
    """The variance of one run of each row, with the degrees of freedom of the row's own seeds; of
    fewer than ten seeds never below the pooled variance.

    It borrows no degrees of freedom from other rows, so that it errs on the safe side whatever
    their spreads: for decisions at levels far below 0.05, where few borrowed ones decide.

    Args:
        variances, seeds: as `moderate` takes them.
    """
    own = np.asarray(variances, dtype=np.float64)
    of_rows = np.asarray(seeds, dtype=np.float64) - 1
    freedom = np.broadcast_to(of_rows, own.shape)
    squares = (own * freedom).sum(axis=-1, keepdims=True)
    pooled = squares / freedom.sum(axis=-1, keepdims=True)
    few = freedom + 1 < ALONE
    wider = np.maximum(own, pooled)
    return np.where(few, wider, own), freedom


def _inverse_trigamma(x: Floats) -> Floats:
    """By Newton's method, as in limma."""
    y = 0.5 + 1 / x
    for _ in range(10):
        trigamma = polygamma(1, y)
        too_high = trigamma * (1 - trigamma / x)
        y = y + too_high / polygamma(2, y)
    return np.asarray(y)


def all_pairs(rows: int) -> Pairs:
    """(m, 2) places of every two rows."""
    return np.stack(np.triu_indices(rows, 1), axis=1)


def judge(
    rows: Rows,
    pairs: Pairs,
    *,
    level: float = ALPHA,
    explore: bool = False,
) -> list[Estimate]:
    """First minus second row of each pair, judged as one family.

    Args:
        pairs: (m, 2) places of rows.
        level: of the whole family: the chance of any false difference; with `explore` the share of
            false ones among those that are found.
    """
    value, error, freedom = _differences(rows, pairs)
    t = np.abs(_ratio(value, error))
    m = len(pairs)
    if explore:
        p = explored_p_values(rows, pairs)
        found = max(int((p <= level).sum()), 1)
        level_of_each = level * found / m
        half = -error * stdtrit(freedom, level_of_each / 2)
    else:
        top = None
        if m > 1:
            top = largest(draw(rows), rows, pairs)
        p = _exceeds(top, t, freedom, m)
        half = error * critical_values(top, freedom, level, m)
    return list_estimates(value, half, p)


def list_estimates(value: Floats, half: Floats, p: Floats) -> list[Estimate]:
    """Return the estimates of some values (m,) with half the widths of their intervals."""
    found = []
    for line in zip(value, value - half, value + half, p, strict=True):
        numbers = map(float, line)
        found.append(Estimate(*numbers))
    return found


def explored_p_values(rows: Rows, pairs: Pairs) -> Floats:
    """(m,) p of each pair, corrected for the false discovery rate."""
    from scipy.stats import false_discovery_control

    value, error, freedom = _differences(rows, pairs)
    t = np.abs(_ratio(value, error))
    two_sided = 2 * stdtr(freedom, -t)
    return np.asarray(false_discovery_control(two_sided))


def family_p_values(rows: Rows, pairs: Pairs, z: Floats, sides: int = 2) -> Floats:
    """(m,) p of each pair, corrected for the family; with one side p of "the first row is not
    better".
    """
    value, error, freedom = _differences(rows, pairs)
    t = _take_sides(_ratio(value, error), sides)
    top = largest(z, rows, pairs, sides)
    return _exceeds(top, t, freedom, len(pairs), sides)


def _take_sides(t: Floats, sides: int) -> Floats:
    """Return |t|; with one side t where it is above 0, else 0."""
    if sides == 2:
        return np.abs(t)
    return np.maximum(t, 0)


def may_be_best(rows: Rows) -> Floats:
    """(k,) p-value of "this row is the best" for each row, or as good as the best.

    One-sided Dunnett tests of the others against the row. The rows with p above 0.05 hold the best
    one in 95 % of comparisons, whichever it is (Gupta, Technometrics 7, 1965; Hsu, Annals of
    Statistics 9, 1981).
    """
    k = len(rows.means)
    found = np.ones(k)
    z = draw(rows, DRAWS // 4)
    for row in range(k):
        if rows.means[row] < rows.means.max():
            pairs = others_against(row, k)
            p = family_p_values(rows, pairs, z, sides=1)
            found[row] = p.min()
    return found


def others_against(row: int, rows: int) -> Pairs:
    """(rows - 1, 2) places: every other row and this one."""
    pairs = []
    for other in range(rows):
        if other != row:
            pairs.append((other, row))
    return np.array(pairs)


def _differences(rows: Rows, pairs: Pairs) -> tuple[Floats, Floats, Floats]:
    """Value, standard error and degrees of freedom (m,) of each."""
    i, j = pairs.T
    examples = rows.examples.between(i, j)
    parts = np.stack([rows.seeds[i], rows.seeds[j], examples])
    error = np.sqrt(parts.sum(axis=0))

    freedom_of_examples = rows.examples.freedom_between(i, j)
    of_each = np.stack([rows.freedom[i], rows.freedom[j], freedom_of_examples])
    freedom = combine_freedom(parts, of_each)
    if rows.own_seeds is not None:
        independent = combine_freedom(parts, of_each, independent=True)
        fewest = np.minimum(rows.own_seeds[i], rows.own_seeds[j])
        enough = fewest >= fewest_for_welch(len(pairs))
        freedom = np.where(enough, independent, freedom)
    value = rows.means[i] - rows.means[j]
    return value, error, freedom


def fewest_for_welch(pairs: int) -> int:
    """Return the seeds of both rows from which on a difference is Welch's t: of a family it takes
    more, since with ten seeds all pairs of ten equal rows would differ in 7 % of comparisons.
    """
    if pairs == 1:
        return ALONE
    return MANY_SEEDS


def combine_freedom(
    parts: Floats,
    freedom: Floats,
    known: float = 0.0,
    *,
    independent: bool = False,
) -> Floats:
    """(...) degrees of freedom of a sum of variances.

    The harmonic mean of the parts' freedoms by their shares of the variance: the critical value is
    then nearly the mean of the parts' own (Cochran, Biometrics 20, 1964), where Satterthwaite's
    freedom finds too much when seeds are few and spreads unlike.

    Args:
        parts, freedom: (n, ...) variances that are estimated, and their degrees of freedom.
        known: a further variance that is certain.
        independent: each part is estimated from enough seeds that no other part has
            (`fewest_for_welch`): Satterthwaite's freedom, which makes a difference Welch's t.
    """
    total = parts.sum(axis=0) + known
    weights = parts / np.maximum(total, _TINY)
    if independent:
        weights = weights**2
    unknown = (weights / freedom).sum(axis=0)
    combined = 1 / np.maximum(unknown, _TINY)
    return np.asarray(np.clip(combined, 1.0, _CERTAIN))


def _ratio(value: Floats, error: Floats) -> Floats:
    """Return t: infinite for a difference without error, 0 between two rows of the same runs."""
    equal = np.abs(value) < _NOTHING
    infinite = np.copysign(np.inf, value)
    certain = np.where(equal, 0.0, infinite)
    uncertain = value / np.maximum(error, _NOTHING)
    return np.asarray(np.where(error < _NOTHING, certain, uncertain))


@dataclass(frozen=True)
class Largest:
    """The largest t of a family under "no difference" with known variances, as weighted points of
    some draws.
    """

    points: Floats
    weights: Floats
    draws: int


def draw(rows: Rows, draws: int = DRAWS) -> Floats:
    """(draws, k) errors of the rows' means, with the covariances that the examples give them."""
    generator = np.random.default_rng(0)
    values, vectors = np.linalg.eigh(rows.examples.wider)
    root = vectors * np.sqrt(np.maximum(values, 0))
    shape = (2, draws, len(rows.means))
    seeds, examples = generator.standard_normal(shape)
    by_seeds = seeds * np.sqrt(rows.seeds)
    by_examples = examples @ root.T
    return np.asarray(by_seeds + by_examples)


def largest(z: Floats, rows: Rows, pairs: Pairs, sides: int = 2) -> Largest:
    """Of the pairs' differences in errors that were drawn, so with the correlations that they have."""
    wide = rows.examples.wider
    i, j = pairs.T
    by_examples = variance_between(wide, i, j)
    by_seeds = rows.seeds[i] + rows.seeds[j]
    variance = by_seeds + np.maximum(by_examples, 0)
    error = np.sqrt(variance)
    error[error < _NOTHING] = np.inf
    difference = z[:, i] - z[:, j]
    t = _take_sides(difference / error, sides)

    rising = np.sort(t.max(axis=1))
    falling = rising[::-1]
    draws = len(falling)
    tenth = draws // 10  # finely where they are large
    upper = np.array_split(falling[:tenth], _POINTS)
    lower = np.array_split(falling[tenth:], _POINTS)
    points = []
    counts = []
    for part in (*upper, *lower):
        points.append(part.mean())
        counts.append(len(part))
    weights = np.array(counts) / draws
    return Largest(np.array(points), weights, draws)


def _exceeds(
    top: Largest | None,
    t: Floats,
    freedom: Floats,
    m: int,
    sides: int = 2,
) -> Floats:
    """P(max |z| / s > t) for each t, s with its degrees of freedom, of a family of m; without `top`
    Bonferroni's bound.

    Where it is too small for the number of draws, it is Bonferroni's too.
    """
    single = sides * stdtr(freedom, -t)
    bound = np.minimum(m * single, 1.0)
    if top is None:
        return np.asarray(bound)

    column = freedom[:, None]
    t_of_each = np.maximum(t, 1e-12)[:, None]
    ratio = top.points / t_of_each
    of_points = chdtr(column, column * ratio**2)
    drawn = np.maximum(of_points @ top.weights, single)
    resolved = np.maximum(drawn, 10 / top.draws)
    return np.asarray(np.minimum(bound, resolved))


def critical_values(top: Largest | None, freedom: Floats, level: float, m: int) -> Floats:
    """The t that is exceeded with probability `level`, by bisection."""
    low = np.full(len(freedom), 0.1)
    high = np.full(len(freedom), 1e4)
    for _ in range(40):
        middle = np.sqrt(low * high)
        above = _exceeds(top, middle, freedom, m) > level
        low = np.where(above, middle, low)
        high = np.where(above, high, middle)
    return high


def mean_over_seeds(by_seed: Floats, examples: float, examples_freedom: float = np.inf) -> Interval:
    """One row's mean over seeds with its 95 % interval, by its own seeds and the choice of
    examples.

    With fewer than three seeds the interval has the chance of the examples alone.

    Args:
        by_seed: (n,) scores.
        examples: what the choice of examples adds to the variance of the mean.
        examples_freedom: degrees of freedom of that; infinite where it is known.
    """
    mean = float(np.mean(by_seed))
    error = (_variance_by_seeds(by_seed) + examples) ** 0.5
    half = _critical_of_mean(by_seed, examples, examples_freedom) * error
    return Interval(mean, mean - half, mean + half)


def mean_of_shares(
    by_seed: Floats,
    examples: float,
    counts: Sequence[int],
    at_bounds: float = 1.0,
) -> Interval:
    """The same of scores that are means of outcomes between 0 and 1, such as accuracies.

    Near 100 % of few examples their variance says little: where all answers are right, it is 0. The
    interval is therefore that of Agresti & Coull (The American Statistician 52, 1998): around a
    mean that is drawn towards a half, as wide as it would be there. The variance of an example is
    that of the examples, and where few answers are wrong, that of single answers, mean (1 - mean).
    Outcomes within the bounds, such as the V-measures of a few sets, show how far they vary, so that
    nothing is added for them.

    Args:
        by_seed, examples: as `mean_over_seeds` takes them.
        counts: of the examples of each task.
        at_bounds: the share of the outcomes that are 0 or 1, as all answers are.
    """
    mean = float(np.mean(by_seed))
    seeds = _variance_by_seeds(by_seed)
    sizes = np.asarray(counts)
    per_size = float(np.sum(1 / sizes))
    number = len(counts) ** 2 / per_size  # as if of one task
    wrong = number * mean * (1 - mean)
    squares = examples * number**2
    added_answers = 0.5 * at_bounds
    per_example = (squares + added_answers) / max(wrong + added_answers, _TINY) / number

    freedom = float(np.sum(counts)) - len(counts)
    critical = _critical_of_mean(by_seed, examples, freedom)
    added = critical**2 * per_example  # some four answers of which half are right, as a share
    middle = (mean + added / 2) / (1 + added)
    of_middle = per_example * middle * (1 - middle)
    by_examples = of_middle / (1 + added)
    half = critical * (seeds + by_examples) ** 0.5

    low = min(middle - half, mean)
    high = max(middle + half, mean)
    return Interval(mean, max(low, 0.0), min(high, 1.0))


def _variance_by_seeds(by_seed: Floats) -> float:
    """Return what seeds add to the variance of their mean; 0 with fewer than three."""
    n = len(by_seed)
    if n >= FEWEST_SEEDS:
        return float(np.var(by_seed, ddof=1)) / n
    return 0.0


def _critical_of_mean(by_seed: Floats, examples: float, examples_freedom: float) -> float:
    """Return Student's t of the interval of a mean, of 95 %."""
    seeds = _variance_by_seeds(by_seed)
    unknown = examples / examples_freedom
    if seeds > 0:
        unknown += seeds / (len(by_seed) - 1)
    if unknown > 0:
        freedom = min((seeds + examples) / unknown, _CERTAIN)
    else:
        freedom = _CERTAIN
    return -float(stdtrit(freedom, ALPHA / 2))
