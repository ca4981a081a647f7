"""A plan that was written before the results, and what the report says of what was done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import harness
from harness.cli import main
from harness.results.comparison import ComparisonFile
from harness.runs.frozen_plan import _contents, find_deviations, plan_file
from reports.load import read_comparison
from reports.read.plan_followed import read_frozen_plan
from tests.support import small_runs
from tests.support.bases import narrow_bert
from tests.support.errors import raises_input_error

pytestmark = pytest.mark.usefixtures("few_pairs", "no_report")

BASE = narrow_bert()
TEXT = f"""
base_models = ["{BASE}"]
seeds = [1, 2]
suites = ["Embedded-STS-natural"]
corpus = {{ uri = "embedded:sentences", limit = 64 }}
budget = {{ steps = 1 }}
baseline = "SimCSE"
dev = {{ task = "Embedded-STS-natural", pairs = 20 }}
methods = [
  {{ name = "SimCSE", method = "simcse", preset = "mini" }},
  {{ name = "SCD", method = "scd", preset = "mini" }},
]
"""


@pytest.fixture
def planned(tmp_path: Path) -> Path:
    """A work directory with the plan of the file `tmp_path/own.toml` in it."""
    (tmp_path / "own.toml").write_text(TEXT)
    assert (
        main(
            ["compare", str(tmp_path / "own.toml"), "--freeze", "--workdir", str(tmp_path / "work")]
        )
        == 0
    )
    return tmp_path / "work"


def found(work: Path, *overrides: str, text: str = TEXT) -> list[str]:
    """The deviations of the comparison that is run from this text."""
    (work.parent / "own.toml").write_text(text)
    harness.compare(
        str(work.parent / "own.toml"), workdir=work, overrides=overrides, tracking_uri="none"
    )
    plan = read_comparison(work, "own").plan
    assert plan is not None
    return plan.texts


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    """What was printed since the last call, in one line."""
    captured = capsys.readouterr()
    return " ".join(f"{captured.out} {captured.err}".split())


def test_a_comparison_is_as_planned_and_every_change_is_listed(planned: Path) -> None:
    assert found(planned) == []
    other = (
        TEXT.replace('baseline = "SimCSE"', "")
        .replace('"SCD", method', '"new", method')
        .replace("[1, 2]", "[1]")
    )
    changes = found(planned, "methods.SimCSE.config.temperature=0.5", text=other)
    assert sorted(changes) == [
        f"SCD · {BASE}: not run",
        f"SimCSE · {BASE}: seed 2 not run",
        f"SimCSE · {BASE}: temperature 0.5 instead of 0.0012",
        "baseline: planned SimCSE, now none",
        f"new · {BASE}: not planned",
    ]


def test_runs_before_the_plan_are_counted(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(TEXT)
    work = tmp_path / "work"
    harness.compare(str(tmp_path / "own.toml"), workdir=work, tracking_uri="none")
    file = str(tmp_path / "own.toml")
    assert main(["compare", file, "--freeze", "--workdir", str(work)]) == 0
    later = json.loads(plan_file(work, "own").read_text())["date"].replace(
        "20", "30", 1
    )  # the clock has seconds only
    plan_file(work, "own").unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harness.machine.environment.now", lambda: later)
        assert main(["compare", file, "--freeze", "--workdir", str(work)]) == 0
    assert found(work) == ["5 of 5 runs had begun before the plan was written"]


def test_a_plan_is_neither_replaced_nor_changed(
    planned: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = plan_file(planned, "own")
    assert (
        main(["compare", str(planned.parent / "own.toml"), "--freeze", "--workdir", str(planned)])
        == 2
    )
    assert "a plan is not replaced" in capsys.readouterr().err
    file.write_text(file.read_text().replace('"most_seeds": 2', '"most_seeds": 9'))
    with raises_input_error(file=file):
        read_frozen_plan(planned, ComparisonFile(name="own", runs=()), [])


def test_a_swapped_seed_is_listed_by_both_halves(planned: Path) -> None:
    changes = found(planned, text=TEXT.replace("[1, 2]", "[1, 3]"))
    for row in ("SimCSE", "SCD"):
        assert f"{row} · {BASE}: seed 2 not run" in changes
        assert f"{row} · {BASE}: seed 3 not planned" in changes


def test_the_dry_run_and_the_start_say_what_differs_from_the_plan(
    planned: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(planned.parent / "own.toml")
    digest = json.loads(plan_file(planned, "own").read_text())["sha256"][:12]
    same = ["compare", file, "--dry-run", "--workdir", str(planned)]
    assert main(same) == 0
    assert "differs from plan" not in printed(capsys)
    for command in (
        [*same, "--set", "shared.bucket=32"],
        [*same[:2], *same[3:], "--tracking-uri", "none", "--set", "shared.bucket=32"],
    ):
        assert main(command) == 0
        said = printed(capsys)
        assert f"differs from plan {digest}" in said
        assert "bucket 32 instead of 1" in said


def test_the_rule_by_which_seeds_are_added_is_a_part_of_the_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It decides when a comparison ends, and what a difference that does not matter is."""
    (tmp_path / "own.toml").write_text(TEXT)
    command = ["compare", str(tmp_path / "own.toml"), "--workdir", str(tmp_path / "work")]
    until = ["--until", "decided", "--max-seeds", "6"]
    assert main([*command, *until, "--freeze"]) == 0
    capsys.readouterr()
    changes = {
        (): "no seeds are added",
        tuple(until): "",
        (*until, "--equivalence", "2"): "equivalence of 2 points instead of 0.5",
        (*until[:3], "9"): "at most 9 seeds of a row instead of 6",
    }
    for options, change in changes.items():
        assert main([*command, *options, "--dry-run"]) == 0
        said = printed(capsys)
        assert ("differs from plan" in said) == bool(change), options
        assert change in said
    plan_file(tmp_path / "work", "own").unlink()
    assert main([*command, "--freeze"]) == 0
    capsys.readouterr()
    assert main([*command, *until, "--dry-run"]) == 0
    assert "seeds are added until decided" in printed(capsys)


def test_the_primary_score_is_one_that_the_file_evaluates(
    planned: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(planned.parent / "own.toml")
    command = ["compare", file, "--dry-run", "--workdir", str(planned), "--set"]
    assert main([*command, "primary=MRPC"]) == 2
    assert 'no score "MRPC"' in capsys.readouterr().err
    assert main([*command, "primary=Embedded-STS-natural"]) == 0
    said = printed(capsys)
    assert "primary: planned none, now Embedded-STS-natural" in said


def test_seeds_of_other_streams_are_other_runs() -> None:
    """Seed 2 in `init` alone and in `dropout` alone: to leave one of them out is a deviation."""
    both = {"seeds": [1, 2], "held_seed": 1}
    blocks = {"a": {"vary": ["init"]}, "b": {"vary": ["dropout"]}}
    frozen = _contents(small_runs.plan_of(**both, blocks=blocks), None)
    found = []
    for kept in ("a", "b"):
        now = _contents(small_runs.plan_of(**both, blocks={kept: blocks[kept]}), None)
        runs = now["runs"]
        found += find_deviations(frozen, runs, now["tasks"], now["analysis"], {}, None)
    row = f"SimCSE · {small_runs.BASE}"
    expected = [f"{row}: seed 2 (dropout) not run", f"{row}: seed 2 (init) not run"]
    assert [one.text for one in found] == expected
    same = find_deviations(frozen, frozen["runs"], frozen["tasks"], frozen["analysis"], {}, None)
    assert same == []
