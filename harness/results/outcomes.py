"""What a score was made of: one number an example, so that examples can be resampled
(`examples.parquet` of a run).

A row holds one example of one score (`COLUMNS`). The score is the mean over its subsets of
`score_of` each subset: the mean of `outcome`, or where there is a `target` what the metric makes of
both. `unit` is what a bootstrap draws: rows of one unit are drawn together, as they are no
independent evidence (equal texts, the captions of one image).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

COLUMNS = ("task", "source", "split", "subset", "metric", "example", "unit", "outcome", "target")
"""Task, source, split and metric are those of the `Score`.

- subset: part of the task whose values the score is the mean of (a fold, a clustering set); ""
  where it is one
- example: its number in the task's data (in the subset's, where that is a data set of its own),
  int64
- unit: what a bootstrap draws, int64: the text_id of the example's text unless the task says
  otherwise
- outcome: float32: 1 for correct and 0 for wrong, the query's score; the prediction where `target`
  is given
- target: float32: the gold label or score of a metric that is no mean over examples, else NaN
"""
SCORE = ("task", "source", "split", "metric")  # the columns that say which score a row belongs to


def outcomes_frame(
    *,
    task: str,
    source: str,
    split: str,
    metric: str,
    outcome: ArrayLike,
    unit: ArrayLike,
    subset: str | Sequence[str] = "",
    example: ArrayLike | None = None,
    target: ArrayLike | None = None,
) -> pd.DataFrame:
    """The rows of one score; arrays are (n,), `subset` is one or that of each example. Examples are
    numbered from 0.
    """
    import pandas as pd

    outcomes = np.asarray(outcome, dtype=np.float32)
    n = len(outcomes)
    if example is None:
        example = np.arange(n)
    if target is None:
        target = np.full(n, np.nan)
    frame = pd.DataFrame(
        {
            "example": np.asarray(example, dtype=np.int64),
            "unit": np.asarray(unit, dtype=np.int64),
            "outcome": outcomes,
            "target": np.asarray(target, dtype=np.float32),
        }
    )
    about: dict[str, Any] = {
        "task": task,
        "source": source,
        "split": split,
        "subset": subset,
        "metric": metric,
    }
    for place, (column, value) in enumerate(about.items()):
        frame.insert(place, column, value)
    return frame


def is_mean(metric: str, target: ArrayLike | None = None) -> bool:
    """Is a score of this metric the mean of the examples' outcomes? Any is that has no `target`
    (all NaN).
    """
    if target is not None:
        gold = np.asarray(target, dtype=np.float64)
        if np.isnan(gold).all():
            return True
    return _rule(metric) is None


def score_of(metric: str, target: ArrayLike, outcome: ArrayLike, weights: ArrayLike) -> float:
    """The value of `metric` over n examples that count `weights` times each: 1 for all, or how
    often a bootstrap drew the unit of each.

    NaN where all weights are 0.
    """
    drawn = np.asarray(weights, dtype=np.float64)
    scores = scores_of(metric, target, outcome, drawn[None])
    return float(scores[0])


def scores_of(metric: str, target: ArrayLike, outcome: ArrayLike, weights: ArrayLike) -> Floats:
    """As `score_of`, for b draws at once: weights (b, n) give (b,)."""
    y = np.asarray(target, dtype=np.float64)
    x = np.asarray(outcome, dtype=np.float64)
    w = np.asarray(weights, dtype=np.float64)
    rule = None
    if not is_mean(metric, y):
        rule = _rule(metric)
    with np.errstate(invalid="ignore", divide="ignore"):
        if rule is not None:
            return rule(y, x, w)
        means: Floats = w @ x / w.sum(axis=1)
    return means


def value_of(rows: pd.DataFrame) -> float:
    """The score that the rows of one score (`SCORE`) belong to, but for its protocol's rounding."""
    metric = str(rows["metric"].iloc[0])
    values = []
    for _, part in rows.groupby("subset", sort=False):
        once = np.ones(len(part))
        values.append(score_of(metric, part["target"], part["outcome"], once))
    return float(np.mean(values))


def _rule(metric: str) -> Callable[[Floats, Floats, Floats], Floats] | None:
    """(target (n,), outcome (n,), weights (b, n)) -> (b,); None for a mean.

    A score of pairs by their cosines, such as mteb's "cosine_spearman", is that of their metric.
    """
    name = metric.removeprefix("cosine_")
    if name.endswith("_ap"):
        return _average_precision
    return _RULES.get(name)


def _f1(y: Floats, x: Floats, w: Floats) -> Floats:
    """F1 of class 1; 0 without a true positive."""
    hits = w @ ((x == 1) & (y == 1))
    claimed = w @ (x == 1)
    true = w @ (y == 1)
    both = np.maximum(claimed + true, 1e-300)
    return np.where(hits > 0, 2 * hits / both, 0.0)


def _pearson(y: Floats, x: Floats, w: Floats) -> Floats:
    of_y = np.broadcast_to(y, w.shape)
    of_x = np.broadcast_to(x, w.shape)
    return _correlation(of_y, of_x, w)


def _spearman(y: Floats, x: Floats, w: Floats) -> Floats:
    return _correlation(_ranks(y, w), _ranks(x, w), w)


def _correlation(y: Floats, x: Floats, w: Floats) -> Floats:
    """Of (b, n) each; 0 where a side is constant."""
    total = w.sum(axis=1, keepdims=True)
    mean_y = (w * y).sum(axis=1, keepdims=True) / total
    mean_x = (w * x).sum(axis=1, keepdims=True) / total
    y = y - mean_y
    x = x - mean_x
    both = (w * x * y).sum(axis=1)
    spread_x = (w * x * x).sum(axis=1)
    spread_y = (w * y * y).sum(axis=1)
    spread = np.sqrt(spread_x * spread_y)
    divisor = np.where(spread > 0, spread, 1.0)
    return np.where(spread > 0, both / divisor, 0.0)


def _ranks(x: Floats, w: Floats) -> Floats:
    """Ranks (b, n) of x (n,) where each value is there `w` times; equal values share their average."""
    _, place = np.unique(x, return_inverse=True)
    mass = np.zeros((len(w), place.max() + 1))
    for row, drawn in zip(mass, w, strict=True):
        row += np.bincount(place, weights=drawn, minlength=len(row))
    below_or_equal = np.cumsum(mass, axis=1)
    ranks = below_or_equal - mass / 2
    return ranks[:, place]


def _average_precision(y: Floats, x: Floats, w: Floats) -> Floats:
    """Of gold 0 or 1 by falling scores: the sum of precision times gain in recall at each distinct
    score.
    """
    order = np.argsort(-x, kind="stable")
    last = np.append(np.diff(x[order]) != 0, True)  # of each run of equal scores
    weight_above = np.cumsum(w[:, order], axis=1)
    true_above = np.cumsum((w * y)[:, order], axis=1)
    drawn = weight_above[:, last]
    true = true_above[:, last]
    divisor = np.where(drawn > 0, drawn, 1.0)
    precision = np.where(drawn > 0, true / divisor, 0.0)
    gain = np.diff(true, axis=1, prepend=0.0)
    total = true[:, -1]
    area = (precision * gain).sum(axis=1)
    average = area / np.maximum(total, 1e-300)
    return np.where(total > 0, average, 0.0)


_RULES = {
    "ap": _average_precision,
    "f1": _f1,
    "pearson": _pearson,
    "spearman": _spearman,
}
