"""Whether to keep a model: chosen on the dev set, judged on the test set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.errors import InputError
from reports.decide.adoption import Adoption, count_needed, decide
from reports.decide.power_answer import power
from reports.decide.question import question_of
from reports.decide.verdict_answer import verdict
from reports.load import read_comparison
from tests.support import synthetic

TASKS = ("STS-B",)


@pytest.fixture
def made(tmp_path: Path) -> synthetic.Invented:
    return synthetic.Invented(tmp_path, scale=0.1)


def add(made: synthetic.Invented, label: str, noise: float) -> None:
    for seed in (1, 2, 3):
        made.add(label, seed, noise=noise, tasks=TASKS, curves=False, geometry=False)


def answer(made: synthetic.Invented, dev: dict[str, float]) -> Adoption:
    """Decide with one dev score a row; its second seed has a little more."""
    results = read_comparison(made.workdir, "invented")
    scores = {r.id: dev[r.row] + (0.001 if r.seed == 2 else 0) for r in results.records}
    return decide(results, question_of(results, ""), "start", scores)


def test_a_better_row_is_adopted_with_its_best_run_on_the_dev_set(
    made: synthetic.Invented,
) -> None:
    add(made, "start", 3.0)
    add(made, "SimCSE", 0.3)
    add(made, "TSDAE", 2.9)
    found = answer(made, {"start": 0.2, "SimCSE": 0.8, "TSDAE": 0.3})
    assert (found.decision, found.row) == ("adopt", "SimCSE")
    assert found.data["test"]["SimCSE"]["low"] > 0
    chosen = next(r for r in read_comparison(made.workdir, "invented").records if r.id == found.run)
    assert (chosen.row, chosen.seed) == ("SimCSE", 2)


def test_the_row_is_chosen_on_the_dev_set_and_not_by_its_test_score(
    made: synthetic.Invented,
) -> None:
    add(made, "start", 3.0)
    add(made, "SimCSE", 0.3)
    add(made, "TSDAE", 1.0)
    found = answer(made, {"start": 0.2, "SimCSE": 0.5, "TSDAE": 0.6})
    assert found.row == "TSDAE"
    means = {label: one["difference"] for label, one in found.data["test"].items()}
    assert means["SimCSE"] > means["TSDAE"]


def test_a_model_is_kept_only_if_all_upper_limits_are_below_the_margin(
    made: synthetic.Invented,
) -> None:
    add(made, "start", 0.2)
    add(made, "SimCSE", 4.0)
    add(made, "TSDAE", 5.0)
    dev = {"start": 0.9, "SimCSE": 0.5, "TSDAE": 0.4}
    found = answer(made, dev)
    assert found.decision == "keep"
    assert max(one["high"] for one in found.data["test"].values()) < 0.5
    add(made, "CT", 0.22)  # as good as the model, but for chance
    found = answer(made, {**dev, "CT": 0.89})
    upper = found.data["test"]["CT"]["high"]
    assert (found.decision == "keep") == (upper < 0.5)
    assert upper > 0.5


def test_so_many_examples_find_a_difference_in_four_of_five_cases() -> None:
    wanted, critical, by_seeds, by_examples, count = 0.02, 2.6, 1e-5, 4e-3, 150
    needed = count_needed(wanted, critical, by_seeds, by_examples, count)
    assert needed is not None
    shares = []
    for examples in (needed, needed / 2):
        error = np.sqrt(by_seeds + by_examples * count / examples)
        drawn = np.random.default_rng(0).normal(wanted, error, 100_000)
        shares.append((drawn > critical * error).mean())
    assert shares[0] == pytest.approx(0.8, abs=0.02)
    assert shares[1] < 0.6


def test_no_number_of_examples_makes_up_for_the_spread_over_seeds() -> None:
    assert count_needed(0.01, 2.6, 1e-3, 4e-3, 150) is None


def test_without_seeds_some_number_of_examples_always_does(made: synthetic.Invented) -> None:
    # (critical value + 0.8416)^2 x variance x count / difference^2
    expected = (2.6 + 0.8416) ** 2 * 4e-3 * 150 / 1e-6**2
    assert count_needed(1e-6, 2.6, 0.0, 4e-3, 150) == pytest.approx(expected, rel=0.1)
    for label, noise in (("start", 1.0), ("SimCSE", 1.1)):
        made.add(
            label, noise=noise, supervision="untrained", tasks=TASKS, curves=False, geometry=False
        )
    found = power(made.workdir, 0.01, a="SimCSE", b="start")
    assert found.data[0]["needed_examples"] > 1_000_000
    assert "0.01 points" in found.text
    assert "more than 1,000,000" in found.text
    assert "seeds" not in found.text


def test_a_large_loss_says_nothing_of_a_small_gain(made: synthetic.Invented) -> None:
    add(made, "start", 1.0)
    add(made, "SimCSE", 4.0)
    add(made, "CT", 1.0001)
    found = answer(made, {"start": 0.2, "SimCSE": 0.8, "CT": 0.3})
    assert found.decision == "undecided"
    assert found.data["test"]["SimCSE"]["high"] < -5
    half = (found.data["test"]["SimCSE"]["high"] - found.data["test"]["SimCSE"]["low"]) / 2
    assert half > 0.5  # so that a gain of 0.5 points would not be found
    assert "would be found" not in found.text


def test_power_of_two_rows_is_that_of_their_own_spread(made: synthetic.Invented) -> None:
    """A third row with another spread changes the general table, but not what is said of two."""
    add(made, "start", 0.7)
    add(made, "SimCSE", 1.1)
    first = power(made.workdir, a="SimCSE", b="start").data[0]
    told = verdict(made.workdir, "SimCSE", "start").data
    assert [first[key] for key in ("difference", "low", "high")] == [
        told[key] for key in ("difference", "low", "high")
    ]
    assert first["detectable"] > (first["high"] - first["low"]) / 2
    larger = power(made.workdir, 50.0, a="SimCSE", b="start").data[0]
    smaller = power(made.workdir, 0.01, a="SimCSE", b="start").data[0]
    assert larger["wanted"] == 50.0
    assert smaller["needed_examples"] is None or (
        smaller["needed_examples"] > larger["needed_examples"]
    )
    with pytest.raises(InputError):
        power(made.workdir, a="SimCSE")


def test_examples_that_are_there_already_are_not_asked_for(tmp_path: Path) -> None:
    many = synthetic.Invented(tmp_path, scale=1.0)
    for label, noise in (("start", 0.18), ("SimCSE", 0.177)):
        for seed in (1, 2, 3):
            about = {"tasks": TASKS, "curves": False, "geometry": False}
            many.add(label, seed, noise=noise, supervision="untrained", **about)
    found = answer(many, {"start": 0.2, "SimCSE": 0.8})
    assert found.decision == "undecided"
    assert found.data["needed"] < found.data["examples"] == 1379
    assert "needed" not in found.text
    assert "0.5 points would be found in 80 %" in found.text


def test_where_seeds_differ_too_much_more_of_them_are_named(made: synthetic.Invented) -> None:
    add(made, "start", 1.0)
    for seed, noise in ((1, 0.6), (2, 1.0), (3, 1.6)):
        made.add("SimCSE", seed, noise=noise, tasks=TASKS, curves=False, geometry=False)
    found = answer(made, {"start": 0.2, "SimCSE": 0.8})
    assert (found.decision, found.data["needed"]) == ("undecided", None)
    assert "--seeds 6" in found.text


def test_rows_of_one_label_on_two_base_models_are_two(made: synthetic.Invented) -> None:
    add(made, "start", 1.0)
    about = {"tasks": TASKS, "curves": False, "geometry": False}
    for base, noise in (("embedded:mini-bert", 0.2), ("other/model", 4.0)):
        for seed in (1, 2, 3):
            made.add("SimCSE", seed, noise=noise, base=base, **about)
    results = read_comparison(made.workdir, "invented")
    dev = {}
    for row in results.rows:
        for record in row.records:
            dev[record.id] = 0.8 if row.key == ("embedded:mini-bert", "SimCSE") else 0.2
    found = decide(results, question_of(results, ""), "start", dev)
    assert (found.decision, found.row) == ("adopt", "SimCSE · mini-bert")
    assert found.data["test"]["SimCSE · mini-bert"]["low"] > 0
    assert found.data["test"]["SimCSE · model"]["high"] < 0
    twice = decide(results, question_of(results, ""), "SimCSE", dev)
    assert (twice.decision, twice.run) == ("undecided", "")
