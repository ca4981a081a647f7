"""Rows of a table of scores, marked: best and second, what is not separable from the best, and what that rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reports.document.table import Cell, Column, TableRow, ranked
from reports.read.comparison_runs import Comparison, ResultRow, base_name
from reports.stats.significance import Significance
from reports.stats.targets import Target
from reports.stats.verdicts import Block, seen_on_each
from reports.tables.decimals import decimals, with_decimals
from reports.tables.guessing import guessing_rows, guessing_words
from reports.tables.score_cells import block_of

_NAMED = 12  # rows that a legend names


def judged_rows(
    comparison: Comparison,
    significance: Significance | None,
    columns: Sequence[Column],
    cells: Sequence[Sequence[Cell]],
    by_column: Mapping[int, Target],
    deciding: Sequence[int],
) -> tuple[tuple[TableRow, ...], list[str]]:
    """The body of a table with a line for each row of the comparison, and what its legend has to say.

    With `significance`, the score of guessing is shown below the rows, where it is known.

    Args:
        by_column: what each column of scores is the mean of, as far as known: it decides about decimals.
        deciding: columns in which rows are held against one another: the average, or each task where there is none.
            The same marks are used in all tables.
    """
    lines = [list(line) for line in cells]
    digits = (
        {j: decimals(_errors(comparison, significance, target)) for j, target in by_column.items()}
        if significance
        else {}
    )
    for line in lines:
        for j, count in digits.items():
            line[j] = with_decimals(line[j], count)
    rows = comparison.rows
    body = ranked(
        columns,
        [
            TableRow(tuple(line), block_of(row), row.supervision != "supervised")
            for row, line in zip(rows, lines, strict=True)
        ],
    )
    if not significance:
        return body, []
    guessed = guessing_rows(comparison, columns, by_column, digits)
    marked, legend = _judged(comparison, significance, columns, by_column, deciding, body)
    return marked + guessed, legend + guessing_words(guessed)


def _judged(
    comparison: Comparison, significance: Significance, columns: Sequence[Column], by_column: Mapping[int, Target],
    deciding: Sequence[int], body: tuple[TableRow, ...],
) -> tuple[tuple[TableRow, ...], list[str]]:  # fmt: skip
    """The marks of the rows, and what they rest on."""
    unknown = {j: why for j in deciding if (why := significance.unknown(by_column[j]))}
    if unknown and len(unknown) == len(deciding):
        return body, [f"Nothing is marked as separable or not: {next(iter(unknown.values()))}."]
    known = {j: by_column[j] for j in deciding if j not in unknown}
    legend = _legend(comparison, significance, columns, known)
    legend += [f"Not judged on {_named(columns[j])}: {why}." for j, why in unknown.items()]
    return _marked(comparison, significance, known, body), legend


def _errors(comparison: Comparison, significance: Significance, target: Target) -> list[float]:
    """Standard errors in points of the rows that have the target's examples."""
    if significance.unknown(target):
        return []
    found = (significance.standard_error(row, target) for row in comparison.rows)
    return [100 * error for error in found if error is not None]


def _marked(
    comparison: Comparison, significance: Significance, known: Mapping[int, Target], body: tuple[TableRow, ...]
) -> tuple[TableRow, ...]:
    """Mark the rows that are not separated from the best of their block."""
    tied: set[tuple[tuple[str, str], int]] = set()
    for j, target in known.items():
        for rows in blocks(comparison).values():
            leaders = significance.leaders(rows, target)
            tied |= {(row.key, j) for row in leaders.tied} if leaders else set()
    return tuple(
        replace(line, cells=tuple(replace(c, tied=(row.key, j) in tied) for j, c in enumerate(line.cells)))
        for row, line in zip(comparison.rows, body, strict=True)
    )


def _legend(
    comparison: Comparison, significance: Significance, columns: Sequence[Column], known: Mapping[int, Target]
) -> list[str]:
    where = columns[next(iter(known))].title if len(known) == 1 else "each column"
    said = [f"Differences on {where} are tested at 0.05 for all pairs of rows together, over seeds and test examples."]
    if comparison.analyses is not None:
        said.append("Seeds were added until a decision: the tests combine all interim analyses.")
    said += _unjudged(comparison.rows, significance, list(known.values()))
    return said + _seen(comparison, significance, known, columns)


def _unjudged(rows: Sequence[ResultRow], significance: Significance, members: Sequence[Target]) -> list[str]:
    """Which rows a missing mark says nothing about."""
    scored = [row for row in rows if any(significance.by_seed(row, target) for target in members)]
    alone = [row for row in scored if not any(significance.judged(row, target) for target in members)]
    if not alone:
        return []
    if len(alone) == len(scored):
        return ["No row is judged: each has one seed."]
    names = ", ".join(row.label for row in alone[:_NAMED])
    names += f" and {len(alone) - _NAMED} more" if len(alone) > _NAMED else ""
    return [f"One seed, so not judged, with or without a mark: {names}."]


def _seen(
    comparison: Comparison, significance: Significance, known: Mapping[int, Target], columns: Sequence[Column]
) -> list[str]:
    """What differences the number of seeds can see, for each base model."""
    lines = []
    for base, rows in blocks(comparison).items():
        found = [(_named(columns[j]), Block(rows, significance, target)) for j, target in known.items()]
        if said := seen_on_each(found):
            lines.append(f"{base_name(base)}: {said}" if len(comparison.base_models) > 1 else said)
    return lines


def _named(column: Column) -> str:
    return f"{column.group}: {column.title}" if column.group else column.title


def blocks(comparison: Comparison) -> dict[str, list[ResultRow]]:
    """The rows of each base model that are held against one another: all but supervised ones."""
    return {
        base: [r for r in comparison.rows if r.base_model == base and r.supervision != "supervised"]
        for base in comparison.base_models
    }
