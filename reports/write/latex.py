"""A table and a whole document as LaTeX (booktabs) that compiles. Text from data stays text."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace

from reports.document.blocks import Document, slug
from reports.document.table import ABSENT, Cell, Column, Table, TableRow
from reports.write.environment import environment

_NAMED = {  # characters by the end of their command's name: \textbackslash{}, \ensuremath{\pm}
    "text": {
        "\\": "backslash", "^": "asciicircum", "~": "asciitilde", "<": "less", ">": "greater", "|": "bar",
        '"': "quotedbl", "'": "quotesingle", "`": "asciigrave", "·": "periodcentered", "†": "dagger", "–": "endash",
        "—": "emdash",
    },
    "math": {
        "\u2212": "-", "±": r"\pm", "×": r"\times", "≥": r"\geq", "≤": r"\leq", "→": r"\to", "Δ": r"\Delta",
        "α": r"\alpha", "λ": r"\lambda", "τ": r"\tau", "♣": r"\clubsuit", "♦": r"\diamondsuit", "♥": r"\heartsuit",
        "♠": r"\spadesuit",
    },
}  # fmt: skip
_BREAK = r"\allowbreak{}"
_LATEX = {
    **{c: rf"\{c}" for c in "{}$&#%"},
    **{c: rf"\text{name}{{}}" for c, name in _NAMED["text"].items()},
    **{c: rf"\ensuremath{{{name}}}" for c, name in _NAMED["math"].items()},
    **{c: f"{{{c}}}" for c in "[*-"},  # "[" and "*" would begin an argument after a line's end, "--" be a dash
    "_": rf"\_{_BREAK}", "/": f"/{_BREAK}", "…": r"\dots{}", "\u00a0": "~", "\ue000": _BREAK,
}  # fmt: skip
# Latin letters that the T1 encoding lacks, and signs among them.
_NO_T1 = "\u0132\u0133\u0138\u013f\u0140\u0149\u017f\u0126\u0127\u0166\u0167\u00d7\u00f7"


def latex_text(text: str) -> str:
    """Text for pdflatex, lualatex or xelatex alike. Letters that no standard font carries become their code point."""
    out = []
    # A fingerprint has no place to break at: give it some. The mark is a private character, dropped from the text.
    text = re.sub(r"[0-9A-Za-z]{24,}", lambda m: re.sub(r"(.{8})(?=.)", "\\1\ue000", m[0]), text.replace("\ue000", ""))
    for c in unicodedata.normalize("NFC", " ".join(text.split())):
        plain = (c.isascii() and c.isprintable()) or ("\u00c0" <= c <= "\u017f" and c not in _NO_T1)
        out.append(_LATEX.get(c) or (c if plain else rf"\texttt{{\small U+{ord(c):04X}}}"))
    return "".join(out)


def _latex_cell(cell: Cell, notes: dict[str, str], column: Column, widest: str, *, worse: bool) -> str:
    """The text of a cell; of a number with the room its column keeps after it, so that the points are aligned.

    Args:
        widest: the longest spread of the column.
        worse: whether any cell of the column is marked as significantly worse than the best.
    """
    text = latex_text(cell.text)
    if cell.code:
        text = rf"\texttt{{{text}}}"
    if cell.rank == 1:
        text = rf"\textbf{{{text}}}"
    elif cell.rank == 2:
        text = rf"\underline{{{text}}}"
    if cell.state in ABSENT:
        text = rf"\textit{{{text}}}"
    letters = ",".join(notes[note] for note in cell.notes)
    marks = rf"\textsuperscript{{{letters}}}" if letters else ""
    single = len(cell.notes) == 1  # several take room of their own, or would touch the next column
    if not column.numeric:
        return text + marks
    if worse:
        text += r"\textdagger{}" if cell.worse else r"\hphantom{\textdagger}"
    if cell.spread:
        text += rf"\,{{\scriptsize {latex_text(cell.spread)}}}" + (rf"\rlap{{{marks}}}" if single else marks)
        missing = len(widest) - len(cell.spread)
        return text + (rf"\hphantom{{\scriptsize {'0' * missing}}}" if missing else "")
    text += rf"\rlap{{{marks}}}" if single else marks
    return text + (rf"\hphantom{{\,\scriptsize {latex_text(widest)}}}" if widest else "")


def _latex_head(table: Table, notes: dict[str, str]) -> list[str]:
    lines = []
    groups = table.head_groups()
    if groups:
        spans, rules, at = [], [], 1
        for title, width in groups:
            spans.append(rf"\multicolumn{{{width}}}{{c}}{{{latex_text(title)}}}" if title else "&" * (width - 1))
            if title:
                rules.append(rf"\cmidrule(lr){{{at}-{at + width - 1}}}")
            at += width
        lines += [" & ".join(spans) + r" \\", " ".join(rules)]
    titles = []
    for column in table.columns:
        marks = ",".join(notes[note] for note in column.notes)
        titles.append(latex_text(column.title) + (rf"\textsuperscript{{{marks}}}" if marks else ""))
    lines.append(" & ".join(titles) + r" \\")
    if any(column.sub for column in table.columns):
        lines.append(
            " & ".join(rf"{{\scriptsize {latex_text(c.sub)}}}" if c.sub else "" for c in table.columns) + r" \\"
        )
    return lines


_PROSE = 45  # characters from which a column of words is broken into lines
_LINES = 48  # lines of a table that fit a page
_NARROW = 5  # columns of a table that fit one of two columns of a page
PACKAGES = ("array", "booktabs", "caption", "float", "graphicx")  # of a table


def table_file(table: Table) -> str:
    """A table in a file of its own, to be read by `\\input`: a float with a label, over both columns if it is wide."""
    wide = len(table.columns) > _NARROW or any(len(c.text) > _PROSE for row in table.rows for c in row.cells)
    title = re.sub(rf"^{_OF_A_PAPER.pattern}\d* · ", "", table.title)  # a paper that reads it counts its own tables
    text = latex_table(replace(table, title=title), float_as="table*" if wide else "table")
    return f"% needs \\usepackage{{{','.join(PACKAGES)}}}\n{text}"


def latex_table(table: Table, *, float_as: str = "") -> str:
    """A booktabs table, shrunk to the width of the line only when it is wider; one too long for a page goes on in more.

    Its label is "tab:" and its key. Needs the `PACKAGES`.

    Args:
        float_as: environment of a table that floats, which LaTeX counts; empty: it stays where it is, without a number.
    """
    parts = _parts(table)
    notes = table.footnotes()
    last = len(parts) - 1
    return "".join(_part(table, part, notes, i, i == last, float_as) for i, part in enumerate(parts))


_OF_A_PAPER = re.compile(r"(Table|Data of Figure) S?\d")


def _parts(table: Table) -> list[list[tuple[str, list[TableRow]]]]:
    """Blocks of rows by page."""
    parts: list[list[tuple[str, list[TableRow]]]] = [[]]
    room = _LINES
    for name, rows in table.blocks():
        room -= 1
        parts[-1].append((name, []))
        for row in rows:
            words = [cell for cell, column in zip(row.cells, table.columns, strict=True) if not column.numeric]
            height = max([1, *(-(-len(cell.text) // 36) for cell in words if len(cell.text) > _PROSE)])
            if height > room and parts[-1][-1][1]:
                parts.append([(name, [])])
                room = _LINES
            parts[-1][-1][1].append(row)
            room -= height
    return parts


def _part(
    table: Table,
    blocks: list[tuple[str, list[TableRow]]],
    notes: dict[str, str],
    number: int,
    last: bool,
    float_as: str,
) -> str:
    kinds = []
    prose = rf">{{\raggedright\arraybackslash}}p{{{0.42 if len(table.columns) < 6 else 0.28}\linewidth}}"
    for j, column in enumerate(table.columns):
        longest = max((len(row.cells[j].text) for row in table.rows), default=0)
        kinds.append("r" if column.numeric else "l" if longest <= _PROSE else prose)
    caption = " (continued)." if number else f".}} {latex_text(table.caption)}"
    again = [r"\ContinuedFloat"] if number and float_as else []
    lines = [rf"\begin{{{float_as}}}[t]" if float_as else r"\begin{table}[H]", *again, r"\centering", r"\small"]
    star = "" if float_as else "*"
    lines.append(rf"\caption{star}{{\textbf{{{latex_text(table.title)}{caption}}}" + ("}" if number else ""))
    lines += [] if number or not float_as else [rf"\label{{tab:{slug(table.key)}}}"]
    lines += [r"\setlength{\tabcolsep}{4pt}"] if len(table.columns) > 8 else []
    lines.append(r"\sbox0{%")
    lines.append(rf"\begin{{tabular}}{{@{{}}{''.join(kinds)}@{{}}}}")
    lines += [r"\toprule", *_latex_head(table, notes), r"\midrule"]
    several = len(table.blocks()) > 1
    columns = [[row.cells[j] for row in table.rows] for j in range(len(table.columns))]
    widest = [max((c.spread for c in cells), key=len, default="") for cells in columns]
    worse = [any(c.worse for c in cells) for cells in columns]
    for i, (block, rows) in enumerate(blocks):
        if i:
            lines.append(r"\midrule")
        if block and several:
            lines.append(rf"\multicolumn{{{len(table.columns)}}}{{@{{}}l}}{{\textit{{{latex_text(block)}}}}} \\")
        for row in rows:
            cells = zip(row.cells, table.columns, widest, worse, strict=True)
            lines.append(" & ".join(_latex_cell(c, notes, k, w, worse=t) for c, k, w, t in cells) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}}%"]
    lines.append(r"\ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi")
    small = [latex_text(text) for text in table.explanations()] if last else []
    small += [rf"\textsuperscript{{{letter}}}\,{latex_text(note)}" for note, letter in notes.items()] if last else []
    if small:
        lines.append(rf"\par\smallskip\parbox{{\linewidth}}{{\scriptsize {' '.join(small)}}}")
    return "\n".join([*lines, rf"\end{{{float_as or 'table'}}}"]) + "\n"


def latex(document: Document) -> str:
    """A whole article that compiles next to its `figures` folder."""
    from markupsafe import Markup

    delimiters = {"block_start_string": "<%", "block_end_string": "%>", "variable_start_string": "<<",
                  "variable_end_string": ">>", "comment_start_string": "<#", "comment_end_string": "#>"}  # fmt: skip
    made = environment(latex_text, **delimiters)
    made.filters.update(table=lambda table: Markup(latex_table(table)), file=lambda key: Markup(slug(key)))  # noqa: S704
    return made.get_template("report.tex.j2").render(document=document) + "\n"
