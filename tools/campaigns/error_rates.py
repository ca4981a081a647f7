"""Shows how often verdicts are wrong and how often they find a true difference: the tables of docs/statistics.md.

    python -m tools.campaigns.error_rates [--trials 4000]

Rows of a comparison are drawn from normal distributions of known means and spreads, for several numbers of rows and
seeds. "This" is `reports.stats.simultaneous`; it is compared with one variance pooled over rows (Tukey-Kramer) and each
row's own variance (Dunnett's C), both with the same critical values.
"""

from __future__ import annotations

import argparse

import numpy as np

from reports.papers.agreement import predict_difference
from reports.stats.power import Design, smallest_difference
from reports.stats.simultaneous import AllPairs, SeedSpread, mean_over_seeds, seed_spread
from tests.support.simulated_rows import SPREADS, rates


def pooled(variances: np.ndarray, seeds: np.ndarray) -> SeedSpread:
    """One variance for all rows."""
    freedom = seeds - 1.0
    mean = np.broadcast_to((variances @ freedom / freedom.sum())[..., None], variances.shape)
    return SeedSpread(mean / seeds, np.full(variances.shape, freedom.sum()))


def own(variances: np.ndarray, seeds: np.ndarray) -> SeedSpread:
    """Each row's variance alone."""
    return SeedSpread(variances / seeds, np.broadcast_to(seeds - 1.0, variances.shape).copy())


PROCEDURES = {"this": seed_spread, "pooled": pooled, "own": own}


def errors(trials: int) -> None:
    """Shares of comparisons of equal rows in which something is separated; power for 2.5 points. All in per cent.

    A line for each spread, then one for each number of rows and seeds: the worst of all spreads, and the power.
    """
    heads = " | ".join(f"{name}: best / pairs / base" for name in PROCEDURES)
    print(f"| rows | seeds | spread | {heads} | power |\n|---|---|---|---|---|---|---|")
    summary = []
    for rows in (2, 5, 10, 20, 40):
        for seeds in (2, 3, 5, 10):
            worst, power = np.zeros((len(PROCEDURES), 3)), {}
            for name, spread in SPREADS.items():
                if rows < 4 and name.startswith("1/"):
                    continue
                found = [
                    rates(spread(rows), np.full(rows, seeds), trials=trials, seed=rows * seeds, spread=procedure)
                    for procedure in PROCEDURES.values()
                ]
                wrong = 100 * np.array([(r.best, r.pairs, r.base) for r in found])
                worst = np.maximum(worst, wrong)
                power[name] = " / ".join(f"{100 * r.power:.0f}" for r in found)
                print(f"| {rows} | {seeds} | {name} | {' | '.join(map(_three, wrong))} | {power[name]} |", flush=True)
            summary.append(
                f"| {rows} | {seeds} | {' | '.join(map(_three, worst))} | {power['equal']} | {power['one 1.7']} |"
            )
    print(f"\n| rows | seeds | {heads} | power, equal | power, one at 1.7 |\n|---|---|---|---|---|---|---|")
    print("\n".join(summary))


def _three(shares: np.ndarray) -> str:
    return " / ".join(f"{x:.1f}" for x in shares)


def other_designs(trials: int) -> None:
    """Unequal numbers of seeds, luck that rows with one seed share, and pairs that say more or less than seeds."""
    print("\n| design | best / pairs / base |\n|---|---|")
    mixed, counts = np.array([0.84, 0.84, 0.2, 1.7, 0.84, 0.84, 0, 0]), np.array([2, 3, 10, 5, 2, 3, 0, 0])
    designs = {
        "8 rows, 0 to 10 seeds, spreads 0 to 1.7": rates(mixed, counts, trials=trials),
        "10 rows, 3 seeds, four fifths of the spread shared": rates(np.full(10, 0.84), np.full(10, 3), luck=0.8,
                                                                    trials=trials),
        "10 rows, 3 seeds, pairs ten times the seeds": rates(np.full(10, 0.2), np.full(10, 3), pairs=2.0,
                                                             trials=trials),
        "10 rows, 3 seeds, no chance from pairs": rates(np.full(10, 0.84), np.full(10, 3), pairs=0.0, trials=trials),
    }  # fmt: skip
    for name, r in designs.items():
        print(f"| {name} | {' / '.join(f'{100 * x:.1f}' for x in (r.best, r.pairs, r.base))} |")


def coverage(trials: int) -> None:
    """Of the intervals of one mean, and of where one more difference is expected."""
    print("\n| interval | seeds | covers |\n|---|---|---|")
    generator = np.random.default_rng(0)
    for seeds in (2, 3, 5, 10):
        for pairs in (0.0, 0.3, 1.0):
            hits = 0
            for _ in range(trials):
                by_seed = generator.normal(size=seeds) * 0.84 + generator.normal() * pairs
                estimate = mean_over_seeds(by_seed, pairs**2)
                hits += estimate.low <= 0 <= estimate.high
            print(f"| a mean; seeds 0.84, pairs {pairs:g} | {seeds} | {100 * hits / trials:.1f} |", flush=True)
    for a, b, ratio in ((3, 3, 1.0), (5, 3, 1.0), (3, 3, 0.2), (5, 5, 2.0)):
        hits = 0
        for _ in range(trials):
            x, y = generator.normal(size=a), ratio * generator.normal(size=b)
            low, high = predict_difference(x.mean() - y.mean(), [x, y])
            hits += low <= generator.normal() - ratio * generator.normal() <= high
        print(f"| one more difference; spreads 1 and {ratio:g} | {a}, {b} | {100 * hits / trials:.1f} |", flush=True)


def promised(trials: int) -> None:
    """Power at the smallest difference that 80 % are promised of."""
    print("\n| rows | seeds | spread | smallest difference | found |\n|---|---|---|---|---|")
    for rows, seeds, name in (
        (2, 3, "equal"),
        (6, 3, "equal"),
        (6, 5, "equal"),
        (20, 5, "equal"),
        (10, 5, "0.5 / 1.0"),
    ):
        deviations = SPREADS[name](rows)
        design = Design(tuple(deviations), 0.21 * 2**0.5, AllPairs(rows))
        least = smallest_difference(design, np.full(rows, seeds))
        found = rates(deviations, np.full(rows, seeds), gap=least, trials=trials, seed=7, others=1).power
        print(f"| {rows} | {seeds} | {name} | {least:.2f} | {100 * found:.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trials", type=int, default=4000)
    trials = parser.parse_args().trials
    errors(trials)
    other_designs(trials)
    coverage(trials)
    promised(trials)


if __name__ == "__main__":
    main()
