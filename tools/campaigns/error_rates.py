"""Shows how often verdicts are wrong and what they find: the tables of docs/statistics.md.

    python -m tools.campaigns.error_rates [--trials 1000] [--rows 2 10]

Rows of a comparison are drawn from normal distributions of known means and spreads
(`tests/support/simulated_rows.py`), for several numbers of rows and seeds, small test sets (2.6
points a row) and large ones (0.42).
"""

from __future__ import annotations

import argparse

import numpy as np

from reports.stats.power import smallest_difference
from reports.stats.simultaneous import mean_over_seeds
from tests.support.simulated_rows import SPREADS, drawn, wrong

EXAMPLES = {
    "small": 2.6,
    "large": 0.42,
}  # standard deviation of a row in points: 240 and 18,850 pairs


def errors(trials: int, counts: list[int]) -> None:
    """Per cent of comparisons of equal rows in which something is found: equal spreads, and the
    worst of all.
    """
    print(
        "| rows | seeds | test set | pairs: equal, worst | planned: equal, worst | best set: equal, worst |"
    )
    print("|---|---|---|---|---|---|")
    for rows in counts:
        for seeds in (3, 5, 10):
            for name, examples in EXAMPLES.items():
                found = []
                for spread in SPREADS.values():
                    # The widest row is the first one, which the planned family and the best set are
                    # about.
                    made = drawn(
                        spread(rows)[::-1], np.full(rows, seeds), examples=examples, trials=trials
                    )
                    found.append(wrong(made))
                texts = []
                for part in ("pairs", "planned", "best"):
                    values = [getattr(one, part) for one in found]
                    texts.append(f"{values[0]:.1f}, {max(values):.1f}")
                print(f"| {rows} | {seeds} | {name} | {' | '.join(texts)} |", flush=True)


def power() -> None:
    """The smallest difference that is found in 80 % of comparisons, seeds 0.84 points apart."""
    print(
        "\n| rows | seeds | any two rows: small / large test set | planned: small / large |\n|---|---|---|---|"
    )
    for rows in (2, 10, 40):
        for seeds in (3, 5, 10):
            texts = [
                " / ".join(
                    f"{smallest_difference(seeds, 0.84, 2**0.5 * sd, rows, planned=planned):.1f}"
                    for sd in EXAMPLES.values()
                )
                for planned in (False, True)
            ]
            print(f"| {rows} | {seeds} | {' | '.join(texts)} |", flush=True)


def coverage(trials: int) -> None:
    """Of the interval of one mean."""
    print("\n| seeds | examples | a mean's interval covers |\n|---|---|---|")
    generator = np.random.default_rng(0)
    for seeds in (3, 5, 10):
        for name, examples in EXAMPLES.items():
            hits = 0
            for _ in range(trials):
                by_seed = generator.normal(size=seeds) * 0.84 + generator.normal() * examples
                estimate = mean_over_seeds(by_seed, examples**2)
                hits += estimate.low <= 0 <= estimate.high
            print(f"| {seeds} | {name} | {100 * hits / trials:.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--rows", type=int, nargs="+", default=[2, 5, 10, 20, 40])
    args = parser.parse_args()
    trials = args.trials
    errors(trials, args.rows)
    power()
    coverage(10 * trials)


if __name__ == "__main__":
    main()
