"""The tutorials do what they say: their files are written, their commands run in order, on fewer
updates and seeds.
"""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from docs.make import REPOSITORY
from harness.cli import build_parser
from harness.runs.experiment import read_experiment
from studies.definition.study import read_study

TUTORIALS = REPOSITORY / "docs" / "tutorials"
PAGES = (
    "first-comparison",
    "your-own-loss",
    "study",
)  # the others need a hub or a cluster: their blocks are sessions
SHORTER = {
    "seeds = [1, 2, 3]": "seeds = [1, 2]",
    "max_steps = 24": "max_steps = 2",
    "steps = 12": "steps = 2",
    "trials = 6": "trials = 2",
    '"embedded:sentences"': '{ uri = "embedded:sentences", limit = 128 }',
}
# One process for all: importing torch takes longer than the rest.
RUN = """
import contextlib, json, os, sys
from pathlib import Path
import pytest
from harness.cli import main
from reports.comparison import comparison_document
from tests.support import short_runs
patch = pytest.MonkeyPatch()
short_runs.few_pairs(patch, 40)
ours = [builder for builder in comparison_document.built_in() if builder.suites]  # figures take longest
patch.setattr(comparison_document, "built_in", lambda: ours)
patch.setattr("reports.studies.study_figures.all_figures", lambda *_: ([], []))
for folder, commands in json.loads(sys.argv[1]).items():
    os.chdir(folder)
    for command in commands:
        with Path("printed.txt").open("a") as printed, contextlib.redirect_stdout(printed):
            code = main(command)
        if code:
            sys.exit(f"{folder}: harness {' '.join(command)}: exit code {code}")
"""


def blocks(page: str) -> list[tuple[str, str, str]]:
    """Language, title and text of each block of a page."""
    text = (TUTORIALS / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(
        r'^```(\w+)(?: title="([^"\n]+)")?\n(.*?)^```$', text, re.MULTILINE | re.DOTALL
    )


def commands(page: str) -> list[list[str]]:
    """What a reader types, without the name of the program."""
    lines = "".join(text for language, _, text in blocks(page) if language == "sh").splitlines()
    return [words[1:] for words in (shlex.split(line, comments=True) for line in lines) if words]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Where each tutorial was followed."""
    top = tmp_path_factory.mktemp("tutorials")
    for page in PAGES:
        (top / page).mkdir()
        for _, title, text in blocks(page):
            for long, short in (
                SHORTER.items() if title.endswith(".toml") and title != "pyproject.toml" else ()
            ):
                text = text.replace(long, short)
            if title:
                (top / page / title).write_text(text, encoding="utf-8")
    site = top / "site"
    install = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-index",
        "--no-deps",
    ]
    target = ["--no-build-isolation", "--target", str(site), str(top / "your-own-loss")]
    subprocess.run([sys.executable, *install, *target], check=True, capture_output=True, text=True)
    plan = {str(top / page): commands(page) for page in PAGES}
    path = os.pathsep.join([str(site), str(REPOSITORY)])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(plan)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {page: top / page for page in PAGES}


@pytest.mark.campaign
@pytest.mark.timeout(600)
def test_the_first_comparison_ends_with_a_report_and_a_verdict(folders: dict[str, Path]) -> None:
    folder = folders["first-comparison"]
    printed = (folder / "printed.txt").read_text()
    assert "9 cells" not in printed, "two seeds here"
    assert "2 of them added, the untrained starts" in printed
    assert re.search(r"SimCSE (or|is|and) ", printed)
    assert "power for differences" in printed
    assert "<html" in (folder / "work/reports/first/index.html").read_text(encoding="utf-8")


@pytest.mark.campaign
@pytest.mark.timeout(600)
def test_the_readers_loss_stands_in_the_table(folders: dict[str, Path]) -> None:
    printed = (folders["your-own-loss"] / "printed.txt").read_text()
    assert "align_uniform" in printed
    assert len(re.findall(r"│ alignment and uniformity +│ +2 │", printed)) == 1
    (data,) = (folders["your-own-loss"] / "work/reports").glob("own/data.json")
    assert "alignment and uniformity" in data.read_text(encoding="utf-8")


@pytest.mark.campaign
@pytest.mark.timeout(600)
def test_the_study_ends_with_a_row(folders: dict[str, Path]) -> None:
    work = folders["study"] / "work"
    assert (work / "reports/temperature/experiments/held-out.toml").is_file()
    assert list(work.glob("reports/*/index.html"))


def test_the_temperature_of_the_example_is_learnt() -> None:
    (text,) = (
        text for _, title, text in blocks("your-own-loss") if title == "learnt_temperature.py"
    )
    module: dict[str, Any] = {"__name__": "learnt_temperature"}
    exec(compile(text, "learnt_temperature.py", "exec"), module)
    method = module["LearntTemperature"]()
    heads = method.heads(None)
    with torch.no_grad():
        heads.log_scale.zero_()
    encoder = SimpleNamespace(two_views=lambda texts: (torch.eye(2), torch.eye(2)))
    terms = method.loss(encoder, heads, SimpleNamespace(texts=["a", "b"]))
    terms["loss"].backward()
    assert terms["loss"].item() == pytest.approx(math.log(1 + math.exp(-1)))
    assert heads.log_scale.grad.item() == pytest.approx(-1 / (1 + math.e))


def test_every_block_is_one_that_is_run_or_a_session() -> None:
    for page in TUTORIALS.glob("*.md"):
        untitled = [(language, text) for language, title, text in blocks(page.stem) if not title]
        for language, text in untitled:
            if language == "python":
                compile(text, str(page), "exec")
        languages = {language for language, _ in untitled}
        assert languages <= {"sh", "console", "text", "python"}, page
        assert page.stem in PAGES or "sh" not in languages, page


@pytest.mark.parametrize("page", PAGES)
def test_files_and_commands_are_understood(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without running them: the keys of the files are known, and so are the options of the
    commands.
    """
    monkeypatch.chdir(tmp_path)
    for _, title, text in blocks(page):
        if title == "temperature.toml":
            (tmp_path / title).write_text(text, encoding="utf-8")
            assert read_study(title).trials == 6
        elif title.endswith(".toml") and title != "pyproject.toml":
            (tmp_path / title).write_text(text, encoding="utf-8")
            assert read_experiment(title).seeds == [1, 2, 3]
    parser = build_parser()
    assert [parser.parse_args(command).run for command in commands(page)]


def test_the_loss_of_the_tutorial_is_the_one_of_the_readme() -> None:
    titled = {title: text for _, title, text in blocks("your-own-loss") if title}
    package = REPOSITORY / "tests" / "third_party"
    assert titled["align_uniform.py"] == (package / "align_uniform.py").read_text(encoding="utf-8")
    assert 'align_uniform = "align_uniform:AlignUniform"' in titled["pyproject.toml"]
