"""The interim analyses of `harness compare --until decided`: which rows get another seed."""

from __future__ import annotations

from pathlib import Path

from scipy.special import ndtr

from harness.runs.until import Analysis, Key
from reports.read.comparison_runs import ResultRow, read_comparison
from reports.stats.significance import Significance
from reports.stats.verdicts import ALIKE, Block, kind_of

LEADS, BEATEN, SAME, HOPELESS, OPEN = (
    "leads",
    "out",
    "no difference that matters",
    "unlikely to be decided",
    "open",
)
HOPE = 0.1  # less chance of a decision with all seeds that may come, and no more are spent
RULE = "after every seed, at the share of 0.05 that the new seeds are of the most seeds, for all rows together"


def analyse(workdir: Path, comparison: str) -> Analysis:
    """An interim analysis, one block of rows at a time: rows that may be the best stay in
    contention.
    """
    known = read_comparison(workdir, comparison)
    assert known.analyses is not None
    significance = Significance(known)
    target = significance.first
    if target is None:
        return Analysis(frozenset())
    contending: set[Key] = set()
    rows_so_far = []
    for rows in known.blocks.values():
        block = Block(rows, significance, target)
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


def _state(block: Block, row: ResultRow, most: int, equivalence: float) -> str:
    """The state of a judged row against the best one."""
    leader = block.candidates[0] if block.candidates else block.contenders[0]
    if row is leader:
        return LEADS
    if row not in block.candidates:
        return BEATEN
    if kind_of(block.difference(leader, row), equivalence) == ALIKE:
        return SAME
    return HOPELESS if _chance_of_decision(block, leader, row, most, equivalence) < HOPE else OPEN


def _chance_of_decision(
    block: Block, leader: ResultRow, row: ResultRow, most: int, equivalence: float
) -> float:
    """How likely two rows are found different, or alike, once both have all seeds that may come.

    What their difference will be then is drawn from what is known now (stochastic curtailment: Lan,
    Simon & Halperin, Communications in Statistics C 1, 1982); the spreads are taken as they were
    estimated.
    """
    *seeds, examples = block.significance.parts(leader, row, block.target)
    done = [min(len(block.runs(one)) / most, 1.0) for one in (leader, row)]
    now, final = (
        sum(seeds) + examples,
        sum(v * share for v, share in zip(seeds, done, strict=True)) + examples,
    )
    estimate = block.difference(leader, row).estimate
    half = (estimate.high - estimate.low) / 2 * (final / now) ** 0.5 if now > 0 else 0.0
    deviation = sum(v * (1 - share) for v, share in zip(seeds, done, strict=True)) ** 0.5 + 1e-12
    gap, room = abs(estimate.value), equivalence / 100 - half
    apart = ndtr((gap - half) / deviation) + ndtr((-gap - half) / deviation)
    alike = ndtr((room - gap) / deviation) - ndtr((-room - gap) / deviation) if room > 0 else 0.0
    return float(apart + alike)
