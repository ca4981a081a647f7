"""What results say of their scores as a whole, by runs whose scores are known."""

from __future__ import annotations

from pathlib import Path

from reports.load import read_comparison
from tests.support import invented_runs as made


def test_what_runs_have_scores_of_is_listed_as_first_met(tmp_path: Path) -> None:
    dev = made.score("STS-B", 80, split="dev", suite="chosen-by")
    own = made.score("word-order", 50, "accuracy", "", suite="mine", source="theirs")
    first = [dev, made.score("STS13", 70), own]
    second = [made.score("STS12", 71), own]
    made.run(tmp_path, "simcse", seed=1, scores=first)
    made.run(tmp_path, "simcse", seed=2, scores=second)
    found = read_comparison(tmp_path, "invented")
    assert [tuple(kind) for kind in found.score_kinds] == [
        ("chosen-by", "senteval", "STS-B", "dev"),
        ("sts", "senteval", "STS13", "test"),
        ("mine", "theirs", "word-order", "test"),
        ("sts", "senteval", "STS12", "test"),
    ]
    assert found.suites == ["sts", "mine"]  # a dev score makes no suite
    assert found.scored_tasks == {"STS-B", "STS13", "word-order", "STS12"}
    assert found.columns("sts") == [("STS12", "senteval"), ("STS13", "senteval")]


def test_a_task_that_was_missed_was_requested(tmp_path: Path) -> None:
    why = {"kind": "data", "text": "not on the hub"}
    made.run(tmp_path, "simcse", scores=[made.score("STS13", 70)], missing={"STS12": why})
    found = read_comparison(tmp_path, "invented")
    assert found.requested_tasks == ("STS13", "STS12")
    assert found.scored_tasks == {"STS13"}
    assert ("STS12", "senteval") in found.columns("sts")
