"""What a published number is made of decides where ours expect it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from harness.errors import InputError
from reports.papers import definition
from reports.papers.agreement import judge, prediction_of_difference
from reports.papers.matching import Matching
from reports.papers.reported import Reported, best_interval, prediction_interval
from reports.read.run_library import read_library
from tests.support import invented_runs as made

STSB = {"uri": "stsb-sentences", "kind": "sentences", "count": 17_256, "sha256": "cd" * 32}


def test_a_mean_of_eight_runs_by_hand() -> None:
    # mean 72, s 2, t(2; 0.975) = 4.30265: 4.30265 * 2 * sqrt(1/8 + 1/3) = 5.82580
    assert prediction_interval([70, 72, 74], runs=8) == pytest.approx((66.17420, 77.82580), abs=1e-4)


def test_a_mean_is_covered_and_held_to_the_interval_of_one_run_it_would_be_so_too_often() -> None:
    rng = np.random.default_rng(3)
    narrow = wide = 0
    for _ in range(4000):
        values, mean = rng.normal(70, 1.3, size=4).tolist(), rng.normal(70, 1.3, size=8).mean()
        low, high = prediction_interval(values, runs=8)
        narrow += low <= mean <= high
        low, high = prediction_interval(values)
        wide += low <= mean <= high
    assert narrow / 4000 == pytest.approx(0.95, abs=0.012)
    assert wide / 4000 > 0.98


def test_a_difference_of_means_of_runs_by_hand() -> None:
    # variances 4 and 1 of three values each, means of five: 4 (1/5 + 1/3) + 1 (1/5 + 1/3) = 8/3, Welch's freedom 2.941
    variance = 8 / 3
    freedom = variance**2 / ((4 * 8 / 15) ** 2 / 2 + (8 / 15) ** 2 / 2)
    half = stats.t.ppf(0.975, freedom) * math.sqrt(variance)
    assert prediction_of_difference(1.0, [[70, 72, 74], [69, 70, 71]], runs=5) == pytest.approx((1 - half, 1 + half))


@pytest.mark.parametrize(("n", "runs", "correlation"), [(3, 5, 0.0), (3, 5, 0.7), (3, 5, 1.0), (8, 2, 0.0)])
def test_the_best_by_dev_is_covered_however_well_dev_tells(n: int, runs: int, correlation: float) -> None:
    rng = np.random.default_rng(11)
    trials = 20_000
    ours = rng.normal(70, 1.3, size=(trials, n))
    dev = rng.normal(size=(trials, runs))
    test = 70 + 1.3 * (correlation * dev + math.sqrt(1 - correlation**2) * rng.normal(size=(trials, runs)))
    best = test[np.arange(trials), dev.argmax(axis=1)]
    low, high = best_interval([-1.0, *[0.0] * (n - 2), 1.0], runs)  # mean 0: the bounds in units of s
    s = math.sqrt(2 / (n - 1))
    mean, deviation = ours.mean(axis=1), ours.std(axis=1, ddof=1)
    covered = ((best >= mean + low / s * deviation) & (best <= mean + high / s * deviation)).mean()
    assert 0.943 < covered < 0.98


def test_the_best_of_many_is_expected_above_one_run_and_no_lower() -> None:
    low, high = best_interval([70, 72, 74], 5)
    one_low, one_high = prediction_interval([70, 72, 74])
    assert high > one_high
    assert abs(low - one_low) < 0.25 * (high - low)


def test_the_verdict_says_what_it_was_held_against() -> None:
    values = [70.0, 72.0, 74.0]
    assert judge(78, values).kind == "inside"
    assert judge(78, values, reported=Reported(runs=8)).text == (
        "above our interval for a mean of 8 runs [66.17, 77.83]"
    )
    assert judge(85, values, reported=Reported(runs=5, by="best")).text.startswith(
        "inside our interval for the best of 5 runs ["
    )
    assert judge(31.45, [31.4], deterministic=True, reported=Reported(runs=8)).kind == "inside"


def test_self_guided_s_numbers_are_means_of_eight_runs(tmp_path: Path) -> None:
    """By its definition; 74.62 is published for SG-OPT."""
    paper = definition.load("self-guided")
    assert paper is not None
    for seed, value in enumerate((71.0, 72.0, 73.0), 1):
        made.run(tmp_path, "self_guided", made.recipe("self_guided"), seed, scores=made.sts(value), corpus=STSB)
    (found,) = [
        j for j in Matching(paper, read_library(tmp_path)).rows
        if (j.published["table"], j.published["model"], j.published["task"]) == (
            "Ablation table", "SG-OPT (L_opt3)", "STS Avg. (all STS test sets)")
    ]  # fmt: skip
    assert (found.verdict.low, found.verdict.high) == pytest.approx(prediction_interval([71, 72, 73], runs=8))
    assert "a mean of 8 runs" in found.verdict.text


def test_rows_and_tables_may_say_otherwise() -> None:
    table, row = Reported(runs=5, by="best"), Reported(runs=3)
    paper = definition.load("self-guided")
    assert paper is not None
    first = paper.tables[0]
    assert paper.reported_as(first, first.rows[0]) == Reported(runs=8)
    first = first.model_copy(update={"reported": table})
    assert paper.reported_as(first, first.rows[0]) == table
    assert paper.reported_as(first, first.rows[0].model_copy(update={"reported": row})) == row
    with pytest.raises(InputError, match="reported"):
        definition.Definition.parse({"name": "x", "title": "x", "paper": "x", "published": "x", "tables": [],
                                     "reported": {"runs": 0}}, "x.toml")  # fmt: skip
