"""Tables of accuracies are judged as those of STS: marks, decimals, what guessing scores, and why
there is nothing.
"""

from __future__ import annotations

import numpy as np
import pytest

from harness.results.facts import DRAWS, KEY, SETS
from harness.results.outcomes import outcomes_frame
from harness.results.store import RunFolder, join_examples
from harness.tasks.senteval.transfer import TRANSFER
from reports.document.table import number
from reports.load import read_comparison
from reports.stats.influence import of_spearman
from reports.stats.significance import Significance
from reports.stats.verdicts import starts
from reports.tables.limits import limits
from reports.tables.score_table import with_decimals
from reports.tables.suites import other_tables, sts_tables, suite_tables
from reports.targets import Measure, alone
from tests.support import synthetic
from tests.support.invented_outcomes import EXAMPLES, add_transfer


@pytest.fixture
def made(tmp_path):
    return synthetic.Invented(tmp_path, scale=0.1)


def read(made):
    comparison = read_comparison(made.workdir, "invented")
    return comparison, Significance(comparison)


def rows_of(table):
    return {row.cells[0].text: row for row in table.rows}


def test_transfer_is_judged_on_its_average_and_what_is_worse_is_marked(made):
    for seed in (1, 2, 3):
        for label, right in (("SimCSE", 0.8), ("SCD", 0.797), ("Barlow Twins", 0.6)):
            add_transfer(made, label, seed, right)
    comparison, significance = read(made)
    (table,) = suite_tables(comparison, significance)
    rows = rows_of(table)
    assert {label for label, row in rows.items() if any(cell.worse for cell in row.cells)} == {
        "Barlow Twins"
    }
    assert not any(
        cell.worse for row in rows.values() for cell in row.cells[:-1]
    )  # the average decides
    (target,) = significance.targets  # in a comparison without sentence pairs the report goes by it
    assert len(target.measures) == len(TRANSFER)


def test_tasks_without_an_average_are_judged_each(made):
    for seed in (1, 2, 3):
        for label, right in (("SimCSE", 0.8), ("SCD", 0.6)):
            add_transfer(made, label, seed, right, tasks=("MR", "CR"))
    comparison, significance = read(made)
    (table,) = suite_tables(comparison, significance)
    assert [cell.rank for cell in rows_of(table)["SimCSE"].cells[3:]] == [1, 1]
    assert rows_of(table)["SCD"].cells[3].worse


def test_the_standard_error_of_an_accuracy_is_that_of_its_texts(made):
    """By hand: texts that are there twice count as one, with the sum of their deviations."""
    add_transfer(made, "SimCSE", 1, 0.7, tasks=("MR",), supervision="untrained")
    comparison, significance = read(made)
    (row,) = comparison.rows
    target = alone(Measure("MR", "senteval", "accuracy", ""))
    own = np.random.default_rng([1, 0, len("SimCSE"), 700]).uniform(size=EXAMPLES)
    correct = 0.7 * np.random.default_rng(0).uniform(size=EXAMPLES) + 0.3 * own < 0.7
    off = correct - correct.mean()
    text = np.array([number - (number % 3 == 2) for number in range(EXAMPLES)])
    sums = np.bincount(text, off)
    units = len(np.unique(text))
    variance = max(np.sum(sums**2), np.sum(off**2)) / EXAMPLES**2 * units / (units - 1)
    assert significance.examples_variance(row, target) == pytest.approx(variance)
    assert significance.standard_error(row, target) == pytest.approx(
        variance**0.5
    )  # one seed: of the examples alone


def test_runs_without_outcomes_have_no_marks(made):
    for seed in (1, 2, 3):
        for label, right in (("SimCSE", 0.8), ("SCD", 0.79)):
            add_transfer(made, label, seed, right, outcomes=False)
    comparison, significance = read(made)
    (table,) = suite_tables(comparison, significance)
    assert not any(cell.worse for row in table.rows for cell in row.cells)
    assert rows_of(table)["SimCSE"].cells[3].digits == 2  # nothing is known of the noise


def test_the_scores_of_guessing_are_below_the_rows(made):
    facts = dict.fromkeys(TRANSFER, (0.5, 0.6))
    for seed in (1, 2, 3):
        add_transfer(made, "SimCSE", seed, 0.8, facts=facts | {"TREC": (1 / 6, 0.2)})
        add_transfer(made, "SCD", seed, 0.7)
    (table,) = suite_tables(*read(made))
    guessing, commonest = table.rows[-2:]
    assert (guessing.cells[0].text, commonest.cells[0].text) == ("guessing", "commonest class")
    assert [round(cell.value or 0, 1) for cell in guessing.cells[3:]] == [
        50,
        50,
        50,
        50,
        50,
        16.7,
        50,
        45.2,
    ]
    assert commonest.cells[-1].value == pytest.approx((6 * 60 + 20) / 7)
    assert not guessing.ranked


def test_decimals_follow_the_noise_and_values_stay_whole():
    cell = with_decimals(number(76.254, sd=0.317), 1)
    assert (cell.text, cell.spread, cell.value, cell.shown) == ("76.3", "± 0.3", 76.254, 76.3)


