"""SentEval's other head, scikit-learn's logistic regression: its L-BFGS on the whole training set, without dev rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from harness.tasks.senteval.fits.parallel import on_all_cores
from harness.tasks.senteval.fits.problem import Array, Classifier, Solution, Split


def solve_by_sklearn(
    x: Array, y: Array, splits: Sequence[Split], c: Array, config: Classifier, threads: int
) -> Solution:
    """As `harness.tasks.senteval.fits.solve.solve`, with values of C instead of L2 weights."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    accuracy = np.zeros(c.shape)
    predicted = [np.zeros((c.shape[1], len(split.test)), dtype=np.int64) for split in splits]

    def fit(part: tuple[int, int]) -> None:
        s, r = part
        split = splits[s]
        head = LogisticRegression(C=float(c[s, r]), random_state=config.seed).fit(x[split.train], y[split.train])
        if len(split.held_out):
            accuracy[s, r] = head.score(x[split.held_out], y[split.held_out])
        if len(split.test):
            predicted[s][r] = head.predict(x[split.test])

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # SentEval leaves it at scikit-learn's 100 iterations
        on_all_cores(fit, [(s, r) for s in range(len(splits)) for r in range(c.shape[1])], threads)
    return Solution(accuracy, predicted)
