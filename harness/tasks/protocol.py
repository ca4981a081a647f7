"""Protocol ids: short hashes of all that defines a number, so that unlike numbers never share a
column unmarked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.results.code import Code
from harness.results.outcomes import outcomes_frame
from harness.results.record import Score
from harness.tasks.base import Task, TaskResult

_ID_LENGTH = 12  # hex digits: 48 bits, ample for the few hundred protocols of a work directory


@dataclass(frozen=True)
class Description:
    """All that defines a number, besides how the vectors were pooled.

    Attributes:
        task, source, split, metric, aggregation: as in `Score`.
        data: fingerprint of the data; of several data sets, by name.
        preparation: how the texts were prepared; None where the task does not know it.
        particular: whatever else the number depends on (features, classifier, metric version), as
            plain JSON data.
    """

    task: str
    source: str
    split: str
    metric: str
    data: str | Mapping[str, str]
    aggregation: str = ""
    preparation: str | None = None
    particular: Mapping[str, Any] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """What is hashed, and stored in the record.

        Raises:
            ValueError: `particular` repeats a field.
        """
        common = {
            "task": self.task,
            "source": self.source,
            "split": self.split,
            "data": self.data,
            "metric": self.metric,
            "aggregation": self.aggregation,
            **({} if self.preparation is None else {"preparation": self.preparation}),
        }
        if twice := common.keys() & self.particular.keys():
            raise ValueError(
                f"{self.task}: given twice for its protocol: {', '.join(sorted(twice))}"
            )
        return common | dict(self.particular)


def protocol_id(description: Mapping[str, Any]) -> str:
    """First 12 hex digits of the sha256 of `description` as canonical JSON (sorted keys, no spaces,
    no NaN).
    """
    text = json.dumps(
        description,
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    )
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:_ID_LENGTH]


def add_score(
    result: TaskResult,
    description: Description,
    *,
    suite: str,
    pooling: str,
    value: float,
    n: int,
    name: str = "",
) -> None:
    """Append one score to `result` and register the two descriptions of its ids.

    `name`: of the task, where its description, and so its ids, leave the name out.
    `Score.comparable` is the id of `description`; `Score.protocol` is its id with `pooling` added.
    """
    bare = description.plain()
    full = {**bare, "pooling": pooling}
    comparable = protocol_id(bare)
    protocol = protocol_id(full)
    result.protocols[comparable] = bare
    result.protocols[protocol] = full
    result.scores.append(
        Score(
            task=name or description.task,
            suite=suite,
            source=description.source,
            split=description.split,
            metric=description.metric,
            aggregation=description.aggregation,
            value=value,
            n=n,
            protocol=protocol,
            comparable=comparable,
        )
    )


def name_code(result: TaskResult, code: Code) -> TaskResult:
    """Return the result with the version of its task's code in the protocols, where that version is
    a hash of files.
    """
    if not code.files:
        return result
    ids = {}
    for known, description in list(result.protocols.items()):
        named = {**description, "code": code.version}
        ids[known] = protocol_id(named)
        result.protocols[ids[known]] = named
        del result.protocols[known]
    result.scores = [
        score.model_copy(
            update={
                "protocol": ids.get(score.protocol, score.protocol),
                "comparable": ids.get(score.comparable, score.comparable),
            }
        )
        for score in result.scores
    ]
    return result


def add_accuracy(
    result: TaskResult,
    task: Task,
    right: NDArray[np.bool_],
    unit: Any,
    pooling: str,
    *,
    subset: Any = "",
    **how: Any,
) -> None:
    """Add the share of test examples that are right, and the outcome of each.

    Args:
        right: (n,) whether each example is right.
        unit: (n,) what a bootstrap draws of each: the id of its text, or a number that examples share
            which are no independent evidence.
        subset: the part of the set of each, (n,).
        how: as `add_number` takes it.
    """
    accuracy = float(right.mean())
    add_number(result, task, "accuracy", accuracy, len(right), pooling, **how)
    result.outcomes = outcomes_frame(
        task=task.name,
        source=task.source,
        split="test",
        metric="accuracy",
        outcome=right,
        unit=unit,
        subset=subset,
    )


def add_number(
    result: TaskResult,
    task: Task,
    metric: str,
    value: float,
    n: int,
    pooling: str,
    *,
    split: str = "test",
    aggregation: str = "",
    preparation: str | None = None,
    **particular: Any,
) -> None:
    """`add_score` for a task whose name, source, suite and data are those of the number.

    A task of a file has an attribute `described_as`: its ids do not depend on the file's name.
    """
    described = getattr(task, "described_as", task.name)
    about = Description(
        described,
        task.source,
        split,
        metric,
        task.sha256,
        aggregation,
        preparation,
        particular,
    )
    add_score(
        result,
        about,
        suite=task.suite,
        pooling=pooling,
        value=value,
        n=n,
        name=task.name,
    )
