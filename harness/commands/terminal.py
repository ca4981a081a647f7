"""Tables as a terminal shows them."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from harness.files.printable import one_line, safe_line, tell

if TYPE_CHECKING:
    from rich.text import Text


def plain(text: str) -> Text:
    """Text for a rich table without markup and without characters that a terminal obeys."""
    from rich.text import Text

    return Text(safe_line(one_line(text)))


def print_columns(rows: Sequence[Sequence[str]], *, right: Collection[int] = ()) -> None:
    """Print rows in aligned columns without borders; one line a row, which may be longer than the
    terminal is wide.

    Args:
        right: the numbers of the columns that are aligned to the right.
    """
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = []
    for column in zip(*cells, strict=True):
        widths.append(max(map(len, column)))
    for row in cells:
        padded = (
            f"{c:>{w}}" if i in right else f"{c:<{w}}"
            for i, (c, w) in enumerate(zip(row, widths, strict=True))
        )
        tell("  ".join(padded).rstrip())


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    legend: Sequence[str] = (),
    texts: bool = False,
) -> None:
    """Print a table and what its marks mean.

    Args:
        texts: all cells are texts, which are aligned to the left; otherwise those of the first
            column are.
    """
    from rich.console import Console
    from rich.table import Table

    table = Table(title=plain(title))
    for i, column in enumerate(columns):
        if i == 0 or texts:
            table.add_column(plain(column), justify="left")
        else:
            table.add_column(plain(column), justify="right")
    for row in rows:
        table.add_row(*map(plain, row))
    if sys.stdout.isatty():
        console = Console()
    else:
        console = Console(width=240)
    console.print(table)
    for line in legend:
        console.print(plain(line))
