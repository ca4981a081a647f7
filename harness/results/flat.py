"""A run under flat names, as trackers show it: what all seeds of a row share, numbers, and points
of its curves.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from harness.config import drop_unset
from harness.errors import InputError
from harness.results.record import Record
from harness.results.store import RunFolder
from harness.seeds import seed_fields

logger = logging.getLogger(__name__)
Points = Mapping[tuple[str, int], float]  # (name, step) -> value

# of the training curve; curves.jsonl has all of it
CURVE_LINES = 100
NO_TERMS = ("step", "kind", "lr", "grad_norm")
"""What a line of a training curve has besides the terms of the loss."""


def row_params(record: Record) -> dict[str, Any]:
    """What all seeds of a row share. The row's name is a label; other parameters are another row:
    they have all that is in the ids of its runs.
    """
    spec = record.spec
    parts: dict[str, Any] = {
        "corpus": record.corpus or {},
        "dev": record.dev or {},
        "config": record.config,
        "inputs": record.inputs,
    }
    own = {
        "row": record.row,
        "method": record.method,
        "base_model": record.base_model,
        "supervision": record.supervision,
        "model": spec.model,
        "version": spec.version,
        "numerics": spec.numerics,
    }
    bounds = {
        "max_steps": spec.max_steps,
        "precision": spec.precision,
        "most_sentences": spec.most_sentences,
        "encoded_sentences": spec.encoded_sentences,
    }
    params = own | drop_unset(bounds) | _flat(parts) | seed_fields(record.random_seed)
    found = {}
    for name, value in params.items():
        if name not in ("seed", "config.seed"):
            found[name] = value
    return found


def curve_points(folder: RunFolder) -> Points:
    """`train/loss` and `train dev/spearman` by step; of a step that a resumed run repeated, the
    last value.
    """
    try:
        lines = folder.curves()
    except InputError as error:  # the rest of the run is sent
        logger.warning("%s", error)
        return {}
    train = [line for line in lines if line["kind"] == "train"]
    stride = -(-len(train) // CURVE_LINES) or 1
    # The last line is kept.
    thinned = train[::-1][::stride][::-1]
    others = [line for line in lines if line["kind"] != "train"]
    lines = others + thinned
    found = {}
    for line in lines:
        for name, value in line.items():
            if name not in NO_TERMS and _is_number(value):
                if line["kind"] == "train":
                    group = "train"
                else:
                    group = f"train {line['kind']}"
                key = f"{group}/{name}"
                found[key, line["step"]] = value
    return found


def record_numbers(record: Record) -> dict[str, float]:
    """Scores (`sts/STS12`, further ones of a task as `sts more/STS12.spearman.mean`),
    `training/...` and `usage/...`.

    The first score over all pairs of the test part is the task's. The source is named where a task
    has several.
    """
    sources = defaultdict(set)
    for score in record.scores:
        sources[score.suite, score.task].add(score.source)
    numbers: dict[str, Any] = {}
    for score in sorted(
        record.scores, key=lambda s: s.split == "dev" or s.aggregation not in ("", "all")
    ):
        if len(sources[score.suite, score.task]) > 1:
            task = f"{score.task} {score.source}"
        else:
            task = score.task
        if score.split == "test":
            split = ""
        else:
            split = score.split
        parts = (task, score.metric, score.aggregation, split)
        more = ".".join(part for part in parts if part)
        name = f"{score.suite}/{task}"
        if name in numbers:
            name = f"{score.suite} more/{more}"
        numbers[name] = score.value
    costs = {"usage": record.cost, "training": record.training}
    numbers |= _flat(costs, separator="/")
    return {name: value for name, value in numbers.items() if _is_number(value)}


def _flat(values: Mapping[str, Any], prefix: str = "", separator: str = ".") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        nested = isinstance(value, Mapping)
        if nested:
            flat |= _flat(value, f"{prefix}{name}{separator}", separator)
        else:
            flat |= {f"{prefix}{name}": value}
    return flat


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
