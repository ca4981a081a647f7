"""The site of a work directory: a page for each comparison, an index that leads to them, and two runs side by side."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from harness.cli import main
from reports.site.build import build_site
from reports.site.run_facts import _POINTS, checked_curve, flat, thinned
from reports.write.screenshot import browser as installed
from tests.support.devtools import Browser
from tests.support.synthetic import Invented

TASK = ("Embedded-STS-natural",)
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workdir = tmp_path_factory.mktemp("work")
    for name in ("first", "second one"):
        made = Invented(workdir, name, scale=0.05)
        made.count = 16 * (name != "first")
        for seed in (1, 2):
            made.add(f"SimCSE {HOSTILE}", seed, tasks=TASK, geometry=False, config={"temperature": 0.05})
    return build_site(workdir, tmp_path_factory.mktemp("site"))


def data_of(page: Path) -> dict:
    found = re.search(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    return json.loads(found[1])


def test_each_report_is_one_file_that_the_index_leads_to(site: Path) -> None:
    text = site.read_text(encoding="utf-8")
    assert {path.name for path in site.parent.iterdir()} == {"index.html", "first.html", "second-one.html"}
    assert set(re.findall(r'<a href="([^"#]+\.html)"', text)) == {"first.html", "second-one.html"}
    for page in site.parent.iterdir():
        assert not re.search(r'(?:src|href)="(?:https?:)?//', page.read_text(encoding="utf-8"))
        assert "<img" not in page.read_text(encoding="utf-8")


def test_the_index_holds_the_facts_of_each_run(site: Path) -> None:
    runs = data_of(site)["widgets"]["runs"]["runs"]
    assert len(runs) == 4
    assert runs[0]["name"].startswith(f"first · SimCSE {HOSTILE}")
    facts = runs[0]["facts"]
    assert facts["configuration"]["temperature"] == "0.05"
    assert facts["data"]["corpus.uri"] == "embedded:sentences"
    assert facts["versions"]["torch"] == "2.6.0"


def test_a_report_that_is_newer_than_its_runs_is_not_built_again(tmp_path: Path, monkeypatch) -> None:
    made = Invented(tmp_path / "work", scale=0.05)
    record = made.add("SimCSE", tasks=TASK, geometry=False)
    build_site(made.workdir, tmp_path / "site")

    def built(*_: object) -> None:
        raise AssertionError("built again")

    monkeypatch.setattr("reports.site.build.build_report", built)
    build_site(made.workdir, tmp_path / "site")
    later = (made.workdir / "reports" / "invented" / "index.html").stat().st_mtime + 10
    os.utime(made.workdir / "runs" / record.id / "record.json", (later, later))
    with pytest.raises(AssertionError):
        build_site(made.workdir, tmp_path / "site")


def test_curves_part_at_the_first_line_that_differs_in_any_digit() -> None:
    one = [{"kind": "train", "step": step, "loss": 1 / (step + 1), "seconds": 0.1 * step} for step in range(4)]
    other = [{**line, "seconds": 9.0} for line in one]
    assert checked_curve(one) == checked_curve(other)  # clocks say nothing of what was computed
    other[2] = {**one[2], "loss": one[2]["loss"] + 1e-15}
    first, second = checked_curve(one)["train"], checked_curve(other)["train"]
    assert [a[2] == b[2] for a, b in zip(first, second, strict=True)] == [True, True, False, False]
    assert thinned(list(range(10 * _POINTS + 3)))[-1] == 10 * _POINTS + 2
    assert flat({"a": {"b": 0.1, "c": [1]}, "d": None}) == {"a.b": "0.1", "a.c": "[1]", "d": "None"}


def test_a_folder_without_runs_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "site", "--from", str(tmp_path), "--out", str(tmp_path / "site")]) == 2
    assert "it holds no runs" in capsys.readouterr().err


@pytest.mark.skipif(installed() is None, reason="needs a browser (Debian: chromium)")
def test_two_runs_side_by_side(site: Path, tmp_path: Path) -> None:
    program = installed()
    assert program is not None
    chromium = Browser(program, tmp_path / "profile")
    try:
        chromium.open(site.as_uri())
        said = chromium.js("document.querySelector('.widget .stage').innerText")
        assert "training: part at step 0, the first that was logged." in said
        assert "configuration: 1 of 6 differ" in said
        chromium.open(site.as_uri(), width=390)
        widths = "[...document.querySelectorAll('.widget tbody th')].map(name => name.offsetWidth)"
        assert max(chromium.js(widths)) < 150  # names stay in place over what is scrolled
        chromium.js("[...document.querySelectorAll('.widget select')].forEach(s => { s.value = '0' })")
        chromium.js("document.querySelector('.widget .controls').dispatchEvent(new Event('input'))")
        said = chromium.js("document.querySelector('.widget .stage').innerText")
        assert "the same at all" in said
        assert "configuration: 0 of 6 differ" in said
        assert chromium.js("document.querySelectorAll('img').length") == 0
        assert chromium.errors == []
    finally:
        chromium.close()
