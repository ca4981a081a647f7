"""The texts of a comparison's examples, read from the data that its tasks load: runs keep ids of texts, not texts.

Licences of data sets forbid that their texts are copied into a report that is handed on; ids are no copy. Whoever has
the data sees the texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from harness.errors import HarnessError
from harness.files.printable import one_line
from harness.results.text_ids import pair_units, text_id
from harness.tasks.base import Task
from harness.tasks.catalogue import SOURCES, resolve_tasks
from reports.read.examples import Examples

OURS = "embedded"  # the source whose texts were written for this project, and may stand in any page


@dataclass(frozen=True)
class Known:
    """What is known of n examples.

    Attributes:
        texts: (n) one or two texts of each; () of those that are not known. gold: what they are labelled with, or "".
        why: why texts are not known, "" where all are.
    """

    texts: list[tuple[str, ...]]
    gold: list[str]
    why: str = ""


def known_texts(examples: Examples) -> Known:
    """The texts of the examples of one score, where the data can be had here."""
    task, source, n = examples.score[0], examples.score[1], len(examples.target)
    nothing = Known([()] * n, [""] * n)
    if examples.texts is None:
        return Known(nothing.texts, nothing.gold, "the run is of a version that kept no ids of texts")
    try:
        found = _task(task, source)
        labelled = _labelled(found, examples)
        if labelled is not None:
            return labelled
        by_id = _by_id(task, source)
    except (HarnessError, OSError, ValueError) as error:
        said = one_line(str(error)) or type(error).__name__
        return Known(nothing.texts, nothing.gold, f"the data of {task} cannot be had here: {said}")
    if not by_id:
        return Known(nothing.texts, nothing.gold, f"{task} draws its texts itself, and does not say them")
    texts = [tuple(by_id.get(int(one), "") for one in ids) for ids in examples.texts]
    whole = [some if all(some) else () for some in texts]
    lacking = sum(not some for some in whole)
    why = f"{lacking:,} of {n:,} examples of {task} are not in the data that is here" if lacking else ""
    return Known(whole, [""] * n, why)


def _task(task: str, source: str) -> Task:
    (found,) = resolve_tasks([task], **({"source": source} if source in SOURCES else {}))
    return found


@lru_cache(maxsize=8)
def _by_id(task: str, source: str) -> dict[int, str]:
    """Id -> text of all that a task announces; of texts with one id the first."""
    by_id: dict[int, str] = {}
    for text in dict.fromkeys(_task(task, source).texts()):
        by_id.setdefault(text_id(text), text)
    return by_id


def texts_by_id(task: str, source: str) -> dict[int, str]:
    """Id -> text of a task; none where its data cannot be had here."""
    try:
        return _by_id(task, source)
    except (HarnessError, OSError, ValueError):
        return {}


def gold_labels(task: str, source: str) -> dict[str, str]:
    """Text -> its gold class or cluster; none of a task without them, or whose data cannot be had here."""
    try:
        said = getattr(_task(task, source), "labels", None)
        return dict(said()) if said is not None else {}
    except (HarnessError, OSError, ValueError):
        return {}


def _labelled(task: Task, examples: Examples) -> Known | None:
    """Of a task that says what it tests, with labels; None for others, and where its data is not what was scored."""
    tested = getattr(task, "tested", None)
    if tested is None or examples.texts is None:
        return None
    sides = (tested.first, tested.second) if tested.second else (tested.first,)
    texts = list(zip(*sides, strict=True))
    same = len(texts) == len(examples.target) and np.array_equal(_units(texts), examples.texts[:, 0])
    return Known(texts, [f"{label:g}" for label in tested.labels.tolist()]) if same else None


def _units(texts: Sequence[tuple[str, ...]]) -> NDArray[np.int64]:
    """What is drawn together of some examples: as the tasks store it."""
    if texts and len(texts[0]) == 2:
        return pair_units([a for a, _ in texts], [b for _, b in texts])
    return np.array([text_id(text) for (text,) in texts], dtype=np.int64)
