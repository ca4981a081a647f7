"""What every task has in common: it announces texts, gets vectors for them, and returns scores.

Tasks never see an encoder. The union of all their texts is encoded once
(`harness.evaluation.scoring`), and every task reads the rows it needs from that one table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from harness.errors import RunError
from harness.results.record import Missing, Score

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[Any]
Vectors = Callable[[Sequence[str]], Array]
"""Texts (any that a task announced, repeats allowed) -> their vectors, (n, d) float32, in the same
order.
"""

Encode = Callable[[list[str]], Array]
"""What a method offers: texts -> (n, d) vectors."""


@dataclass
class TaskResult:
    """What an evaluation yields.

        >>> result = TaskResult(notes=["STS12: 3 pairs are constant"])
        >>> result.scores, result.pairs is None
        ([], True)

    `protocols` maps every id found in the scores to the description it was hashed from. `pairs`
    holds one row a scored pair (task, source, split, subset, pair, gold, score = cosine, text1,
    text2), None for tasks without pairs. `outcomes` holds one row an example of what other scores
    are made of (`harness.results.outcomes`), None for tasks that do not say. `notes` are sentences
    for the reader about anything unusual (NaN vectors, constant scores). `cost` has seconds and
    counts by name. `missing` says of each task without scores why it has none: an average over its
    suite is not complete. `figures` has by task what is drawn rather than tabled (a spectrum, a
    histogram), as plain lists and numbers; `artifacts` are results of other tools, file name ->
    text, and `errors` has the traceback of each task that failed.
    """

    scores: list[Score] = field(default_factory=list)
    protocols: dict[str, dict[str, Any]] = field(default_factory=dict)
    pairs: pd.DataFrame | None = None
    outcomes: pd.DataFrame | None = None
    notes: list[str] = field(default_factory=list)
    cost: dict[str, float] = field(default_factory=dict)
    missing: dict[str, Missing] = field(default_factory=dict)
    artifacts: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    figures: dict[str, dict[str, Any]] = field(default_factory=dict)

    def note_damaged(self, task: str, count: int) -> None:
        """Note that `count` vectors of a task held NaN or infinity, if any did."""
        self.notes += describe_damaged(task, count)


def describe_damaged(task: str, count: int) -> list[str]:
    """A sentence about `count` vectors of a task that held NaN or infinity; none where none did.

    >>> describe_damaged("STS-B", 2)
    ['STS-B: vectors with NaN or infinity, replaced by 0: 2']
    """
    if count:
        return [f"{task}: vectors with NaN or infinity, replaced by 0: {count}"]
    return []


class Task(Protocol):
    """One evaluation. Data is read on first use, so that listing and planning need none of it.

        >>> from harness.tasks.catalogue import resolve_tasks
        >>> (task,) = resolve_tasks(["Embedded-STS-natural"], source="senteval")
        >>> task.name, task.source, len(set(task.texts())) <= 2070
        ('Embedded-STS-natural', 'embedded', True)

    A class may have an attribute `version`: raise it when its scores change, and they are computed
    again. A class of a plugin that has none is identified by its code, as a method is (`version`
    and `data_files` of `harness.method.Method`), and its protocol ids have the hash.

    It may have a property `tested`, the texts of the examples that its outcomes number (`first` and
    `second`, empty where there is one a side), if each of them is judged separately: scores without
    some of them can then be computed.
    """

    @property
    def name(self) -> str: ...

    @property
    def suite(self) -> str: ...

    @property
    def source(self) -> str: ...

    @property
    def sha256(self) -> str:
        """Fingerprint of the data behind the task (reads the data)."""

    def texts(self) -> Sequence[str]:
        """Every text whose vector the task will ask for; repeats are harmless.

        Raises:
            InputError: the data is missing or damaged.
        """

    def evaluate(self, vectors: Vectors, *, pooling: str) -> TaskResult:
        """Scores from vectors. `pooling` only enters the protocol id: it names how the vectors were
        made.
        """


class ModelTask(Task, Protocol):
    """A task that needs the model itself: it looks into its layers, or times it. Its texts are not
    encoded for it.

    >>> from harness.tasks.catalogue import resolve_tasks
    >>> all(needs_model(task) for task in resolve_tasks(["embedded-layers"], source="senteval"))
    True
    """

    def evaluate_model(self, model: Any, *, device: str, pooling: str) -> TaskResult:
        """Scores of `model`: a fitted method, or whatever else has the `encode` of one; None when
        there is none.

        Raises:
            InputError: a model of a kind that the task cannot use.
        """


def needs_model(task: Task) -> TypeGuard[ModelTask]:
    """Is `task` a `ModelTask`?

    >>> from harness.tasks.catalogue import resolve_tasks
    >>> needs_model(resolve_tasks(["Embedded-STS-natural"], source="senteval")[0])
    False
    """
    return hasattr(type(task), "evaluate_model")


def as_array(x: Any) -> Array:
    """A numpy view or copy of an array or torch tensor (on any device, with or without gradient).
    Never modifies it. What a masked array hides is NaN.

    >>> as_array([[1.0, 2.0]]).shape
    (1, 2)
    """
    if hasattr(x, "detach"):
        x = x.detach().cpu()
        if x.dtype.itemsize < 4 and x.is_floating_point():  # numpy has no bfloat16
            x = x.float()
        x = x.numpy()
    if isinstance(x, np.ma.MaskedArray) and x.mask.any():
        x = np.ma.filled(x.astype(float), np.nan)
    return np.asarray(x)


def check_vectors(vectors: Any, n: int) -> Array:
    """What an `encode` returned, as an (n, d) floating-point array.

        >>> check_vectors(np.zeros((2, 3)), 2).shape
        (2, 3)

    Raises:
        RunError: it is no such array; the message says what it is.
    """
    x = as_array(vectors)
    is_table = x.ndim == 2 and len(x) == n
    if not is_table or (n and not x.shape[1]):
        raise RunError(f"encode returned shape {x.shape} for {n} texts; expected ({n}, d)")
    if not np.issubdtype(x.dtype, np.floating):
        raise RunError(f"encode returned {x.dtype} vectors; expected floating-point numbers")
    return x


def finite(x: Array) -> tuple[Array, int]:
    """`x` (n, d) with every NaN and infinity replaced by 0 (SentEval's rule), and how many rows
    held one.

    >>> finite(np.array([[1.0, np.nan], [2.0, 3.0]]))
    (array([[1., 0.], [2., 3.]]), 1)
    """
    bad = ~np.isfinite(x)
    rows = int(bad.any(axis=1).sum())
    if rows:
        zero = np.zeros((), dtype=x.dtype)
        return (np.where(bad, zero, x), rows)
    return (x, 0)


def unit_rows(x: Array) -> NDArray[np.float64]:
    """Rows of `x` (n, d) scaled to length 1 in float64; a zero row stays zero.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    wide = np.asarray(x, dtype=np.float64)
    # Scaling by the largest entry first keeps the squares of huge or tiny (float64) vectors from
    # over- or underflowing.
    peak = np.abs(wide).max(axis=1, keepdims=True, initial=0.0)
    wide = wide / np.where(peak > 0, peak, 1.0)
    norms = np.linalg.norm(wide, axis=1, keepdims=True)
    return wide / np.where(norms > 0, norms, 1.0)


def task_key(task: Task) -> str:
    """What tells a task from those of the same name whose data comes from elsewhere; as
    `Score.task_key`.

    >>> from harness.tasks.catalogue import resolve_tasks
    >>> task_key(resolve_tasks(["Embedded-STS-natural"], source="senteval")[0])
    'embedded:Embedded-STS-natural'
    """
    return f"{task.source}:{task.name}"
