"""What a row does over several tasks at once: interquartile mean, probability of improvement, optimism of a choice.

Everything is plain numpy on arrays; nothing here knows records or tables. A matrix of scores is (runs, tasks): one
trained model a line, its score on every task. In the reinforcement learning of Agarwal et al. (NeurIPS 2021, "Deep
Reinforcement Learning at the Edge of the Statistical Precipice") every run belongs to one task; here one model answers
all tasks, so that a good seed is good on most of them. Runs are therefore drawn whole: each task (stratum) keeps its
number of runs, and what tasks have in common stays in. That is right for independent tasks too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reports.stats.estimate import Estimate, Floats

REPLICATES = 2000
FEWEST_RUNS = 3  # with two, one difference would have to tell the spread of all seeds


@dataclass(frozen=True)
class Interval:
    """A value with its 95 % interval; no interval (None) where too few runs say how far runs differ."""

    value: float
    low: float | None = None
    high: float | None = None


def interquartile_mean(scores: Floats) -> Floats:
    """Mean of the middle half of all runs' scores on all tasks, over the last two axes (..., runs, tasks).

    With N scores the floor(N / 4) lowest and as many highest ones are left out, as `scipy.stats.trim_mean(x, 0.25)`
    does (Agarwal et al. 2021, section 4.3). Less swayed by one odd task than the mean, less blind than the median.
    """
    flat = np.sort(scores.reshape(*scores.shape[:-2], -1), axis=-1)
    cut = flat.shape[-1] // 4
    return np.asarray(flat[..., cut : flat.shape[-1] - cut].mean(axis=-1))


def stratified_bootstrap(
    scores: Floats,
    statistic: Callable[[Floats], Floats] = interquartile_mean,
    *,
    replicates: int = REPLICATES,
    seed: int = 0,
    confidence: float = 0.95,
) -> Interval:
    """A statistic of a matrix of scores with a bootstrap interval over its runs; the tasks are as given.

    Each replicate draws n whole runs with replacement, so that every task (stratum) keeps n (Agarwal et al. 2021,
    section 4.1, with the runs drawn whole: see above). A bootstrap of n runs has (n - 1) / n of their variance, which
    is itself known from n values only: deviations are widened by sqrt(n / (n - 1)) t(n - 1) / z (the expanded
    percentile interval of Hesterberg, The American Statistician 69(4), 2015). Simulated coverage of 95 % intervals for
    the interquartile mean of 7 tasks, 3 to 10 runs, from independent tasks to tasks that move as one: 93-97 %.

    Args:
        scores: (n, tasks).
        statistic: maps (..., n, tasks) to (...).
    """
    n = len(scores)
    value = float(statistic(scores))
    if n < FEWEST_RUNS:
        return Interval(value)
    from scipy.stats import norm, t

    drawn = np.random.default_rng(seed).integers(0, n, size=(replicates, n))
    values = statistic(scores[drawn])
    tail = (1 + confidence) / 2
    wider = math.sqrt(n / (n - 1)) * float(t.ppf(tail, n - 1)) / float(norm.ppf(tail))
    low, high = np.quantile(values - values.mean(), [1 - tail, tail])
    return Interval(value, value + wider * float(low), value + wider * float(high))


def probability_of_improvement(a: Floats, b: Floats) -> float:
    """How likely a run of A beats a run of B on a task drawn at random (Agarwal et al. 2021, section 4.3).

    P(A > B) = mean over tasks t, runs i of A and j of B of [a_it > b_jt] + 1/2 [a_it = b_jt]: on each task the
    statistic U of Mann & Whitney (1947) over n_a n_b. It says how often, not how much.

    Args:
        a, b: (runs of A, tasks) and (runs of B, tasks), the same tasks.
    """
    x, y = a[:, None, :], b[None, :, :]
    return float(((x > y) + 0.5 * (x == y)).mean())


def improvement_interval(
    a: Floats, b: Floats, *, replicates: int = REPLICATES, seed: int = 0, confidence: float = 0.95
) -> Interval:
    """The probability of improvement with an interval over the runs of both; a side with one run counts as fixed.

    With a few runs a bootstrap of that share says [1, 1] as soon as all runs of A lie above all of B, which happens by
    chance. The interval is therefore the generalised one for P(A > B) of normal scores (Weerahandi, JASA 88, 1993):
    on each task, from mean m and deviation s of n runs,

        s* = s sqrt((n - 1) / C),    m* = m - s* Z / sqrt(n),    C ~ chi-squared(n - 1),    Z ~ N(0, 1)

    for each side, and the quantiles of Phi((m*_a - m*_b) / sqrt(s*_a^2 + s*_b^2)). The tasks' limits are averaged: that
    is right where the tasks move as one (one model answers them all), and wider than need be where they do not, never
    too narrow. Simulated coverage of 95 % intervals, 7 tasks that move as one, 3 to 10 runs, probabilities of 0.5 to
    0.95: 93-97 % against a fixed side, 95-98 % between two sides (99 % with three runs each); above 98 % when half of
    the spread or all of it is each task's own.
    """
    value = probability_of_improvement(a, b)
    sides = [side for side in (a, b) if len(side) > 1]
    if not sides or min(map(len, sides)) < FEWEST_RUNS:
        return Interval(value)
    from scipy.special import ndtr

    generator = np.random.default_rng(seed)
    means, variances = [], []
    for side in (a, b):
        n, mean = len(side), side.mean(axis=0)
        variance = np.zeros((1, mean.size))
        if n > 1:
            variance = side.var(axis=0, ddof=1) * (n - 1) / generator.chisquare(n - 1, size=(replicates, 1))
        means.append(mean - np.sqrt(variance / n) * generator.standard_normal((len(variance), 1)))
        variances.append(variance)
    difference, spread = means[0] - means[1], np.sqrt(variances[0] + variances[1])
    certain = np.where(difference == 0, 0.0, np.copysign(np.inf, difference))  # neither side has any spread
    z = np.divide(difference, spread, out=certain, where=spread > 0)
    low, high = np.quantile(ndtr(z), [(1 - confidence) / 2, (1 + confidence) / 2], axis=0).mean(axis=1)
    return Interval(value, min(float(low), value), max(float(high), value))


def optimism(chosen: float, held_out: Floats, confidence: float = 0.95) -> Estimate:
    """How much the score by which a configuration was chosen promises above what fresh seeds of it reach.

    chosen - mean(held_out), with Student's interval over the n held-out scores and the p-value of "no optimism". The
    best of k noisy scores is too high by the very choice (Jensen & Cohen, Machine Learning 38, 2000; Cawley & Talbot,
    JMLR 11, 2010); scores that had no part in it are not.

    Args:
        chosen: the best score, by which the choice was made; its own chance is what is measured.
        held_out: (n,) scores of the chosen configuration under seeds that chose nothing, n >= 2.
    """
    from scipy.stats import t

    n = len(held_out)
    if n < 2:
        raise ValueError(f"needs at least two held-out scores, not {n}")
    value = float(chosen - held_out.mean())
    error = float(held_out.std(ddof=1)) / math.sqrt(n)
    half = float(t.ppf((1 + confidence) / 2, n - 1)) * error
    p = 2 * float(t.sf(abs(value) / error, n - 1)) if error > 0 else float(value == 0)
    return Estimate(value, value - half, value + half, p)
