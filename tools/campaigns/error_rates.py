"""Shows how often verdicts are wrong and what they find: the tables of docs/statistics.md.

    python -m tools.campaigns.error_rates [--trials 1000] [--rows 2 10] [--only planned until]

Rows of a comparison are drawn from normal distributions of known means and spreads
(`tests/support/simulated_rows.py`), for several numbers of rows and seeds, small test sets (2.6
points a row), large ones (0.42) and none. Beside each figure stand its draws or its Monte-Carlo
standard error.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import ndtr, stdtrit
from scipy.stats import binom

from reports.decide.sequential import HOPE
from reports.stats.clusters import chance
from reports.stats.influence import of_mean
from reports.stats.power import smallest_difference
from reports.stats.significance import share_of_analysis
from reports.stats.simultaneous import (
    ALONE,
    ALPHA,
    Rows,
    combine_freedom,
    judge,
    mean_of_shares,
    mean_over_seeds,
    moderate,
)
from tests.support.simulated_rows import SPREADS, Wrong, drawn, planned_pair, wrong

EXAMPLES = {
    "small": 2.6,
    "large": 0.42,
}  # standard deviation of a row in points: 240 and 18,850 pairs

Spreads = Sequence[float]
UNLIKE: dict[str, tuple[Spreads, Sequence[int]]] = {
    "10 x 3, first .84, others .2": ([0.84] + [0.2] * 9, [3] * 10),
    "20 x 3, first .84, others .2": ([0.84] + [0.2] * 19, [3] * 20),
    "10 x 3, first 3, others .2": ([3.0] + [0.2] * 9, [3] * 10),
    "20 x 3, first 3, others .2": ([3.0] + [0.2] * 19, [3] * 20),
    "20 x 3, two .84, others .2": ([0.84] * 2 + [0.2] * 18, [3] * 20),
    "5 x 3, first 3, others .2": ([3.0] + [0.2] * 4, [3] * 5),
    "2 x 3, 3 and .2": ([3.0, 0.2], [3, 3]),
    "3 and 10 seeds, .84 and .2": ([0.84, 0.2], [3, 10]),
    "3 and 20 seeds, .84 and .2": ([0.84, 0.2], [3, 20]),
    "3 and 10 seeds, 2 and .2": ([2.0, 0.2], [3, 10]),
    "3/10/10/10/10 seeds, first 2, others .2": ([2.0] + [0.2] * 4, [3, 10, 10, 10, 10]),
    "10 x 4, first .84, others .2": ([0.84] + [0.2] * 9, [4] * 10),
    "10 x 5, first .84, others .2": ([0.84] + [0.2] * 9, [5] * 10),
    "10 x 5, first 3, others .2": ([3.0] + [0.2] * 9, [5] * 10),
    "5 and 20 seeds, .84 and .2": ([0.84, 0.2], [5, 20]),
    "10 x 9, first .84, others .2": ([0.84] + [0.2] * 9, [9] * 10),
    "10 x 10, first .84, others .2": ([0.84] + [0.2] * 9, [10] * 10),
    "10 x 10, first 3, others .2": ([3.0] + [0.2] * 9, [10] * 10),
    "10 x 3, all .84": ([0.84] * 10, [3] * 10),
    "10 x 5, all .84": ([0.84] * 10, [5] * 10),
    "10 x 10, all .84": ([0.84] * 10, [10] * 10),
    "10 x 3, two .2, others .84": ([0.2] * 2 + [0.84] * 8, [3] * 10),
    "10 x 5, two .2, others .84": ([0.2] * 2 + [0.84] * 8, [5] * 10),
}


def standard_error(per_cent: float, draws: int) -> float:
    """Return the Monte-Carlo standard error of a share in per cent."""
    share = per_cent / 100
    return 100 * (share * (1 - share) / draws) ** 0.5


def print_errors(trials: int, counts: list[int]) -> None:
    """Print per cent of comparisons of equal rows in which something is found: equal spreads, and
    the worst of all.
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
                    widest_first = spread(rows)[::-1]
                    made = drawn(
                        widest_first, np.full(rows, seeds), examples=examples, trials=trials
                    )
                    found.append(wrong(made))
                print(f"| {rows} | {seeds} | {name} | {_equal_and_worst(found)} |", flush=True)


