"""Comparisons whose seeds were added until decided: who the decider sends on, and what reports say of all looks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli import main
from harness.results.manifest import write_manifest
from reports.comparison.headline import headline
from reports.decide.sequential import DECIDER
from reports.read.comparison_runs import read_comparison
from reports.stats.significance import Significance
from reports.stats.simultaneous import AllPairs
from reports.tables.looks_table import looks_table
from tests.support import synthetic

BASE = "embedded:mini-bert"
NOISES = {"SimCSE": 1.0, "SCD": 1.05, "Barlow Twins": 4.0}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[tuple[str, int], str]]:
    """Five seeds of two rows that are near, three of one that is far, one of the base."""
    work = tmp_path_factory.mktemp("work")
    made = synthetic.Invented(work, comparison="fixed", scale=0.3)
    more = {"tasks": ("STS-B",), "geometry": False, "curves": False}
    ids = {("mean", 1): made.add("mean", 1, noise=3.0, supervision="untrained", **more).id}
    for label, noise in NOISES.items():
        for seed in range(1, 4 if label == "Barlow Twins" else 6):
            ids[label, seed] = made.add(label, seed, noise=noise, **more).id
    return work, ids


def manifest(runs, name: str, looks: int, most: int = 15, ended: str = "", equivalence: float = 0.5, **more) -> Path:
    """Looks with three seeds, four, ...; rows that were sent on have a seed more at each."""
    work, ids = runs
    cells = [
        {"id": run, "row": row, "base_model": BASE, "seed": seed, "look": max(1, seed - 2)}
        for (row, seed), run in ids.items()
        if seed < 3 + max(looks, 1)
    ]
    taken = [{"seeds": 3 + look, "by": "STS-B", "rows": []} for look in range(looks)]
    until = {"kind": "decided", "rule": "as it is", "first": 3, "most": most, "equivalence": equivalence}
    until |= {"seeds": list(range(1, most + 1)), "looks": taken, "ended": ended}
    tree = {"schema": 3, "name": name, "title": name, "description": "", "experiment": {}, "cells": cells, **more}
    write_manifest(work, {**tree, "tasks": None, "until": until})
    return work


def differences(work: Path, name: str):
    comparison = read_comparison(work, name)
    rows = {row.label: row for row in comparison.rows}
    significance = Significance(comparison)
    pairs = [(rows["SimCSE"], rows[other]) for other in ("SCD", "Barlow Twins", "mean")]
    return significance, significance.between(pairs, significance.targets[0], AllPairs(4))


def test_the_far_row_is_out_and_seeds_go_to_the_near_ones(runs) -> None:
    work = manifest(runs, "first", looks=1)
    look = DECIDER(work, "first")
    states = {row["row"]: row["state"] for row in look.said}
    assert states["Barlow Twins"] == "out"
    near = {"SimCSE", "SCD"}
    assert {label for _, label in look.contending} in (near, set())
    assert {states[label] for label in near} in ({"leads", "open"}, {"leads", "will hardly be told"})
    alike = DECIDER(manifest(runs, "alike", looks=1, equivalence=60), "alike")
    assert "no difference that matters" in {row["state"] for row in alike.said}
    assert not alike.contending


def test_a_look_costs_and_all_of_them_count(runs) -> None:
    fixed, plain = differences(runs[0], "fixed")
    _, sequential = differences(manifest(runs, "three", looks=3), "three")
    for one, other in zip(plain, sequential, strict=True):
        assert one is not None
        assert other is not None
        assert other.estimate.value == pytest.approx(one.estimate.value)
        assert other.estimate.p >= one.estimate.p
        assert (other.estimate.p <= 0.05) == (other.estimate.low > 0 or other.estimate.high < 0)
    assert sequential[0].estimate.p > plain[0].estimate.p
    significance, first = differences(manifest(runs, "one", looks=1), "one")
    # p is the smallest of the looks', each divided by its share: more looks never make it larger.
    assert sequential[1].estimate.p <= first[1].estimate.p
    assert len(significance.targets) == len(fixed.targets) == 1


def test_runs_of_a_round_that_has_not_ended_are_one_more_look(runs) -> None:
    work = manifest(runs, "begun", looks=2)
    tree = json.loads((work / "comparisons" / "begun.json").read_text())
    tree["until"]["looks"].pop()
    write_manifest(work, tree)
    looks = read_comparison(work, "begun").looks
    assert looks is not None
    assert looks.seeds == (3, 4)


def test_reports_and_verdicts_say_how_often_it_was_looked_at(runs, capsys) -> None:
    work = manifest(runs, "said", looks=3, ended="decided")
    comparison = read_comparison(work, "said")
    significance = Significance(comparison)
    assert "seeds were added where a decision was open, 3 looks" in headline(comparison, significance)
    table = looks_table(comparison, significance)
    assert table is not None
    assert [[cell.text for cell in line.cells][:3] for line in table.rows] == [
        ["1", "3", "10"], ["2", "4", "12"], ["3", "5", "14"],
    ]  # fmt: skip
    assert any("less than 5 %" in line for line in table.legend)
    words = ["verdict", str(work), "SimCSE", "Barlow Twins", "--comparison", "said"]
    assert main(words) == 0
    assert "corrected for all pairs of 4 rows and 3 looks." in capsys.readouterr().out
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["corrected_for_looks"] == 3
