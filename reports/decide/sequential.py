"""The interim analyses of `harness compare --until decided`: which rows get another seed."""

from __future__ import annotations

from pathlib import Path

from scipy.special import ndtr

from harness.runs.until import Analysis, Key
from reports.load import read_comparison
from reports.results import ResultRow, Results
from reports.stats.significance import Significance
from reports.stats.verdicts import ALIKE, BETTER, WORSE, Ranking, kind_of

LEADS, BEATEN, SAME, HOPELESS, OPEN = (
    "leads",
    "out",
    "no difference that matters",
    "unlikely to be decided",
    "open",
)
HOPE = 0.15  # less chance of a decision with all seeds that may come, and no more are spent
RULE = (
    "after every seed; all analyses with up to n of the most seeds may use (n / most)^2 of 0.05, for all rows "
    "together"
)


def analyse(workdir: Path, comparison: str) -> Analysis:
    """An interim analysis, one block of rows at a time: the best row and those that are undecided
    against it stay in contention.
    """
    known = read_comparison(workdir, comparison)
    return analyse_results(known, Significance(known))


def analyse_results(known: Results, significance: Significance) -> Analysis:
    """The same of results that were read; they have interim analyses."""
    assert known.analyses is not None
    target = significance.first
    if target is None:
        return Analysis(frozenset())
    contending: set[Key] = set()
    rows_so_far = []
    for rows in known.blocks.values():
        block = Ranking(rows, significance, target)
        if len(block.contenders) < 2:
            continue
        states = {
            row.key: _state(block, row, known.analyses.most, known.analyses.equivalence)
            for row in block.judged
        }
        if OPEN in states.values():
            contending |= {key for key, state in states.items() if state in (LEADS, OPEN)}
        rows_so_far += [
            {
                "row": row.label,
                "base_model": row.base_model,
                "seeds": len(block.runs(row)),
                "state": states[row.key],
            }
            for row in block.judged
        ]
    return Analysis(frozenset(contending), tuple(rows_so_far), target.title)


def _state(block: Ranking, row: ResultRow, most: int, equivalence: float) -> str:
    """The state of a judged row against the best one.

    A row is out where the verdict on it and the best one is known. That it cannot be the best is
    known earlier, from one side; seeds that end there leave the verdict open.
    """
    if block.candidates:
        leader = block.candidates[0]
    else:
        leader = block.contenders[0]
    if row is leader:
        return LEADS
    kind = kind_of(block.difference(leader, row), equivalence)
    if kind == ALIKE:
        return SAME
    if kind in (BETTER, WORSE):
        return BEATEN
    if _chance_of_decision(block, leader, row, most, equivalence) < HOPE:
        return HOPELESS
    return OPEN


def _chance_of_decision(
    block: Ranking,
    leader: ResultRow,
    row: ResultRow,
    most: int,
    equivalence: float,
) -> float:
    """How likely two rows are found different, or alike, once both have all seeds that may come.

    What their difference will be then is drawn from what is known now (stochastic curtailment: Lan,
    Simon & Halperin, Communications in Statistics C 1, 1982), and judged as the last analysis
    judges; the spreads are taken as they were estimated.
    """
    pair = (leader, row)
    significance = block.significance
    *seeds, _ = significance.parts(leader, row, block.target)
    to_come = 0.0
    for one, variance in zip(pair, seeds, strict=True):
        done = len(block.runs(one)) / most
        to_come += variance * (1 - min(done, 1.0))
    deviation = to_come**0.5 + 1e-12

    half = significance.half_width_at_the_end(pair, block.contenders, block.target)
    gap = abs(block.difference(leader, row).estimate.value)

    def chance_below(bound: float) -> float:
        return float(ndtr((bound - gap) / deviation))

    above = float(ndtr((gap - half) / deviation))
    below = chance_below(-half)
    alike = 0.0
    room = equivalence / 100 - half
    if room > 0:
        alike = chance_below(room) - chance_below(-room)
    return above + below + alike
