"""What `harness evaluate` prints."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.cli import main
from harness.errors import InputError
from tests.support import short_runs
from tests.support.errors import raises_input_error


def test_scores_of_cut_vectors_have_the_unit_of_the_whole_ones(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    short_runs.few_pairs(monkeypatch, 400)
    command = ["evaluate", "embedded:mini-bert", "--suite", "compression:Embedded-STS-contrast"]
    assert main([*command, "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    shown = [line.split() for line in lines if line.startswith("compression:")]
    printed = {words[2]: words[3] for words in shown}
    assert printed == {one["metric"]: f"{100 * one['value']:.2f}" for one in scores}
    assert "spearman_first_128" in printed


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": -1}, "batch_size"),
        ({"max_length": 0}, "max_length"),
        ({"max_length": -5}, "max_length"),
        ({"device": "meta"}, "device"),
        ({"device": ""}, "device"),
        ({"version": "2"}, "version"),
        ({"revision": "v1.0"}, "revision"),
        ({"model_name": "org/name"}, "model_name"),
    ],
)
def test_a_setting_that_is_none_is_refused_and_not_replaced(
    options: dict[str, Any], key: str
) -> None:
    with raises_input_error(key=key):
        harness.evaluate("embedded:mini-bert", "Embedded-STS-contrast", **options)


@pytest.mark.parametrize("kind", ["file", "pipe", "full", "device", "no name"])
def test_where_no_model_can_be_saved_nothing_is_trained(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "model"
    if kind == "file":
        place.write_text("mine")
    elif kind == "pipe":
        os.mkfifo(place)
    elif kind == "full":
        place.mkdir()
        (place / "mine.txt").write_text("mine")
    elif kind == "device":
        place = Path("/dev/null")
    else:
        place = Path()
    with raises_input_error(key="--out"):
        harness.train("simcse", preset="mini", corpus=["a b", "c d"], max_steps=1, out=place)
    assert not (tmp_path / "model.training").exists()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc")
def test_a_place_where_no_lock_can_be_made_is_not_in_use(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("row,seed,score\na,1,3\na,2,4\na,3,5\nb,1,3\nb,2,4\nb,3,5\n")
    began = time.monotonic()
    with pytest.raises(InputError) as refused:
        harness.gate(
            tmp_path / "s.csv", baseline="a", candidate="b", history="/proc/self/history.jsonl"
        )
    assert time.monotonic() - began < 20  # another process would be waited for 30 seconds
    assert "in use" not in str(refused.value)
