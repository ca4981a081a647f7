"""The page in a real browser: it loads without an error, sorts, leads from a number to its run, and fits a phone."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from reports.build import build_comparison
from reports.write.screenshot import browser as installed
from reports.write.screenshot import picture
from tests.support.devtools import Browser
from tests.support.synthetic import full

PROGRAM = installed()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="needs a browser (Debian: chromium)")
TABLE = "#table-scores-embedded"
FORMS = ("CSV", "Markdown", "LaTeX", "LaTeX, siunitx")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workdir = tmp_path_factory.mktemp("work")
    full(workdir, scale=0.03, seeds=(1, 2))
    return build_comparison(workdir, "invented", formats=["html"])["html"]


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert PROGRAM is not None
    running = Browser(PROGRAM, tmp_path_factory.mktemp("profile"))
    yield running
    running.close()


def test_loads_without_an_error_and_asks_for_nothing_else(page: Path, chromium: Browser) -> None:
    chromium.errors.clear()
    chromium.open(page.as_uri())
    assert chromium.js("document.title")
    assert chromium.js("performance.getEntriesByType('resource').length") == 0
    assert chromium.js("document.querySelectorAll('button.sort').length") > 20
    assert chromium.errors == []


def test_sorts_by_click_and_keyboard_and_says_so(page: Path, chromium: Browser) -> None:
    chromium.open(page.as_uri())
    heads = f"document.querySelectorAll('{TABLE} thead tr:last-child th')"
    column = (
        f"[...document.querySelector('{TABLE} tbody').rows].map(r => r.cells[3]?.dataset.v).filter(v => v).map(Number)"
    )
    chromium.js(f"{heads}[3].querySelector('button').click()")
    assert chromium.js(f"{heads}[3].getAttribute('aria-sort')") == "descending"
    shown = chromium.js(column)
    assert shown == sorted(shown, reverse=True)
    assert len(shown) > 5
    chromium.js(f"{heads}[3].querySelector('button').focus()")
    chromium.key("Enter")
    assert chromium.js(f"{heads}[3].getAttribute('aria-sort')") == "ascending"
    assert chromium.js(column) == sorted(shown)


def test_rows_are_filtered_and_hidden_and_what_is_shown_is_copied(page: Path, chromium: Browser) -> None:
    chromium.open(page.as_uri())
    place = f"document.querySelector('{TABLE}')"
    names = (
        f"[...{place}.querySelectorAll('tbody tr:not(.block)')].filter(r => !r.hidden).map(r => r.cells[0].innerText)"
    )
    every = chromium.js(names)
    box = f"{place}.querySelector('.menu input[type=search]')"
    chromium.js(f"{place}.querySelector('.menu').open = true")
    chromium.js(f"{box}.value = 'simcse'; {box}.dispatchEvent(new Event('input'))")
    chosen = chromium.js(names)
    assert 0 < len(chosen) < len(every)
    assert all("SimCSE" in name for name in chosen)
    chromium.js(f"{box}.value = ''; {box}.dispatchEvent(new Event('input'))")
    chromium.js(f"{place}.querySelector('.choices input').click()")
    assert len(chromium.js(names)) == len(every) - 1
    forms = {form: chromium.js(f"tableAs('table-scores-embedded', '{form}')") for form in FORMS}
    assert all(every[0] not in text for text in forms.values())
    assert all("SCD" in text for text in forms.values())
    assert r"\toprule" in forms["LaTeX"]
    assert "S[table-format=" in forms["LaTeX, siunitx"]
    lines = list(csv.reader(forms["CSV"].splitlines()))
    assert len({len(line) for line in lines}) == 1
    table = forms["Markdown"].splitlines()
    assert len({line.count(" | ") for line in table}) == 1


def test_a_number_leads_to_its_runs(page: Path, chromium: Browser) -> None:
    chromium.open(page.as_uri())
    cell = f"[...document.querySelectorAll('{TABLE} td.leads')].find(c => c.parentElement.cells[0].innerText == 'SCD')"
    chromium.js(f"{cell}.click()")
    card = "document.querySelector(decodeURIComponent(location.hash))"
    assert chromium.js(f"{card}.open")
    assert chromium.js(f"{card}.querySelector('summary').innerText").startswith("SCD ·")
    said = chromium.js(f"{card}.querySelector('.came').innerText")
    assert "harness reproduce 'index.html#scores-embedded:SCD:Embedded-STS-natural'" in said
    chromium.js(f"{card}.querySelector('.came a').click()")
    assert chromium.js(f"document.activeElement === {cell}")


def test_arrow_keys_walk_over_numbers_and_enter_follows(page: Path, chromium: Browser) -> None:
    chromium.open(page.as_uri())
    stops = f"document.querySelectorAll('{TABLE} td[tabindex=\"0\"]')"
    assert chromium.js(f"{stops}.length") == 1  # one tab stop, however many numbers
    chromium.js(f"{stops}[0].focus()")
    before = chromium.js("document.activeElement.cellIndex")
    chromium.key("ArrowRight")
    assert chromium.js("document.activeElement.cellIndex") == before + 1
    chromium.key("Enter")
    assert chromium.js("location.hash").startswith("#run-")
    assert chromium.js("document.activeElement.tagName") == "SUMMARY"


def test_anchors_lead_somewhere_and_open_what_is_folded(page: Path, chromium: Browser) -> None:
    chromium.open(page.as_uri())
    lost = "[...document.querySelectorAll('a[href^=\"#\"]')].filter(a => !document.getElementById(a.hash.slice(1)))"
    assert chromium.js(f"{lost}.length") == 0
    name = chromium.js(f"document.querySelector('{TABLE} tbody th a').hash")
    chromium.open(f"{page.as_uri()}{name}")
    assert chromium.js(f"document.querySelector('{name}').open") is True


@pytest.mark.parametrize("width", [390, 1180])
def test_nothing_is_wider_than_the_screen(page: Path, chromium: Browser, width: int) -> None:
    chromium.open(page.as_uri(), width=width)
    chromium.js("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert chromium.js("document.documentElement.scrollWidth") <= width


def test_light_and_dark_follow_the_system_and_the_button(page: Path, chromium: Browser) -> None:
    ground = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]"
    chromium.open(page.as_uri(), dark=True)
    assert chromium.js(ground) < 60
    chromium.js("document.getElementById('theme').click()")
    assert chromium.js(ground) > 200
    chromium.open(page.as_uri())
    assert chromium.js(ground) > 200


def test_a_picture_for_a_readme(page: Path, tmp_path: Path) -> None:
    picture(page, tmp_path / "made" / "out.png", height=700)
    data = (tmp_path / "made" / "out.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert (int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")) == (1180, 700)
