"""The page in a real browser: it loads without an error, sorts, filters, links numbers to runs, and
fits a phone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reports.build import build_comparison
from reports.document.blocks import Document, Section
from reports.document.table import Cell, Column, Table, TableRow
from reports.write import html
from tests.support.devtools import PROGRAM, Browser
from tests.support.synthetic import full

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="needs a browser (Debian: chromium)")
TABLE = "#table-scores-embedded"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workdir = tmp_path_factory.mktemp("work")
    full(workdir, scale=0.03, seeds=(1, 2))
    return build_comparison(workdir, "invented", formats=["html"])["html"]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert PROGRAM is not None
    browser = Browser(PROGRAM, tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture
def chromium(running: Browser, page: Path) -> Browser:
    running.errors.clear()
    running.open(page.as_uri())
    return running


def test_loads_without_an_error_and_requests_nothing_else(chromium: Browser) -> None:
    assert chromium.js("document.title")
    assert chromium.js("performance.getEntriesByType('resource').length") == 0
    assert chromium.js("document.querySelectorAll('button.sort').length") > 20
    lost = "[...document.querySelectorAll('a[href^=\"#\"]')].filter(a => !document.getElementById(a.hash.slice(1)))"
    assert chromium.js(f"{lost}.length") == 0
    assert chromium.errors == []


def test_sorts_by_click_and_keyboard(chromium: Browser) -> None:
    head = f"document.querySelectorAll('{TABLE} thead tr:last-child th')[3]"
    rows = f"[...document.querySelector('{TABLE} tbody').rows]"
    column = f"{rows}.map(r => r.cells[3]?.dataset.v).filter(v => v).map(Number)"
    chromium.js(f"{head}.querySelector('button').click()")
    assert chromium.js(f"{head}.getAttribute('aria-sort')") == "descending"
    shown = chromium.js(column)
    assert len(shown) > 5
    assert shown == sorted(shown, reverse=True)
    chromium.js(f"{head}.querySelector('button').focus()")
    chromium.key("Enter")
    assert chromium.js(f"{head}.getAttribute('aria-sort')") == "ascending"
    assert chromium.js(column) == sorted(shown)


def test_rows_are_filtered_and_what_is_shown_is_copied(chromium: Browser) -> None:
    place = f"document.querySelector('{TABLE}')"
    rows = f"[...{place}.querySelectorAll('tbody tr:not(.block)')]"
    names = f"{rows}.filter(r => !r.hidden).map(r => r.cells[0].innerText)"
    every = chromium.js(names)
    box = f"{place}.querySelector('.menu input[type=search]')"
    chromium.js(f"{place}.querySelector('.menu').open = true")
    chromium.js(f"{box}.value = 'simcse'; {box}.dispatchEvent(new Event('input'))")
    chosen = chromium.js(names)
    assert 0 < len(chosen) < len(every)
    assert all("SimCSE" in name for name in chosen)
    for form in ("CSV", "Markdown", "LaTeX"):
        text = chromium.js(f"tableAs('table-scores-embedded', '{form}')")
        assert "SimCSE" in text
        assert "SCD" not in text


def test_a_number_leads_to_its_runs_and_back(chromium: Browser) -> None:
    cell = f"[...document.querySelectorAll('{TABLE} td.leads')].find(c => c.parentElement.cells[0].innerText == 'SCD')"
    chromium.js(f"{cell}.click()")
    card = "document.querySelector(decodeURIComponent(location.hash))"
    assert chromium.js(f"{card}.open && {card}.closest('details.folded').open")
    assert "scores-embedded:SCD:Embedded-STS-natural" in chromium.js(
        f"{card}.querySelector('.came').innerText"
    )
    chromium.js(f"{card}.querySelector('.came a').click()")
    assert chromium.js(f"document.activeElement === {cell}")


def test_arrow_keys_move_between_numbers_and_enter_follows(chromium: Browser) -> None:
    stops = f"document.querySelectorAll('{TABLE} td[tabindex=\"0\"]')"
    assert chromium.js(f"{stops}.length") == 1  # one tab stop, however many numbers
    chromium.js(f"{stops}[0].focus()")
    before = chromium.js("document.activeElement.cellIndex")
    chromium.key("ArrowRight")
    assert chromium.js("document.activeElement.cellIndex") == before + 1
    chromium.key("Enter")
    assert chromium.js("location.hash").startswith("#run-")


@pytest.mark.parametrize("width", [390, 1180])
def test_nothing_is_wider_than_the_screen(page: Path, running: Browser, width: int) -> None:
    running.open(page.as_uri(), width=width)
    running.js("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert running.js("document.documentElement.scrollWidth") <= width


def test_notes_under_tables_have_two_lines_at_most(page: Path, running: Browser) -> None:
    running.open(page.as_uri(), width=1280)
    running.js("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    lines = (
        "Math.round(p.getBoundingClientRect().height / parseFloat(getComputedStyle(p).lineHeight))"
    )
    long = running.js(
        f"[...document.querySelectorAll('.notes > p, .caption')].filter(p => {lines} > 2).map(p => p.innerText)"
    )
    assert long == []


def test_a_label_of_some_words_takes_a_quarter_of_the_table_and_a_sentence_more(
    running: Browser, tmp_path: Path
) -> None:
    labels = ("A label of nine words, a little longer than usual", "A sentence of an example. " * 6)
    columns = (
        Column("label", "Label", numeric=False),
        Column("verdict", "Verdict", numeric=False),
    )
    widths = []
    for label in labels:
        row = TableRow((Cell(label), Cell("Not comparable. Another training text. " * 4)))
        table = Table("one", "One", "", columns, (row,))
        document = Document("A page", "", [], [Section("one", "One", [table])])
        path = tmp_path / "page.html"
        path.write_text(html.page(document, {}))
        running.open(path.as_uri(), width=1280)
        width = "document.querySelector('tbody th').getBoundingClientRect().width"
        widths.append(
            running.js(width) / running.js("document.querySelector('.scroll').clientWidth")
        )
    assert widths[0] < 0.3 < 0.4 < widths[1]


def test_light_and_dark_follow_the_system_and_the_button(page: Path, running: Browser) -> None:
    ground = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]"
    running.open(page.as_uri(), dark=True)
    assert running.js(ground) < 60
    running.js("document.getElementById('theme').click()")
    assert running.js(ground) > 200
