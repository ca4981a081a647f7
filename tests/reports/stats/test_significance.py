"""Verdicts of a comparison from its records: what is judged, against whom, on which tasks."""

from __future__ import annotations

import numpy as np
import pytest

from reports.read.comparison_runs import read_comparison
from reports.stats.estimate import Estimate
from reports.stats.score_matrices import score_matrices
from reports.stats.significance import NOT_JUDGED, Difference, Significance
from reports.stats.targets import targets
from reports.stats.verdicts import Block, kind_of
from tests.support import synthetic

TASKS = ("STS12", "STS-B")


@pytest.fixture
def made(tmp_path):
    return synthetic.Invented(tmp_path, scale=0.1)


def add(made, label, seeds, noise, **rest):
    for seed in seeds:
        made.add(label, seed, noise=noise, curves=False, geometry=False, **{"tasks": TASKS, **rest})


def read(made):
    comparison = read_comparison(made.workdir, "invented")
    return comparison, Significance(comparison)


def test_random_vectors_say_nothing_about_the_spread_of_training(made):
    add(made, "SimCSE", (1, 2, 3), 0.3)
    add(made, "SCD", (1, 2, 3), 1.0)
    comparison, significance = read(made)
    target = significance.targets[0]
    before = {row.label: significance.spread(row, target) for row in comparison.rows}
    for seed in (1, 2, 3):
        add(made, "random", (seed,), 15.0 * seed, supervision="untrained", pooling=None)
    comparison, significance = read(made)
    after = {row.label: significance.spread(row, target) for row in comparison.rows}
    assert after["random"][0] > 10 * max(variance for variance, _ in before.values())
    assert {label: after[label] for label in before} == before


def test_one_seed_is_not_judged_and_leads_nothing(made):
    add(made, "SimCSE", (1,), 0.3)
    add(made, "SCD", (1, 2, 3), 1.0)
    add(made, "Barlow Twins", (1, 2, 3), 3.0)
    comparison, significance = read(made)
    rows = {row.label: row for row in comparison.rows}
    target = significance.targets[0]
    (difference,) = significance.differences([(rows["SimCSE"], rows["SCD"])], target)
    assert difference is not None
    assert difference.verdict == kind_of(difference) == NOT_JUDGED
    leaders = significance.leaders(comparison.rows, target)
    assert leaders is not None
    assert leaders.best.label == "SCD"
    assert [row.label for row in leaders.unjudged] == ["SimCSE"]


def test_rows_without_a_seed_are_judged_on_one_run(made):
    made.add("mean", 0, noise=3.0, supervision="untrained", tasks=TASKS, geometry=False)
    add(made, "whitening", (0,), 0.5, supervision="transductive")  # its card says that no seed enters
    comparison, significance = read(made)
    rows = {row.label: row for row in comparison.rows}
    (difference,) = significance.differences([(rows["whitening"], rows["mean"])], significance.targets[0])
    assert difference is not None
    assert difference.verdict == "better"


def test_a_task_of_few_rows_takes_no_average_away(made):
    for label in ("SimCSE", "SCD"):
        add(made, label, (1, 2), 1.0, tasks=("STS12", "STS13", "STS-B"))
    add(made, "Barlow Twins", (1, 2), 2.0, tasks=("STS12", "STS13", "STS14", "STS-B"))
    comparison, significance = read(made)
    (target,) = targets(comparison)
    assert [task for task, _ in target.tasks] == ["STS12", "STS13", "STS-B"]
    assert [measure.task for measure in target.others] == ["STS14"]
    assert all(significance.by_seed(row, target) is not None for row in comparison.rows)
    (matrix,) = score_matrices(comparison)
    assert (matrix.tasks, matrix.others) == (("STS12", "STS13", "STS-B"), ("STS14",))
    assert len(matrix.scores) == 3


def test_a_task_that_was_asked_for_and_is_missing_stays_in_the_average(made):
    for label in ("SimCSE", "SCD"):
        record = made.add(label, 1, tasks=TASKS, curves=False)
        made.extend(record, [], missing={"STS14": "the hub cannot be reached"})
    (target,) = targets(read_comparison(made.workdir, "invented"))
    assert [task for task, _ in target.tasks] == ["STS12", "STS14", "STS-B"]


def test_verdicts_groups_and_what_can_be_seen(made):
    for i, noise in enumerate((1.0, 1.001, 6.0)):
        add(made, f"SimCSE {i}", (1, 2, 3, 4), noise)
    comparison, significance = read(made)
    block = Block(comparison.rows, significance, significance.targets[0])
    best, second, last = block.rows
    assert last.label == "SimCSE 2"
    assert block.groups() == [(0, 1), (2,)]
    ahead = block.verdict(best, last)
    assert ahead.kind == "better"
    assert block.verdict(last, best).kind == "worse"
    assert ahead.another_seed == pytest.approx(1 - (block.verdict(last, best).another_seed or 0))
    assert ahead.detectable is not None
    assert 100 * ahead.difference.estimate.value > ahead.detectable
    near = block.verdict(best, second)
    assert near.kind == "cannot tell yet"
    assert block.verdict(best, second, equivalence=50).kind == "no difference that matters"


def test_intervals_and_verdicts_of_a_comparison_agree(made):
    for i in range(5):
        add(made, f"SCD {i}", (1, 2, 3), 1 + i / 8)
    comparison, significance = read(made)
    block = Block(comparison.rows, significance, significance.targets[0])
    found = list(block.differences().values())
    assert len(found) == 10
    assert len({d.verdict for d in found}) > 1
    for d in found:
        assert (d.verdict != "not separable") == (d.estimate.low > 0 or d.estimate.high < 0)
        assert np.sign(d.estimate.value) == {"better": 1, "worse": -1}.get(d.verdict, np.sign(d.estimate.value))


@pytest.mark.parametrize(
    ("different", "groups"),
    [
        (set(), [(0, 1, 2, 3)]),
        ({(0, 3)}, [(0, 1, 2), (1, 2, 3)]),
        ({(0, 2), (1, 3)}, [(0, 1), (0, 3), (1, 2), (2, 3)]),  # not transitive, and groups that are no neighbours
        ({(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)}, [(0,), (1,), (2,), (3,)]),
    ],
)
def test_rows_share_a_group_if_and_only_if_they_do_not_differ(made, monkeypatch, different, groups):
    for i in range(4):
        add(made, f"SimCSE {i}", (1, 2), 1.0 + i)
    comparison, significance = read(made)
    block = Block(comparison.rows, significance, significance.targets[0])
    pairs = {
        (i, j): Difference(Estimate(0.1, 0.0, 0.2, 0.001 if (i, j) in different else 0.5), (2, 2))
        for i in range(4)
        for j in range(i + 1, 4)
    }
    monkeypatch.setattr(Block, "differences", lambda _: pairs)
    assert block.groups() == groups
