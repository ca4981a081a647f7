"""Measures what a loop keeps that tries many changes of which some are real, by several rules.

    python -m tools.campaigns.gate [--only unlike labels]

Scores are normal. In the part "loops" a loop tries 1,000 changes, 50 of them real, with 0.84 points
over seeds (SimCSE on BERT-base) and 0.7 points of a difference over test pairs (two methods) or 0.2
(near variants of one). Of the others, the real changes apart, each changes nothing or costs a
point. A kept candidate becomes the next baseline, so that the tests depend on one another as they
do in use.

In the part "unlike" baselines and candidates have other spreads over seeds than one another, and
the baseline stays. In the part "labels" a script calls every change by one name, and asks
`harness.gate` itself. Figures are saved in tools/campaigns/results/ with their draws and their standard error; the exit
code is 1 if one is beyond its bound (`tools.campaigns.measured`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats
from scipy.special import stdtr

import harness
from reports.stats.online import BETTER, FIRST_SEEDS, UNDECIDED, Proposal, look, next_level
from reports.stats.simultaneous import combine_freedom, keep_own_freedom
from tools.campaigns.measured import FOLDER, Figure, Part, main, share

FILE = FOLDER / "gate.csv"
SEEDS_SD, PROPOSALS, REAL = 0.84, 1000, 50
WRONG, FOUND = "accepted wrongly", "real ones found"
Draw = Callable[[int], np.ndarray]
Rule = Callable[[Draw, np.ndarray, list[Proposal]], tuple[bool, int]]


def by_gate(most: int, pairs_sd: float, looks: tuple[int, ...] = (5, 7, 10, 15, 20)) -> Rule:
    """Looks at these numbers of seeds, up to `most`, until the gate has decided."""

    def judge(draw: Draw, baseline: np.ndarray, history: list[Proposal]) -> tuple[bool, int]:
        proposal = Proposal(next_level(history), most)
        runs = draw(most)
        for seeds in (n for n in looks if FIRST_SEEDS <= n <= most):
            gain, p, variances = judge_gain(runs[:seeds], baseline, pairs_sd)
            look(proposal, seeds, p, gain, variances)
            if proposal.decision != UNDECIDED:
                break
        history.append(proposal)
        return proposal.decision == BETTER, seeds

    return judge


def judge_gain(
    runs: np.ndarray, baseline: np.ndarray, pairs_sd: float
) -> tuple[float, float, tuple[float, float]]:
    """Return the gain of runs over a baseline, its one-sided p as `harness.gate` has it, and its
    variances by the candidate's seeds and by all else.
    """
    counts = np.array([len(runs), len(baseline)])
    variances = np.array([runs.var(ddof=1), baseline.var(ddof=1)])
    of_run, freedom = keep_own_freedom(variances, counts)
    parts = of_run / counts
    gain = float(runs.mean() - baseline.mean())
    error = float(parts.sum() + pairs_sd**2) ** 0.5
    together = combine_freedom(parts, freedom, pairs_sd**2)
    p = float(stdtr(together, -gain / error))
    return gain, p, (float(parts[0]), float(parts[1]) + pairs_sd**2)


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
        keep, used = rule(lambda n, drawn=drawn: drawn[:n], baseline, history)
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

    @property
    def proposals(self) -> int:
        return 60 if self.real else 100

    @property
    def name(self) -> str:
        changes = f"{self.real} of {self.proposals} gain 2 points" if self.real else "none gains"
        return (
            f"baseline {self.baseline_runs} runs that vary by {self.baseline_sd:g}, candidates by "
            f"{self.candidate_sd:g}; {changes}"
        )


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
LOOKS = {"5, 10, 20 seeds": (5, 10, 20), "after every seed": tuple(range(5, 21))}


def unlike_loop(cell: Unlike, rule: Rule, generator: np.random.Generator) -> tuple[int, int, int]:
    """Real and false changes that were kept, and the runs that it took; the baseline stays."""
    baseline = generator.normal(0, cell.baseline_sd, cell.baseline_runs)
    gains = np.zeros(cell.proposals)
    gains[generator.choice(cell.proposals, cell.real, replace=False)] = 2.0
    history: list[Proposal] = []
    kept_real = kept_false = runs = 0
    for gain in gains:
        drawn = generator.normal(gain, cell.candidate_sd, 20)
        keep, used = rule(lambda n, drawn=drawn: drawn[:n], baseline, history)
        runs += used
        kept_real += int(keep and gain > 0)
        kept_false += int(keep and gain == 0)
    return kept_real, kept_false, runs


def measure_unlike(loops: int = 400) -> Iterator[Figure]:
    """Yield for each cell, of 100 changes of which none is real or 60 of which ten are, how many of
    the kept ones are wrong and how many of the real ones are found.
    """
    for cell in UNLIKE:
        for looks, seeds in LOOKS.items():
            often = len(seeds) > 3
            if often and cell.real:
                continue
            generator = np.random.default_rng(0)
            rule = by_gate(20, 0.0, seeds)
            count = loops // 2 if often else loops
            found = [unlike_loop(cell, rule, generator) for _ in range(count)]
            name = f"{cell.name}; {looks}"
            yield _wrong_of("unlike", name, found, at_most=5.0)
            if cell.real:
                real = [100 * true / cell.real for true, *_ in found]
                yield _mean_of("unlike", name, FOUND, real, at_least=60.0)


def _wrong_of(
    part: str, cell: str, found: Sequence[tuple[int, int, int]], *, at_most: float | None
) -> Figure:
    """Return how many of the kept changes of a loop are wrong, in per cent, the mean over loops.

    Where none is wrong, its error is that of half a wrong one among all that were kept.
    """
    shares = [100 * false / max(1, true + false) for true, false, _ in found]
    figure = _mean_of(part, cell, WRONG, shares, at_most=at_most)
    if figure.error > 0:
        return figure
    kept = sum(true + false for true, false, _ in found)
    return replace(figure, error=share(part, cell, WRONG, 0, max(kept, len(found))).error)


def _mean_of(
    part: str,
    cell: str,
    name: str,
    values: Sequence[float],
    *,
    at_most: float | None = None,
    at_least: float | None = None,
) -> Figure:
    """Return the mean over loops."""
    count = len(values)
    error = float(np.std(values, ddof=1)) / count**0.5
    return Figure(part, cell, name, float(np.mean(values)), error, count, at_most, at_least)


CHANGES = (5.0, -5.0, 0.0, 0.0, 2.0, 0.0, -1.0, 0.0)
"""Gains of the changes of a loop in points, again and again."""


def measure_labels(loops: int = 8, changes: int = 24) -> Iterator[Figure]:
    """Yield what `harness.gate` answers where every change has the label "mine", and where each has
    its own: changes whose answer the label alters, accepted changes that gain nothing, and changes
    of five points that are found.
    """
    for baseline_sd, candidate_sd in ((0.84, 0.84), (0.2, 2.0)):
        generator = np.random.default_rng(0)
        altered = accepted = wrong = found = 0
        gains = np.resize(CHANGES, changes)
        for _ in range(loops):
            baseline = 70 + generator.normal(0, baseline_sd, 20)
            runs = 70 + gains[:, None] + generator.normal(0, candidate_sd, (changes, 20))
            one = _ask_gate(baseline, runs, ["mine"] * changes)
            own = _ask_gate(baseline, runs, [f"change {n}" for n in range(changes)])
            altered += int((one != own).sum())
            accepted += int(one.sum())
            wrong += int((one & (gains <= 0)).sum())
            found += int((one & (gains == 5)).sum())
        asked = loops * changes
        cell = f"baseline varies by {baseline_sd:g}, candidates by {candidate_sd:g}"
        # Not one may be, so this is no estimate with an error.
        share_altered = 100 * altered / asked
        name = "answers that the label alters"
        yield Figure("labels", cell, name, share_altered, 0.0, asked, at_most=0)
        yield share("labels", cell, WRONG, wrong, max(accepted, 1), at_most=5.0)
        real = loops * int((gains == 5).sum())
        yield share("labels", cell, "gains of 5 points found", found, real, at_least=60.0)


def _ask_gate(baseline: np.ndarray, runs: np.ndarray, labels: Sequence[str]) -> np.ndarray:
    """Return which changes the gate keeps, each looked at with 5, 10 and 20 seeds while it is
    undecided.

    Args:
        baseline: (20,) scores in per cent.
        runs: (changes, 20).
        labels: of the changes.
    """
    kept = []
    with tempfile.TemporaryDirectory() as folder:
        history = Path(folder) / "gate.jsonl"
        for of_change, label in zip(runs, labels, strict=True):
            decision = ""
            for seeds in (5, 10, 20):
                lines = [("base", n, score) for n, score in enumerate(baseline)]
                lines += [(label, n, score) for n, score in enumerate(of_change[:seeds])]
                frame = pd.DataFrame(lines, columns=["row", "seed", "score"])
                answer = harness.gate(frame, baseline="base", candidate=label, history=history)
                decision = str(answer.data["decision"])
                if decision != UNDECIDED:
                    break
            kept.append(decision == BETTER)
    return np.array(kept)


def measure_loops(loops: int = 15) -> Iterator[Figure]:
    """Yield for each size of the real changes and each rule what is kept and found."""
    cases = ((2.0, 0.0, 0.2), (3.0, 0.0, 0.2), (3.0, 0.0, 0.7), (5.0, 0.0, 0.7), (3.0, -1.0, 0.7))
    for effect, rest, pairs_sd in cases:
        rules: dict[str, Rule] = {"gate, at most 20 seeds": by_gate(20, pairs_sd)}
        if effect == cases[0][0]:
            rules["gate, at most 10 seeds"] = by_gate(10, pairs_sd)
        rules["five seeds, p < 0.05"] = by_test
        rules["three seeds, higher mean"] = by_mean
        for rule, judge in rules.items():
            generator = np.random.default_rng(0)
            found = [loop(judge, effect, rest, pairs_sd, generator) for _ in range(loops)]
            cell = f"real gain {effect:g}, others {rest:g}, test pairs {pairs_sd:g}: {rule}"
            bound = 5.0 if rule.startswith("gate") else None
            yield _wrong_of("loops", cell, found, at_most=bound)
            real = [100 * true / REAL for true, *_ in found]
            yield _mean_of("loops", cell, FOUND, real)
            yield _mean_of("loops", cell, "runs", [float(used) for *_, used in found])


PARTS: dict[str, Part] = {
    "labels": measure_labels,
    "unlike": measure_unlike,
    "loops": measure_loops,
}

if __name__ == "__main__":
    main(FILE, PARTS, __doc__ or "")
