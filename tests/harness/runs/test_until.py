"""`--until decided`: rounds, interim analyses and seeds; a kill in between; budgets; input that
cannot be used.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.api import experiments
from harness.api.result import Comparison
from harness.cli import main
from harness.results.comparison import ComparisonFile
from harness.results.store import read_comparison_file
from harness.runs import runner
from harness.runs.until import Analysis, Until
from tests.support import small_runs
from tests.support.errors import raises_input_error
from tests.support.small_runs import BASE, CONTRAST

ROWS = [
    {"method": "pooling", "name": "mean"},
    {"method": "random", "name": "A", "config": {"dimension": 8}},
    {"method": "random", "name": "B", "config": {"dimension": 16}},
]


class Scripted:
    """An analysis with the given answers, one after the other; None kills the process there."""

    def __init__(self, *answers: str | None) -> None:
        self.answers = answers

    def __call__(self, workdir: Path, comparison: str) -> Analysis:
        file = read_comparison_file(workdir, comparison)
        assert file is not None
        assert file.until is not None
        answer = self.answers[len(file.until.analyses) - 1]
        if answer is None:
            raise KeyboardInterrupt
        going = frozenset((BASE, row) for row in ("mean", "A", "B") if row in answer.split())
        return Analysis(going, ({"row": "A", "state": "open"},), "x")


@pytest.fixture
def decide(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def use(*answers: str | None) -> None:
        more_seeds_of = experiments.more_seeds_of

        def made(until: Until, experiment: Any) -> Any:
            made = more_seeds_of(until, experiment)
            made.analyse = Scripted(*answers)
            return made

        monkeypatch.setattr(experiments, "more_seeds_of", made)

    return use


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One work directory for all tests: comparisons have names of their own, and share their runs."""
    return tmp_path_factory.mktemp("until")


def compare(folder: Path, name: str, **options: Any) -> tuple[Comparison, ComparisonFile]:
    until = Until(**{"most": 6, **options})
    done = small_runs.compare(
        folder, name=name, seeds=[4, 2], suites=[CONTRAST], dev=None, methods=ROWS, until=until
    )
    file = read_comparison_file(folder, name)
    assert file is not None
    return done, file


def test_open_rows_get_one_seed_more_in_an_order_that_is_fixed_beforehand(
    decide: Any, folder: Path
) -> None:
    decide("mean A B", "A", "")
    done, file = compare(folder, "rounds")
    seeds = {row: [r.seed for r in done.records if r.row == row] for row in done.rows}
    assert seeds == {"mean": [4], "A": [4, 2, 5, 6, 7], "B": [4, 2, 5, 6]}  # no seed enters "mean"
    until = file.until
    assert until is not None
    assert until.seeds == (4, 2, 5, 6, 7, 8)
    assert (until.first, until.most, until.ended) == (3, 6, "decided")
    assert [analysis.seeds for analysis in until.analyses] == [3, 4, 5]
    first = {(run.row, run.seed): run.analysis for run in file.runs}
    assert [first["A", seed] for seed in (4, 2, 5, 6, 7)] == [1, 1, 1, 2, 3]


def test_a_kill_at_an_analysis_and_the_same_call_come_to_the_same_end(
    decide: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide("A", None)
    with pytest.raises(KeyboardInterrupt):
        compare(folder, "killed")
    executed, execute = [], runner.execute
    monkeypatch.setattr(
        runner, "execute", lambda job, *a, **k: executed.append(job.place) or execute(job, *a, **k)
    )
    decide("A", "B", "")
    again, resumed = compare(folder, "killed")
    assert executed == [("B", BASE, 7)]  # the third round's
    whole, file = compare(folder, "whole")
    assert (resumed.until, resumed.runs) == (file.until, file.runs)
    assert [r.id for r in again.records] == [r.id for r in whole.records]


def test_no_round_is_started_beyond_the_most_seeds(decide: Any, folder: Path) -> None:
    decide(*["A B"] * 9)
    done, file = compare(folder, "four", most=4)
    assert file.until is not None
    assert (len(done.records), file.until.ended) == (9, "seeds")


def test_seeds_cannot_change_after_an_analysis(decide: Any, folder: Path) -> None:
    decide("", "")
    compare(folder, "fixed")
    with raises_input_error(key="--until"):
        compare(folder, "fixed", most=8)
    compare(folder, "fixed", equivalence=1)


@pytest.mark.parametrize(
    ("words", "key"),
    [
        ("--max-seeds 8", "--max-seeds"),
        ("--until decided --max-seeds 2", "--max-seeds 2"),
        (f"--until decided --max-seeds {10**30}", "--max-seeds"),
        ("--until decided --equivalence -1", "--equivalence -1"),
        ("--until decided --rehearse", "--until"),
        ('--until decided --set vary=["init"]', "varies init alone"),
        ("--tune 2 --set seeds=[101]", "seed 101"),
        ("--against nowhere", "nowhere"),
        ("--format pdff", "pdff"),
        ("--executor nowhere", "nowhere"),
        ("--workers 0", "workers"),
    ],
)
def test_options_that_cannot_be_used_are_one_line_and_write_nothing(
    words: str, key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(
            [
                "compare",
                "demo",
                "--workdir",
                str(tmp_path / "w"),
                "--tracking-uri=none",
                *words.split(),
            ]
        )
        == 2
    )
    (line,) = capsys.readouterr().err.splitlines()
    assert key in line
    assert not list((tmp_path / "w").glob("comparisons/*.json"))
