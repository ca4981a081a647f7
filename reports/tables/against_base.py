"""Each trained row against its untrained base."""

from __future__ import annotations

from reports.document.table import Cell, Column, Table, TableRow, number_text
from reports.read.comparison_runs import Comparison
from reports.stats.significance import Significance, untrained_base
from reports.stats.targets import common_unit
from reports.stats.verdicts import seen_from_base
from reports.tables.score_cells import HEAD, absent_cell, anchor, block_of, head_cells


def against_base(comparison: Comparison, significance: Significance) -> Table | None:
    """Each trained row against its untrained base, by every target; None when there is nothing to compare."""
    if not significance.targets:
        return None
    found = [(row, *untrained_base(row, comparison.rows)) for row in comparison.rows]
    trained = [(row, base) for row, base, _ in found if base is not None]
    without = [(row, reason) for row, base, reason in found if base is None and reason]
    if not trained and not without:
        return None
    columns = [
        HEAD[0],
        Column("base", "Untrained base", numeric=False, aside=True),
        Column("seeds", "Seeds", "trained · base", aside=True),
    ]
    cells = [
        [head_cells(row)[0], Cell(base.label, link=anchor(base)),
         Cell(f"{len(row.finished)} · {len(base.finished)}", value=len(row.finished), notes=head_cells(row)[2].notes)]
        for row, base in trained
    ]  # fmt: skip
    for target in significance.targets:
        columns += [
            Column(f"{target.key} difference", "Difference", "points, 95 % interval", group=target.short),
            Column(f"{target.key} p", "p", "corrected", group=target.short),
            Column(f"{target.key} verdict", "Verdict", group=target.short, numeric=False),
        ]
        results = significance.differences(trained, target)
        for line, (row, base), d in zip(cells, trained, results, strict=True):
            if d is None:
                line += [absent_cell(row), Cell("", state="empty"), Cell("", state="empty")]
                continue
            e = d.estimate
            low, high = (number_text(100 * x, 2, signed=True) for x in (e.low, e.high))
            line.append(
                Cell(
                    number_text(100 * e.value, 2, signed=True),
                    f"[{low}, {high}]",
                    100 * e.value,
                    None,
                    d.seeds[0],
                    "value",
                    records=(runs := tuple(r.id for r in (*row.finished, *base.finished))),
                )
            )
            known = Cell(p_text(e.p), value=e.p, state="value", records=runs)
            line.append(known if d.judged else Cell("–", state="empty"))
            line.append(Cell(d.verdict, records=runs))
    legend = [
        f"Difference of the means over seeds, in points of {common_unit(significance.targets)}; the same examples for "
        "both rows, those that share a text drawn together where the runs saved which do.",
        "Base: what the row started from, evaluated with it: the same base model, pooling and text length, nothing "
        "learnt.",
        "Intervals and p are corrected for the rows of this table, column by column (Sidak): an interval excludes 0 "
        "where p is at most 0.05. Not separable: the interval holds 0, and the difference may be chance. The spread of "
        "seeds is that of the row and of the others on its base model.",
    ]
    legend += filter(None, (seen_from_base(significance, trained, target) for target in significance.targets))
    if not all(significance.judged(row, target) for row, _ in trained for target in significance.targets):
        legend.append(
            "A row with one seed is not judged: its interval has the chance of the examples only, and what another "
            "seed would change is not known."
        )
    body = [TableRow(tuple(c), block_of(row)) for (row, _), c in zip(trained, cells, strict=True)]
    for row, reason in without:
        head = [head_cells(row)[0], Cell("–", state="empty", notes=(reason,)), Cell(str(len(row.finished)))]
        body.append(TableRow((*head, *(Cell("", state="empty") for _ in columns[len(head) :])), block_of(row)))
    return Table(
        "against-base",
        "Difference to the untrained base",
        "What training added to the same encoder.",
        tuple(columns),
        tuple(body),
        tuple(legend),
    )


def p_text(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
