"""How often the shares of `harness why` err: `python -m tools.campaigns.why simulate|planted`.

`simulate` draws the scores of rows between two rows, with seed effects that rows share and unlike
spreads, and prints how often a factor that changes nothing gets a significant share, how often
intervals hold the true shares, and what adding the rows' variances as independent would give.

`planted` trains: known deviations are planted in SimCSE on the embedded model, each beside changes
that move the random stream alone, and the answers are checked against what each deviation adds when
it is changed alone. It takes hours on two cores; `--cases N` runs the first ones.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtr

import harness
from reports.stats.estimate import Floats
from reports.why.shares import Design, DesignScores, draw_orders, judge_contrasts

SHARED = (0.0, 0.2, 0.5, 0.8, 0.9)
SPREADS = (1.0, 3.0, 5.0)
DESIGNS = ((2, 3, 0), (3, 3, 0), (4, 3, 0), (4, 5, 0), (4, 10, 0), (6, 3, 10), (6, 5, 10))
"""Factors, seeds, and pairs of orders that are drawn; 0: all rows."""
EXAMPLES = 60
_COLUMNS = ("false_share", "missed", "naive")


@dataclass(frozen=True)
class Cell:
    """What one design came to, in per cent of the answers.

    Attributes:
        false_share: at least one factor that changes nothing had a significant share.
        missed: at least one true share was outside its interval.
        naive: as `missed`, where variances of rows are added as if independent.
        half: half width of an interval, in spreads of a run.
    """

    design: tuple[int, int, int]
    shared: float
    spread: float
    false_share: float
    missed: float
    naive: float
    half: float


def simulate(
    design: tuple[int, int, int], shared: float, spread: float, draws: int, seed: int = 0
) -> Cell:
    """Answers of rows of which only the first factor changes the score, and the spread."""
    count, seeds, pairs = design
    rng = np.random.default_rng(seed)
    rows = Design(count, draw_orders(count, pairs) if pairs else ())
    first = np.array([0 in subset for subset in rows.subsets])
    spreads = np.where(first, spread, 1.0)[:, None] / 100
    means = np.where(first, 2.0, 0.0)[:, None] / 100
    truth = rows.shares @ means[:, 0]
    wrong = missed = naive = 0
    half = 0.0
    for _ in range(draws):
        common = rng.normal(size=seeds) * shared**0.5
        own = rng.normal(size=(len(rows.subsets), seeds)) * (1 - shared) ** 0.5
        scores = means + spreads * (common + own)
        found = judge_contrasts(_without_examples(scores), rows.shares)
        wrong += any(one.p <= 0.05 for one in found[1:])
        missed += any(not one.low <= t <= one.high for one, t in zip(found, truth, strict=True))
        half += float(np.mean([one.high - one.low for one in found])) / 2
        variances = (rows.shares**2) @ scores.var(axis=1, ddof=1) / seeds
        t = np.abs(rows.shares @ scores.mean(axis=1) - truth) / np.sqrt(variances)
        p = count * 2 * stdtr(float(len(rows.subsets) * (seeds - 1)), -t)
        naive += bool((p <= 0.05).any())
    percent = 100 / draws
    return Cell(
        design,
        shared,
        spread,
        false_share=wrong * percent,
        missed=missed * percent,
        naive=naive * percent,
        half=half * percent,
    )


def _without_examples(scores: Floats) -> DesignScores:
    """Rows that all examples move alike, so that contrasts have the chance of seeds alone."""
    rows, seeds = scores.shape
    influences = np.zeros((rows, seeds, EXAMPLES))
    return DesignScores(scores, [influences], [None])


def print_simulation(draws: int) -> None:
    """Print, for each design, the worst cell of each column over the shared seed effects and
    spreads; cells go to standard error.
    """
    print("| factors x seeds | false share | missed | missed if added as independent |")
    print("| --- | ---: | ---: | ---: |")
    for design in DESIGNS:
        cells = []
        for shared in SHARED:
            for spread in SPREADS:
                cells.append(simulate(design, shared, spread, draws))
                print(cells[-1], file=sys.stderr, flush=True)
        count, seeds, pairs = design
        rows = f", {2 * pairs} orders" if pairs else ""
        worst = [max(getattr(cell, key) for cell in cells) for key in _COLUMNS]
        numbers = " | ".join(f"{value:.1f}" for value in worst)
        print(f"| {count} x {seeds}{rows} | {numbers} |", flush=True)
    error = 100 * (0.05 * 0.95 / draws) ** 0.5
    print(f"\n{draws:,} answers a cell; standard error at 5 %: {error:.1f} points.")


PLANTED: dict[str, dict[str, Any]] = {
    "[CLS], not mean": {"pooling": "cls"},
    "layer 0 in first-last": {"pooling": "first_last_avg", "first_layer": 0},
    "temperature 1": {"temperature": 1.0},
    "rate ten times too high": {"learning_rate": 4e-4},
    "no warm-up": {"warmup": 0.0},
    "batches of like length": {"bucket": 100},
    "half the batch": {"batch_size": 16},
    "last checkpoint": {"select": "last"},
    "8 tokens": {"train_length": 8},
}
"""Deviations from the recipe, fixed before the first run."""
NEIGHBOURS: dict[str, dict[str, Any]] = {
    "evaluated more often": {"log_every": 4},
    "another guard": {"min_std": 1e-5},
    "another limit of the norm": {"max_grad_norm": 1e6},
}
"""Differences that change no expected score."""
RECIPE = {
    "pooling": "mean",
    "temperature": 0.05,
    "learning_rate": 4e-5,
    "warmup": 0.1,
    "batch_size": 32,
    "bucket": 1,
}


def plant(folder: Path, cases: int, steps: int) -> None:
    """Train and explain the planted deviations; a line of JSON for each."""
    for name, deviation in list(PLANTED.items())[:cases]:
        changed = {key: value for other in NEIGHBOURS.values() for key, value in other.items()}
        rows = [
            {"method": "simcse", "name": "recipe", "config": RECIPE},
            {"method": "simcse", "name": "alone", "config": {**RECIPE, **deviation}},
            {"method": "simcse", "name": "deviating", "config": {**RECIPE, **changed, **deviation}},
        ]
        experiment = {
            "name": "planted",
            "seeds": [1, 2, 3, 4, 5],
            "suites": ["Embedded-STS-natural"],
            "budget": {"steps": steps},
            "dev": {
                "task": "Embedded-STS-natural",
                "source": "embedded",
                "every": max(1, steps // 2),
            },
            "methods": rows,
        }
        work = folder / name.replace(" ", "-")
        harness.compare(experiment, workdir=work, tracked=False, formats=[])
        alone = harness.verdict(work, "alone", "recipe").data
        answer = harness.why(
            work, "deviating", "recipe", runs=10_000, tracked=False, formats=[]
        ).data
        cause = answer["factors"][0]
        effect = alone["difference"]
        line = {
            "deviation": name,
            "alone": effect,
            "significant": alone["p"] is not None and alone["p"] <= 0.05,
            "first_cause": cause["factor"],
            "share": cause["value"],
            "low": cause["low"],
            "high": cause["high"],
            "holds": cause["low"] <= effect <= cause["high"],
            "false": [f["factor"] for f in answer["factors"][1:] if f["p"] <= 0.05],
        }
        print(json.dumps(line), flush=True)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("simulate", "planted"))
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--cases", type=int, default=len(PLANTED))
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--folder", type=Path, default=Path("work/why"))
    args = parser.parse_args()
    if args.what == "simulate":
        print_simulation(args.draws)
    else:
        plant(args.folder, args.cases, args.steps)


if __name__ == "__main__":
    main()
