"""The page of a running comparison: complete without a network, no text is markup, every phase and state is drawn."""

from __future__ import annotations

import math
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from reports.live import STATES, page

EVIL = "<script>alert(1)</script>\" onload='x' \x1b[31m\u202e</style>"
NOW = 1_700_000_000.0


def run(number: int, state: str = "running", **more: Any) -> dict[str, Any]:
    about = {"id": f"{number:016x}", "label": f"row {number % 9} · seed {number}", "row": f"row {number % 9}"}
    rest = {"base_model": "mini-bert", "seed": number, "state": state, "text": "", "step": 0, "steps": 0}
    return {**about, **rest, "seconds": 0.0, "dev": [], **more}


def progress(runs: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    about = {"name": "c", "title": "", "kind": "comparison", "phase": "running", "reason": "", "pid": 7, "host": "h"}
    times = {"started": NOW - 600, "updated": NOW - 1, "remaining_seconds": None}
    return {**about, **times, "executor": "serial", "workers": 1, "runs": runs, "scores": [], **more}


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
    scores = [{"row": EVIL, "task": EVIL, "mean": 70.0, "n": 3}]
    about = dict.fromkeys(("name", "title", "reason", "host", "executor"), EVIL)
    html = page(progress(runs, phase=phase, scores=scores, **about), NOW)
    seen = Tags(html)
    assert "script" not in seen.tags
    assert seen.tags.count("style") == 1
    assert not [name for name, _ in seen.attributes if name.startswith("on") or name in ("src", "href")]
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert (("http-equiv", "refresh") in seen.attributes) == (phase == "running")


def test_the_page_says_how_far_the_comparison_is() -> None:
    runs = [run(1, "finished"), run(2, "reused"), run(3, "failed", text="out of memory"), run(4, "waiting"),
            run(5, step=5, steps=10, text="training", seconds=240)]  # fmt: skip
    scores = [{"row": "row 1", "task": "STS-B", "mean": 70.125, "n": 1}]
    text = Tags(page(progress(runs, remaining_seconds=1800, scores=scores), NOW)).text
    assert "3 of 5 runs" in text
    assert "30 min" in text
    assert "out of memory" in text
    assert "5 of 10" in text
    assert "70.12" in text
    stopped = Tags(page(progress(runs, phase="stopped", reason="Ctrl-C"), NOW)).text
    assert "Ctrl-C" in stopped
    assert "3 of 5 runs" in stopped


def test_curves_have_one_line_a_run_inside_the_figure() -> None:
    dev = [[[0, 0.2], [50, 0.4], [100, 0.3]], [[0, 0.2], [100, None], [200, 0.8]], [[0, 0.5]]]
    html = page(progress([run(i, dev=points) for i, points in enumerate(dev)]), NOW)
    lines = [[tuple(map(float, p.split(","))) for p in line.split()] for line in re.findall(r'points="([^"]+)"', html)]
    width, height = map(float, re.search(r'viewBox="0 0 (\S+) (\S+)"', html).groups())  # type: ignore[union-attr]
    assert [len(line) for line in lines] == [3, 2]  # a single point draws no line, a missing score no point
    assert all(0 <= x <= width and 0 <= y <= height for line in lines for x, y in line)
    assert lines[0][1][1] < lines[0][2][1]  # a higher score is drawn higher
    assert lines[1][-1][0] > lines[0][-1][0]  # all runs share one axis of steps


def test_the_page_of_ten_thousand_runs_stays_small() -> None:
    runs = [run(i, "running" if i < 1000 else "waiting", dev=[[0, 0.1], [9, 0.2]]) for i in range(10_000)]
    html = page(progress(runs), NOW)
    assert html.count("<polyline") < 100
    assert len(html) < 1_500_000
