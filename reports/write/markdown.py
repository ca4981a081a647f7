"""A table and a whole document as Markdown, a table as CSV. Text from data stays text in each."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import Any

from harness.files.printable import markdown_text, one_line, visible
from reports.document.blocks import Document, slug
from reports.document.table import ABSENT, MINUS, WORSE, Cell, Table, TableRow
from reports.write.environment import environment


def _code(text: str) -> str:
    """A code span that holds any text: fenced by more backticks than it contains in a row."""
    text = one_line(text).replace("|", "\\|")
    if not text:
        return ""
    longest = max(map(len, re.findall(r"`+", text)), default=0)
    fence = "`" * (1 + longest)
    if text.startswith("`") or text.endswith("`"):
        text = f" {text} "
    return f"{fence}{text}{fence}"


def _cell(cell: Cell, notes: dict[str, str]) -> str:
    if cell.code:
        text = _code(cell.text)
    else:
        text = markdown_text(cell.text)
    if cell.url:
        text = f"[{text}](<{cell.url}>)"
    if cell.rank == 1:
        text = f"**{text}**"
    elif cell.rank == 2:
        text = f"<u>{text}</u>"
    elif cell.state in ABSENT:
        text = f"*{text}*"
    if cell.worse:
        text += WORSE
    if cell.spread:
        text += f" {markdown_text(cell.spread)}"
    return text + _marks(cell.notes, notes)


def _marks(of: Iterable[str], notes: dict[str, str]) -> str:
    letters = ",".join(notes[note] for note in of)
    if letters:
        return f" <sup>{letters}</sup>"
    return ""


def markdown_table(table: Table) -> str:
    """A GitHub table; blocks as rows of their own, footnotes below."""
    notes = table.footnotes()
    heads = []
    rules = []
    for column in table.columns:
        head = markdown_text(column.full_title) + _marks(column.notes, notes)
        if column.sub:
            head += f"<br>{markdown_text(column.sub)}"
        heads.append(head)
        rules.append("---:" if column.numeric else ":---")
    body = [heads, rules]
    blocks = table.blocks()
    for block, rows in blocks:
        if block and len(blocks) > 1:
            empty = [""] * (len(heads) - 1)
            body.append([f"*{markdown_text(block)}*", *empty])
        for row in rows:
            body.append([_cell(cell, notes) for cell in row.cells])
    title = markdown_text(table.title)
    caption = markdown_text(table.caption)
    lines = [f"**{title}.** {caption}", ""]
    for cells in body:
        joined = " | ".join(cells)
        lines.append(f"| {joined} |")
    explanations = map(markdown_text, table.explanations())
    lines += ["", " ".join(explanations)]
    for note, letter in notes.items():
        lines += ["", f"<sup>{letter}</sup> {markdown_text(note)}"]
    return "\n".join(lines).rstrip() + "\n"


def markdown(document: Document) -> str:
    """A whole document, with its figures from the folder `figures`."""
    from markupsafe import Markup

    templates = environment(markdown_text)
    filters = {
        "table": markdown_table,
        "html": _html,
        "code": _indent,
        "file": slug,
    }
    # What a filter returns is Markdown already.
    for name, to in filters.items():
        templates.filters[name] = lambda value, to=to: Markup(to(value))  # noqa: S704
    text = templates.get_template("report.md.j2").render(document=document)
    text = re.sub(r"\n{3,}", "\n\n", text)
    return f"{text.rstrip()}\n"


def _html(text: str) -> str:
    """Text inside of an HTML element of Markdown, whether or not the reader looks for Markdown in
    it.
    """
    escaped = html.escape(one_line(text))
    return re.sub(r"[\\`*_\[\]]", lambda match: f"&#{ord(match[0])};", escaped)


def _indent(command: str) -> str:
    return "\n".join(f"      {line}" for line in visible(command).splitlines())


# A tab, carriage return or line feed begins a formula by itself, whatever follows (OWASP).
_FORMULA = re.compile(
    r"[\t\r\n]|[\s\x00-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0]*"
    r"[=+\-@\uff1d\uff0b\uff0d\uff20\ufe62\ufe63\ufe66\ufe6b]"
)


def csv_text(text: str) -> str:
    """Text that a spreadsheet does not take for a formula (OWASP, "CSV injection").

    Blanks, line breaks and characters of no width before a sign do not make it text, and some
    programs read full-width signs as plain ones.
    """
    if _FORMULA.match(text):
        return f"'{text}"
    return text


def csv_lines(head: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    """Lines of values as CSV under a head; numbers in full, None as nothing."""
    import pandas as pd

    every = pd.DataFrame([head, *lines], dtype=object)
    safe = every.map(lambda value: csv_text(value) if isinstance(value, str) else value)
    text: str = safe.to_csv(index=False, header=False, lineterminator="\n")
    return text


def csv_table(table: Table) -> str:
    """Rows of a table for a spreadsheet: full numbers, sd and n in columns of their own, why a
    number is absent.
    """
    rows = []
    for _, some in table.blocks():
        rows += some
    heads = ["block"]
    columns: list[list[Any]] = [[row.block for row in rows]]
    for j, column in enumerate(table.columns):
        cells = [row.cells[j] for row in rows]
        heads.append(column.full_title)
        columns.append([_csv_value(cell) for cell in cells])
        parts: dict[str, list[Any]] = {
            "sd": [cell.sd for cell in cells],
            "n": [cell.n for cell in cells],
            "interval": [_csv_interval(cell) for cell in cells],
        }
        for part, values in parts.items():
            if any(value is not None for value in values):
                heads.append(f"{column.full_title} {part}")
                columns.append(values)
    heads.append("notes")
    columns.append([_csv_notes(row) for row in rows])
    lines = zip(*columns, strict=True)
    return csv_lines(heads, lines)


def _csv_value(cell: Cell) -> float | str | None:
    if cell.state == "value":
        return cell.value
    if cell.state in ABSENT:
        return cell.state
    return cell.text


def _csv_interval(cell: Cell) -> str | None:
    if cell.spread.startswith("["):
        return cell.spread.replace(MINUS, "-")
    return None


def _csv_notes(row: TableRow) -> str:
    notes: dict[str, None] = {}
    for cell in row.cells:
        notes |= dict.fromkeys(cell.notes)
    return "; ".join(notes)
