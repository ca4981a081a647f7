"""`python -m tools.campaigns.gate [--loops 12] [--cells unlike]`: what a loop keeps that tries many
changes of which some are real, by several rules.

Scores are normal. In the table of docs/how-to/plan-and-decide.md a loop tries 1,000 changes, 50 of
them real, with 0.84 points over seeds (SimCSE on BERT-base) and 0.7 points of a difference over
test pairs (two methods) or 0.2 (near variants of one). Of the others, the real changes apart, each
changes nothing or costs a point. A kept candidate becomes the next baseline, so that the tests
depend on one another as they do in use.

The cells "unlike" have baselines and candidates of other spreads over seeds than one another, and a
baseline that stays.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from reports.stats.clusters import Chance
from reports.stats.online import BETTER, FIRST_SEEDS, UNDECIDED, Proposal, look, next_level
from reports.stats.simultaneous import Rows, keep_own_freedom
from reports.stats.simultaneous import judge as judge_pairs

SEEDS_SD, PROPOSALS, REAL = 0.84, 1000, 50
Draw = Callable[[int], np.ndarray]
Rule = Callable[[Draw, np.ndarray, list[Proposal]], tuple[bool, int]]


def by_gate(most: int, pairs_sd: float, looks: tuple[int, ...] = (5, 7, 10, 15, 20)) -> Rule:
    """Looks at these numbers of seeds, up to `most`, until the gate has decided."""

    def judge(draw: Draw, baseline: np.ndarray, history: list[Proposal]) -> tuple[bool, int]:
        proposal = Proposal(next_level(history), most)
        runs = draw(most)
        examples = np.eye(2) * pairs_sd**2 / 2
        of_pairs = Chance(examples, examples, np.zeros(2))
        for seeds in (n for n in looks if FIRST_SEEDS <= n <= most):
            counts = np.array([seeds, len(baseline)])
            variances = np.array([runs[:seeds].var(ddof=1), baseline.var(ddof=1)])
            spread, freedom = keep_own_freedom(variances, counts)
            means = np.array([runs[:seeds].mean(), baseline.mean()])
            rows = Rows(means, spread / counts, freedom, of_pairs)
            gain = judge_pairs(rows, np.array([[0, 1]]))[0]
            p = gain.p / 2 if gain.value > 0 else 1 - gain.p / 2
            variances_of_gain = (float(rows.seeds[0]), float(rows.seeds[1]) + pairs_sd**2)
            look(proposal, seeds, p, gain.value, variances_of_gain)
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


@dataclass(frozen=True)
class Unlike:
    """A baseline with some runs, and candidates whose seeds vary otherwise.

    Attributes:
        real: of `PROPOSED` changes, how many gain two points; the others change nothing.
    """

    baseline_sd: float
    baseline_runs: int
    candidate_sd: float
    real: int = 0


UNLIKE = (
    Unlike(0.2, 20, 0.84),
    Unlike(0.2, 20, 2.0),
    Unlike(0.2, 10, 1.0),
    Unlike(0.84, 20, 0.84),
    Unlike(0.84, 20, 0.2),
    Unlike(0.84, 20, 0.84, real=10),
    Unlike(0.2, 20, 0.84, real=10),
    Unlike(0.2, 20, 2.0, real=10),
)


def unlike_loop(
    cell: Unlike, proposals: int, rule: Rule, generator: np.random.Generator
) -> tuple[int, int, int]:
    """Real and false changes that were kept, and the runs that it took; the baseline stays."""
    baseline = generator.normal(0, cell.baseline_sd, cell.baseline_runs)
    gains = np.zeros(proposals)
    gains[generator.choice(proposals, cell.real, replace=False)] = 2.0
    history: list[Proposal] = []
    kept_real = kept_false = runs = 0
    for gain in gains:
        drawn = generator.normal(gain, cell.candidate_sd, 20)
        keep, used = rule(lambda n, drawn=drawn: drawn[:n], baseline, history)  # type: ignore[misc]
        runs += used
        kept_real += keep and gain > 0
        kept_false += keep and gain == 0
    return kept_real, kept_false, runs


def print_unlike(loops: int) -> None:
    """A line for each cell: 100 changes of which none is real, or 60 of which ten are."""
    print(
        "baseline sd, runs  candidate sd  changes  real  looks            kept wrongly  real found"
    )
    for cell in UNLIKE:
        proposals = 60 if cell.real else 100
        for looks in ((5, 10, 20), tuple(range(5, 21))):
            generator = np.random.default_rng(0)
            rule = by_gate(20, 0.0, looks)
            found = [unlike_loop(cell, proposals, rule, generator) for _ in range(loops)]
            shares = [false / max(1, true + false) for true, false, _ in found]
            error = np.std(shares, ddof=1) / loops**0.5
            real = np.array([true for true, *_ in found])
            said = (
                f"{real.mean():.1f} (se {real.std(ddof=1) / loops**0.5:.1f})" if cell.real else "-"
            )
            print(
                f"{cell.baseline_sd:11.2f}, {cell.baseline_runs:2}  {cell.candidate_sd:15.2f}  {proposals:7}  "
                f"{cell.real:4}  {'5, 10, 20' if len(looks) == 3 else 'every seed':12}  "
                f"{np.mean(shares):7.1%} (se {error:.1%})  {said}",
                flush=True,
            )


def print_loops(loops: int) -> None:
    """A line for each rule and each size of the real changes."""
    print("rule                     real  others  pairs  kept wrongly  real found  runs a loop")
    cases = ((2.0, 0.0, 0.2), (3.0, 0.0, 0.2), (3.0, 0.0, 0.7), (5.0, 0.0, 0.7), (3.0, -1.0, 0.7))
    for effect, rest, pairs_sd in cases:
        rules: dict[str, Rule] = {
            f"gate, at most {most} seeds": by_gate(most, pairs_sd) for most in (10, 20)
        }
        rules["5 seeds, p < 0.05"] = by_test
        rules["3 seeds, higher mean"] = by_mean
        for name, rule in rules.items():
            generator = np.random.default_rng(0)
            found = [loop(rule, effect, rest, pairs_sd, generator) for _ in range(loops)]
            wrong = np.mean([false / max(1, true + false) for true, false, _ in found])
            share = np.mean([true / REAL for true, *_ in found])
            runs = np.mean([used for *_, used in found])
            line = (
                f"{name:24} {effect:+.0f}   {rest:+.0f}  {pairs_sd:8.1f}  "
                f"{wrong:12.1%}  {share:10.0%}  {runs:10,.0f}"
            )
            print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--loops", type=int, default=12)
    parser.add_argument("--cells", choices=("like", "unlike", "all"), default="all")
    args = parser.parse_args()
    if args.cells != "like":
        print_unlike(args.loops)
    if args.cells != "unlike":
        print_loops(args.loops)


if __name__ == "__main__":
    main()
