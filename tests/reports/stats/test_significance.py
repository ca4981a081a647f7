"""Verdicts of a comparison from its records: what is judged, against whom, on which tasks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reports.load import read_comparison
from reports.stats.estimate import Estimate
from reports.stats.significance import NOT_JUDGED, Difference, Significance
from reports.stats.verdicts import (
    Ranking,
    describe_detectable,
    judge_family,
    kind_of,
    planned_family,
)
from reports.tables.certainty import pairs_table
from reports.targets import targets
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


def test_random_vectors_say_nothing_about_the_spread_of_training_and_are_no_contenders(made):
    add(made, "SimCSE", (1, 2, 3), 0.3)
    add(made, "SCD", (1, 2, 3), 1.0)
    comparison, significance = read(made)
    target = significance.targets[0]
    before = significance.parts(*sorted(comparison.rows, key=lambda row: row.label), target)
    for seed in (1, 2, 3):
        add(made, "random", (seed,), 15.0 * seed, supervision="untrained", pooling=None)
    comparison, significance = read(made)
    rows = {row.label: row for row in comparison.rows}
    assert significance.parts(rows["SCD"], rows["SimCSE"], target) == before
    block = Ranking(comparison.rows, significance, target)
    assert [row.label for row in block.controls] == ["random"]
    families = {pair: d.family for pair, d in block.differences.items()}
    assert families[0, 1] == "the only pair of rows"
    assert families[0, 2] == families[1, 2] == "2 rows against the control random"


def test_two_seeds_are_not_judged_and_lead_nothing(made):
    add(made, "SimCSE", (1, 2), 0.3)
    add(made, "SCD", (1, 2, 3), 1.0)
    add(made, "Barlow Twins", (1, 2, 3), 3.0)
    comparison, significance = read(made)
    rows = {row.label: row for row in comparison.rows}
    target = significance.targets[0]
    (difference,) = significance.differences([(rows["SimCSE"], rows["SCD"])], target, "one pair")
    assert difference is not None
    assert difference.verdict == kind_of(difference) == NOT_JUDGED
    block = Ranking(comparison.rows, significance, target)
    assert block.candidates[0].label == "SCD"
    assert [row.label for row in block.unjudged] == ["SimCSE"]


def test_rows_of_the_same_runs_count_once(made):
    add(made, "SimCSE", (1, 2, 3), 1.0)
    add(made, "SCD", (1, 2, 3), 1.3)
    comparison, significance = read(made)
    target = significance.targets[0]
    simcse, scd = sorted(comparison.rows, key=lambda row: row.label != "SimCSE")
    twin = replace(simcse, label="SimCSE again")
    (alone,) = significance.differences([(simcse, scd)], target, "one")
    twice = Significance(replace(comparison, rows=(simcse, twin, scd)))
    found = twice.differences([(simcse, twin), (simcse, scd), (twin, scd)], target, "three")
    assert [d.estimate.p for d in found] == pytest.approx(
        [1, alone.estimate.p, alone.estimate.p], rel=0.02
    )


def test_planned_pairs_are_corrected_for_their_own_number_alone(made):
    for i in range(5):
        add(made, f"SCD {i}", (1, 2, 3), 1 + i / 8)
    comparison, _ = read(made)
    comparison = replace(comparison, baseline="SCD 4", contrasts=())
    family = planned_family(comparison)
    assert (len(family.pairs), family.name) == (4, "4 rows against the baseline SCD 4")
    significance = Significance(comparison)
    block = Ranking(comparison.rows, significance, significance.targets[0])
    for (a, b), d in judge_family(family, significance, significance.targets[0]):
        i, j = block.rows.index(a), block.rows.index(b)
        assert d.estimate.p <= block.differences[min(i, j), max(i, j)].estimate.p + 1e-6
    one = planned_family(replace(comparison, baseline="", contrasts=(("SCD 0", "SCD 1"),)))
    assert [(a.label, b.label) for a, b in one.pairs] == [("SCD 0", "SCD 1")]


def test_finished_models_are_compared_with_each_other_and_with_trained_rows(made):
    for number, noise in enumerate((1.0, 4.0)):
        made.add(
            f"pretrained {number}",
            0,
            noise=noise,
            base=f"org/model-{number}",
            supervision="supervised",
            tasks=TASKS,
            geometry=False,
            curves=False,
        )
    comparison, significance = read(made)
    (block,) = (
        Ranking(rows, significance, significance.targets[0]) for rows in comparison.blocks.values()
    )
    assert [row.label for row in block.candidates] == ["pretrained 0"]
    add(made, "SimCSE", (1, 2, 3), 0.3)
    add(made, "SCD", (1, 2, 3), 0.5)
    comparison, significance = read(made)
    (rows,) = comparison.blocks.values()
    assert len(rows) == 4
    for label in ("SimCSE", "SCD"):
        add(made, label, (1, 2, 3), 0.3, base="a/larger-model")
    assert list(map(len, read(made)[0].blocks.values())) == [2, 2, 2]


def test_rows_without_a_seed_are_judged_on_one_run(made):
    made.add("mean", 0, noise=3.0, supervision="untrained", tasks=TASKS, geometry=False)
    add(
        made, "whitening", (0,), 0.5, supervision="transductive"
    )  # its card says that no seed enters
    comparison, significance = read(made)
    rows = {row.label: row for row in comparison.rows}
    pairs = [(rows["whitening"], rows["mean"])]
    (difference,) = significance.differences(pairs, significance.targets[0], "one pair")
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
    block = Ranking(comparison.rows, significance, significance.targets[0])
    best, second, last = block.rows
    assert last.label == "SimCSE 2"
    assert block.groups() == [(0, 1), (2,)]
    assert [row.label for row in block.candidates] == [best.label, second.label]
    assert block.not_the_best(last)
    ahead, near = block.differences[0, 2], block.differences[0, 1]
    assert (kind_of(ahead), kind_of(ahead.reversed)) == ("better", "worse")
    assert block.detectable is not None
    assert 100 * ahead.estimate.value > max(block.detectable)
    assert kind_of(near) == "cannot tell yet"
    assert kind_of(near, equivalence=50) == "no difference that matters"


def test_intervals_and_verdicts_of_a_comparison_agree(made):
    for i in range(5):
        add(made, f"SCD {i}", (1, 2, 3), 1 + i / 8)
    comparison, significance = read(made)
    block = Ranking(comparison.rows, significance, significance.targets[0])
    found = list(block.differences.values())
    assert len(found) == 10
    assert len({d.verdict for d in found}) > 1
    for d in found:
        assert (d.verdict != "not significant") == (d.estimate.low > 0 or d.estimate.high < 0)
        assert np.sign(d.estimate.value) == {"better": 1, "worse": -1}.get(
            d.verdict, np.sign(d.estimate.value)
        )


@pytest.mark.parametrize(
    ("different", "groups", "ranks"),
    [
        (set(), [(0, 1, 2, 3)], [(1, 4)] * 4),
        ({(0, 3)}, [(0, 1, 2), (1, 2, 3)], [(1, 3), (1, 4), (1, 4), (2, 4)]),
        (
            {(0, 2), (1, 3)},
            [(0, 1), (0, 3), (1, 2), (2, 3)],
            [(1, 3), (1, 3), (2, 4), (2, 4)],
        ),  # not transitive, and groups that are no neighbours
        (
            {(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)},
            [(0,), (1,), (2,), (3,)],
            [(1, 1), (2, 2), (3, 3), (4, 4)],
        ),
    ],
)
def test_rows_share_a_group_if_and_only_if_they_do_not_differ(
    made, monkeypatch, different, groups, ranks
):
    """A rank lies from 1 + the rows found better to k - the rows found worse (arXiv 2606.08679)."""
    for i in range(4):
        add(made, f"SimCSE {i}", (1, 2, 3), 1.0 + i)
    comparison, significance = read(made)
    block = Ranking(comparison.rows, significance, significance.targets[0])
    pairs = {
        (i, j): Difference(
            Estimate(0.1, 0.0, 0.2, 0.001 if (i, j) in different else 0.5), (3, 3), "all"
        )
        for i in range(4)
        for j in range(i + 1, 4)
    }
    monkeypatch.setattr(block, "differences", pairs)
    assert block.groups() == groups
    assert [block.rank_interval(row) for row in block.rows] == ranks


def test_of_two_rows_none_is_worse_that_does_not_differ(
    made: synthetic.Invented, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One row tested from one side may be no candidate where the pair's two-sided p is above 5 %."""
    add(made, "SimCSE", (1, 2, 3), 1.0)
    add(made, "SCD", (1, 2, 3), 1.1)
    comparison, significance = read(made)
    block = Ranking(comparison.rows, significance, significance.targets[0])
    best, other = block.contenders
    one_sided = {best.key: True, other.key: False}
    monkeypatch.setattr(significance, "may_be_best", lambda rows, target: one_sided)
    estimate = Estimate(0.02, -0.001, 0.041, 0.06)
    monkeypatch.setattr(block, "differences", {(0, 1): Difference(estimate, (3, 3), "all")})
    assert block.candidates == [best, other]
    assert not block.not_the_best(other)


