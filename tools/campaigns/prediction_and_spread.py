"""Shows the coverage of intervals for published numbers and for sources of spread: tables of
docs/statistics.md.

python -m tools.campaigns.prediction_and_spread [--trials 4000]
"""

from __future__ import annotations

import argparse

import numpy as np

from reports.stats.estimate import predict
from reports.stats.influence import influence
from reports.stats.spread_sources import pairs_freedom, variance_interval
from tests.support.simulated_streams import coverage


def published_numbers(trials: int) -> None:
    """Print how often the mean of several more runs is where it is expected, in per cent."""
    print("| published number | our seeds | inside |\n|---|---|---|")
    generator = np.random.default_rng(0)
    for runs in (5, 8):
        for n in (2, 3, 5, 10):
            hits = 0
            for _ in range(trials):
                own = generator.normal(size=n)
                expected = predict(float(own.mean()), [own.tolist()], runs=runs)
                hits += expected.low <= generator.normal(size=runs).mean() <= expected.high
            print(f"| mean of {runs} | {n} | {100 * hits / trials:.1f} |", flush=True)


STREAMS = {
    "a tenth of the variance": (0.32, 0.95, 0.0),
    "half": (0.71, 0.71, 0.0),
    "nine tenths": (0.95, 0.32, 0.0),
    "half, by itself and together with the others": (0.5, 0.71, 0.5),
    "the whole, since any change draws everything again": (0.0, 0.0, 1.0),
}


def streams(trials: int) -> None:
    """Print the coverage of a stream's standard deviation and of its share of all streams' variance."""
    print("\n| what a stream brings | runs | standard deviation | share |\n|---|---|---|---|")
    for name, (alone, others, together) in STREAMS.items():
        for runs in (4, 5, 10):
            deviation, share = coverage(alone, others, together, runs, trials=trials)
            print(f"| {name} | {runs} | {100 * deviation:.1f} | {100 * share:.1f} |", flush=True)


def pairs(trials: int) -> None:
    """Print the coverage of the standard deviation that the drawn pairs bring, by what each pair moves
    one run's score.
    """
    print("\n| pairs | correlation | standard deviation of the test pairs |\n|---|---|---|")
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
            tries = max(trials // 10, 100)
            for _ in range(tries):
                x, y = draw()
                correlation, moved = influence("spearman", y, x)
                variance = float(moved @ moved)
                freedom = pairs_freedom(correlation, variance, n)
                low, high = variance_interval(variance, freedom)
                hits += low <= truth <= high
            print(f"| {n:,} | {rho} | {100 * hits / tries:.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trials", type=int, default=4000)
    trials = parser.parse_args().trials
    published_numbers(trials)
    streams(trials)
    pairs(trials)


if __name__ == "__main__":
    main()
