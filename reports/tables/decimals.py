"""As many decimals as the noise allows: one rule for all cells of a column.

Two decimals where the standard error of the column's rows (their median, over seeds and examples) is below 0.05
points, so that a hundredth is at least a fifth of it; one where it is larger, as on nearly all tasks. Two where
nothing is known of the noise: a number of unknown precision is given as it was computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from reports.document.table import Cell, number_text

USUAL = 2
_FINE = 0.05  # points


def decimals(errors: Sequence[float]) -> int:
    """From the standard errors of a column's rows, in points."""
    return USUAL if not errors or median(errors) < _FINE else 1


def with_decimals(cell: Cell, digits: int) -> Cell:
    """The same number with so many decimals; its value, by which files keep it, stays whole."""
    if cell.state != "value" or cell.value is None or cell.digits is None or cell.digits <= digits:
        return cell
    spread = cell.spread if cell.sd is None else f"± {number_text(cell.sd, digits)}"
    return replace(cell, text=number_text(cell.value, digits), spread=spread, digits=digits)
