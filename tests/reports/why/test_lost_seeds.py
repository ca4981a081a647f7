"""Rows of a design of which seeds were lost: no seed counts twice, and none is made up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.errors import InputError
from reports.load import read_comparison
from reports.stats.significance import Significance
from reports.why.explanation import DesignRows, explain
from reports.why.shares import Design
from tests.support import synthetic

TASKS = ("STS-B",)
FIRST = frozenset({0})
LABELS = {frozenset[int](): "SimCSE", FIRST: "TSDAE"}


@pytest.fixture
def made(tmp_path: Path) -> synthetic.Invented:
    return synthetic.Invented(tmp_path, scale=0.1)


def add(made: synthetic.Invented, label: str, lost: Sequence[int], seeds: int = 3) -> None:
    for seed in range(1, seeds + 1):
        status = "collapsed" if seed in lost else "finished"
        made.add(label, seed, noise=1.0, status=status, tasks=TASKS, curves=False, geometry=False)


def read(made: synthetic.Invented) -> tuple[DesignRows, Significance]:
    comparison = read_comparison(made.workdir, "invented")
    significance = Significance(comparison)
    target = significance.targets[0]
    return DesignRows(comparison, significance, target, LABELS), significance


def test_a_row_with_one_seed_of_three_is_not_one_without_randomness(
    made: synthetic.Invented,
) -> None:
    add(made, "SimCSE", lost=())
    add(made, "TSDAE", lost=(1, 2))
    rows, _ = read(made)
    assert set(rows.lacking) == {FIRST}
    assert "1 of 3" in rows.lacking[FIRST]


def test_shares_and_means_are_of_the_seeds_that_all_rows_have(made: synthetic.Invented) -> None:
    add(made, "SimCSE", lost=(4,), seeds=5)
    add(made, "TSDAE", lost=(1,), seeds=5)
    rows, significance = read(made)
    assert rows.seeds == [2, 3, 5]
    factors = [("method", "method")]
    target = significance.targets[0]
    found = explain(rows, Design(1), factors, ("TSDAE", "SimCSE"), target)
    start, end = found.rows
    assert (start.runs, end.runs) == (3, 3)
    assert end.mean - start.mean == pytest.approx(100 * found.shares[0].share.value)


def test_too_few_seeds_that_all_rows_have_are_an_error(made: synthetic.Invented) -> None:
    add(made, "SimCSE", lost=(1, 2), seeds=5)
    add(made, "TSDAE", lost=(4, 5), seeds=5)
    rows, _ = read(made)
    with pytest.raises(InputError) as caught:
        _ = rows.seeds
    assert caught.value.key == "why"
