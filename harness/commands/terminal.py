"""Tables as a terminal shows them."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from harness.files.printable import one_line, safe_line, tell

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


def plain(text: str) -> Text:
    """Text for a rich table without markup and without characters that a terminal obeys."""
    from rich.text import Text

    return Text(safe_line(one_line(text)))


def print_columns(rows: Sequence[Sequence[str]], *, right: Collection[int] = ()) -> None:
    """Print rows in aligned columns without borders; one line a row, which may be longer than the terminal is wide.

    Args:
        right: the numbers of the columns that are aligned to the right.
    """
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = (f"{c:>{w}}" if i in right else f"{c:<{w}}" for i, (c, w) in enumerate(zip(row, widths, strict=True)))
        tell("  ".join(padded).rstrip())


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], legend: Sequence[str] = (), *, wrap: bool = False
) -> None:
    """Print a table of scores and what its marks mean; without the deviations where it would not fit the terminal.

    Args:
        wrap: break long cells into lines, and align them to the left, as texts need.
    """
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table

    def table(cells: Sequence[Sequence[str]]) -> Table:
        made = Table(title=plain(title))
        for i, column in enumerate(columns):
            least = min(16, max((len(row[0]) for row in cells), default=0)) if i == 0 else None
            text = i == 0 or wrap
            made.add_column(plain(column), justify="left" if text else "right", no_wrap=not text, min_width=least)
        for row in cells:
            made.add_row(*(plain(cell) for cell in row))
        return made

    console = Console() if sys.stdout.isatty() else Console(width=240)
    whole = table(rows)
    if not wrap and Measurement.get(console, console.options.update(width=1000), whole).maximum > console.width:
        whole = table([[cell.partition(" ± ")[0] for cell in row] for row in rows])
        legend = [*(line for line in legend if not line.startswith("±")), "standard deviations are in the report"]
    console.print(whole)
    for line in legend:
        console.print(plain(line))
