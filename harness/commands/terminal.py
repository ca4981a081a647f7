"""Tables as a terminal shows them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.files.printable import one_line, told

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


def plain(text: str) -> Text:
    """Text for a rich table as it is: no markup in it, nothing that the terminal obeys."""
    from rich.text import Text

    return Text(told(one_line(text)))


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], legend: Sequence[str] = ()) -> None:
    """Print a table of scores and what its marks mean; where it would not fit the terminal, without the deviations."""
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table

    def table(cells: Sequence[Sequence[str]]) -> Table:
        made = Table(title=plain(title))
        for i, column in enumerate(columns):
            least = min(16, max((len(row[0]) for row in cells), default=0)) if i == 0 else None
            made.add_column(plain(column), justify="left" if i == 0 else "right", no_wrap=i > 0, min_width=least)
        for row in cells:
            made.add_row(*(plain(cell) for cell in row))
        return made

    console = Console() if sys.stdout.isatty() else Console(width=240)
    whole = table(rows)
    if Measurement.get(console, console.options.update(width=1000), whole).maximum > console.width:
        whole = table([[cell.partition(" ± ")[0] for cell in row] for row in rows])
        legend = [*(line for line in legend if not line.startswith("±")), "standard deviations are in the report"]
    console.print(whole)
    for line in legend:
        console.print(plain(line))


def table_of(title: str, heads: Sequence[str], *, right: Sequence[str] = ()) -> Table:
    """An empty table; the columns named in `right` are set to the right."""
    from rich.table import Table

    table = Table(title=plain(title), title_justify="left")
    for head in heads:
        table.add_column(head, justify="right" if head in right else "left")
    return table


def show_table(table: Table) -> None:
    """Print a table as wide as the terminal, or 160 characters wide into a file."""
    from rich.console import Console

    (Console() if sys.stdout.isatty() else Console(width=160)).print(table)
