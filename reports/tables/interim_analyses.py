"""The interim analyses of a comparison whose seeds were added until it was decided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reports.document.table import Cell, Column, Table, TableRow
from reports.read.comparison_runs import Comparison, InterimAnalyses, base_name
from reports.stats.sequential import SHARE
from reports.stats.significance import Significance

_GOING = ("leads", "open")
_ENDED = {
    "decided": "It ended when no decision was open that more seeds were likely to settle.",
    "seeds": "It ended with decisions open: the planned number of seeds was reached.",
    "budget": "It ended with decisions open: the budget was spent.",
    "": "It has not ended: the same command goes on.",
}


def interim_analyses_table(comparison: Comparison, significance: Significance) -> Table | None:
    """A line for each interim analysis; None if the seeds were fixed beforehand."""
    analyses = comparison.analyses
    if analyses is None:
        return None
    columns = [
        Column("analysis", "Analysis"),
        Column("seeds", "Seeds", "of the rows in contention"),
        Column("runs", "Runs", "so far"),
        Column("going", "In contention after it", numeric=False),
        Column("decided", "Decided", "at this analysis", numeric=False),
    ]
    lines = []
    before: dict[tuple[str, str], str] = {}
    for number, seeds in enumerate(analyses.seeds, 1):
        rows = analyses.rows[number - 1] if number <= len(analyses.rows) else ()
        several = len({row["base_model"] for row in rows}) > 1
        states = {(row["base_model"], row["row"]): row["state"] for row in rows}
        open_ = {base for (base, _), state in states.items() if state == "open"}
        going = [_name(row, several) for row in rows if row["state"] in _GOING and row["base_model"] in open_]
        decided: dict[str, list[str]] = {}
        for row in rows:
            key = (row["base_model"], row["row"])
            if row["state"] not in _GOING and before.get(key) != row["state"]:
                decided.setdefault(row["state"], []).append(_name(row, several))
        said = "; ".join(f"{state}: {', '.join(names)}" for state, names in decided.items())
        runs = sum(first <= number for first in analyses.since.values())
        cells = (
            Cell(str(number), value=number),
            Cell(str(seeds), value=seeds),
            Cell(str(runs), value=runs),
            Cell(", ".join(going) or "–"),
            Cell(said or "–"),
        )
        lines.append(TableRow(cells))
        before = states
    return Table(
        "interim-analyses",
        "Seeds added until decided",
        "After every interim analysis, one more seed for the best row and for the rows that are open against it.",
        tuple(columns),
        tuple(lines),
        (_boundary_text(analyses), _ENDED.get(analyses.ended, _ENDED[""]), _STATES),
    )


def _boundary_text(analyses: InterimAnalyses) -> str:
    """What every verdict of such a comparison is made by."""
    return (
        f"Every interim analysis of a difference has a level of its own, 0.05 × {SHARE} × the share of the information "
        f"that {analyses.most} seeds would give: over all analyses and pairs, equal rows are called different in less "
        "than 5 % of comparisons. Intervals hold at every analysis; p is the smallest of all analyses, each divided by "
        "its share of 0.05."
    )


_STATES = (
    "Out: another row is better. No difference that matters: to the best row, with the whole interval. Unlikely to be "
    "decided: with all seeds that were to be had, a decision against the best row had a chance below 10 %."
)


def _name(row: Mapping[str, Any], several: bool) -> str:
    return f"{row['row']} ({base_name(row['base_model'])})" if several else str(row["row"])
