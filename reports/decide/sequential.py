"""The interim analyses of `harness compare --until decided`: which rows get another seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from harness.runs.until import Analysis, Key
from reports.read.comparison_runs import read_comparison
from reports.stats.estimate import Floats
from reports.stats.sequential import SHARE, Boundary, standing
from reports.stats.significance import Significance
from reports.stats.simultaneous import ALPHA, SeedSpread
from reports.stats.verdicts import ALIKE, BETTER, Block, kind_of

LEADS, BEATEN, SAME, HOPELESS, OPEN = "leads", "out", "no difference that matters", "unlikely to be decided", "open"


RULE = (
    f"after every seed, at {ALPHA} x {SHARE} x the share of the information that all seeds would give, for all pairs "
    "of rows together"
)


def analyse(workdir: Path, comparison: str) -> Analysis:
    """An interim analysis by the boundary of `reports.stats.sequential`, one base model at a time."""
    known = read_comparison(workdir, comparison)
    assert known.analyses is not None
    significance = Significance(known)
    target = significance.first
    if target is None:
        return Analysis(frozenset())
    contending: set[Key] = set()
    rows_so_far = []
    for base in known.base_models:
        rows = [row for row in known.rows if row.base_model == base and row.supervision != "supervised"]
        block = Block(rows, significance, target)
        if len(block.judged) < 2:
            continue
        states = _states(block, Boundary(known.analyses.first, known.analyses.most), known.analyses.equivalence)
        open_ = OPEN in states
        contending |= {
            row.key for row, state in zip(block.judged, states, strict=True) if open_ and state in (LEADS, OPEN)
        }
        rows_so_far += [
            {"row": row.label, "base_model": base, "seeds": len(block.runs(row)), "state": state}
            for row, state in zip(block.judged, states, strict=True)
        ]
    return Analysis(frozenset(contending), tuple(rows_so_far), target.title)


def _states(block: Block, boundary: Boundary, equivalence: float) -> list[str]:
    """The state of each judged row against the best one."""
    rows = block.judged
    count = len(rows)
    better, alike = (np.zeros((count, count), dtype=bool) for _ in range(2))
    pairs: Floats = np.zeros((count, count))
    for (i, j), difference in block.differences().items():
        if j >= count:
            continue
        kind = kind_of(difference, equivalence)
        alike[i, j] = alike[j, i] = kind == ALIKE
        if difference.verdict in (BETTER, "worse"):
            better[(i, j) if difference.verdict == BETTER else (j, i)] = True
        pairs[i, j] = pairs[j, i] = (block.pairs_deviation(rows[i], rows[j]) / 100) ** 2
    spreads = [block.significance.spread(row, block.target) for row in rows]
    spread = SeedSpread(np.array([v for v, _ in spreads]), np.array([f for _, f in spreads]))
    means = np.array([block.mean(row) for row in rows]) / 100
    found = standing(means, better, alike, spread, block.seeds(), pairs, block.family, boundary, equivalence / 100)
    states = []
    leader = int(np.where(found.beaten & ~found.beaten.all(), -np.inf, means).argmax())
    for i in range(count):
        named = {BEATEN: found.beaten[i], SAME: found.alike[i], HOPELESS: found.hopeless[i]}
        states.append(LEADS if i == leader else next((state for state, holds in named.items() if holds), OPEN))
    return states
