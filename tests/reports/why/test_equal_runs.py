"""Runs of equal settings with other scores: each score counts, and one that only one run has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.results.record import Score
from reports.load import RecordedResults, read_comparison
from reports.why.equal_runs import compare_equal_runs
from tests.support.invented_runs import run, score


def read(workdir: Path, scores: list[Score]) -> RecordedResults:
    run(workdir, "simcse", scores=scores, version=1)
    return read_comparison(workdir, "invented")


def compare(tmp_path: Path, first: list[Score], second: list[Score]) -> tuple[str, dict[str, Any]]:
    one = read(tmp_path / "one", first)
    other = read(tmp_path / "other", second)
    (line,), (found,) = compare_equal_runs(one, other, "simcse")
    return line, found


def test_scores_of_one_metric_by_two_aggregations_are_two(tmp_path: Path) -> None:
    line, found = compare(
        tmp_path,
        [score("STS12", 70.0), score("STS12", 66.0, aggregation="wmean")],
        [score("STS12", 68.0), score("STS12", 66.0, aggregation="wmean")],
    )
    assert not found["equal"]
    assert found["largest"] == "senteval:STS12:test:spearman:all"
    assert round(found["points"], 6) == 2.0
    assert "2.0000 points" in line


def test_runs_that_were_scored_on_unlike_tasks_are_not_called_equal(tmp_path: Path) -> None:
    line, found = compare(
        tmp_path, [score("STS12", 70.0), score("STS13", 60.0)], [score("STS12", 70.0)]
    )
    assert not found["equal"]
    assert found["scored_in_one"] == ["senteval:STS13:test:spearman:all"]
    assert "STS13" in line
