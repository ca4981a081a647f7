"""The interim analyses of a comparison whose seeds were added until it was decided, from the comparison file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Place = tuple[str, str, int]  # base model and label of a row, and a seed


@dataclass(frozen=True)
class InterimAnalyses:
    """The interim analyses of a comparison and what they found.

    Attributes:
        first, most: seeds of a row at the first analysis, and at the last that was planned.
        seeds: of the rows in contention at each analysis.
        since: the first analysis that includes a run, from 1.
        rows: what each analysis found for each row ("row", "base_model", "state").
        rule: how the analyses decide, in a line.
        ended: "decided", "seeds" (no more were to be had), "budget"; "" of a comparison that has not ended.
        equivalence: half width of the region of practical equivalence, in points.
    """

    first: int
    most: int
    seeds: tuple[int, ...]
    since: Mapping[Place, int]
    rows: tuple[tuple[Mapping[str, Any], ...], ...]
    rule: str
    ended: str
    equivalence: float


def read_interim_analyses(comparison_file: Mapping[str, Any]) -> InterimAnalyses | None:
    """The interim analyses of a comparison file; None if the seeds were fixed beforehand.

    Runs of a round that has not ended count as one more analysis.
    """
    until = comparison_file.get("until")
    if not until:
        return None
    taken = list(until["analyses"])
    since = {(c["base_model"], c["row"], c["seed"]): int(c["analysis"]) for c in comparison_file["runs"]}
    while len(taken) < max(since.values(), default=1):
        taken.append({"seeds": min(int(until["first"]) + len(taken), int(until["most"]))})
    return InterimAnalyses(
        int(until["first"]),
        int(until["most"]),
        tuple(int(analysis["seeds"]) for analysis in taken),
        since,
        tuple(tuple(analysis.get("rows", ())) for analysis in taken),
        str(until.get("rule", "")),
        str(until.get("ended", "")),
        float(until["equivalence"]),
    )
