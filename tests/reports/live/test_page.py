"""The live page: whole without a network, no text of a data set or an error is markup, all phases are drawn."""

from __future__ import annotations

import math
import re
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from harness.live.remaining import Left
from harness.live.signs import Seen
from harness.live.state import PHASES, STATES, Cell, InWork, RowScore, State
from harness.results.record import Record
from reports.live import page, scores
from reports.live.view import CARDS
from tests.support import invented_runs

EVIL = "<script>alert(1)</script>\" onload='x' \x1b[31m\u202e</style>"
NOW = 1_700_000_000.0


def state(**more: object) -> State:
    cells = [Cell(f"{i:016x}", f"{EVIL} {i}", EVIL, EVIL, str(i), name, EVIL) for i, name in enumerate(STATES)]
    seen = Seen("0", EVIL, 7, 5, 10, EVIL, NOW - 60, NOW - 2, 1, NOW - 50, NOW - 3, [(0, 0.5), (5, 0.6), (6, math.nan)])
    made = State(
        EVIL, title=EVIL, reason=EVIL, executor=EVIL, command=EVIL, host=EVIL, pid=1, begun=NOW - 99, time=NOW,
        every=3.0, cells=cells, in_work=[InWork(f"{EVIL} 0", EVIL, "0", seen, 9.0)], left=Left(60, 30, 99),
        scores=[RowScore(EVIL, EVIL, EVIL, 3, 70.0, 1.0, 68.0, 72.0), RowScore(EVIL, EVIL, "b", 1, 70.0)],
    )  # fmt: skip
    return replace(made, **more)  # type: ignore[arg-type]


class Tags(HTMLParser):
    """Collects what a browser would make of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


@pytest.mark.parametrize("phase", PHASES)
def test_no_text_is_markup_and_nothing_comes_from_elsewhere(phase: str) -> None:
    html = page([state(phase=phase), state(name="other", phase="ended")], NOW)
    seen = Tags()
    seen.feed(html)
    assert seen.tags.count("script") == 1  # our own
    assert not [name for name, _ in seen.attributes if name.startswith("on")]
    assert not re.search(r'(?:src|href)="(?!\.\./runs/)', html)
    assert "http" not in html.replace("http-equiv", "")
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert ("data-running" in html.partition("<script>")[0]) == (phase == "running")  # only then it loads itself anew


def test_the_page_says_where_it_stands() -> None:
    html = page([state(name="c", reason="", phase="running")], NOW)
    assert "about 60 s left, ends at" in html
    assert "5</b> of 10 updates" in html
    assert "68.00 to 72.00" in html
    assert "untrained 50.00" in html
    unknown = page([state(name="c", reason="", phase="running", left=None)], NOW)
    assert "how long it takes is told once" in unknown
    assert "It is being prepared" in page([State("c", time=NOW)], NOW)


def test_many_runs_in_work_have_a_line_each_and_the_page_stays_small() -> None:
    one = state().in_work[0]
    cells = [Cell(f"{i:016x}", f"row {i % 100} · seed {i}", f"row {i % 100}", "b", str(i)) for i in range(10_000)]
    began = time.process_time()
    html = page([state(cells=cells, in_work=[one] * 1000)], NOW)
    assert time.process_time() - began < 5
    assert html.count('class="card"') == CARDS
    assert len(html) < 3_000_000


def test_scores_so_far_have_an_interval_from_three_seeds_on(tmp_path: Path) -> None:
    def run(row: str, seed: int, percent: float) -> Record:
        return invented_runs.run(tmp_path, "simcse", row=row, seed=seed, scores=invented_runs.sts(percent))

    few, one = [run("a", seed, 68.0 + 2 * seed) for seed in (1, 2, 3)], run("b", 1, 50.0)
    found = {score.row: score for score in scores([*few, one])}
    assert found["a"].n == 3
    assert found["a"].mean == pytest.approx(72.0)
    half = 4.302653 * 2.0 / math.sqrt(3)  # Student's quantile with two degrees of freedom
    assert found["a"].low == pytest.approx(72 - half, abs=1e-4)
    assert (found["b"].mean, found["b"].deviation, found["b"].low) == (50.0, None, None)
    assert scores([]) == []
