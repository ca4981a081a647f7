"""A table and a whole document as LaTeX (booktabs) that compiles, with its bibliography and as PDF.

Text from data stays text.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import InputError, RunError
from harness.files.printable import one_line
from reports.document.blocks import Document, slug
from reports.document.table import ABSENT, Cell, Column, Table, TableRow
from reports.read.method_cards import read_card
from reports.write.environment import environment

if TYPE_CHECKING:
    from jinja2 import Environment

_NAMED = {  # characters by the end of their command's name: \textbackslash{}, \ensuremath{\pm}
    "text": {
        "\\": "backslash",
        "^": "asciicircum",
        "~": "asciitilde",
        "<": "less",
        ">": "greater",
        "|": "bar",
        '"': "quotedbl",
        "'": "quotesingle",
        "`": "asciigrave",
        "·": "periodcentered",
        "†": "dagger",
        "–": "endash",
        "—": "emdash",
    },
    "math": {
        "\u2212": "-",
        "±": r"\pm",
        "×": r"\times",
        "≥": r"\geq",
        "≤": r"\leq",
        "→": r"\to",
        "Δ": r"\Delta",
        "α": r"\alpha",
        "λ": r"\lambda",
        "τ": r"\tau",
        "♣": r"\clubsuit",
        "♦": r"\diamondsuit",
        "♥": r"\heartsuit",
        "♠": r"\spadesuit",
    },
}
_BREAK = r"\allowbreak{}"
_LATEX = {
    **{c: rf"\{c}" for c in "{}$&#%"},
    **{c: rf"\text{name}{{}}" for c, name in _NAMED["text"].items()},
    **{c: rf"\ensuremath{{{name}}}" for c, name in _NAMED["math"].items()},
    **{
        c: f"{{{c}}}" for c in "[*-"
    },  # "[" and "*" would begin an argument after a line's end, "--" be a dash
    "_": rf"\_{_BREAK}",
    "/": f"/{_BREAK}",
    "…": r"\dots{}",
    "\u00a0": "~",
    "\ue000": _BREAK,
}
# Latin letters that the T1 encoding lacks, and signs among them.
_NO_T1 = "\u0132\u0133\u0138\u013f\u0140\u0149\u017f\u0126\u0127\u0166\u0167\u00d7\u00f7"


def latex_text(text: str) -> str:
    """Text for pdflatex, lualatex or xelatex alike. Letters that no standard font carries become
    their code point.
    """
    out = []
    # A fingerprint has no place to break at: give it some. The mark is a private character, dropped
    # from the text.
    text = re.sub(
        r"[0-9A-Za-z]{24,}",
        lambda m: re.sub(r"(.{8})(?=.)", "\\1\ue000", m[0]),
        text.replace("\ue000", ""),
    )
    for c in unicodedata.normalize("NFC", " ".join(text.split())):
        if c in _LATEX:
            out.append(_LATEX[c])
        elif _is_in_font(c):
            out.append(c)
        else:
            out.append(rf"\texttt{{\small U+{ord(c):04X}}}")
    return "".join(out)


def _is_in_font(character: str) -> bool:
    """True for a character that a font in T1 encoding has."""
    if character.isascii():
        return character.isprintable()
    is_latin = "\u00c0" <= character <= "\u017f"
    return is_latin and character not in _NO_T1


def _marks(of: Sequence[str], notes: dict[str, str]) -> str:
    letters = ",".join(notes[note] for note in of)
    if letters:
        return rf"\textsuperscript{{{letters}}}"
    return ""


def _cell(
    cell: Cell,
    column: Column,
    notes: dict[str, str],
    widest: str,
    *,
    worse: bool,
) -> str:
    """The text of a cell; of a number with the room its column keeps after it, so that the points
    are aligned.

    Args:
        widest: the longest spread of the column.
        worse: whether any cell of the column is marked as significantly worse than the best.
    """
    text = latex_text(cell.text)
    marks = _marks(cell.notes, notes)
    looks = {
        "texttt": cell.code,
        "textbf": cell.rank == 1,
        "underline": cell.rank == 2,
        "textit": cell.state in ABSENT,
    }
    for command in (command for command, used in looks.items() if used):
        text = rf"\{command}{{{text}}}"
    if not column.numeric:
        return text + marks
    if len(cell.notes) == 1:  # several take room of their own, or would touch the next column
        marks = rf"\rlap{{{marks}}}"
    if worse:
        if cell.worse:
            text += r"\textdagger{}"
        else:
            text += r"\hphantom{\textdagger}"
    if not cell.spread:
        return (
            text + marks + (rf"\hphantom{{\,\scriptsize {latex_text(widest)}}}" if widest else "")
        )
    missing = len(widest) - len(cell.spread)
    if missing:
        room = rf"\hphantom{{\scriptsize {'0' * missing}}}"
    else:
        room = ""
    return rf"{text}\,{{\scriptsize {latex_text(cell.spread)}}}{marks}{room}"


_PROSE = 45  # characters from which a column of words is broken into lines
_LINES = 48  # lines of a table that fit a page
_NARROW = 5  # columns of a table that fit one of two columns of a page
PACKAGES = ("array", "booktabs", "caption", "float", "graphicx")  # of a table


def table_file(table: Table) -> str:
    """A table in a file of its own, to be read by `\\input`: a float with a label, over both
    columns if it is wide.
    """
    wide = len(table.columns) > _NARROW or any(
        len(c.text) > _PROSE for row in table.rows for c in row.cells
    )
    title = re.sub(
        rf"^{_OF_A_PAPER.pattern}\d* · ",
        "",
        table.title,
    )  # a paper that reads it counts its own tables
    text = latex_table(replace(table, title=title), float_as="table*" if wide else "table")
    return f"% needs \\usepackage{{{','.join(PACKAGES)}}}\n{text}"


def latex_table(table: Table, *, float_as: str = "") -> str:
    """A booktabs table, shrunk to the width of the line only when it is wider; one too long for a
    page goes on in more.

    Its label is "tab:" and its key. Needs the `PACKAGES`.

    Args:
        float_as: environment of a table that floats, which LaTeX counts; empty: it stays where it
            is, without a number.
    """
    notes = table.footnotes()
    columns = []
    for j in range(len(table.columns)):
        columns.append([row.cells[j] for row in table.rows])
    share = 0.42 if len(columns) < 6 else 0.28
    prose = rf">{{\raggedright\arraybackslash}}p{{{share}\linewidth}}"
    kinds = []
    widest = []
    worse = []
    for column, cells in zip(table.columns, columns, strict=True):
        most = max((len(cell.text) for cell in cells), default=0)
        if column.numeric:
            kinds.append("r")
        elif most <= _PROSE:
            kinds.append("l")
        else:
            kinds.append(prose)
        spreads = [cell.spread for cell in cells]
        widest.append(max(spreads, key=len, default=""))
        worse.append(any(cell.worse for cell in cells))

    def join_cells(row: TableRow) -> str:
        texts = []
        for cell, column, room, mark in zip(row.cells, table.columns, widest, worse, strict=True):
            texts.append(_cell(cell, column, notes, room, worse=mark))
        return " & ".join(texts)

    functions: dict[str, Callable[..., str]] = {"cells": join_cells, "marks": _marks, "raw": str}
    template = _environment(functions).get_template("table.tex.j2")
    return template.render(
        t=table,
        pages=_pages(table),
        notes=notes,
        floats=bool(float_as),
        float=float_as or "table",
        kinds="".join(kinds),
        key=slug(table.key),
    )


_OF_A_PAPER = re.compile(r"(Table|Data of Figure) S?\d")


def _pages(table: Table) -> list[list[tuple[str, list[TableRow]]]]:
    """Blocks of rows by page."""
    pages: list[list[tuple[str, list[TableRow]]]] = [[]]
    room = _LINES
    for name, rows in table.blocks():
        room -= 1
        pages[-1].append((name, []))
        for row in rows:
            words = []
            for cell, column in zip(row.cells, table.columns, strict=True):
                if not column.numeric:
                    words.append(cell)
            height = max(
                [1, *(-(-len(cell.text) // 36) for cell in words if len(cell.text) > _PROSE)]
            )
            if height > room and pages[-1][-1][1]:
                pages.append([(name, [])])
                room = _LINES
            pages[-1][-1][1].append(row)
            room -= height
    return pages


def latex(document: Document) -> str:
    """A whole article that compiles next to its `figures` folder."""
    return (
        _environment({"table": latex_table, "file": slug})
        .get_template("report.tex.j2")
        .render(document=document)
    )


def _environment(filters: Mapping[str, Callable[..., str]]) -> Environment:
    """Templates whose marks are not those of LaTeX; what a filter returns is LaTeX already."""
    from markupsafe import Markup

    made = environment(
        latex_text,
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="<#",
        comment_end_string="#>",
        keep_trailing_newline=True,
    )
    for name, to in filters.items():
        made.filters[name] = lambda *args, to=to: Markup(to(*args))  # noqa: S704
    return made


_FILE = Path(__file__).with_name(
    "references.bib"
)  # the key "keywords" names methods; "all" is for every report


def bibliography(methods: Iterable[str]) -> str:
    """The entries of methods by name, in the order of the file; a comment for a method that has
    none.

    >>> bibliography(["scd"]).splitlines()[0]
    '@inproceedings{klein-nabi-2022-scd,'
    """
    wanted = set(methods)
    found = list[str]()
    cited = set[str]()
    for entry in _FILE.read_text(encoding="utf-8").strip().split("\n\n"):
        keywords = re.search(r",\s*keywords = \{(.*?)\}", entry)
        if keywords:
            names = set(keywords[1].split(", "))
        else:
            names = set()
        if names & {*wanted, "all"}:
            found.append(entry.replace(keywords[0], "") if keywords else entry)
            cited |= names
    return (
        "\n\n".join([*found, *(f"% {name}: {_paper(name)}" for name in sorted(wanted - cited))])
        + "\n"
    )


def _paper(method: str) -> str:
    card = read_card(method)
    if card is None:
        return "not installed here"
    return " ".join(str(card.paper).split())


_SECONDS = 300
_COMMAND = (
    "pdflatex",
    "-interaction=nonstopmode",
    "-halt-on-error",
    "-no-shell-escape",
    "report.tex",
)
# Dates from nowhere, and (kpathsea) no reading or writing outside of the folder, whatever the text
# says.
_FIXED = {"SOURCE_DATE_EPOCH": "0", "FORCE_SOURCE_DATE": "1", "openin_any": "p", "openout_any": "p"}


def pdf(tex: str, folder: Path) -> bytes:
    """The PDF of a LaTeX document.

    Args:
        tex: the whole document.
        folder: where its `figures` lie. It is only read.

    Raises:
        InputError: pdflatex is not installed.
        RunError: the document does not compile.
    """
    if not shutil.which("pdflatex"):
        raise InputError(
            "--format pdf: pdflatex is not installed, and the other formats are written",
            key="--format",
            remedy="install TeX, as Debian's texlive-latex-recommended with lmodern",
        )
    with tempfile.TemporaryDirectory(prefix="report-") as place:
        work = Path(place)
        (work / "report.tex").write_text(tex, encoding="utf-8")
        if (folder / "figures").is_dir():
            shutil.copytree(
                folder / "figures",
                work / "figures",
                ignore=shutil.ignore_patterns("*.svg", "*.png", ".*"),
            )
        if "Rerun to get" in _compile(work):
            _compile(work)
        return (work / "report.pdf").read_bytes()


def _compile(work: Path) -> str:
    environment = {**os.environ, **_FIXED, "max_print_line": "1000"}
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    try:
        done = subprocess.run(
            _COMMAND,
            cwd=work,
            env=environment,
            **streams,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )  # type: ignore[call-overload]
    except subprocess.TimeoutExpired:
        raise RunError(f"pdflatex: not done after {_SECONDS} s; report.tex is written") from None
    if done.returncode or not (work / "report.pdf").is_file():
        fault = re.search(r"^! *(.+)$", done.stdout, re.MULTILINE)
        raise RunError(
            f"pdflatex: report.tex does not compile ({one_line(fault[1]) if fault else 'no message'})"
        )
    return str(done.stdout)
