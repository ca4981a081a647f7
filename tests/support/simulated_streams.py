"""Runs drawn from a model of training with four streams of random numbers, and how often intervals
hold the truth.
"""

from __future__ import annotations

import numpy as np

from reports.stats.spread_sources import SpreadSource, share_of


def coverage(
    alone: float, others: float, together: float, runs: int, *, trials: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """Return the shares of trials in which the intervals of a stream's standard deviation and of its share
    hold the truth.

    A score is a + b + c: a of the stream's seed, b of the other streams' seed, c of both together
    (drawn anew with any change). The stream alone varies by alone^2 + together^2, all streams by
    others^2 more. As in a comparison, runs of the stream have the other streams at the first seed,
    runs of all streams have the same seeds of the stream, and the first run stands in both.
    """
    generator = np.random.default_rng(seed)
    a = generator.normal(size=(trials, runs)) * alone
    b = generator.normal(size=(trials, runs)) * others
    c_part = generator.normal(size=(trials, runs)) * together
    c_whole = generator.normal(size=(trials, runs)) * together
    c_whole[:, 0] = c_part[:, 0]
    part = a + b[:, :1] + c_part
    whole = a + b + c_whole
    truth = alone**2 + together**2
    share = truth / (truth + others**2)
    held = np.zeros(2)
    seeds = tuple(range(runs))
    for drawn in zip(part, whole, strict=True):
        one = _source_of(drawn[0], seeds)
        every = _source_of(drawn[1], seeds)
        low, high = one.interval
        held[0] += low**2 <= truth <= high**2
        found = share_of(one, every)
        assert found is not None
        held[1] += found.low <= share <= found.high
    return float(held[0] / trials), float(held[1] / trials)


def _source_of(scores: np.ndarray, seeds: tuple[int, ...]) -> SpreadSource:
    variance = float(scores.var(ddof=1))
    return SpreadSource("", (), tuple(scores), variance, len(scores) - 1.0, (), seeds)
