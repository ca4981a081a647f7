"""`python tools/campaigns/gate.py`: what a loop keeps that tries 1,000 changes of which 50 are
real, by several rules.

Scores are normal, with 0.84 points over seeds (SimCSE on BERT-base) and 0.7 points of a difference
over test pairs (two methods) or 0.2 (near variants of one). Of the others, the real changes apart,
each changes nothing or costs a point. A kept candidate becomes the next baseline, so that the tests
depend on one another as they do in use.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import stats

from reports.stats.clusters import Chance
from reports.stats.online import BETTER, UNDECIDED, Proposal, look, next_level
from reports.stats.simultaneous import Rows, moderate
from reports.stats.simultaneous import judge as judge_pairs

SEEDS_SD, PROPOSALS, REAL, REPEATS = 0.84, 1000, 50, 12
Draw = Callable[[int], np.ndarray]
Rule = Callable[[Draw, np.ndarray, list[Proposal]], tuple[bool, int]]


def by_gate(most: int, pairs_sd: float) -> Rule:
    """Looks at 3, 5, 7, 10, 15 and 20 seeds, until the gate has decided."""

    def judge(draw: Draw, baseline: np.ndarray, history: list[Proposal]) -> tuple[bool, int]:
        proposal, runs = Proposal(next_level(history)), draw(most)
        for seeds in (n for n in (3, 5, 7, 10, 15, 20) if n <= most):
            counts = np.array([seeds, len(baseline)])
            spread, freedom = moderate(
                np.array([runs[:seeds].var(ddof=1), baseline.var(ddof=1)]), counts
            )
            of_pairs = Chance(*2 * [np.eye(2) * pairs_sd**2 / 2], np.zeros(2))
            rows = Rows(
                np.array([runs[:seeds].mean(), baseline.mean()]), spread / counts, freedom, of_pairs
            )
            gain = judge_pairs(rows, np.array([[0, 1]]))[0]
            p = gain.p / 2 if gain.value > 0 else 1 - gain.p / 2
            look(
                proposal,
                seeds,
                most,
                p,
                gain.value,
                (float(rows.seeds[0]), float(rows.seeds[1]) + pairs_sd**2),
            )
            if proposal.decision != UNDECIDED:
                break
        history.append(proposal)
        return proposal.decision == BETTER, seeds

    return judge


def by_test(draw: Draw, baseline: np.ndarray, history: list[Proposal]) -> tuple[bool, int]:
    """Five seeds, kept when Welch's one-sided test says p < 0.05."""
    return bool(
        stats.ttest_ind(draw(5), baseline[:5], equal_var=False, alternative="greater").pvalue < 0.05
    ), 5


def by_mean(draw: Draw, baseline: np.ndarray, history: list[Proposal]) -> tuple[bool, int]:
    """Three seeds, kept when their mean is higher."""
    return bool(draw(3).mean() > baseline[:3].mean()), 3


def loop(
    rule: Rule, effect: float, rest: float, pairs_sd: float, generator: np.random.Generator
) -> tuple[int, int, int]:
    """Real and false changes that were kept, and the runs that it took."""
    real = np.zeros(PROPOSALS, bool)
    real[generator.choice(PROPOSALS, REAL, replace=False)] = True
    level, kept, runs, history = 0.0, [0, 0], 0, list[Proposal]()
    baseline = generator.normal(level, SEEDS_SD, 20)
    for is_real in real:
        gain = effect if is_real else rest
        pairs = generator.normal(0, pairs_sd)
        drawn = generator.normal(level + gain + pairs, SEEDS_SD, 20)
        keep, used = rule(lambda n, drawn=drawn: drawn[:n], baseline, history)  # type: ignore[misc]
        runs += used
        if keep:
            kept[0 if is_real else 1] += 1
            level += gain
            baseline = drawn - pairs
    return kept[0], kept[1], runs


def main() -> None:
    """Print a line for each rule and each size of the real changes."""
    print("rule                     real  others  pairs  kept wrongly  real found  runs a loop")
    cases = ((2.0, 0.0, 0.2), (3.0, 0.0, 0.2), (3.0, 0.0, 0.7), (5.0, 0.0, 0.7), (3.0, -1.0, 0.7))
    for effect, rest, pairs_sd in cases:
        rules = {f"gate, at most {most} seeds": by_gate(most, pairs_sd) for most in (10, 20)}
        for name, rule in (
            rules | {"5 seeds, p < 0.05": by_test, "3 seeds, higher mean": by_mean}
        ).items():
            generator = np.random.default_rng(0)
            found = [loop(rule, effect, rest, pairs_sd, generator) for _ in range(REPEATS)]
            wrong = np.mean([false / max(1, true + false) for true, false, _ in found])
            share, runs = (
                np.mean([true / REAL for true, *_ in found]),
                np.mean([r for *_, r in found]),
            )
            line = (
                f"{name:24} {effect:+.0f}   {rest:+.0f}  {pairs_sd:8.1f}  "
                f"{wrong:12.1%}  {share:10.0%}  {runs:10,.0f}"
            )
            print(line, flush=True)


if __name__ == "__main__":
    main()
