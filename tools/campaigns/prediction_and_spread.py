"""Measures the coverage of intervals for published numbers and for sources of spread: tables of
docs/statistics.md.

python -m tools.campaigns.prediction_and_spread [--only streams]
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reports.stats.estimate import predict
from reports.stats.influence import influence
from reports.stats.spread_sources import pairs_freedom, variance_interval
from tests.support.simulated_streams import coverage
from tools.campaigns.measured import FOLDER, Figure, Part, main, share

FILE = FOLDER / "prediction_and_spread.csv"


def measure_published(trials: int = 10_000) -> Iterator[Figure]:
    """Yield how often the mean of several more runs is where it is expected."""
    generator = np.random.default_rng(0)
    for runs in (5, 8):
        for n in (2, 3, 5, 10):
            hits = 0
            for _ in range(trials):
                own = generator.normal(size=n)
                expected = predict(float(own.mean()), [own.tolist()], runs=runs)
                hits += expected.low <= generator.normal(size=runs).mean() <= expected.high
            name = f"{n} seeds of ours"
            yield share("published", f"mean of {runs}", name, hits, trials, at_least=94.0)


STREAMS = {
    "a tenth of the variance": (0.32, 0.95, 0.0),
    "half": (0.71, 0.71, 0.0),
    "nine tenths": (0.95, 0.32, 0.0),
    "half, by itself and together with the others": (0.5, 0.71, 0.5),
    "the whole, since any change draws everything again": (0.0, 0.0, 1.0),
}


def measure_streams(trials: int = 4000) -> Iterator[Figure]:
    """Yield the coverage of a stream's standard deviation and of its share of all streams' variance."""
    for name, (alone, others, together) in STREAMS.items():
        for runs in (4, 5, 10):
            found = coverage(alone, others, together, runs, trials=trials)
            for column, part in zip(("standard deviation", "share"), found, strict=True):
                cell = f"{name}, {runs} runs"
                yield share("streams", cell, column, part * trials, trials, at_least=94.0)


def measure_test_pairs(trials: int = 400) -> Iterator[Figure]:
    """Yield the coverage of the standard deviation that the drawn pairs bring, by what each pair moves
    one run's score.
    """
    generator = np.random.default_rng(0)
    for n in (200, 1379):
        for rho in (0.3, 0.7, 0.85):

            def draw(rho: float = rho, n: int = n) -> tuple[np.ndarray, np.ndarray]:
                x, y = generator.normal(size=(2, n))
                return x, rho * x + np.sqrt(1 - rho**2) * y

            correlations = []
            for _ in range(4000):
                x, y = draw()
                correlations.append(influence("spearman", y, x)[0])
            truth = np.var(correlations)

            hits = 0
            for _ in range(trials):
                x, y = draw()
                correlation, moved = influence("spearman", y, x)
                variance = float(moved @ moved)
                freedom = pairs_freedom(correlation, variance, n)
                low, high = variance_interval(variance, freedom)
                hits += int(low <= truth <= high)
            cell = f"{n:,} test pairs, correlation {rho:g}"
            yield share("test-pairs", cell, "standard deviation", hits, trials)


PARTS: dict[str, Part] = {
    "published": measure_published,
    "streams": measure_streams,
    "test-pairs": measure_test_pairs,
}

if __name__ == "__main__":
    main(FILE, PARTS, __doc__ or "")
