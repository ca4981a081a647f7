"""`--until decided`: rounds, looks and seeds; a kill in the middle; budgets; what cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import harness
from harness.cli import main
from harness.comparison import placement
from harness.comparison.until import Look
from harness.errors import InputError
from harness.results.manifest import read_manifest
from tests.support import short_runs

pytestmark = pytest.mark.usefixtures("few_pairs")

EXPERIMENT: dict[str, Any] = {
    "name": "small",
    "seeds": [4, 2],
    "suites": ["Embedded-STS-natural"],
    "methods": [
        {"method": "pooling", "name": "mean"},
        {"method": "random", "name": "A", "config": {"dimension": 8}},
        {"method": "random", "name": "B", "config": {"dimension": 16}},
    ],
}
BASE = "embedded:mini-bert"


class Told:
    """A decider that answers what it is told, look by look; None kills the process there."""

    rule = "as told"

    def __init__(self, *answers: str | None) -> None:
        self.answers, self.seen = list(answers), []

    def __call__(self, workdir: Path, comparison: str) -> Look:
        manifest = read_manifest(workdir, comparison)
        assert manifest is not None
        number = len(manifest["until"]["looks"])
        self.seen.append({(c["row"], c["seed"]): c["look"] for c in manifest["cells"]})
        answer = self.answers[number - 1]
        if answer is None:
            raise KeyboardInterrupt
        rows = {"mean": "mean" in answer, **{row: row in answer for row in "AB"}}
        return Look(frozenset((BASE, row) for row, goes in rows.items() if goes), ({"row": "A", "state": "open"},), "x")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch):
    short_runs.no_report(monkeypatch)

    def use(*answers: str | None) -> Told:
        decider = Told(*answers)
        monkeypatch.setattr("harness.comparison.until._decider", lambda: decider)
        return decider

    return use


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One work directory for all tests: each comparison has a name of its own, and their runs are the same."""
    return tmp_path_factory.mktemp("until")


def compared(folder: Path, name: str, **options: Any) -> tuple[harness.Comparison, dict[str, Any]]:
    until = harness.Until(**{"most": 6, **options})
    result = harness.compare({**EXPERIMENT, "name": name}, workdir=folder, tracked=False, until=until)
    manifest = read_manifest(folder, name)
    assert manifest is not None
    return result, manifest


def seeds(result: harness.Comparison) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for record in result.records:
        found.setdefault(record.row, []).append(record.seed)
    return found


def test_rows_in_contention_get_one_seed_more_in_an_order_fixed_beforehand(told, folder: Path) -> None:
    decider = told("mean A B", "A", "")
    result, manifest = compared(folder, "rounds", order=(9, 1, 7, 5))
    assert seeds(result) == {"mean": [4], "A": [4, 2, 9, 1, 7], "B": [4, 2, 9, 1]}  # mean: no seed enters it
    until = manifest["until"]
    assert until["seeds"] == [4, 2, 9, 1, 7, 5]
    assert (until["first"], until["most"], until["ended"]) == (3, 6, "decided")
    assert [look["seeds"] for look in until["looks"]] == [3, 4, 5]
    looks = {(c["row"], c["seed"]): c["look"] for c in manifest["cells"]}
    assert [looks["A", seed] for seed in (4, 2, 9, 1, 7)] == [1, 1, 1, 2, 3]
    assert looks["B", 1] == 2
    assert len(decider.seen[0]) == 7


def test_a_kill_at_a_look_and_the_same_call_come_to_the_same_end(told, folder: Path, monkeypatch) -> None:
    told("A", None)
    with pytest.raises(KeyboardInterrupt):
        compared(folder, "killed", order=(9, 1, 21, 22))
    ran = []
    cell = placement.run_cell
    monkeypatch.setattr(placement, "run_cell", lambda c, *a, **k: ran.append(c.label) or cell(c, *a, **k))
    told("A", "B", "")
    again, resumed = compared(folder, "killed", order=(9, 1, 21, 22))
    assert ran == [f"B · {BASE} · seed 21"]  # the third round's: all before were kept
    whole, manifest = compared(folder, "whole", order=(9, 1, 21, 22))
    assert resumed["until"] == manifest["until"]
    assert resumed["cells"] == manifest["cells"]
    assert [r.id for r in again.records] == [r.id for r in whole.records]


