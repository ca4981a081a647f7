"""The predictions of an mteb task, caught where mteb would write them to a file: what its scores are made of.

Nothing here may cost a score: whatever goes wrong is said, and the run has no outcomes of the task.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from harness.results.outcomes import value_of
from harness.tasks.mteb.examples import PAIR, clustering_rows, kind_of

TOLERANCE = 2e-5  # mteb rounds some scores to five decimals


class Predictions:
    """Attributes:
    folder: for mteb, which asks for predictions only where it may write them; None where they are of no use.
    examples: rows of `harness.tasks.mteb.examples` with split and subset, None before mteb has scored.
    fault: what went wrong, "" for nothing.
    """

    def __init__(self, task: Any, folder: Path) -> None:
        self.task = task
        self.kind = kind_of(task)
        self.folder = folder if self.kind.rows is not None else None
        self.fault = ""
        self._frames: list[pd.DataFrame] = []

    @property
    def examples(self) -> pd.DataFrame | None:
        """None where mteb read its scores from a file."""
        if self.fault:
            return pd.DataFrame()
        return pd.concat(self._frames, ignore_index=True) if self._frames else None

    def catch(self, part: Any, predictions: Any, *_: Any, hf_split: str, hf_subset: str, **__: Any) -> None:
        """Stands for mteb's way to a file, of `task` or of a part of it."""
        assert self.kind.rows is not None
        name = "" if part is self.task else part.metadata.name
        try:
            for rows in self.kind.rows(part, predictions, hf_split, hf_subset):
                labels = (name, hf_subset if hf_subset not in ("default", "parallel") else "", rows["subset"].iloc[0])
                subset = " ".join(label for label in labels if label)
                self._frames.append(rows.assign(split=hf_split, subset=subset))
        except Exception as error:
            self.fault = f"{type(error).__name__}: {str(error).partition(chr(10))[0]:.200}"


@contextmanager
def caught(task: Any) -> Iterator[Predictions]:
    """Catches what `task` predicts while mteb evaluates it."""
    with tempfile.TemporaryDirectory() as folder:
        predictions = Predictions(task, Path(folder))
        for part in getattr(task.metadata, "tasks", None) or [task]:
            part._save_task_predictions = partial(predictions.catch, part)
        yield predictions


def clustering(name: str, scores: Mapping[str, Sequence[Mapping[str, Any]]]) -> pd.DataFrame | None:
    """The rows of a clustering task, whose scores say all; None where they do not."""
    frames = []
    for split, subsets in scores.items():
        for one in subsets:
            for rows in clustering_rows(name, one):
                labels = (one.get("hf_subset", "default").replace("default", ""), *rows["subset"].head(1))
                frames.append(rows.assign(split=split, subset=" ".join(label for label in labels if label)))
    return pd.concat(frames, ignore_index=True) if frames else None


def sound(examples: pd.DataFrame, metric: str, value: float, splits: Sequence[str]) -> pd.DataFrame | None:
    """The rows of one score, if it follows from them; None where it does not, or they are of another metric.

    A task of several splits has a subset for each split and subset.
    """
    rows = examples[examples["metric"].isin((metric, PAIR))]
    if len(splits) > 1:
        rows = rows.assign(
            subset=[" ".join(names).strip() for names in zip(rows["split"], rows["subset"], strict=True)]
        )
    rows = rows.assign(split="+".join(splits))
    if not len(rows):
        return None
    as_scored = rows.assign(metric="spearman" if rows["metric"].iloc[0] == PAIR else metric)
    return rows if np.isclose(value_of(as_scored), value, rtol=0, atol=TOLERANCE) else None
