"""Shows error rate, power and cost of adding seeds until a decision is reached: tables of docs/statistics.md.

    python -m tools.campaigns.sequential_seeds [--trials 2000]

Scores of seeds are drawn with the spreads of public studies on STS: BERT-base 0.84 points, BERT-large 1.74, RoBERTa
0.21, and mixtures. Real comparisons are decided by the same code (`reports.stats.sequential`).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from reports.stats.power import Design, smallest_difference, surpluses
from reports.stats.sequential import Boundary
from reports.stats.simultaneous import AllPairs
from tests.support.simulated_analyses import Course, course, paired_e_values
from tests.support.simulated_rows import SPREADS

FIRST, MOST = 3, 15
PAIRS = 0.21
STUDIES: dict[str, Callable[[int], np.ndarray]] = {
    "BERT-base": lambda rows: np.full(rows, 0.84),
    "BERT-large": lambda rows: np.full(rows, 1.74),
    "RoBERTa": lambda rows: np.full(rows, 0.21),
    "a third each": lambda rows: np.array([0.84, 1.74, 0.21])[np.arange(rows) % 3],
    "one BERT-large, RoBERTa": lambda rows: np.where(np.arange(rows) == rows - 1, 1.74, 0.21),
}


def naive(seeds: int) -> float:
    """As if there were one look."""
    return 1.0


def pocock(constant: float) -> Callable[[int], float]:
    """One level for all looks."""
    return lambda seeds: constant


def late(constant: float) -> Callable[[int], float]:
    """Nearly everything at the end, as O'Brien and Fleming."""
    return lambda seeds: constant * (seeds / MOST) ** 3


def for_ever(seeds: int) -> float:
    """1 / (k (k + 1)) at look k: by their sum, whatever the number of looks."""
    look = seeds - FIRST + 1
    return 1 / (look * (look + 1))


BOUNDARY = Boundary(FIRST, MOST)
RULES: dict[str, Callable[[int], float] | None] = {
    "until p < 0.05": naive,
    "0.15 (Pocock)": pocock(0.15),
    "0.25 n / N": lambda seeds: 0.25 * seeds / MOST,
    "this, 0.25 I / I_N": None,
    "0.8 (n / N)^3 (O'Brien-Fleming)": late(0.8),
    "1 / k (k + 1), for ever": for_ever,
}


def errors(trials: int) -> None:
    """Per cent of comparisons of equal rows in which some row is called better: nobody stops, and as it is used."""
    heads = " | ".join(RULES)
    print(f"| rows | spread | {heads} | e-values | this, rows stop | seeds a row then |")
    print("|---" * (len(RULES) + 5) + "|")
    for rows in (2, 5, 10, 20):
        for name, spread in {**STUDIES, **{f"{k} (statistics.md)": v for k, v in SPREADS.items()}}.items():
            if name == "equal (statistics.md)" or (rows < 4 and "1/" in name):
                continue
            sds, means = spread(rows), np.zeros(rows)
            wrong = [
                course(means, sds, BOUNDARY, share=rule, stops=False, pairs=PAIRS, trials=trials, seed=rows).wrong
                for rule in RULES.values()
            ]
            e = paired_e_values(means, sds, FIRST, MOST, pairs=PAIRS, trials=trials, seed=rows)
            used = course(means, sds, BOUNDARY, pairs=PAIRS, trials=trials, seed=rows)
            cells = [f"{100 * x:.1f}" for x in (*wrong, e.wrong, used.wrong)]
            print(f"| {rows} | {name} | {' | '.join(cells)} | {used.seeds:.1f} |", flush=True)


def other_designs(trials: int) -> None:
    """What the constant was not chosen on."""
    print("\n| design | called better wrongly | seeds a row |\n|---|---|---|")
    two = np.where(np.arange(10) < 5, 2.0, 0.0)
    third = STUDIES["a third each"](10)
    designs: dict[str, Course] = {
        "10 rows in two groups of equals, 2 points apart": course(two, third, BOUNDARY, trials=trials),
        "the same, BERT-base": course(two, np.full(10, 0.84), BOUNDARY, trials=trials),
        "10 rows, no chance from pairs": course(np.zeros(10), third, BOUNDARY, pairs=0, stops=False, trials=trials),
        "2 rows, no chance from pairs": course(np.zeros(2), third[:2], BOUNDARY, pairs=0, stops=False, trials=trials),
        "10 rows, pairs ten times the seeds": course(np.zeros(10), np.full(10, 0.2), BOUNDARY, pairs=2, stops=False,
                                                     trials=trials),
        "10 rows, four fifths of the spread shared": course(np.zeros(10), third, BOUNDARY, luck=0.8, stops=False,
                                                            trials=trials),
        "10 rows, first analysis at 5, at most 10": course(np.zeros(10), third, Boundary(5, 10), stops=False,
                                                       trials=trials),
        "10 rows, at most 6": course(np.zeros(10), third, Boundary(3, 6), stops=False, trials=trials),
        "10 rows, at most 40": course(np.zeros(10), third, Boundary(3, 40), stops=False, trials=trials),
        "10 rows, first analysis at 2": course(np.zeros(10), SPREADS["one 1.7"](10), Boundary(2, 15), stops=False,
                                           pairs=0, trials=trials),
    }  # fmt: skip
    for name, c in designs.items():
        print(f"| {name} | {100 * c.wrong:.1f} | {c.seeds:.1f} |", flush=True)