def test_ranks_of_many_rows_are_not_said_to_hold_at_95_percent(made: synthetic.Invented) -> None:
    for label in ("SimCSE", "SCD"):
        add(made, label, (1, 2, 3), 1.0)
    comparison, significance = read(made)
    block = Ranking(comparison.rows, significance, significance.targets[0])
    for count, certainty in ((11, "95 %"), (12, "q ≤ 0.05")):
        block.contenders = [block.contenders[0]] * count
        heads = {column.key: column for column in pairs_table(block, "", 0).columns}
        assert heads["rank"].sub == certainty


def test_what_is_found_has_the_range_of_the_pairs(made: synthetic.Invented) -> None:
    """Beside a row whose examples differ, the least difference of two like rows says nothing."""
    for label, noise in (("SimCSE", 1.0), ("SCD", 1.001), ("other", 6.0)):
        add(made, label, (1, 2, 3), noise)
    comparison, significance = read(made)
    block = Ranking(comparison.rows, significance, significance.targets[0])
    assert block.detectable is not None
    least, most = block.detectable
    half_widths = [
        50 * (d.estimate.high - d.estimate.low) for d in block.differences.values() if d.judged
    ]
    assert least > min(half_widths)
    assert most > max(half_widths)
    assert most > 1.5 * least
    words = describe_detectable(least, most)
    assert f"{least:.1f}" in words
    assert f"{most:.1f}" in words
    assert describe_detectable(2.0, 2.01) == describe_detectable(2.0)
