"""What of a record a tracking service shows: parameters, and numbers by step. Knows no service."""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from harness.errors import InputError
from harness.results.record import Record
from harness.results.run_folder import RunFolder
from harness.seeds import seed_fields

logger = logging.getLogger(__name__)


def row_params(record: Record) -> dict[str, Any]:
    """What all seeds of a row share: method, base model, data, the method's config as `config.a.b`, and which streams
    of random numbers are held."""
    config = {name: value for name, value in record.config.items() if name != "seed"}
    return {
        "row": record.row,
        "method": record.method,
        "base_model": record.base_model,
        "supervision": record.supervision,
        **_flat({"corpus": record.corpus or {}, "dev": record.dev or {}, "config": config}),
        **{name: value for name, value in seed_fields(record.drawn).items() if name != "seed"},
    }


def seed_params(record: Record) -> dict[str, Any]:
    """What belongs to one run: its seed, and where it ran."""
    environment = record.environment
    precision = environment.get("precision", "")
    shown = {
        "device": environment.get("device", ""),
        "device_name": environment.get("device_name", ""),
        "precision": precision.get("choice", "") if isinstance(precision, Mapping) else precision,
        "versions": environment.get("versions", {}),
    }
    return {"seed": record.seed, **{name: value for name, value in _flat(shown).items() if value != ""}}


def numbers(record: Record, folder: RunFolder) -> dict[tuple[str, int], float]:
    """(name, step) -> value: `train/loss`, `dev/spearman` by step; `STS12.spearman.all`, `cost/...`, `training/...`.

    A score's name has its split unless that is "test", and its source where the record has the score from several.
    """
    metrics: dict[tuple[str, int], float] = {}
    try:
        curve = folder.curves()
    except InputError as error:  # one damaged file is no reason to send nothing of all the others
        logger.warning("%s", error)
        curve = []
    for line in curve:
        for name, value in line.items():
            if name not in ("step", "kind") and _is_number(value):
                metrics[_name(f"{line['kind']}/{name}"), line["step"]] = value  # a step repeated by a resume: the last
    sources = defaultdict(set)
    for score in record.scores:
        sources[score.task, score.metric, score.aggregation, score.split].add(score.source)
    for score in record.scores:
        split = "" if score.split == "test" else score.split
        several = len(sources[score.task, score.metric, score.aggregation, score.split]) > 1
        parts = (score.task, score.metric, score.aggregation, split, score.source if several else "")
        metrics[_name(".".join(part for part in parts if part)), 0] = score.value
    for name, value in _flat({"cost": record.cost, "training": record.training}, separator="/").items():
        if _is_number(value):
            metrics[_name(name), 0] = value
    return metrics


def _flat(values: Mapping[str, Any], prefix: str = "", separator: str = ".") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}{separator}", separator)
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _name(name: str) -> str:
    """A metric name MLflow takes: letters, digits and `_-. :/`."""
    return re.sub(r"[^\w\-. :/]", "_", name)[:250]
