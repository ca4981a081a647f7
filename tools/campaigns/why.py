"""How often the shares of `harness why` err: `python -m tools.campaigns.why simulate|planted`.

`simulate` draws the scores of rows between two rows, with seed effects that rows share and unlike
spreads, and prints how often a factor that changes nothing gets a significant share, how often
intervals hold the true shares, and what adding the rows' variances as independent would give.

`planted` trains: known deviations are planted in SimCSE on the embedded model, each beside changes
that move the random stream alone, and the answers are checked against what each deviation adds when
it is changed alone. It takes about an hour on one core; after a stop the same command continues.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtr

import harness
from harness.runs.between import group_of
from harness.sources import embedded_rows
from reports.stats.estimate import Floats
from reports.why.shares import Design, DesignScores, draw_orders, judge_contrasts

SHARED = (0.0, 0.2, 0.5, 0.8, 0.9)
SPREADS = (1.0, 3.0, 5.0)
DESIGNS = ((2, 3, 0), (3, 3, 0), (4, 3, 0), (4, 5, 0), (4, 10, 0), (6, 3, 10), (6, 5, 10))
"""Factors, seeds, and pairs of orders that are drawn; 0: all rows."""
EXAMPLES = 60
RESULTS = Path(__file__).with_name("why_planted.jsonl")
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


SEEDS = [1, 2, 3, 4, 5, 6]
STEPS = 20
PAIRS = 800
RECIPE: dict[str, Any] = {
    "pooling": "mean",
    "temperature": 0.05,
    "learning_rate": 5e-5,
    "warmup": 0.25,
    "batch_size": 8,
    "bucket": 1,
    "select": "last",
}
PLANTED: dict[str, dict[str, Any]] = {
    "[CLS], not mean": {"pooling": "cls"},
    "layer 0 in first-last": {"pooling": "first_last_avg", "first_layer": 0},
    "temperature 1": {"temperature": 1.0},
    "rate ten times too high": {"learning_rate": 5e-4},
    "no warm-up": {"warmup": 0.0},
    "batches of like length": {"bucket": 100},
    "half the batch": {"batch_size": 4},
    "best checkpoint on the dev set": {"select": "best"},
    "8 tokens": {"train_length": 8},
    "one dropout mask for both views": {"same_mask": True},
}
"""Deviations from the recipe, fixed before the first run. The rate of the recipe was chosen with other
seeds (101 to 103): with higher rates a run's score moves by several points from seed to seed, so that
few deviations can be told alone.
"""
METHODS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "dropout off in one view": (
        "scd",
        {"preset": "mini", "config": {"batch_size": 8, "select": "last"}},
        {"dropout_b": 0.0},
    ),
    "no full stop in the prompt": (
        "promptbert",
        {"preset": "mini", "config": {"batch_size": 8, "select": "last"}},
        {"pooling": 'prompt:This sentence of "[X]" means [MASK]'},
    ),
}
"""A deviation of a method of its own -> the method, its row and the deviation."""
ADDED: dict[str, tuple[str, dict[str, Any]]] = {
    "[CLS], not mean": ("scd", {"pooling": "cls"}),
    "rate ten times too high": ("promptbert", {"learning_rate": 1.3e-3}),
}
"""Two more of these methods, added when five of the twelve above were significant alone: six are what
the campaign asks for.
"""
STREAM: dict[str, Any] = {"packed": False, "min_std": 1e-5}
"""With the order of the text what changes the random stream, or nothing, but no expected score:
batches encoded with their padding draw other dropout masks.
"""
NOTHING = "training text+memory+collapse guard"
"""The factors of these three differences, which are changed together."""


@dataclass(frozen=True)
class Case:
    """Deviations that are planted together, beside another order of the same text and `STREAM`.

    Attributes:
        changes: name -> what deviates.
    """

    method: str
    row: Mapping[str, Any]
    changes: Mapping[str, Mapping[str, Any]]

    @property
    def name(self) -> str:
        """Its deviations, with the method where that is not SimCSE."""
        names = " and ".join(self.changes)
        return names if self.method == "simcse" else f"{names} ({self.method})"


def list_cases(pairs: int = 12) -> list[Case]:
    """Return each deviation, those of other methods, and drawn pairs, in a drawn order; behind them
    what was added.
    """
    row = {"config": RECIPE}
    cases = [Case("simcse", row, {name: change}) for name, change in PLANTED.items()]
    for name, (method, own, change) in METHODS.items():
        cases.append(Case(method, own, {name: change}))
    drawn = random.Random(0)
    together = [pair for pair in combinations(PLANTED, 2) if _go_together(*pair)]
    for pair in drawn.sample(together, pairs):
        changes = {name: PLANTED[name] for name in pair}
        cases.append(Case("simcse", row, changes))
    drawn.shuffle(cases)
    neighbours = {method: row for method, row, _ in METHODS.values()}
    for name, (method, change) in ADDED.items():
        cases.append(Case(method, neighbours[method], {name: change}))
    return cases


def _go_together(one: str, other: str) -> bool:
    """True if two deviations are in settings of different factors."""
    groups = [{group_of(key) for key in PLANTED[name]} for name in (one, other)]
    return not groups[0] & groups[1]


def write_texts(folder: Path) -> None:
    """Write the same lines in two orders, and pairs to select by and to score, all short."""
    drawn = random.Random(0)
    sentences = [row["text"] for row in embedded_rows("sentences", tuple("abcfghij"))]
    lines = [text for text in sentences if 4 <= len(text.split()) <= 9]
    for name in ("one", "other"):
        drawn.shuffle(lines)
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    scored = [
        (row["sentence1"], row["sentence2"], row["score"])
        for row in embedded_rows("sts", tuple("abcde"))
        if len(f"{row['sentence1']} {row['sentence2']}".split()) <= 24
    ]
    drawn.shuffle(scored)
    for name, some in (("dev", scored[:40]), ("test", scored[40 : 40 + PAIRS])):
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("sentence1", "sentence2", "score"))
            writer.writerows(some)


def experiment_of(case: Case, folder: Path, number: int) -> dict[str, Any]:
    """Return the comparison of a case: the recipe, the rows that deviate alone, and the row that
    deviates in all.
    """
    deviating = {key: value for change in case.changes.values() for key, value in change.items()}
    rows = [_row(case, "recipe", {}, "one", folder)]
    for name, change in case.changes.items():
        rows.append(_row(case, name, change, "one", folder))
    rows.append(_row(case, "deviating", {**deviating, **STREAM}, "other", folder))
    return {
        "name": f"planted-{number}",
        "base_models": ["embedded:mini-bert"],
        "seeds": SEEDS,
        "suites": [str(folder / "test.csv")],
        "budget": {"steps": STEPS},
        "dev": {"task": str(folder / "dev.csv"), "every": STEPS // 2},
        "methods": rows,
        "contrasts": [{"row": name, "against": "recipe"} for name in case.changes],
    }


def _row(
    case: Case, label: str, change: Mapping[str, Any], order: str, folder: Path
) -> dict[str, Any]:
    config = {**case.row["config"], **change}
    corpus = {"uri": str(folder / f"{order}.txt")}
    return {**case.row, "method": case.method, "name": label, "config": config, "corpus": corpus}


def plant(folder: Path, results: Path) -> None:
    """Train and explain the cases that have no line in the results yet; a line of JSON for each.
    Rows that several cases have are trained once.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_texts(folder)
    done = set()
    if results.is_file():
        done = {json.loads(line)["case"] for line in results.read_text("utf-8").splitlines()}
    for number, case in enumerate(list_cases()):
        if case.name in done:
            continue
        line = explain_case(case, folder, number)
        with results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        print(json.dumps(line), flush=True)


