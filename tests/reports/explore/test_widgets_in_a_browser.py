"""The parts of the page that one handles, in a real browser: filters, rows, dots; what texts hold stays text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reports.document.blocks import Document, Section, Widget
from reports.explore.examples import explored_tasks
from reports.explore.examples_widget import examples_widget
from reports.read.comparison_runs import read_comparison
from reports.write.html import page
from reports.write.screenshot import browser as installed
from tests.reports.explore.conftest import CLASSES
from tests.support.devtools import Browser

PROGRAM = installed()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="needs a browser (Debian: chromium)")
HOSTILE = "</script><img src=x onerror=alert(1)>{{ 7*7 }}"
MAP = {
    "tasks": ["one", HOSTILE],
    "labels": [f"one: {HOSTILE}"],
    "texts": [[i % 2, 0 if i % 2 == 0 else -1, f"{HOSTILE} {i}"] for i in range(8)],
    "rows": [
        {"name": HOSTILE, "run": "a", "share": 0.5, "xy": [90 * (i // 2) for i in range(16)], "nearest": [0, 1] * 8}
    ],
    "scale": 999,
}


@pytest.fixture(scope="module")
def shown(explored: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert PROGRAM is not None
    comparison = read_comparison(explored, "invented")
    tasks = explored_tasks(comparison)
    widget = examples_widget(comparison, tasks, None)
    assert widget is not None
    widget.data["tasks"][0]["items"][0]["texts"] = [HOSTILE, HOSTILE]
    sections = [Section("explore", "Explore", [widget, Widget("map", "Map", "A map.", "map", MAP)])]
    folder = tmp_path_factory.mktemp("page")
    (folder / "index.html").write_text(page(Document("T", "H", [], sections), {}), encoding="utf-8")
    browser = Browser(PROGRAM, folder / "profile")
    browser.open((folder / "index.html").as_uri())
    yield browser
    browser.close()


def test_examples_follow_rows_task_and_filters(shown: Browser) -> None:
    said = "document.querySelector('#widget-examples [role=status]').innerText"
    items = "document.querySelectorAll('.examples li')"
    choose = "document.querySelectorAll('#widget-examples select')"
    put = "document.querySelector('#widget-examples .controls').dispatchEvent(new Event('input'))"
    assert shown.js(f"{items}.length") == 20
    shown.js(f"{choose}[3].value = '2'; {put}")  # the second task
    assert all(CLASSES in text for text in shown.js(f"[...{items}].map(i => i.querySelector('.about').innerText)"))
    shown.js(f"{choose}[1].value = {choose}[0].value; {put}")
    assert shown.js(said) == "A and B are one row: choose two."
    shown.js(f"{choose}[1].value = '0'; {choose}[0].value = '1'; {choose}[3].value = '1'; {put}")
    before = shown.js(said)
    search = "document.querySelector('#widget-examples input[type=search]')"
    shown.js(f"{search}.value = 'the'; {put}")
    assert int(shown.js(said).split()[0]) < int(before.split()[0])
    shown.js(f"{search}.value = ''; {put}")


def test_the_map_names_what_is_touched(shown: Browser) -> None:
    shown.js("document.querySelector('canvas').focus()")
    shown.key("ArrowRight")
    said = shown.js("document.querySelector('.touched').innerText")
    assert f"{HOSTILE} 0" in said
    assert "nearest:" in said
    assert shown.js("document.querySelectorAll('.key span').length") == 2


def test_texts_stay_texts(shown: Browser) -> None:
    assert shown.js("document.querySelectorAll('img').length") == 0
    assert shown.js("document.querySelectorAll('script').length") == 2
    assert shown.errors == []