def _equal_and_worst(found: list[Wrong]) -> str:
    texts = []
    for part in ("pairs", "planned", "best"):
        values = [getattr(one, part) for one in found]
        texts.append(f"{values[0]:.1f}, {max(values):.1f}")
    return " | ".join(texts)


def print_planned() -> None:
    """Print a line for each design: one planned pair, the second row against the first one, without
    a chance of the examples; error, and the difference found in 80 % of comparisons.
    """
    draws = 20_000
    print(f"\n| one planned pair ({draws:,} draws) | wrong | standard error | found in 80 % |")
    print("|---|---|---|---|")
    for name, (spreads, seeds) in UNLIKE.items():
        pair = planned_pair(spreads, seeds, draws=draws)
        error = standard_error(pair.wrong, draws)
        print(f"| {name} | {pair.wrong:.1f} | {error:.2f} | {pair.found:.2f} |", flush=True)


def print_families(trials: int) -> None:
    """Print a line for each design: all pairs, the planned family, and the best set, without a
    chance of the examples.
    """
    print(f"\n| no examples ({trials:,} draws) | pairs | planned | best lost | standard error |")
    print("|---|---|---|---|---|")
    for name, (spreads, seeds) in UNLIKE.items():
        found = wrong(drawn(np.array(spreads), np.array(seeds), examples=0.0, trials=trials))
        error = standard_error(max(found.pairs, found.planned, found.best, 1.0), trials)
        line = f"| {name} | {found.pairs:.1f} | {found.planned:.1f} | {found.best:.1f} "
        print(f"{line}| {error:.1f} |", flush=True)


def print_calm_row() -> None:
    """Print what a row that hardly varies costs the others: per cent of differences that are found
    with it, where 80 are found without it. Its seeds say nothing about the others, so that little
    more can be found than without them.
    """
    print("\n| beside one row of .02 (20,000 draws, se 0.3) | family | found | without its seeds |")
    print("|---|---|---|---|")
    for rows, seeds in ((5, 3), (10, 3), (20, 3), (10, 5)):
        pairs = rows * (rows - 1) / 2
        for family, level in (("planned pair", ALPHA), ("any two, Bonferroni", ALPHA / pairs)):
            counts = [seeds] * rows
            others = [0.84] * (rows - 1)
            least = planned_pair([*others, 0.84], counts, level=level).found
            with_it = planned_pair([*others, 0.02], counts, level=level, of=least).power
            without = planned_pair(others, counts[1:], level=level, of=least).power
            print(f"| {rows} x {seeds} | {family} | {with_it:.1f} | {without:.1f} |", flush=True)


def print_accuracies() -> None:
    """Print how often the interval of an accuracy of one run misses: the binomial chance of every
    number of right answers at which it does, so without a Monte-Carlo error.
    """
    print("\n| true accuracy | 5 examples | 10 | 20 | 60 | 200 |\n|---|---|---|---|---|---|")
    for share in (0.8, 0.9, 0.95, 0.97, 0.99):
        texts = []
        for examples in (5, 10, 20, 60, 200):
            missed = 0.0
            for right in range(examples + 1):
                mean = right / examples
                variance = mean * (1 - mean) / (examples - 1)
                found = mean_of_shares(np.array([mean]), variance, [examples])
                if not found.low <= share <= found.high:
                    missed += float(binom.pmf(right, examples, share))
            texts.append(f"{100 * missed:.1f}")
        print(f"| {100 * share:.0f} | {' | '.join(texts)} |", flush=True)