def explain_case(case: Case, folder: Path, number: int) -> dict[str, Any]:
    """Return what the deviations of a case add alone, and the shares that the answer gives them and
    the changes of the stream.
    """
    experiment = experiment_of(case, folder, number)
    options: dict[str, Any] = {"comparison": experiment["name"]}
    work = folder / "work"
    harness.compare(experiment, workdir=work, tracking_uri="none", formats=[])
    quiet: dict[str, Any] = {"tracking_uri": "none", "formats": []}
    answer = harness.why(
        work, "deviating", "recipe", join=[NOTHING], runs=1000, **options, **quiet
    ).data
    factors = {}
    planted = {}
    for name, change in case.changes.items():
        factors[group_of(next(iter(change)))] = name
    for share in answer["factors"]:
        if share["factor"] not in factors:
            continue
        name = factors[share["factor"]]
        alone = harness.verdict(work, name, "recipe", **options).data
        planted[name] = {
            "alone": alone["difference"],
            "p": alone["p"],
            "share": share["value"],
            "low": share["low"],
            "high": share["high"],
        }
    return {
        "case": case.name,
        "method": case.method,
        "planted": planted,
        "first": factors.get(answer["factors"][0]["factor"], answer["factors"][0]["factor"]),
        "nothing": {
            share["factor"]: share["p"]
            for share in answer["factors"]
            if share["factor"] not in factors
        },
        "difference": answer["difference"]["value"],
        "runs": sum(row["runs"] for row in answer["rows"]),
    }


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("simulate", "planted"))
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--folder", type=Path, default=Path("work/planted"))
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    if args.what == "simulate":
        print_simulation(args.draws)
    else:
        plant(args.folder.resolve(), args.results)


if __name__ == "__main__":
    main()
