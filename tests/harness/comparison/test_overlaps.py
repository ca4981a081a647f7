"""A comparison looks for its tasks' texts in what it trained and selected on, and is not lost by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.comparison.experiment import read_experiment
from harness.comparison.overlaps import check_overlaps
from harness.comparison.plan import Plan, make_plan
from harness.results.overlaps import read_overlap


def planned(folder: Path, *texts: str) -> Plan:
    file = folder / "own.txt"
    file.write_text("\n".join(texts) + "\n")
    settings = {
        "name": "own",
        "suites": ["Embedded-STS-natural"],
        "corpus": {"uri": str(file)},
        "dev": {"task": "Embedded-STS-natural"},
        "methods": [{"method": "simcse", "preset": "mini"}, {"method": "pooling"}],
    }
    return make_plan(read_experiment(settings), "own", folder)


def test_training_text_and_dev_set_are_checked_and_much_overlap_is_told(tmp_path: Path) -> None:
    plan = planned(tmp_path, "Nothing of the kind.", "Nor this one.")
    test = plan.tasks[0].texts()
    half = planned(tmp_path, *dict.fromkeys(test[: len(test) // 4]))
    (line,) = check_overlaps(half, tmp_path)
    assert "training text" in line
    assert "Embedded-STS-natural 2" in line  # some 25 %: both sides come one after the other
    corpus = half.corpus(half.rows[0])
    assert corpus is not None
    found = read_overlap(tmp_path, corpus.describe())
    assert found is not None
    one = found.tasks["embedded:Embedded-STS-natural"]
    assert one.equal == len({text.casefold() for text in test[: len(test) // 4]})
    assert half.dev is not None
    assert read_overlap(tmp_path, {"sha256": half.dev.sha256}) is not None


def test_a_text_without_overlap_is_not_talked_about(tmp_path: Path) -> None:
    assert check_overlaps(planned(tmp_path, "Nothing of the kind.", "Nor this one."), tmp_path) == []
    assert len(list((tmp_path / "overlap").glob("*.json"))) == 2


def test_a_check_that_fails_costs_a_remark(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "overlap").write_text("stands in the way")
    assert check_overlaps(planned(tmp_path, "Nothing of the kind.", "Nor this one."), tmp_path) == []
    assert "were not looked for" in caplog.text