def test_pairs_that_share_a_text_are_drawn_together(made):
    records = [
        made.add(label, seed, tasks=("STS-B",), geometry=False, curves=False, noise=noise)
        for seed in (1, 2)
        for label, noise in (("SimCSE", 1.0), ("SCD", 1.2))
    ]
    comparison, significance = read(made)
    (target,) = significance.targets
    alone_ = significance.examples_variance(comparison.rows[0], target)
    folders = [RunFolder(made.workdir, r.id) for r in records]
    first = folders[0].pairs()
    moved = of_spearman(first["gold"].to_numpy(), first["score"].to_numpy())[1]
    shared = (
        np.argsort(np.argsort(moved)) // 6
    )  # pairs that move the score alike have their first sentence in common
    for folder in folders:
        examples = join_examples(
            folder.pairs().assign(text1=shared, text2=2**50 + np.arange(len(shared))), None
        )
        assert examples is not None
        folder.write_examples(examples)
    comparison, significance = read(made)
    assert significance.examples_variance(comparison.rows[0], target) > 2 * alone_


@pytest.mark.parametrize(("unit", "share"), [(SETS, 10), (DRAWS, 1)])
def test_sets_that_are_draws_of_one_collection_do_not_divide_its_chance(made, unit, share):
    values = np.array([0.31, 0.35, 0.33, 0.29, 0.36, 0.34, 0.3, 0.32, 0.37, 0.28], dtype=np.float32)
    record = made.add("mean", 0, tasks=(), curves=False, geometry=False, supervision="untrained")
    task = "Embedded-Clustering"
    made.extend(
        record,
        [synthetic.score(task, "embedded-mteb", "embedded", "v_measure", float(values.mean()))],
        figures={task: {KEY: {"unit": unit}}},
    )
    frame = outcomes_frame(
        task=task,
        source="embedded",
        split="test",
        metric="v_measure",
        outcome=values,
        unit=np.arange(10),
    )
    examples = join_examples(None, frame)
    assert examples is not None
    RunFolder(made.workdir, record.id).write_examples(examples)
    comparison, significance = read(made)
    target = alone(Measure(task, "embedded", "v_measure", ""))
    found = significance.examples_variance(comparison.rows[0], target)
    assert found == pytest.approx(np.var(values, ddof=1) / share)


def test_nothing_is_marked_or_called_tested_where_no_two_rows_have_three_seeds(made):
    for label, noise in (("SimCSE", 0.8), ("SCD", 1.0), ("SG", 1.2)):
        for seed in (1, 2):
            made.add(label, seed, noise=noise, tasks=("STS12", "STS-B"), curves=False)
    comparison, significance = read(made)
    (table,) = sts_tables(comparison, significance)
    assert not any(cell.rank for row in table.rows for cell in row.cells)
    assert not any("Tested" in text for text in table.legend)
    for label, noise in (("SimCSE", 0.8), ("SCD", 1.0)):
        made.add(label, 3, noise=noise, tasks=("STS12", "STS-B"), curves=False)
    comparison, significance = read(made)
    (table,) = sts_tables(comparison, significance)
    assert any(cell.rank == 1 for row in table.rows for cell in row.cells)
    assert any("Tested" in text for text in table.legend)


@pytest.mark.parametrize(("metric", "marked"), [("spearman", True), ("cost_of_calls", False)])
def test_a_task_of_a_suite_that_is_not_installed_is_marked_by_its_metric(made, metric, marked):
    for label, value in (("SimCSE", 0.5), ("SCD", 0.4)):
        record = made.add(label, 1, tasks=(), curves=False, geometry=False)
        score = synthetic.score("tickets", "tickets", "own", metric, value)
        made.extend(record, [score])
    comparison, _ = read(made)
    (table,) = other_tables(comparison, None, shown=())
    assert any(cell.rank == 1 for row in table.rows for cell in row.cells) == marked
    assert any("which way is better" in text for text in table.legend) != marked


def test_the_limits_say_which_rows_use_their_last_checkpoint(made):
    for label, select in (("SimCSE", "best"), ("SCD", "last")):
        for seed in (1, 2, 3):
            config = {"select": select}
            made.add(label, seed, tasks=("STS12",), curves=False, config=config)
    said = " ".join(limits(*read(made)).items)
    assert "(of SCD the last one)" in said


def test_the_limits_name_the_families_that_each_have_5_percent(made):
    for seed in (1, 2, 3):
        for label, right in (("SimCSE", 0.8), ("SCD", 0.6)):
            add_transfer(made, label, seed, right)
    comparison, significance = read(made)
    assert "families" not in " ".join(
        limits(comparison, significance).items
    )  # one has nothing to add
    full = synthetic.full(made.workdir / "full", scale=0.05)
    comparison = read_comparison(full.workdir, "invented")
    family = starts(comparison)
    assert family.pairs
    said = " ".join(limits(comparison, Significance(comparison)).items)
    assert f"2 families (all pairs of rows; {family.name})" in said