def test_no_round_is_begun_beyond_a_budget_or_the_most_seeds(told, folder: Path) -> None:
    told(*["A B"] * 9)
    result, manifest = compared(folder, "budgets", order=(9, 1, 7, 5), runs=10)
    assert len(result.records) == 9  # 7 at first, 2 a round
    assert manifest["until"]["ended"] == "budget"
    result, manifest = compared(folder, "budgets", order=(9, 1, 7, 5), hours=1e-9)
    assert (len(result.records), manifest["until"]["ended"]) == (7, "budget")
    result, manifest = compared(folder, "four", order=(9, 1), most=4)
    assert (len(result.records), manifest["until"]["ended"]) == (9, "seeds")
    with pytest.raises(InputError, match="the first look takes 7, 3 of every row"):
        compared(folder, "budgets", order=(9, 1, 7, 5), runs=5)


def test_what_was_fixed_beforehand_is_not_changed_after_a_look(told, folder: Path) -> None:
    told("", "")
    compared(folder, "fixed", order=(9, 1, 7, 5))
    with pytest.raises(InputError, match=r"looked at as one of at most 6 seeds.*a name of its own"):
        compared(folder, "fixed", order=(9, 1, 7, 5, 6, 8), most=8)
    compared(folder, "fixed", order=(9, 1, 7, 5), runs=50, equivalence=1)


def test_where_no_seed_enters_what_is_open_it_ends(told, folder: Path) -> None:
    told("mean")
    _, manifest = compared(folder, "seedless", order=(9, 1, 7, 5))
    assert manifest["until"]["ended"] == "decided"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--most-seeds 8", "--most-seeds: goes with --until decided"),
        ("--until decided --most-seeds 2", "--most-seeds 2: the first look takes 3"),
        ("--until decided --budget soon", "--budget soon: expected runs or hours, as 40runs or 3h"),
        ("--until decided --budget 0runs", "--budget 0runs: expected more than 0"),
        ("--until decided --budget 4runs", "--budget 4runs: the first look takes"),
        ("--until decided --more-seeds 3,11", "--more-seeds: 3 stands twice"),
        ("--until decided --more-seeds 11", "are fewer than --most-seeds 15"),
        ("--until decided --more-seeds x", "--more-seeds x: expected numbers with commas"),
        ("--until decided --equivalence -1", "--equivalence -1: a number of points, 0 or more"),
        ("--until decided --rehearse", "--until: a rehearsal decides nothing"),
        ("--until decided --set methods.SCD.seeds=[1]", "--until: adds seeds that all rows have in common"),
    ],
)
def test_what_cannot_be_is_one_line(words: str, said: str, tmp_path: Path, capsys) -> None:
    assert main(["compare", "demo", "--workdir", str(tmp_path / "w"), "--no-tracking", *words.split()]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "w" / "comparisons").exists()


def test_a_dry_run_shows_the_first_look_and_what_may_follow(tmp_path: Path, capsys) -> None:
    file = tmp_path / "small.toml"
    file.write_text('seeds = [1]\nsuites = ["Embedded-STS-natural"]\n[[methods]]\nmethod = "random"\n')
    words = ["--until", "decided", "--dry-run", "--budget", "2h"]
    assert main(["compare", str(file), "--workdir", str(tmp_path / "w"), *words]) == 0
    said = capsys.readouterr().out
    assert "3 seeds a row; then seed by seed where a decision is open, 2 hours in all, 15 runs at the very most" in said
    assert "small: 3 cells" in said
