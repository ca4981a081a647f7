"""Comparisons of drawn rows whose seeds are added until it is decided, by the product's own code and
in a short form of its rules that judges many comparisons at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.special import ndtr, stdtrit

from reports.decide.sequential import HOPE, analyse_results
from reports.results import InterimAnalyses, Key
from reports.scores.score_table import question_of_scores
from reports.stats.interim import share_of_analysis
from reports.stats.significance import Significance
from reports.stats.simultaneous import ALONE, ALPHA, combine_freedom, moderate
from reports.stats.verdicts import Question, Ranking

FIRST, MOST, EQUIVALENCE = 3, 15, 0.5


@dataclass(frozen=True)
class Ended:
    """Comparisons whose seeds were added until it was decided.

    Attributes:
        different: (draws,) true where some rows are called different.
        seeds: (draws,) of a row at the last analysis.
        covered: (draws,) true where the final interval of the first two rows has their difference.
    """

    different: np.ndarray
    seeds: np.ndarray
    covered: np.ndarray


def draw_scores(gap: float, spreads: Sequence[float], draws: int) -> np.ndarray:
    """Return (draws, rows, MOST) scores in points; the first row is better by `gap`."""
    generator = np.random.default_rng(0)
    scores = generator.normal(size=(draws, len(spreads), MOST)) * np.array(spreads)[:, None]
    scores[:, 0] += gap
    return np.asarray(scores)


def difference(scores: np.ndarray, seeds: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (draws,) the difference by the first seeds, (2, draws) what the seeds of either row add
    to its variance, and (draws,) its degrees of freedom.
    """
    some = scores[:, :, :seeds]
    value = some[:, 0].mean(axis=1) - some[:, 1].mean(axis=1)
    of_run, freedom = moderate(some.var(axis=2, ddof=1), np.full(2, seeds))
    parts = (of_run / seeds).T
    return value, parts, combine_freedom(parts, freedom.T, independent=seeds >= ALONE)


def decide_at_once(scores: np.ndarray, gap: float) -> Ended:
    """Apply the rules of `reports.decide.sequential` to many comparisons at once."""
    draws = len(scores)
    going_on = np.ones(draws, dtype=bool)
    different = np.zeros(draws, dtype=bool)
    used = np.zeros(draws)
    low = np.full(draws, -np.inf)
    high = np.full(draws, np.inf)
    for seeds in range(FIRST, MOST + 1):
        value, parts, freedom = difference(scores, seeds)
        level = ALPHA * share_of_analysis(seeds - FIRST + 1, FIRST, MOST)
        half = -stdtrit(freedom, level / 2) * np.sqrt(parts.sum(axis=0))
        low = np.where(going_on, np.maximum(low, value - half), low)
        high = np.where(going_on, np.minimum(high, value + half), high)
        used[going_on] = seeds
        apart = going_on & ((np.minimum(low, value) > 0) | (np.maximum(high, value) < 0))
        alike = going_on & (low > -EQUIVALENCE) & (high < EQUIVALENCE)
        different |= apart
        going_on &= ~(apart | alike)
        going_on &= _chance_of_decision(value, parts, seeds) >= HOPE
    covered = (np.minimum(low, high) <= gap) & (gap <= np.maximum(low, high))
    return Ended(different, used, covered)


def _chance_of_decision(value: np.ndarray, parts: np.ndarray, seeds: int) -> np.ndarray:
    """Return (draws,) how likely the last analysis finds two rows different, or alike."""
    at_the_end = parts * seeds / MOST
    own = np.full((2, 1), MOST - 1.0)
    freedom = combine_freedom(at_the_end, own, independent=MOST >= ALONE)
    last = ALPHA * share_of_analysis(MOST - FIRST + 1, FIRST, MOST)
    half = -stdtrit(freedom, last / 2) * np.sqrt(at_the_end.sum(axis=0))
    deviation = np.sqrt(parts.sum(axis=0) * (1 - seeds / MOST)) + 1e-12
    distance = np.abs(value)
    apart = ndtr((distance - half) / deviation) + ndtr((-distance - half) / deviation)
    room = EQUIVALENCE - half
    within = ndtr((room - distance) / deviation) - ndtr((-room - distance) / deviation)
    return np.asarray(apart + np.where(room > 0, within, 0.0))


def decide_in_full(scores: np.ndarray, gap: float = 0.0) -> Ended:
    """Add seeds to each comparison until the product's own interim analysis gives no row another
    one, and take its verdicts on all pairs.

    Args:
        scores: (draws, rows, MOST) in points.
        gap: the true difference of the first two rows.
    """
    different = []
    used = []
    covered = []
    for of_rows in scores:
        ranking, seeds = _add_seeds(of_rows)
        verdicts = [found.verdict for found in ranking.differences.values()]
        different.append("better" in verdicts or "worse" in verdicts)
        used.append(seeds)
        by_label = {row.label: row for row in ranking.rows}
        interval = ranking.difference(by_label["row 0"], by_label["row 1"]).estimate
        covered.append(100 * interval.low <= gap <= 100 * interval.high)
    return Ended(np.array(different), np.array(used), np.array(covered))


def _add_seeds(scores: np.ndarray) -> tuple[Ranking, float]:
    """Return the rows of one comparison at the last analysis, and the mean number of their seeds."""
    lines = []
    for number, of_row in enumerate(50 + scores):
        lines += [(f"row {number}", seed, score) for seed, score in enumerate(of_row, 1)]
    question = question_of_scores(pd.DataFrame(lines, columns=["row", "seed", "score"]))
    counts = {row.key: FIRST for row in question.results.rows}
    since = {(*key, seed): 1 for key in counts for seed in range(1, FIRST + 1)}
    analyses = 1
    while True:
        significance = _significance(question, counts, since, analyses)
        contending = analyse_results(significance.results, significance).contending
        growing = [key for key in contending if counts[key] < MOST]
        if not growing:
            ranking = Ranking(significance.results.rows, significance, question.target)
            return ranking, float(np.mean(list(counts.values())))
        analyses += 1
        for key in growing:
            counts[key] += 1
            since[*key, counts[key]] = analyses


def _significance(
    question: Question,
    counts: dict[Key, int],
    since: dict[tuple[str, str, int], int],
    analyses: int,
) -> Significance:
    """Return what the first seeds of the rows say, with so many interim analyses."""
    rows = [replace(row, runs=row.runs[: counts[row.key]]) for row in question.results.rows]
    seeds = tuple(range(FIRST, FIRST + analyses))
    taken = InterimAnalyses(FIRST, MOST, seeds, since, (), "", "", EQUIVALENCE)
    results = replace(question.results, rows=tuple(rows), analyses=taken)
    return Significance(results, whole=question.significance, targets=[question.target])
