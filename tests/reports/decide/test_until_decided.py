"""Comparisons whose seeds were added until decided: which rows get another seed, and verdicts over
all analyses.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.cli import main
from harness.results.comparison import ComparisonFile, ListedAnalysis, ListedRun, SeedsAdded
from harness.results.record import Record
from harness.results.store import read_comparison_file, read_records, write_comparison_file
from reports.decide.sequential import analyse
from reports.load import read_comparison
from reports.stats.significance import Difference, Significance
from reports.tables.certainty import interim_analyses_table
from tests.support import synthetic
from tests.support.simulated_until import decide_at_once, decide_in_full, draw_scores

NOISES = {"SimCSE": 1.0, "SCD": 1.05, "Barlow Twins": 4.0}


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five seeds of two rows that are near, three of one that is far, one of the base."""
    work = tmp_path_factory.mktemp("work")
    made = synthetic.Invented(work, comparison="fixed", scale=0.3)
    more: dict[str, Any] = {"tasks": ("STS-B",), "geometry": False, "curves": False}
    made.add("mean", 1, noise=3.0, supervision="untrained", **more)
    for label, noise in NOISES.items():
        for seed in range(1, 4 if label == "Barlow Twins" else 6):
            made.add(label, seed, noise=noise, **more)
    return work


def write(work: Path, name: str, analyses: int, equivalence: float = 0.5, ended: str = "") -> None:
    """Analyses with three seeds, four, ...; rows in contention have one more seed at each."""
    own: list[Record] = [r for r in read_records(work, "fixed") if r.seed < 3 + max(analyses, 1)]
    runs = [
        ListedRun(
            id=r.id,
            row=r.row,
            base_model=r.base_model,
            seed=r.seed,
            analysis=max(1, r.seed - 2),
        )
        for r in own
    ]
    taken = [ListedAnalysis(seeds=3 + number, by="STS-B", rows=()) for number in range(analyses)]
    until = SeedsAdded(
        kind="decided",
        rule="",
        first=3,
        most=15,
        equivalence=equivalence,
        seeds=tuple(range(1, 16)),
        analyses=tuple(taken),
        ended=ended,
    )
    tasks = ("senteval:STS-B",)
    file = ComparisonFile(name=name, tasks=tasks, runs=tuple(runs), until=until)
    write_comparison_file(work, file)


def differences(work: Path, name: str) -> list[Difference]:
    comparison = read_comparison(work, name)
    rows = {row.label: row for row in comparison.rows}
    significance = Significance(comparison)
    (target,) = significance.targets
    pairs = [(rows["SimCSE"], rows[other]) for other in ("SCD", "Barlow Twins", "mean")]
    return [d for d in significance.differences(pairs, target, "three pairs") if d is not None]


def test_the_far_row_is_out_and_seeds_go_to_the_near_ones(work: Path) -> None:
    write(work, "first", analyses=1)
    analysis = analyse(work, "first")
    states = {row["row"]: row["state"] for row in analysis.rows}
    assert states["Barlow Twins"] == "out"
    near = {"SimCSE", "SCD"}
    assert {label for _, label in analysis.contending} in (near, set())
    assert {states[label] for label in near} in (
        {"leads", "open"},
        {"leads", "unlikely to be decided"},
    )
    write(work, "alike", analyses=1, equivalence=60)
    alike = analyse(work, "alike")
    assert "no difference that matters" in {row["state"] for row in alike.rows}
    assert not alike.contending


def test_every_analysis_counts(work: Path) -> None:
    write(work, "one", analyses=1)
    write(work, "three", analyses=3)
    plain, sequential = differences(work, "fixed"), differences(work, "three")
    assert len(plain) == len(sequential) == 3
    for one, other in zip(plain, sequential, strict=True):
        assert other.estimate.value == pytest.approx(one.estimate.value)
        assert other.estimate.p >= one.estimate.p
        assert (other.estimate.p <= 0.05) == (other.estimate.low > 0 or other.estimate.high < 0)
    assert sequential[0].estimate.p > plain[0].estimate.p
    # p is the smallest of all analyses, each divided by its share: more analyses never make it
    # larger.
    assert sequential[1].estimate.p <= differences(work, "one")[1].estimate.p


def test_runs_of_a_round_that_has_not_ended_are_one_more_analysis(work: Path) -> None:
    write(work, "begun", analyses=2)
    file = read_comparison_file(work, "begun")
    assert file is not None
    assert file.until is not None
    until = file.until.model_copy(update={"analyses": file.until.analyses[:-1]})
    write_comparison_file(work, file.model_copy(update={"until": until}))
    analyses = read_comparison(work, "begun").analyses
    assert analyses is not None
    assert analyses.seeds == (3, 4)


def test_reports_and_verdicts_say_how_many_analyses_there_were(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(work, "ended", analyses=3, ended="decided")
    comparison = read_comparison(work, "ended")
    table = interim_analyses_table(comparison, Significance(comparison))
    assert table is not None
    assert "(n / 15)²" in table.legend[0]  # as `share_of_analysis` spends the level
    assert [[cell.value for cell in line.cells][:3] for line in table.rows] == [
        [1, 3, 10],
        [2, 4, 12],
        [3, 5, 14],
    ]
    assert (
        main(
            [
                "verdict",
                "--workdir",
                str(work),
                "SimCSE",
                "Barlow Twins",
                "--comparison",
                "ended",
                "--json",
            ]
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out)["corrected_for_interim_analyses"] == 3


def test_seeds_are_added_until_the_verdict_on_two_rows_is_known() -> None:
    """Two rows one point apart. The short form of the rules is in numpy, from their description, and
    is what shows the error and the power of many comparisons in docs/statistics.md.
    """
    scores = draw_scores(1.0, (0.84, 0.84), 10)
    full = decide_in_full(scores, 1.0)
    short = decide_at_once(scores, 1.0)
    assert np.array_equal(full.seeds, short.seeds)
    assert np.array_equal(full.different, short.different)
    assert 3 <= full.different.sum() < 10
    assert full.covered.all()


def test_a_row_far_behind_gets_no_seeds_and_two_near_ones_do() -> None:
    scores = draw_scores(1.0, (0.3, 0.3, 0.3), 2)
    scores[:, 2] -= 10
    full = decide_in_full(scores, 1.0)
    assert full.different.all()
    assert (full.seeds < 6).all()
