"""Verdicts in words and as JSON."""

from __future__ import annotations

from typing import Any

from reports.document.table import number_text
from reports.stats.power import CHANCE
from reports.stats.significance import NOT_JUDGED
from reports.stats.verdicts import ALIKE, BETTER, OPEN, Block, Verdict

_MARKS = {"not separable": "=", NOT_JUDGED: "?"}  # separated: "*"


def paragraph(verdict: Verdict, block: Block, equivalence: float) -> str:
    """What a reader may quote."""
    a, b, title = verdict.a.label, verdict.b.label, verdict.target.title
    d = verdict.difference
    e = d.estimate
    low, high = (number_text(100 * x, 2, signed=True) for x in (e.low, e.high))
    seeds = f"{d.seeds[0]} and {d.seeds[1]} seeds" if d.seeds[0] != d.seeds[1] else f"{_count(d.seeds[0])} each"
    measured = " against ".join(number_text(block.mean(row), 2) for row in (verdict.a, verdict.b))
    numbers = f"{measured}, {number_text(100 * e.value, 2, signed=True)} points [{low}, {high}] ({seeds})"
    if verdict.kind == NOT_JUDGED:
        alone = " and ".join(row.label for row in (verdict.a, verdict.b) if row not in block.judged)
        return (
            f"{a} and {b} cannot be judged on {title}: {numbers}, where the interval has the chance of the examples "
            f"only. Of {alone} there is one seed, and how much another would change is not known."
        )
    start = {
        BETTER: f"{a} is better than {b} on {title}",
        ALIKE: f"{a} and {b} differ by nothing that matters (less than {equivalence:g} points) on {title}",
        OPEN: f"Whether {a} or {b} is better on {title} cannot be decided yet",
    }.get(verdict.kind, f"{a} is worse than {b} on {title}")
    p = "p < 0.001" if e.p < 1e-3 else f"p = {e.p:.3f}"
    text = f"{start}: {numbers}; interval and {p} are corrected for all pairs of {len(block.judged)} rows"
    analyses = block.significance.comparison.analyses
    text += f" and {len(analyses.seeds)} interim analyses." if analyses is not None else "."
    if verdict.another_seed is not None and 0 < verdict.another_seed < 1:
        text += f" One more seed of {a} would be ahead of one of {b} with probability {verdict.another_seed:.2f}."
    if verdict.detectable is not None:
        text += f" This design finds differences from {verdict.detectable:.1f} points on in {CHANCE:.0%} of cases."
    if verdict.kind == OPEN and verdict.needed:
        text += f" For a difference as large as the one measured, about {verdict.needed} seeds of every row are needed."
    elif verdict.kind == OPEN:
        text += " A difference as large as the one measured would not show with 100 seeds: it takes more examples."
    return text


def _count(seeds: int) -> str:
    return f"{seeds} seed{'' if seeds == 1 else 's'}"


def as_json(verdict: Verdict, block: Block, equivalence: float) -> dict[str, Any]:
    """Every number of a verdict; differences in points."""
    d = verdict.difference
    analyses = block.significance.comparison.analyses
    return {
        "a": verdict.a.label,
        "b": verdict.b.label,
        "on": verdict.target.title,
        "tasks": [f"{one.source}:{one.task}" for one in verdict.target.measures],
        "verdict": verdict.kind,
        "means": [block.mean(verdict.a), block.mean(verdict.b)],
        "seeds": list(d.seeds),
        "difference": 100 * d.estimate.value,
        "low": 100 * d.estimate.low,
        "high": 100 * d.estimate.high,
        "p": d.estimate.p if d.judged else None,
        "corrected_for_rows": len(block.judged),
        **({"corrected_for_interim_analyses": len(analyses.seeds)} if analyses is not None else {}),
        "equivalence": equivalence,
        "another_seed_ahead": verdict.another_seed,
        "detectable": verdict.detectable,
        "seeds_needed": verdict.needed,
        "text": paragraph(verdict, block, equivalence),
    }


def groups_text(block: Block) -> list[str]:
    """Groups of rows that do not differ significantly, best first: "1, 2, 4: SCD, SimCSE, whitening"."""
    return block.describe_groups()


def matrix(block: Block) -> list[list[str]]:
    """Row minus column in points, with "*" (separated), "=" (not separable) or "?" (not judged); best rows first."""
    found = block.differences()
    lines = []
    for i, row in enumerate(block.rows):
        cells = [str(i + 1), row.label, f"{block.mean(row):.2f}"]
        for j in range(len(block.rows)):
            if i == j:
                cells.append("")
                continue
            d = found[min(i, j), max(i, j)]
            value = 100 * d.estimate.value * (1 if i < j else -1)
            cells.append(f"{round(value, 2) + 0.0:+.2f}{_MARKS.get(d.verdict, '*')}")
        lines.append(cells)
    return lines
