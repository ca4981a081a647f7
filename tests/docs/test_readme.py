"""What README.md shows: its loss fits on a screen and runs, its files and commands are valid."""

from __future__ import annotations

import re
import runpy
import shlex
import tomllib
from pathlib import Path

import pytest

from docs.make import REPOSITORY
from harness.cli import build_parser
from harness.runs.experiment import read_experiment
from tests.support.bases import narrow_bert

TEXT = (REPOSITORY / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_the_page_is_short() -> None:
    assert len(TEXT.splitlines()) <= 150
    assert sum(bool(line) for line in blocks("python")[0].splitlines()) <= 15


@pytest.mark.timeout(240)
@pytest.mark.usefixtures("few_pairs")
def test_the_loss_and_the_calls_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    loss, calls = blocks("python")
    options = f'base_models={narrow_bert()!r}, suites="Embedded-STS-natural", '
    options += 'formats=["csv"], tracking_uri="none", workdir="work/mine")'
    code = (
        loss.replace("max_steps=24", "max_steps=1")
        .replace('workdir="work/mine")', options)
        .replace("seeds=3", "seeds=1")
    )
    lines = ["", 'print(found.rows, found.verdict("align_uniform", "simcse").data["seeds"])', calls]
    file = tmp_path / "mine.py"
    file.write_text(code + "\n".join(lines), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(file), run_name="__main__")
    assert "['align_uniform', 'simcse', 'untrained" in capsys.readouterr().out


def test_files_and_commands_are_valid(tmp_path: Path) -> None:
    (file,) = blocks("toml")
    assert [
        row.method for row in read_experiment({"name": "mine", **tomllib.loads(file)}).methods
    ] == ["simcse", "scd"]
    lines = "".join(blocks("sh") + blocks("text")).splitlines()
    commands = [
        shlex.split(line, comments=True)[1:] for line in lines if line.startswith("harness ")
    ]
    assert len(commands) > 9
    parser = build_parser()
    assert all(parser.parse_args(command).run for command in commands)
