"""The page of a running comparison: complete without a network, no text is markup, every phase and
state is drawn.
"""

from __future__ import annotations

import math
from html.parser import HTMLParser
from typing import Any

import pytest

from reports.live import STATES, page

EVIL = "<script>alert(1)</script>\" onload='x' \x1b[31m\u202e</style>"
NOW = 1_700_000_000.0


def run(number: int, state: str = "running", **more: Any) -> dict[str, Any]:
    about = {
        "id": f"{number:016x}",
        "label": f"row {number % 9} · seed {number}",
        "row": f"row {number % 9}",
    }
    rest = {
        "base_model": "mini-bert",
        "seed": number,
        "state": state,
        "text": "",
        "step": 0,
        "steps": 0,
    }
    return {**about, **rest, "seconds": 0.0, "began": 0.0, "dev": [], **more}


def progress(runs: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    about = {
        "name": "c",
        "title": "",
        "kind": "comparison",
        "phase": "running",
        "reason": "",
        "pid": 7,
        "host": "h",
    }
    times = {"started": NOW - 600, "updated": NOW - 1, "remaining_seconds": None}
    return {**about, **times, "executor": "serial", "workers": 1, "runs": runs, **more}


class Tags(HTMLParser):
    """What a browser makes of a page: tags, attributes, text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += f" {data.strip()}"


@pytest.mark.parametrize("phase", ["running", "ended", "stopped", "failed"])
def test_no_text_is_markup_and_nothing_is_loaded_from_elsewhere(phase: str) -> None:
    texts = dict.fromkeys(("label", "row", "base_model", "seed", "text"), EVIL)
    dev = [(0, 0.5), (5, 0.6), (6, math.nan)]
    runs = [run(i, state, **texts, step=5, steps=10, dev=dev) for i, state in enumerate(STATES)]
    about = dict.fromkeys(("name", "title", "reason", "host", "executor"), EVIL)
    html = page(progress(runs, phase=phase, **about), NOW)
    seen = Tags(html)
    assert "script" not in seen.tags
    assert seen.tags.count("style") == 1
    assert not [
        name for name, _ in seen.attributes if name.startswith("on") or name in ("src", "href")
    ]
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert (("http-equiv", "refresh") in seen.attributes) == (phase == "running")


def test_the_page_says_how_far_the_comparison_is() -> None:
    runs = [
        run(1, "finished"),
        run(2, "reused"),
        run(3, "failed", text="out of memory"),
        run(4, "waiting"),
        run(5, step=5, steps=10, text="training", began=NOW - 240),
    ]
    text = Tags(page(progress(runs, remaining_seconds=1800), NOW)).text
    assert "3 of 5 runs" in text
    assert "30 min" in text
    assert "out of memory" in text
    assert "5 of 10" in text
    assert "4 min" in text
    stopped = Tags(page(progress(runs, phase="stopped", reason="Ctrl-C"), NOW)).text
    assert "Ctrl-C" in stopped
    assert "3 of 5 runs" in stopped


def test_a_running_run_has_its_dev_curve() -> None:
    dev = [[[0, 0.2], [50, 0.4], [100, 0.3]], [[0, 0.2], [100, None], [200, 0.8]], [[0, 0.5]]]
    text = Tags(page(progress([run(i, dev=points) for i, points in enumerate(dev)]), NOW)).text
    assert all(curve in text for curve in ("▁█▄ 30.0", "▁█ 80.0", "▁ 50.0"))


def test_the_page_of_ten_thousand_runs_stays_small() -> None:
    runs = [
        run(i, "running" if i < 1000 else "waiting", dev=[[0, 0.1], [9, 0.2]])
        for i in range(10_000)
    ]
    html = page(progress(runs), NOW)
    assert len(html) < 1_500_000
