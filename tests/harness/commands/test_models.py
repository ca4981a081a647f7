"""What `harness evaluate` prints."""

from __future__ import annotations

import json

import pytest

from harness.cli import main


def test_scores_of_cut_vectors_have_the_unit_of_the_whole_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["evaluate", "embedded:mini-bert", "--suite", "compression:Embedded-STS-contrast"]
    assert main([*command, "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    shown = [line.split() for line in lines if line.startswith("compression:")]
    printed = {words[2]: words[3] for words in shown}
    assert printed == {one["metric"]: f"{100 * one['value']:.2f}" for one in scores}
    assert "spearman_first_128" in printed