def costs(trials: int) -> None:
    """Against fixed designs: found (per cent of the best row's separations) and seeds a row.

    "As good": the seeds of a fixed design that finds as much.
    """
    print("\n| rows | spread | difference | the others | fixed: found, seeds | until decided: found, seeds | "
          "as good | saved |\n|---|---|---|---|---|---|---|---|")  # fmt: skip
    for rows in (2, 6, 20):
        for name in ("BERT-base", "a third each"):
            sds = STUDIES[name](rows)
            for fixed in (3, 5, 10):
                design = Design(tuple(sds), PAIRS * 2**0.5, AllPairs(rows))
                gap = smallest_difference(design, np.full(rows, fixed))
                shapes = {"all equal": np.zeros(rows)}
                shapes["one ahead, the others equal"] = gap * (np.arange(rows) == 0)
                if rows > 2:
                    shapes["evenly spaced"] = -gap * np.arange(rows)
                for shape, means in shapes.items():
                    c = course(means, sds, BOUNDARY, pairs=PAIRS, trials=trials, seed=fixed)
                    line = f"| {rows} | {name} | {gap:.2f} | {shape} |"
                    if shape == "all equal":
                        print(f"{line} –, {fixed} | –, {c.seeds:.1f} | – | {1 - c.seeds / fixed:.0%} |", flush=True)
                        continue
                    found = _found(means, sds, fixed, trials)
                    good = next((n for n in range(2, 60) if _found(means, sds, n, trials) >= c.found - 0.005), 60)
                    print(f"{line} {100 * found:.0f}, {fixed} | {100 * c.found:.0f}, {c.seeds:.1f} | {good} | "
                          f"{1 - c.seeds / good:.0%} |", flush=True)  # fmt: skip


def _found(means: np.ndarray, sds: np.ndarray, seeds: int, trials: int) -> float:
    """Share of the separations of the first row from the others that a fixed design finds."""
    rows = len(means)
    shares = []
    for other in range(1, rows):
        design = Design(tuple(sds), PAIRS * 2**0.5, AllPairs(rows), sides=(0, other))
        gap = means[0] - means[other]
        shares.append(float((surpluses(design, np.full(rows, seeds), min(trials, 1000)) <= gap).mean()))
    return float(np.mean(shares))


def rules(trials: int) -> None:
    """Why this boundary: what each finds, and its seeds a row; differences that five fixed seeds find in 80 %."""
    heads = " | ".join([*list(RULES)[1:], "e-values"])
    print(f"\n| rows | spread | others | {heads} |\n" + "|---" * (len(RULES) + 3) + "|")
    for rows in (2, 6, 20):
        for name in ("BERT-base", "a third each"):
            sds = STUDIES[name](rows)
            gap = smallest_difference(Design(tuple(sds), PAIRS * 2**0.5, AllPairs(rows)), np.full(rows, 5))
            for shape, means in (("equal", gap * (np.arange(rows) == 0)), ("spaced", -gap * np.arange(rows))):
                if rows == 2 and shape == "spaced":
                    continue
                found = [
                    course(means, sds, BOUNDARY, share=rule, pairs=PAIRS, trials=trials)
                    for key, rule in RULES.items()
                    if rule is not naive
                ]
                found.append(paired_e_values(means, sds, FIRST, MOST, pairs=PAIRS, trials=trials))
                cells = " | ".join(f"{100 * c.found:.0f}, {c.seeds:.1f}" for c in found)
                print(f"| {rows} | {name} | {shape} | {cells} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--part", choices=[*PARTS, "all"], default="all")
    args = parser.parse_args()
    for name, part in PARTS.items():
        if args.part in (name, "all"):
            part(args.trials)


PARTS = {"errors": errors, "other": other_designs, "rules": rules, "costs": costs}


if __name__ == "__main__":
    main()
