"""The table model and its renderers: marks, footnotes, and text that stays text."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace

import pytest

from reports.document.blocks import Document, Section, slug
from reports.document.table import Cell, Column, Table, TableRow, absent, number, rank_cells
from reports.write.latex import latex, latex_table, latex_text, table_file
from reports.write.markdown import csv_table, markdown_table, markdown_text

HOSTILE = [
    "<script>alert(1)</script>",
    r"\input{/etc/passwd}",
    "$x^2$ & 100 % #1 _a_ {b} ~",
    "a | b\nc",
    "[x](javascript:alert(1)) **b** `c`",
    '=HYPERLINK("http://x")',
    "עברית \u202e مرحبا",
    "x" * 500,
]


def table(*rows: TableRow, columns: tuple[Column, ...] | None = None) -> Table:
    columns = columns or (
        Column("name", "Name", numeric=False),
        Column("score", "Score", better="higher"),
    )
    return Table("t", "Title", "Caption.", columns, rank_cells(columns, rows))


def test_best_and_second_by_block_and_shown_digits():
    rows = [
        TableRow((Cell("a"), number(1.001)), "x"),
        TableRow((Cell("b"), number(1.004)), "x"),  # shown 1.00 as well: shares the first place
        TableRow((Cell("c"), number(-0.5)), "x"),
        TableRow((Cell("d"), number(3.0)), "y"),
        TableRow((Cell("e"), number(2.0)), "y"),
        TableRow((Cell("f"), number(9.0)), "y", ranked=False),
        TableRow((Cell("g"), absent("collapsed")), "y"),
    ]
    assert [row.cells[1].rank for row in table(*rows).rows] == [1, 1, 0, 1, 2, 0, 0]


def test_names_have_folders_of_their_own_in_any_script_and_length() -> None:
    for name in ("geometry-mteb-STS-B", "mine", "scd-bert-base.v2", "a" * 80):
        assert slug(name) == name
    names = ["比較", "実験", "données", "donnees", *(f"{'long-' * 20}{end}" for end in "ab")]
    words = {slug(name) for name in names}
    assert len(words) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.-]{0,79}", word) for word in words)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(-0.001, 2, "0.00"), (-1.5, 1, "\u22121.5"), (12.345, 1, "12.3"), (0.0, 0, "0")],
)
def test_numbers(value, digits, text):
    assert number(value, digits=digits).text == text


def test_absent_cells_are_told_apart_in_every_format():
    t = table(
        *(
            TableRow((Cell(s), absent(s, f"why {s}")))
            for s in ("missing", "collapsed", "diverged", "failed")
        )
    )
    for text in (markdown_table(t), latex_table(t).replace(r"\allowbreak{}", "")):
        for said in ("n/a", "coll.", "div.", "fail.", "why missing", "why failed"):
            assert said in text
    lines = list(csv.DictReader(io.StringIO(csv_table(t))))
    assert [line["Score"] for line in lines] == ["missing", "collapsed", "diverged", "failed"]


def test_csv_keeps_full_numbers_and_spread():
    t = table(
        TableRow((Cell("a"), number(56.123456789, sd=0.25, n=3))),
        TableRow((Cell("b"), number(1.0))),
    )
    lines = list(csv.DictReader(io.StringIO(csv_table(t))))
    assert (lines[0]["Score"], lines[0]["Score sd"], lines[0]["Score n"]) == (
        "56.123456789",
        "0.25",
        "3",
    )
    assert lines[1]["Score sd"] == ""


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text):
    t = table(
        TableRow((Cell(text, notes=(text,)), number(1.0)), text),
        TableRow((Cell("b"), number(2.0)), "other"),
    )
    rows = list(csv.reader(io.StringIO(csv_table(t))))
    assert rows[1][1].lstrip("'") == text
    assert rows[1][1][0] not in "=+-@"
    markdown = markdown_table(t)
    assert "<script" not in markdown
    assert not re.search(r"(?<!\\)\]\(", markdown)
    body = [line for line in markdown.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in body} == {3}
    latex = latex_table(t)
    assert r"\input{" not in latex
    assert latex.count("{") - latex.count(r"\{") == latex.count("}") - latex.count(r"\}")


def test_escapes_worked():
    assert markdown_text("a_b*<c>|d") == r"a\_b\*&lt;c&gt;\|d"
    assert latex_text("50% & $5") == r"50\% \& \$5"
    assert latex_text("中") == r"\texttt{\small U+4E2D}"
    assert latex_text("--set é") == "{-}{-}set é"


def test_numbers_of_a_column_align_in_print_whatever_stands_behind_them():
    rows = (
        TableRow((Cell("a"), number(1.0, sd=10.25))),
        TableRow((Cell("b"), number(2.0, sd=0.5))),
        TableRow((Cell("c"), number(3.0, notes=("why",)))),
    )
    lines = [
        line
        for line in latex_table(table(*rows)).splitlines()
        if line.startswith(("a &", "b &", "c &"))
    ]
    spread = r"\,{\scriptsize \ensuremath{\pm} 10.25}"
    assert lines[0] == rf"a & 1.00{spread} \\"
    assert (
        lines[1]
        == r"b & \underline{2.00}\,{\scriptsize \ensuremath{\pm} 0.50}\hphantom{\scriptsize 0} \\"
    )
    assert lines[2] == (
        r"c & \textbf{3.00}\rlap{\textsuperscript{a}}\hphantom{\,\scriptsize \ensuremath{\pm} 10.25} \\"
    )


def test_a_table_in_a_file_names_the_packages_that_it_needs():
    text = table_file(table(TableRow((Cell("a"), number(71.5, sd=10.25)))))
    assert text.startswith(r"% needs \usepackage{array,booktabs,caption,float,graphicx}")


def test_a_table_in_a_file_floats_with_a_label_over_both_columns_where_it_is_wide():
    narrow = table(TableRow((Cell("a"), number(71.5))))
    assert r"\begin{table}[t]" in table_file(narrow)
    assert rf"\label{{tab:{narrow.key}}}" in table_file(narrow)
    assert r"\caption{\textbf{Scores.}" in table_file(replace(narrow, title="Table 1 · Scores"))
    columns = [narrow.columns[0], *[narrow.columns[1]] * 7]
    wide = replace(
        narrow, columns=tuple(columns), rows=(TableRow((Cell("a"), *[number(71.5)] * 7)),)
    )
    assert r"\begin{table*}[t]" in table_file(wide)


def test_latex_counts_tables_in_files_of_their_own_alone():
    one = table(TableRow((Cell("a"), number(1.0))))
    text = latex(Document("T", "Headline.", [], [Section("s", "S", [one])], "Description."))
    assert text.count(r"\caption{") == 0
    assert table_file(one).count(r"\caption{") == table_file(one).count(r"\label{") == 1
