"""Scores from outcomes, against scikit-learn and SciPy on the examples written out as often as they
were drawn.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import average_precision_score, f1_score

from harness.results.outcomes import COLUMNS, is_mean, outcomes_frame, score_of, scores_of, value_of

rng = np.random.default_rng(0)
N = 200
GRADES = np.round(rng.uniform(0, 5, N), 1)
PREDICTED = np.round(GRADES + rng.normal(size=N), 1)  # ties on both sides
GOLD = rng.integers(0, 2, N)
GUESS = np.where(rng.random(N) < 0.7, GOLD, 1 - GOLD)
SIMILAR = np.round(GOLD + rng.normal(size=N), 1)
REFERENCES = {
    "pearson": (GRADES, PREDICTED, lambda y, x: stats.pearsonr(y, x)[0]),
    "spearman": (GRADES, PREDICTED, lambda y, x: stats.spearmanr(y, x)[0]),
    "f1": (GOLD, GUESS, f1_score),
    "ap": (GOLD, SIMILAR, average_precision_score),
    "max_ap": (GOLD, SIMILAR, average_precision_score),
}
REFERENCES |= {f"cosine_{metric}": about for metric, about in REFERENCES.items()}  # as mteb says


@pytest.mark.parametrize("metric", REFERENCES)
def test_a_weight_counts_as_often_as_the_example_were_there(metric: str) -> None:
    y, x, reference = REFERENCES[metric]
    drawn = rng.multinomial(N, np.full(N, 1 / N), size=3)
    expected = [reference(np.repeat(y, times), np.repeat(x, times)) for times in drawn]
    assert scores_of(metric, y, x, drawn) == pytest.approx(expected, abs=1e-12)
    assert score_of(metric, y, x, np.ones(N)) == pytest.approx(reference(y, x), abs=1e-12)
    assert not is_mean(metric)


def test_any_other_metric_is_the_mean_and_looks_at_no_target() -> None:
    assert is_mean("accuracy")
    assert score_of("accuracy", np.full(4, np.nan), [1, 0, 1, 1], [1, 1, 1, 1]) == 0.75
    assert score_of("ndcg_at_10", [np.nan] * 2, [0.5, 1.0], [3, 1]) == 0.625


def test_what_knows_nothing_scores_zero() -> None:
    assert score_of("spearman", [1, 2, 3], [5, 5, 5], np.ones(3)) == 0
    assert score_of("f1", [1, 1, 0], [0, 0, 0], np.ones(3)) == 0


def test_a_score_is_the_mean_over_its_subsets() -> None:
    about = {"task": "T", "source": "s", "split": "test", "metric": "accuracy"}
    frame = pd.concat(
        [
            outcomes_frame(**about, subset="a", outcome=[1, 1, 1, 0], unit=[7, 8, 9, 9]),
            outcomes_frame(**about, subset="b", outcome=[0, 1], unit=[7, 1]),
        ]
    )
    assert list(frame.columns) == [
        "task",
        "source",
        "split",
        "subset",
        "metric",
        "example",
        "unit",
        "outcome",
        "target",
    ]
    assert set(frame.columns) == set(COLUMNS)
    assert value_of(frame) == (0.75 + 0.5) / 2
