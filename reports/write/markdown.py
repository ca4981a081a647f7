"""A table and a whole document as Markdown, a table as CSV. Text from data stays text in each."""

from __future__ import annotations

import csv
import io
import re

from harness.files.printable import markdown_text, one_line, visible
from reports.document.blocks import Document, Facts, Figure, Text, slug
from reports.document.table import WORSE, Cell, Table


def _code(text: str) -> str:
    """A code span that holds any text: fenced by more backticks than it contains in a row."""
    text = one_line(text).replace("|", "\\|")
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}" if text else ""


def _markdown_cell(cell: Cell, notes: dict[str, str]) -> str:
    text = _code(cell.text) if cell.code else markdown_text(cell.text)
    if cell.rank == 1:
        text = f"**{text}**"
    elif cell.rank == 2:
        text = f"<u>{text}</u>"
    if cell.state in ("missing", "collapsed", "diverged", "failed"):
        text = f"*{text}*"
    text += WORSE if cell.worse else ""
    text += f" {markdown_text(cell.spread)}" if cell.spread else ""
    marks = ",".join(notes[note] for note in cell.notes)
    return text + (f" <sup>{marks}</sup>" if marks else "")


def markdown_table(table: Table) -> str:
    """A GitHub table; blocks as rows of their own, footnotes below."""
    notes = table.footnotes()
    groups = [column.group for column in table.columns]
    head = []
    for column, group in zip(table.columns, groups, strict=True):
        title = f"{group}: {column.title}" if group else column.title
        marks = ",".join(notes[note] for note in column.notes)
        sub = f"<br>{markdown_text(column.sub)}" if column.sub else ""
        head.append(markdown_text(title) + (f" <sup>{marks}</sup>" if marks else "") + sub)
    lines = [f"**{markdown_text(table.title)}.** {markdown_text(table.caption)}", ""]
    lines.append(f"| {' | '.join(head)} |")
    lines.append(f"| {' | '.join('---:' if column.numeric else ':---' for column in table.columns)} |")
    blocks = table.blocks()
    for block, rows in blocks:
        if block and len(blocks) > 1:
            lines.append(f"| *{markdown_text(block)}* |{' |' * (len(table.columns) - 1)}")
        lines += [f"| {' | '.join(_markdown_cell(cell, notes) for cell in row.cells)} |" for row in rows]
    said = [markdown_text(text) for text in table.explanations()]
    lines += ["", " ".join(said)] if said else []
    for note, letter in notes.items():
        lines += ["", f"<sup>{letter}</sup> {markdown_text(note)}"]
    return "\n".join(lines) + "\n"


def markdown(document: Document) -> str:
    lines = [f"# {markdown_text(document.title)}", "", markdown_text(document.headline), ""]
    lines += [markdown_text(document.description), ""]
    lines += [" · ".join(f"{markdown_text(value)} {markdown_text(what)}" for value, what in document.facts), ""]
    for section in document.sections:
        lines += [f"## {markdown_text(section.title)}", ""]
        for block in section.blocks:
            match block:
                case Text(items, bullets):
                    lines += [
                        f"{'- ' if bullets else ''}{markdown_text(item)}" + ("" if bullets else "\n") for item in items
                    ]
                    lines += [""]
                case Table():
                    lines += [markdown_table(block)]
                case Figure():
                    lines += [f"![{markdown_text(block.alt)}](figures/{slug(block.key)}.png)", ""]
                    lines += [f"*{markdown_text(block.title)}.* {markdown_text(block.caption)}", ""]
                case Facts(_, title, items, commands):
                    lines += [f"<details><summary>{_html(title)}</summary>", ""]
                    lines += [f"- {markdown_text(name)}: {markdown_text(value)}" for name, value in items]
                    for command in commands:
                        lines += ["", *(f"      {line}" for line in visible(command).splitlines())]
                    lines += ["", "</details>", ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def _html(text: str) -> str:
    """Text inside of an HTML element of Markdown, whether or not the reader looks for Markdown in it."""
    import html

    return re.sub(r"[\\`*_\[\]]", lambda match: f"&#{ord(match[0])};", html.escape(one_line(text)))


def csv_text(text: str) -> str:
    """Text that a spreadsheet does not take for a formula (OWASP, "CSV injection")."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def csv_table(table: Table) -> str:
    """Rows of a table for a spreadsheet: full numbers, sd and n in columns of their own, why a number is absent."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    head, plan = ["block"], []
    for j, column in enumerate(table.columns):
        cells = [row.cells[j] for row in table.rows]
        parts = [p for p in ("sd", "n") if any(getattr(c, p) is not None for c in cells)]
        parts += ["interval"] if any(c.spread.startswith("[") for c in cells) else []
        name = f"{column.group}: {column.title}" if column.group else column.title
        head += [csv_text(name), *(csv_text(f"{name} {part}") for part in parts)]
        plan.append((j, parts))
    writer.writerow([*head, "notes"])
    for block, rows in table.blocks():
        for row in rows:
            line: list[object] = [csv_text(block)]
            for j, parts in plan:
                c = row.cells[j]
                line.append(repr(float(c.value)) if c.state == "value" and c.value is not None else csv_text(_word(c)))
                for part in parts:
                    value = c.spread.replace("\u2212", "-") if part == "interval" else getattr(c, part)
                    line.append("" if value is None else repr(float(value)) if isinstance(value, float) else value)
            notes = "; ".join(dict.fromkeys(note for c in row.cells for note in c.notes))
            writer.writerow([*line, csv_text(notes)])
    return out.getvalue()


def _word(cell: Cell) -> str:
    return cell.state if cell.state in ("missing", "collapsed", "diverged", "failed") else cell.text
