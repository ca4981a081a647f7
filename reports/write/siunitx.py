"""Numbers of a table as siunitx's `S` columns take them, so that a paper can set its own rounding and alignment."""

from __future__ import annotations

import re
from collections.abc import Sequence

from reports.document.table import Cell, Table
from reports.write.latex_text import latex_text

SETUP = r"\sisetup{separate-uncertainty=true,detect-weight=true}"  # "mean ± deviation"; bold numbers stay bold
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
_DEVIATION = re.compile(r"± (\d+(?:\.\d+)?)")


def _plain(text: str) -> str:
    return text.replace("\u2212", "-").replace(",", "")


def column_format(table: Table, j: int) -> str:
    """`S` with the digits of the j-th column: those before the point (with a sign), after it, and of the deviation."""
    numbers = [_plain(row.cells[j].text) for row in table.rows]
    parts = [number.partition(".") for number in numbers if _NUMBER.fullmatch(number)]
    spreads = [found[1] for row in table.rows if (found := _DEVIATION.fullmatch(_plain(row.cells[j].spread)))]
    whole = max((len(before) for before, _, _ in parts), default=1)
    after = max((len(rest) for _, _, rest in parts), default=0)
    digits = max((len(spread.replace(".", "")) for spread in spreads), default=0)
    return f"S[table-format={whole}{f'.{after}' if after else ''}{f'({digits})' if digits else ''}]"


def number_cell(cell: Cell, letters: Sequence[str]) -> str:
    """A cell of such a column: a number with its standard deviation, and in braces, which siunitx leaves as they are,
    what is none. `letters`: of its footnotes."""
    text = _plain(cell.text)
    marks = rf"\textsuperscript{{{','.join(letters)}}}" if letters else ""
    if not _NUMBER.fullmatch(text):
        return f"{{{latex_text(cell.text)}{marks}}}"
    found = _DEVIATION.fullmatch(_plain(cell.spread))
    deviation = rf" \pm {found[1]}" if found else ""
    other = rf"\,{{\scriptsize {latex_text(cell.spread)}}}" if cell.spread and not found else ""
    after = (r"\textdagger{}" if cell.tied else "") + other + marks
    bold = r"\bfseries " if cell.rank == 1 else ""
    return f"{bold}{text}{deviation}" + (f" {{{after}}}" if after else "")
