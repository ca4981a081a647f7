"""Errors where examples are few or seeds tie: parts of `tools.campaigns.error_rates`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from scipy.stats import binom

from reports.scores.score_table import question_of_scores
from reports.stats.clusters import chance
from reports.stats.influence import of_mean
from reports.stats.simultaneous import ALPHA, Rows, judge, mean_of_shares, mean_over_seeds
from tools.campaigns.measured import Figure, share

DrawRows = Callable[[], np.ndarray]
"""() -> outcomes (rows, seeds, examples) of two equal rows."""


def measure_accuracies() -> Iterator[Figure]:
    """Yield how often the interval of an accuracy of one run misses: the binomial chance of every
    number of right answers at which it does, so without a Monte-Carlo error.
    """
    for true in (0.8, 0.9, 0.95, 0.97, 0.99):
        for examples in (5, 10, 20, 60, 200):
            missed = 0.0
            for right in range(examples + 1):
                mean = right / examples
                variance = mean * (1 - mean) / (examples - 1)
                found = mean_of_shares(np.array([mean]), variance, [examples])
                if not found.low <= true <= found.high:
                    missed += float(binom.pmf(right, examples, true))
            cell = f"{100 * true:.0f}"
            yield Figure("accuracies", cell, f"{examples} examples", 100 * missed, at_most=7.0)


def measure_few_examples(draws: int = 4000) -> Iterator[Figure]:
    """Yield how often two equal rows differ by their examples, and how often the interval of a mean
    misses: finished models, and rows of two seeds.
    """
    generator = np.random.default_rng(0)

    def finished(count: int) -> DrawRows:
        return lambda: generator.normal(size=(2, 1, count))

    def two_seeds(part: float, count: int) -> DrawRows:
        def draw_rows() -> np.ndarray:
            shared = generator.normal(size=(2, 1, count)) * (1 - part) ** 0.5
            return np.asarray(shared + generator.normal(size=(2, 2, count)) * part**0.5)

        return draw_rows

    cells: dict[str, DrawRows] = {}
    for count in (5, 10, 20, 60):
        cells[f"finished models, {count} examples"] = finished(count)
    for part in (0.0, 0.5, 0.8):
        noise = f"{part:g} of the noise of one seed and one example"
        cells[f"two seeds, 60 examples, {noise}"] = two_seeds(part, 60)
    cells["two seeds, 5 examples, 0.5 of the noise of one seed and one example"] = two_seeds(0.5, 5)

    for name, draw_rows in cells.items():
        different = 0
        missed = 0
        for _ in range(draws):
            one_differs, one_misses = _judge_examples(draw_rows())
            different += one_differs
            missed += one_misses
        yield share("examples", name, "called different", different, draws, at_most=7.0)
        yield share("examples", name, "a mean's interval misses", missed, draws, at_most=7.0)


def _judge_examples(outcomes: np.ndarray) -> tuple[bool, bool]:
    """Judge two rows of the true mean 0 by their examples alone.

    Args:
        outcomes: (2, seeds, examples).

    Returns:
        Whether they are called different, and whether the interval of the first one's mean misses.
    """
    count = outcomes.shape[2]
    widened = (count / (count - 1)) ** 0.5
    moved = [np.stack([of_mean(seed)[1] for seed in row]) * widened for row in outcomes]
    known = chance([(moved, None)]).without_interaction()
    means = outcomes.mean(axis=(1, 2))
    rows = Rows(means, np.zeros(2), np.full(2, np.inf), known, np.full(2, np.inf))
    different = judge(rows, np.array([(0, 1)]))[0].p <= ALPHA
    own = mean_over_seeds(outcomes[0].mean(axis=1), known.of(0), known.freedom_of(0))
    return different, not own.low <= 0 <= own.high


def measure_ties(tables: int = 300) -> Iterator[Figure]:
    """Yield how often equal rows of three seeds differ where seeds tie, judged end to end from
    tables of accuracies: one score of each run, and with rounding to one decimal.
    """
    for rows, examples, decimals in (
        (2, 60, 9),
        (5, 200, 9),
        (20, 60, 9),
        (20, 200, 9),
        (5, 2000, 3),
    ):
        generator = np.random.default_rng(0)
        count = 0
        for _ in range(tables):
            lines = []
            for row in range(rows):
                for seed in range(3):
                    score = generator.binomial(examples, 0.8) / examples
                    lines.append((f"row {row}", seed, round(score, decimals)))
            question = question_of_scores(pd.DataFrame(lines, columns=["row", "seed", "score"]))
            (block,) = question.blocks().values()
            count += any(d.estimate.p <= ALPHA for d in block.differences.values())
        cell = f"{rows} rows, accuracies of {examples:,} examples"
        if decimals < 9:
            cell += f", {decimals} digits"
        yield share("ties", cell, "some pair differs", count, tables, at_most=5.0)
