"""Protocol ids: short hashes of all that defines a number, so that unlike numbers never share a column unmarked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from harness.results.record import Score
from harness.tasks.base import TaskResult

_ID_LENGTH = 12  # hex digits: 48 bits, ample for the few hundred protocols of a work directory


def protocol_id(description: Mapping[str, Any]) -> str:
    """First 12 hex digits of the sha256 of `description` as canonical JSON (sorted keys, no spaces, no NaN)."""
    text = json.dumps(description, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:_ID_LENGTH]


def add_score(
    result: TaskResult,
    description: Mapping[str, Any],
    *,
    suite: str,
    pooling: str,
    value: float,
    n: int,
) -> None:
    """Append one score to `result` and register the two descriptions that its ids stand for.

    `description` holds at least task, source, split, metric and aggregation, and whatever else defines the number
    (data fingerprint, text preparation, similarity, options, metric version). `Score.comparable` is its id;
    `Score.protocol` is the id of the description with `pooling` added.
    """
    bare = dict(description)
    full = {**bare, "pooling": pooling}
    comparable, protocol = protocol_id(bare), protocol_id(full)
    result.protocols[comparable] = bare
    result.protocols[protocol] = full
    result.scores.append(
        Score(
            task=bare["task"],
            suite=suite,
            source=bare["source"],
            split=bare["split"],
            metric=bare["metric"],
            aggregation=bare["aggregation"],
            value=value,
            n=n,
            protocol=protocol,
            comparable=comparable,
        )
    )
