"""The order of rows and what it hangs on; the best of several further runs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from reports.stats.best_of import predict_best
from reports.stats.estimate import predict
from reports.stats.order import describe_order

TASKS = ["STS12", "STS13", "STS14"]


def test_an_order_that_no_task_changes() -> None:
    scores = np.array([[0.9, 0.8, 0.7], [0.5, 0.6, 0.4], [0.1, 0.2, 0.3]])
    text = describe_order(scores, ["A", "B", "C"], TASKS)
    assert text == (
        "The order of the 3 rows holds without any one of the 3 tasks, by mean rank and by median."
    )


def test_an_order_that_hangs_on_one_task_names_it_and_who_is_first_without() -> None:
    """A is before B by STS12 alone: means .6 and .55; without it .45 and .575; ranks 5/3, 4/3."""
    scores = np.array([[0.9, 0.4, 0.5], [0.5, 0.55, 0.6]])
    text = describe_order(scores, ["A", "B"], TASKS)
    assert text.startswith("The order of the 2 rows hangs on STS12 (without STS12 B is before A)")
    assert "by mean rank B is before A" in text
    assert "by median B is before A" in text


def test_rows_in_any_order_of_input_give_the_same_sentence() -> None:
    scores = np.array([[0.1, 0.2, 0.3], [0.9, 0.8, 0.7]])
    text = describe_order(scores, ["C", "A"], TASKS)
    assert "holds without any one" in text


@pytest.mark.parametrize("shape", [(1, 3), (3, 2)])
def test_one_row_or_two_tasks_say_nothing(shape: tuple[int, int]) -> None:
    assert describe_order(np.ones(shape), ["A", "B", "C"][: shape[0]], TASKS[: shape[1]]) == ""


@pytest.mark.parametrize("n", [2, 3, 8])
def test_the_best_of_one_run_is_one_run(n: int) -> None:
    values = list(70 + norm.ppf((np.arange(n) + 0.5) / n))
    wanted = predict(float(np.mean(values)), [values])
    found = predict_best(values, 1)
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high), rel=2e-3)


def test_its_coverage_by_simulation() -> None:
    """Of 400 samples of 4 runs the largest of 6 further ones is inside in 95 % (-+ 2.2 points)."""
    rng = np.random.default_rng(1)
    runs, further = rng.normal(size=(400, 4)), rng.normal(size=(400, 6)).max(axis=1)
    # one interval serves all: it moves with the mean and stretches with the standard deviation
    unit = predict_best(list((runs[0] - runs[0].mean()) / runs[0].std(ddof=1)), 6)
    z = (further - runs.mean(axis=1)) / runs.std(axis=1, ddof=1)
    assert np.mean((unit.low <= z) & (z <= unit.high)) == pytest.approx(0.95, abs=0.022)
