"""Measures how often verdicts are wrong and what they find: the tables of docs/statistics.md.

    python -m tools.campaigns.error_rates [--only planned until]

Rows of a comparison are drawn from normal distributions of known means and spreads
(`tests/support/simulated_rows.py`), for several numbers of rows and seeds, small test sets (2.6
points a row), large ones (0.42) and none. Every figure is saved in tools/campaigns/results/ with its draws and its
standard error; the exit code is 1 if one is beyond its bound (`tools.campaigns.measured`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from reports.stats.clusters import Chance
from reports.stats.power import smallest_difference
from reports.stats.simultaneous import (
    ALPHA,
    EXPLORED,
    Rows,
    all_pairs,
    draw,
    explored_p_values,
    family_p_values,
    judge,
    mean_over_seeds,
    moderate,
)
from tests.support.simulated_rows import SPREADS, drawn, planned_pair, wrong
from tools.campaigns import example_rates, until_rates
from tools.campaigns.measured import FOLDER, Figure, Part, main, share

FILE = FOLDER / "error_rates.csv"
EXAMPLES = {240: 2.6, 18_850: 0.42}  # test pairs -> standard deviation of a row, in points
TYPICAL = 0.84  # points over seeds: SimCSE on BERT-base
PLANNED_DRAWS = 20_000
BATCHES = 20
DIFFERS, FOUND = "called different", "found in 80 %, points"


@dataclass(frozen=True)
class Design:
    """Equal rows, of which the first two are the planned pair.

    Attributes:
        spreads, seeds: (rows,) standard deviation over seeds, in points, and how many seeds.
        at_most: bound of the planned pair's error, in per cent. Where spreads are unlike and seeds are
            few, what the best of seven variants of `moderate` reached.
        found_at_most: bound of the difference that is found in 80 %.
    """

    spreads: Sequence[float]
    seeds: Sequence[int]
    at_most: float = 5.0
    found_at_most: float | None = None


DESIGNS: dict[str, Design] = {
    "10 x 3, all 0.84": Design([0.84] * 10, [3] * 10, found_at_most=2.55),
    "10 x 5, all 0.84": Design([0.84] * 10, [5] * 10),
    "10 x 10, all 0.84": Design([0.84] * 10, [10] * 10),
    "10 x 3, first 0.84, others 0.2": Design([0.84] + [0.2] * 9, [3] * 10, 9.2),
    "20 x 3, first 0.84, others 0.2": Design([0.84] + [0.2] * 19, [3] * 20, 10.0),
    "5 x 3, first 3, others 0.2": Design([3.0] + [0.2] * 4, [3] * 5, 7.1),
    "10 x 3, first 3, others 0.2": Design([3.0] + [0.2] * 9, [3] * 10, 7.1),
    "20 x 3, first 3, others 0.2": Design([3.0] + [0.2] * 19, [3] * 20, 7.5),
    "2 x 3, 3 and 0.2": Design([3.0, 0.2], [3, 3], 5.4),
    "20 x 3, two 0.84, others 0.2": Design([0.84] * 2 + [0.2] * 18, [3] * 20, 5.9),
    "10 x 3, two 0.2, others 0.84": Design([0.2] * 2 + [0.84] * 8, [3] * 10),
    "10 x 5, two 0.2, others 0.84": Design([0.2] * 2 + [0.84] * 8, [5] * 10),
    "3 and 10 seeds, 0.84 and 0.2": Design([0.84, 0.2], [3, 10], 9.2),
    "3 and 20 seeds, 0.84 and 0.2": Design([0.84, 0.2], [3, 20], 9.2),
    "3 and 10 seeds, 2 and 0.2": Design([2.0, 0.2], [3, 10], 6.7),
    "3 and 10 seeds, 3 and 0.2": Design([3.0, 0.2], [3, 10], 6.7),
    "3/10/10/10/10 seeds, first 2, others 0.2": Design([2.0] + [0.2] * 4, [3] + [10] * 4, 6.7),
    "10 x 4, first 0.84, others 0.2": Design([0.84] + [0.2] * 9, [4] * 10, 7.0),
    "10 x 5, first 0.84, others 0.2": Design([0.84] + [0.2] * 9, [5] * 10, 6.0),
    "10 x 5, first 3, others 0.2": Design([3.0] + [0.2] * 9, [5] * 10, 5.2),
    "5 and 20 seeds, 0.84 and 0.2": Design([0.84, 0.2], [5, 20], 6.0),
    "10 x 9, first 0.84, others 0.2": Design([0.84] + [0.2] * 9, [9] * 10),
    "10 x 10, first 0.84, others 0.2": Design([0.84] + [0.2] * 9, [10] * 10),
    "10 x 10, first 3, others 0.2": Design([3.0] + [0.2] * 9, [10] * 10),
}


def measure_planned() -> Iterator[Figure]:
    """Yield, for each design, the error of one planned pair without a chance of the examples, and
    the difference that is found in 80 % of comparisons.
    """
    for name, design in DESIGNS.items():
        pair = planned_pair(design.spreads, design.seeds, draws=PLANNED_DRAWS)
        count = pair.wrong / 100 * PLANNED_DRAWS
        yield share("planned", name, DIFFERS, count, PLANNED_DRAWS, at_most=design.at_most)
        batches = []
        for seed in range(1, BATCHES + 1):
            some = planned_pair(
                design.spreads, design.seeds, draws=PLANNED_DRAWS // BATCHES, seed=seed
            )
            batches.append(some.found)
        error = float(np.std(batches, ddof=1)) / BATCHES**0.5
        yield Figure("planned", name, FOUND, pair.found, error, PLANNED_DRAWS, design.found_at_most)


def measure_families(trials: int = 500) -> Iterator[Figure]:
    """Yield, for each design, the errors of all pairs, the planned family and the best set, without
    a chance of the examples. Of two rows all of these are the planned pair.
    """
    for name, design in DESIGNS.items():
        rows = drawn(
            np.array(design.spreads), np.array(design.seeds), examples=0.0, trials=trials, seed=1
        )
        found = wrong(rows)
        of_all = design.at_most if len(design.seeds) == 2 else 5.0
        for column, value, bound in (
            ("all pairs", found.pairs, of_all),
            ("planned family", found.planned, design.at_most),
            ("best set", found.best, of_all),
        ):
            yield share("families", name, column, value * trials / 100, trials, at_most=bound)


def measure_families_with_examples(trials: int = 150) -> Iterator[Figure]:
    """Yield the same with test examples: rows that all vary by 0.84, and the worst of five spreads,
    whose widest row is the first one, which the planned family and the best set are about.
    """
    for rows in (2, 5, 10):
        for seeds in (3, 5, 10):
            for pairs, deviation in EXAMPLES.items():
                found = []
                for spread in SPREADS.values():
                    widest_first = spread(rows)[::-1]
                    found.append(
                        wrong(
                            drawn(
                                widest_first,
                                np.full(rows, seeds),
                                examples=deviation,
                                trials=trials,
                                seed=2,
                            )
                        )
                    )
                cell = f"{rows} x {seeds}, {pairs:,} pairs"
                for column, part in (
                    ("all pairs", "pairs"),
                    ("planned family", "planned"),
                    ("best set", "best"),
                ):
                    values = [getattr(one, part) for one in found]
                    for name, value in (("equal", values[0]), ("worst", max(values))):
                        yield share(
                            "families-with-examples",
                            cell,
                            f"{column}: {name}",
                            value * trials / 100,
                            trials,
                            at_most=5.0 if name == "equal" else None,  # a worst of five is high
                        )


def measure_calm_row() -> Iterator[Figure]:
    """Yield what a row that hardly varies costs the others: per cent of differences that are found
    beside it, where 80 are found without it, and of those that the others find without its seeds.

    Of any two of five rows of three seeds, the degrees of freedom that the calm row does not give
    cost more than 5 % of the power: there the bound is 5 % less than what is found without it.
    """
    for rows, seeds in ((5, 3), (10, 3), (20, 3), (10, 5)):
        pairs = rows * (rows - 1) / 2
        for family, level in (("planned pair", ALPHA), ("any two rows", ALPHA / pairs)):
            counts = [seeds] * rows
            others = [TYPICAL] * (rows - 1)
            least = planned_pair([*others, TYPICAL], counts, level=level).found
            beside = planned_pair([*others, 0.02], counts, level=level, of=least).power
            without = planned_pair(others, counts[1:], level=level, of=least).power
            cell = f"{rows} x {seeds}, {family}"
            count = beside * PLANNED_DRAWS / 100
            bound = 0.95 * 80
            if (rows, seeds, family) == (5, 3, "any two rows"):
                bound = round(0.95 * without, 1)
            yield share("calm", cell, "found", count, PLANNED_DRAWS, at_least=bound)
            count = without * PLANNED_DRAWS / 100
            yield share("calm", cell, "found without its seeds", count, PLANNED_DRAWS)


def measure_power(trials: int = 250) -> Iterator[Figure]:
    """Yield the smallest difference that `harness power` promises to be found in 80 %, and in how
    many comparisons it is found, seeds 0.84 points apart.
    """
    designs = [(10, 3, 0, 0.0)]
    for rows in (2, 10, 40):
        for seeds in (3, 5, 10):
            designs += [(rows, seeds, pairs, sd) for pairs, sd in EXAMPLES.items()]
    for rows, seeds, pairs, sd in designs:
        cell = f"{rows} x {seeds}, {f'{pairs:,} pairs' if pairs else 'no examples'}"
        any_two, planned = (
            smallest_difference(seeds, TYPICAL, 2**0.5 * sd, rows, planned=alone)
            for alone in (False, True)
        )
        bounds = (5.1, 2.55) if not pairs else (None, None)
        yield Figure("power", cell, "any two rows, points", any_two, at_most=bounds[0])
        found = _found_among_all(any_two, rows, seeds, sd, trials)
        yield share("power", cell, "found", found, trials)
        yield Figure("power", cell, "a planned pair, points", planned, at_most=bounds[1])
        alone = planned_pair(
            [TYPICAL] * rows, [seeds] * rows, examples=2**0.5 * sd, of=planned, seed=1
        )
        count = alone.power * PLANNED_DRAWS / 100
        yield share("power", cell, "found as planned", count, PLANNED_DRAWS)


def _found_among_all(gap: float, rows: int, seeds: int, examples: float, trials: int) -> int:
    """Return in how many comparisons the first row, which is better by `gap`, is found to differ
    from the second one, among all pairs.
    """
    means = np.where(np.arange(rows) == 0, gap, 0.0)
    spreads = np.full(rows, TYPICAL)
    counts = np.full(rows, seeds)
    pairs = all_pairs(rows)
    found = 0
    for comparison in drawn(spreads, counts, examples=examples, means=means, trials=trials, seed=3):
        if rows >= EXPLORED:
            p = explored_p_values(comparison, pairs)
        else:
            p = family_p_values(comparison, pairs, draw(comparison, 1000))
        found += int(p[0] <= ALPHA and comparison.means[0] > comparison.means[1])
    return found


def measure_fifty_seeds() -> Iterator[Figure]:
    """Yield how wide the intervals of published runs of SimCSE are, fifty seeds each of four base
    models (`reports.papers`), in per cent of Welch's with Bonferroni's correction.
    """
    from reports.papers import definition
    from reports.papers.public_runs import read_public_runs, values_of

    simcse = definition.load("simcse")
    assert simcse is not None
    runs = read_public_runs(simcse)
    scores = {}
    for row in runs:
        if row["task"] == "Avg.":
            scores[row["base_model"]] = np.array(values_of(runs, row))
    means = np.array([values.mean() for values in scores.values()])
    counts = np.array([len(values) for values in scores.values()])
    own = np.array([values.var(ddof=1) for values in scores.values()])
    variance, freedom = moderate(own, counts)
    nothing = np.zeros((len(scores), len(scores)))
    rows = Rows(means, variance / counts, freedom, Chance(nothing, nothing, np.zeros(len(scores))))
    pairs = all_pairs(len(scores))
    names = list(scores)
    for (a, b), found in zip(pairs, judge(rows, pairs), strict=True):
        welch = stats.ttest_ind(scores[names[a]], scores[names[b]], equal_var=False)
        low, high = welch.confidence_interval(1 - ALPHA / len(pairs))
        ratio = 100 * (found.high - found.low) / (high - low)
        cell = f"{names[a]}, {names[b]}"
        yield Figure("fifty-seeds", cell, "width, % of Welch's", ratio, 0, 0, 120, 80)


def measure_coverage(trials: int = 10_000) -> Iterator[Figure]:
    """Yield how often the interval of one mean covers."""
    generator = np.random.default_rng(0)
    for seeds in (3, 5, 10):
        for pairs, examples in EXAMPLES.items():
            hits = 0
            for _ in range(trials):
                by_seed = generator.normal(size=seeds) * TYPICAL + generator.normal() * examples
                estimate = mean_over_seeds(by_seed, examples**2)
                hits += estimate.low <= 0 <= estimate.high
            yield share("coverage", f"{seeds} seeds", f"{pairs:,} pairs", hits, trials)


PARTS: dict[str, Part] = {
    "planned": measure_planned,
    "calm": measure_calm_row,
    "fifty-seeds": measure_fifty_seeds,
    "until": until_rates.measure_until,
    "until-in-full": until_rates.measure_until_in_full,
    "accuracies": example_rates.measure_accuracies,
    "examples": example_rates.measure_few_examples,
    "ties": example_rates.measure_ties,
    "coverage": measure_coverage,
    "power": measure_power,
    "families": measure_families,
    "families-with-examples": measure_families_with_examples,
}

if __name__ == "__main__":
    main(FILE, PARTS, __doc__ or "")