def print_until(draws: int = 20_000) -> None:
    """Print what `--until decided` finds: two rows, 3 to 15 seeds, without examples."""
    print(
        f"\n| --until decided ({draws:,} draws) | called different | seeds a row | intervals cover |"
    )
    print("|---|---|---|---|")
    for spreads in ((0.84, 0.84), (0.84, 0.2), (2.0, 0.2), (3.0, 0.2)):
        gaps = (0.0, 1.0, 1.5, 2.0) if spreads == (0.84, 0.84) else (0.0,)
        for gap in gaps:
            found, seeds, covered = until_decided(gap, np.array(spreads), draws)
            print(
                f"| {gap:g} points apart, {spreads[0]:g} and {spreads[1]:g} | {found:.1f} (se "
                f"{standard_error(found, draws):.1f}) | {seeds:.1f} | {covered:.1f} |",
                flush=True,
            )


def until_decided(
    gap: float, spreads: np.ndarray, draws: int, first: int = 3, most: int = 15
) -> tuple[float, float, float]:
    """Return per cent of comparisons of two rows that end with a difference, seeds of a row, and
    per cent of final intervals that cover: the rules of `reports.decide.sequential` on many
    comparisons at once.
    """
    equivalence = 0.5
    generator = np.random.default_rng(0)
    scores = generator.normal(size=(draws, 2, most)) * spreads[:, None]
    scores[:, 0] += gap
    going_on = np.ones(draws, dtype=bool)
    different = np.zeros(draws, dtype=bool)
    used = np.zeros(draws)
    low, high = np.full(draws, -np.inf), np.full(draws, np.inf)
    last_share = share_of_analysis(most - first + 1, first, most)
    for number, seeds in enumerate(range(first, most + 1), 1):
        value = scores[:, 0, :seeds].mean(axis=1) - scores[:, 1, :seeds].mean(axis=1)
        counts = np.full(2, seeds)
        of_run, freedom = moderate(scores[:, :, :seeds].var(axis=2, ddof=1), counts)
        parts = (of_run / seeds).T
        combined = combine_freedom(parts, freedom.T, independent=seeds >= ALONE)
        level = ALPHA * share_of_analysis(number, first, most)
        half = -stdtrit(combined, level / 2) * np.sqrt(parts.sum(axis=0))
        low = np.where(going_on, np.maximum(low, value - half), low)
        high = np.where(going_on, np.minimum(high, value + half), high)
        used[going_on] = seeds
        apart = going_on & ((np.minimum(low, value) > 0) | (np.maximum(high, value) < 0))
        alike = going_on & (low > -equivalence) & (high < equivalence)
        different |= apart
        going_on &= ~(apart | alike)

        at_the_end = parts * seeds / most
        end_freedom = combine_freedom(
            at_the_end, np.full((2, 1), most - 1.0), independent=most >= ALONE
        )
        end_half = -stdtrit(end_freedom, ALPHA * last_share / 2) * np.sqrt(at_the_end.sum(axis=0))
        deviation = np.sqrt(parts.sum(axis=0) * (1 - seeds / most)) + 1e-12
        distance = np.abs(value)
        decided = ndtr((distance - end_half) / deviation) + ndtr((-distance - end_half) / deviation)
        room = equivalence - end_half
        within = ndtr((room - distance) / deviation) - ndtr((-room - distance) / deviation)
        going_on &= decided + np.where(room > 0, within, 0.0) >= HOPE
    covered = (np.minimum(low, high) <= gap) & (gap <= np.maximum(low, high))
    return 100 * float(different.mean()), float(used.mean()), 100 * float(covered.mean())


