"""The interval of one row's mean, by what its score is made of."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from reports.joined.joiner import JoinedResults
from reports.read.examples import Examples
from reports.results import ResultRow
from reports.scores.score_table import ScoredRun, question_of_scores
from reports.stats.significance import Significance
from reports.stats.simultaneous import mean_of_shares
from reports.targets import Measure, Target

PAIRS = 200


@pytest.mark.parametrize("metric", ["spearman", "cosine_spearman"])
def test_of_a_correlation_it_is_around_the_mean_also_below_zero(metric: str) -> None:
    """Cosines between 0 and 1 are no outcomes whose share is the score."""
    measure = Measure("STS12", "mteb", metric, "")
    generator = np.random.default_rng(0)
    gold = generator.uniform(0, 5, PAIRS)
    texts = np.arange(2 * PAIRS).reshape(PAIRS, 2)
    part = np.zeros(PAIRS, np.int64)
    collected = {}
    rows = []
    for label in ("a", "b"):
        runs = []
        for seed in (1, 2, 3):
            noise = generator.uniform(0, 1, PAIRS)
            cosine = 0.5 + 0.4 * (noise - gold / 5)
            run = ScoredRun(f"{label} {seed}", seed)
            runs.append(run)
            collected[run.id] = [Examples(measure.score, part, gold, cosine, texts, b"")]
        rows.append(ResultRow(label, "", tuple(runs)))
    results = JoinedResults("two", rows, collected=collected)
    target = Target("t", "STS12", "STS12", (measure,))
    found = Significance(results, targets=[target]).interval_of_mean(rows[0], target)
    assert found.value < -0.5
    assert found.low < found.value < found.high
    assert found.high - found.value == pytest.approx(found.value - found.low)


def test_scores_of_few_sets_that_hardly_differ_have_students_interval() -> None:
    """The V-measures of ten sets, as a table gives them: none is 0 or 1, so they show their spread."""
    lines = []
    generator = np.random.default_rng(0)
    outcomes = {"a": generator.normal(0.40, 0.01, 10), "b": generator.normal(0.50, 0.01, 10)}
    for row, scores in outcomes.items():
        for example, score in enumerate(scores):
            lines.append({"row": row, "example": str(example), "score": score, "scale": "1"})
    question = question_of_scores(pd.DataFrame(lines))
    row = next(row for row in question.results.rows if row.label == "a")
    found = question.significance.interval_of_mean(row, question.target)
    usual = stats.ttest_1samp(outcomes["a"], 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((usual.low, usual.high), abs=1e-3)


@pytest.mark.parametrize("right", [100_000, 99_990, 60_000])
def test_the_interval_of_an_accuracy_of_many_answers_is_wilsons(right: int) -> None:
    """Its middle is that of Agresti and Coull, which is Wilson's; so is its width with no seeds."""
    share = right / 100_000
    variance = share * (1 - share) / 100_000
    found = mean_of_shares(np.array([share]), variance, [100_000])
    wilson = stats.binomtest(right, 100_000).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((wilson.low, wilson.high), abs=2e-5)


@pytest.mark.parametrize("counts", [[20], [10, 10], [8, 8, 8]])
def test_an_interval_of_an_accuracy_of_few_answers_has_its_closed_form(counts: list[int]) -> None:
    """By Agresti and Coull's formula, with Student's t; a mean of tasks is as of all their answers."""
    n, share = sum(counts), 0.75
    t = stats.t.ppf(0.975, n - len(counts))
    middle = (n * share + t**2 / 2) / (n + t**2)
    half = t * (middle * (1 - middle) / (n + t**2)) ** 0.5
    found = mean_of_shares(np.array([share]), share * (1 - share) / n, counts)
    assert (found.low, found.high) == pytest.approx((middle - half, middle + half))


def test_three_seeds_add_their_variance_and_two_do_not() -> None:
    examples = 0.25 / 100_000
    three = mean_of_shares(np.array([0.4, 0.5, 0.6]), examples, [100_000])
    student = stats.ttest_1samp([0.4, 0.5, 0.6], 0).confidence_interval(0.95)
    assert (three.low, three.high) == pytest.approx((student.low, student.high), abs=1e-3)
    two = mean_of_shares(np.array([0.4, 0.6]), examples, [100_000])
    assert two.high - two.low == pytest.approx(2 * 1.96 * examples**0.5, rel=1e-3)
