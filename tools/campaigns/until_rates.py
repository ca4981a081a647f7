"""What `--until decided` finds, and how often it errs: parts of `tools.campaigns.error_rates`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.special import stdtrit

from reports.stats.simultaneous import ALPHA
from tests.support.simulated_rows import planned_pair
from tests.support.simulated_until import (
    FIRST,
    MOST,
    Ended,
    decide_at_once,
    decide_in_full,
    difference,
    draw_scores,
)
from tools.campaigns.measured import Figure, share

DIFFERS = "called different"
CASES = (
    # (points apart, spreads over seeds, bound of what is called different)
    (0.0, (0.84, 0.84), None),
    (1.0, (0.84, 0.84), 55.0),
    (1.5, (0.84, 0.84), None),
    (2.0, (0.84, 0.84), None),
    (0.0, (0.84, 0.2), None),
    (0.0, (2.0, 0.2), None),
    (0.0, (3.0, 0.2), None),
)


def measure_until(draws: int = 20_000) -> Iterator[Figure]:
    """Yield what is found in two rows without a chance of the examples, next to what fifteen seeds
    of each find that are judged once, and what naive looks find.
    """
    for gap, spreads, at_least in CASES:
        cell = _name_case(gap, spreads)
        ended = decide_at_once(draw_scores(gap, spreads, draws), gap)
        yield from _figures("until", cell, ended, gap, at_least)
        once = planned_pair(spreads, [MOST] * 2, of=gap, draws=draws)
        count = (once.power if gap else once.wrong) * draws / 100
        yield share("until", cell, f"by {MOST} seeds at once", count, draws)
        yield share("until", cell, "by p < 0.05 after each seed", _look_often(gap, spreads), draws)


def measure_until_in_full(draws: int = 150) -> Iterator[Figure]:
    """Yield the same by the code that `harness compare --until decided` runs after each seed, and
    how often that agrees with the short form of `measure_until`; and of four equal rows how often
    some pair is called different.
    """
    for gap, spreads in ((1.0, (0.84, 0.84)), (0.0, (0.84, 0.84)), (0.0, (3.0, 0.2))):
        cell = _name_case(gap, spreads)
        scores = draw_scores(gap, spreads, draws)
        full = decide_in_full(scores, gap)
        short = decide_at_once(scores, gap)
        yield from _figures("until-in-full", cell, full, gap, 55.0 if gap else None)
        same = (full.different == short.different) & (full.seeds == short.seeds)
        count = int(same.sum())
        yield share("until-in-full", cell, "as in short", count, draws, at_least=98.0)
    for of_four in ((0.84,) * 4, (3.0, 0.2, 0.2, 0.2)):
        cell = f"four equal rows, seeds vary by {of_four[0]:g} and {of_four[1]:g}"
        full = decide_in_full(draw_scores(0.0, of_four, draws // 3))
        yield from _figures("until-in-full", cell, full, 0.0, None)


def _name_case(gap: float, spreads: Sequence[float]) -> str:
    apart = "equal"
    if gap:
        apart = f"{gap:g} point{'s' * (gap != 1)} apart"
    return f"{apart}, seeds vary by {spreads[0]:g} and {spreads[1]:g}"


def _figures(
    part: str, cell: str, ended: Ended, gap: float, at_least: float | None
) -> Iterator[Figure]:
    draws = len(ended.seeds)
    at_most = None if gap else 5.0
    count = int(ended.different.sum())
    yield share(part, cell, DIFFERS, count, draws, at_most=at_most, at_least=at_least)
    error = float(ended.seeds.std(ddof=1)) / draws**0.5
    yield Figure(part, cell, "seeds of a row", float(ended.seeds.mean()), error, draws)
    yield share(part, cell, "intervals cover", int(ended.covered.sum()), draws, at_least=95.0)


def _look_often(gap: float, spreads: Sequence[float], draws: int = 20_000) -> int:
    """Return in how many comparisons some analysis has p < 0.05, each as if it were the only one."""
    scores = draw_scores(gap, spreads, draws)
    found = np.zeros(draws, dtype=bool)
    for seeds in range(FIRST, MOST + 1):
        value, parts, freedom = difference(scores, seeds)
        half = -stdtrit(freedom, ALPHA / 2) * np.sqrt(parts.sum(axis=0))
        found |= np.abs(value) > half
    return int(found.sum())