def print_few_examples(draws: int = 2000) -> None:
    """Print how often two equal rows differ by their examples, and how often the interval of a mean
    misses: finished models, and rows of two seeds.
    """
    generator = np.random.default_rng(0)

    def normal(count: int) -> Callable[[], np.ndarray]:
        return lambda: generator.normal(size=(2, 1, count))

    def two_seeds(share: float) -> Callable[[], np.ndarray]:
        def draw_rows() -> np.ndarray:
            shared = generator.normal(size=(2, 1, 60)) * (1 - share) ** 0.5
            return np.asarray(shared + generator.normal(size=(2, 2, 60)) * share**0.5)

        return draw_rows

    cells: dict[str, Callable[[], np.ndarray]] = {}
    for count in (5, 10, 20, 60):
        cells[f"{count} examples"] = normal(count)
    for share in (0.0, 0.5, 0.8):
        cells[f"two seeds, {share:g} of the noise of seed and example"] = two_seeds(share)
    print(f"\n| examples ({draws:,} draws) | called different | a mean's interval misses | se |")
    print("|---|---|---|---|")
    for name, make in cells.items():
        different, missed = 0, 0
        for _ in range(draws):
            outcomes = make()
            count = outcomes.shape[2]
            widened = (count / (count - 1)) ** 0.5
            moved = [np.stack([of_mean(seed)[1] for seed in row]) * widened for row in outcomes]
            known = chance([(moved, None)]).without_interaction()
            means = outcomes.mean(axis=(1, 2))
            rows = Rows(means, np.zeros(2), np.full(2, np.inf), known, np.full(2, np.inf))
            different += judge(rows, np.array([(0, 1)]))[0].p <= ALPHA
            own = mean_over_seeds(outcomes[0].mean(axis=1), known.of(0), known.freedom_of(0))
            missed += not own.low <= 0 <= own.high
        print(
            f"| {name} | {100 * different / draws:.1f} | {100 * missed / draws:.1f} | "
            f"{standard_error(5, draws):.1f} |",
            flush=True,
        )


def print_ties(tables: int = 200) -> None:
    """Print how often equal rows of three seeds differ where seeds tie, judged end to end from
    tables of scores.
    """
    import pandas as pd

    from reports.scores.score_table import question_of_scores

    print(f"\n| seeds that tie ({tables} tables) | some pair differs | standard error |")
    print("|---|---|---|")
    for rows, examples in ((2, 60), (5, 200), (20, 60), (20, 200)):
        generator = np.random.default_rng(0)
        count = 0
        for _ in range(tables):
            lines = [
                (f"row {row}", seed, generator.binomial(examples, 0.8) / examples)
                for row in range(rows)
                for seed in range(3)
            ]
            question = question_of_scores(pd.DataFrame(lines, columns=["row", "seed", "score"]))
            (block,) = question.blocks().values()
            count += any(d.estimate.p <= ALPHA for d in block.differences.values())
        found = 100 * count / tables
        error = standard_error(found, tables)
        print(f"| {rows} rows, accuracies of {examples} | {found:.1f} | {error:.1f} |", flush=True)


def print_power() -> None:
    """Print the smallest difference that is found in 80 % of comparisons, seeds 0.84 points apart."""
    print(
        "\n| rows | seeds | any two rows: small / large test set | planned: small / large |\n|---|---|---|---|"
    )
    for rows in (2, 10, 40):
        for seeds in (3, 5, 10):
            texts = []
            for planned in (False, True):
                least = [
                    smallest_difference(seeds, 0.84, 2**0.5 * sd, rows, planned=planned)
                    for sd in EXAMPLES.values()
                ]
                texts.append(" / ".join(f"{one:.1f}" for one in least))
            print(f"| {rows} | {seeds} | {' | '.join(texts)} |", flush=True)
    pairs = smallest_difference(3, 0.84, 0.0, 10)
    planned_only = smallest_difference(3, 0.84, 0.0, 10, planned=True)
    print(f"\n10 rows x 3 seeds without examples: any two {pairs:.2f}, planned {planned_only:.2f}")


def print_coverage(trials: int) -> None:
    """Print how often the interval of one mean covers."""
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
    parser.add_argument("--only", nargs="+", metavar="PART", help="errors, planned, until, ...")
    args = parser.parse_args()
    trials = args.trials
    parts: dict[str, Callable[[], None]] = {
        "errors": lambda: print_errors(trials, args.rows),
        "planned": print_planned,
        "families": lambda: print_families(trials),
        "calm": print_calm_row,
        "accuracies": print_accuracies,
        "until": print_until,
        "examples": print_few_examples,
        "ties": print_ties,
        "power": print_power,
        "coverage": lambda: print_coverage(10 * trials),
    }
    for name in args.only or parts:
        parts[name]()


if __name__ == "__main__":
    main()
