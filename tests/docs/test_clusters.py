"""The recipes for clusters: scripts are shell, options are ours."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "clusters.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_scripts_are_shell() -> None:
    for script in blocks("sh"):
        assert (
            subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0
        ), script


def test_options_of_the_recipes_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line for text in blocks("sh") for line in text.replace("\\\n", " ").splitlines()]
    asked: set[str] = set()
    for line in lines:
        if found := re.search(r"\bharness compare (.*)", line):
            asked |= set(re.findall(r"--[\w-]+", found[1].partition("#")[0]))
    with pytest.raises(SystemExit):
        main(["compare", "--help"])
    assert asked
    assert asked <= set(re.findall(r"--[\w-]+", capsys.readouterr().out))
