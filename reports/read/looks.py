"""The looks of a comparison whose seeds were added until it was decided, as its manifest keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Place = tuple[str, str, int]  # base model and label of a row, and a seed


@dataclass(frozen=True)
class Looks:
    """How often a comparison was looked at, and what there was to see.

    Attributes:
        first, most: seeds of a row at the first look, and at the last that was planned.
        seeds: of the rows in contention at each look.
        since: the first look that a run was part of, from 1.
        rows: what each look said of each row ("row", "base_model", "state").
        rule: what the looks were made by, in a line.
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


def looks_of(manifest: Mapping[str, Any]) -> Looks | None:
    """The looks of a manifest; None of a comparison whose seeds were fixed beforehand.

    Runs of a round that has not ended are one more look: whoever reads them now looks.
    """
    until = manifest.get("until")
    if not until:
        return None
    taken = list(until["looks"])
    since = {(c["base_model"], c["row"], c["seed"]): int(c["look"]) for c in manifest["cells"]}
    while len(taken) < max(since.values(), default=1):
        taken.append({"seeds": min(int(until["first"]) + len(taken), int(until["most"]))})
    return Looks(
        int(until["first"]),
        int(until["most"]),
        tuple(int(look["seeds"]) for look in taken),
        since,
        tuple(tuple(look.get("rows", ())) for look in taken),
        str(until.get("rule", "")),
        str(until.get("ended", "")),
        float(until["equivalence"]),
    )
