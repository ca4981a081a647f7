"""Proposals that come one after another: at which level each is judged, so that few of the kept
ones are no better.

Whoever tries 1,000 changes, each at 5 %, keeps some 50 that change nothing. ADDIS (Tian & Ramdas,
"ADDIS: an adaptive discarding algorithm for online FDR control with conservative nulls", NeurIPS
2019, algorithm 1) gives each proposal a level that depends on the p-values before it alone, so that
at most 5 % of the accepted ones are wrong in expectation. Proposals that are clearly worse, p >
1/2, cost nothing, and each one that is kept pays for later ones.

A proposal may be looked at several times while its seeds grow, first with five. Each look has the
share of the level that its new seeds are of the most seeds (linear error spending: Lan & DeMets,
Biometrika 70, 1983), so that the smallest p / share of all looks is a p-value. The most seeds are
fixed at the first look: a larger number later would spend the level again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from scipy.special import ndtr, ndtri

RATE = 0.05  # of the kept proposals, how many may be wrong, in expectation
BETTER, NOT_BETTER, UNDECIDED = "better", "not better", "undecided"
FIRST_SEEDS = (
    5  # of the candidate at the first look: levels are small, and three seeds say too little
)
HOPE = 0.1  # less chance to be found better with all seeds, and a proposal is dropped
_DISCARD, _CANDIDATE = 0.5, 0.25  # tau and lambda, as the authors recommend
_WEALTH = RATE / 2  # what the first proposals are paid from


@dataclass
class Proposal:
    """A change that was proposed, and the looks at it so far.

    Attributes:
        level: of the one-sided test, all looks together; fixed at the first look.
        most: runs of the candidate at the last look; fixed at the first look. As many as there are
            where no more can come.
        looks: (seeds so far, share of the level, one-sided p) of each.
        decision: "undecided" while more seeds may come.
    """

    level: float
    most: int
    looks: list[tuple[int, float, float]] = field(default_factory=list)
    decision: str = UNDECIDED

    @property
    def p(self) -> float:
        """One-sided, over all looks."""
        smallest = 1.0
        for _, share, p in self.looks:
            smallest = min(smallest, p / share)
        return smallest

    @property
    def discarded(self) -> bool:
        """Whether the first look was on the wrong side. The p of all looks would not do: it is too
        often large.
        """
        if not self.looks:
            return False
        _, _, p = self.looks[0]
        return p > _DISCARD


def next_level(before: Sequence[Proposal]) -> float:
    """The level of a proposal after those before it, in order.

    An undecided one counts as if it were neither promising nor bad, the cautious choice for tests
    that overlap (Zrnic, Ramdas & Jordan, JMLR 22, 2021).

    >>> f"{next_level([]):.4f}"
    '0.0027'
    """
    waiting = [0]  # proposals that had to be paid for without being promising, after each
    count = 0
    for proposal in before:
        ended = proposal.decision != UNDECIDED
        promising = ended and proposal.p <= _CANDIDATE
        if not proposal.discarded:
            count += 1
        if promising:
            count -= 1
        waiting.append(count)

    level = _WEALTH * _payment(count)
    wealth = RATE - _WEALTH
    for after, proposal in zip(waiting[1:], before, strict=True):
        if proposal.decision == BETTER:
            level += wealth * _payment(count - after)
            wealth = RATE
    return min(_CANDIDATE, (_DISCARD - _CANDIDATE) * level)


@cache
def _payment(number: int) -> float:
    """The authors' sequence, (number + 1)^-1.6 over its sum."""
    from scipy.special import zeta

    payment = (number + 1) ** -1.6
    return float(payment / zeta(1.6))


def look(
    proposal: Proposal,
    seeds: int,
    p: float,
    gain: float,
    variances: tuple[float, float],
) -> None:
    """Add a look at a proposal, and decide.

    Args:
        seeds: runs of the candidate now.
        p: one-sided p-value of "the candidate is no better".
        gain: the candidate's mean less the baseline's.
        variances: of the gain, by the candidate's seeds and by all else.
    """
    if proposal.looks:
        before = proposal.looks[-1][0]
    else:
        before = 0
    most = proposal.most
    share = (min(seeds, most) - before) / most
    proposal.looks.append((seeds, share, p))
    if proposal.p <= proposal.level:
        proposal.decision = BETTER
        return
    ended = seeds >= most or proposal.discarded
    if not ended:
        chance = _chance(proposal.level, seeds, most, gain, variances)
        ended = chance < HOPE
    if ended:
        proposal.decision = NOT_BETTER


def _chance(
    level: float,
    seeds: int,
    most: int,
    gain: float,
    variances: tuple[float, float],
) -> float:
    """How likely the last look finds the candidate better, if the gain goes on as it is (stochastic
    curtailment: Lan, Simon & Halperin, Communications in Statistics C 1, 1982).
    """
    own, other = variances
    error = (own * seeds / most + other) ** 0.5
    level_of_rest = level * (most - seeds) / most
    critical = -float(ndtri(level_of_rest))
    least = critical * error
    to_come = (own * (1 - seeds / most)) ** 0.5
    distance = (gain - least) / max(to_come, 1e-12)
    return float(ndtr(distance))
