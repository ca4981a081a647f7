"""What is known of single runs, as plain text by name: what two of them are compared by."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.results.record import Record
from harness.results.run_folder import RunFolder

GROUPS = ("configuration", "data", "versions", "machine", "training", "scores")
_POINTS = 400  # looks at a training that are kept of a run


def run_facts(record: Record, curve: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A run for a page: its name, facts by group and name, and its training.

    "curve": [step, loss or dev score, check] of each logged line, kind by kind. A check is a CRC-32 of all that was
    logged up to there, with every digit: the first one that differs is where two trainings part.
    """
    facts: dict[str, dict[str, str]] = {
        "configuration": {
            "method": record.method,
            "base model": record.base_model,
            "seed": str(record.seed),
            **flat({key: value for key, value in record.config.items() if key != "seed"}),
        },
        "data": {
            **flat(record.corpus or {}, "corpus"),
            **flat(record.dev or {}, "dev"),
            **flat(record.inputs, "input"),
        },
        "versions": flat(record.environment.get("versions") or {}),
        "machine": flat({key: value for key, value in record.environment.items() if key != "versions"}),
        "training": flat(record.training),
        "scores": {
            " ".join(filter(None, (s.task, s.source, s.split, s.metric, s.aggregation))): f"{100 * s.value:.2f}"
            for s in record.scores
        },
    }
    name = f"{record.comparison} · {record.row} · {record.base_model} · seed {record.seed}"
    return {"id": record.id, "name": name, "status": record.status, "facts": facts, "curve": checked_curve(curve)}


def flat(tree: Mapping[str, Any], before: str = "") -> dict[str, str]:
    """A tree of plain values as "key.key" -> text; lists stay as they are."""
    found: dict[str, str] = {}
    for key, value in tree.items():
        name = f"{before}.{key}" if before else str(key)
        if isinstance(value, Mapping):
            found |= flat(value, name)
        else:
            found[name] = f"{value:g}" if isinstance(value, float) else str(value)
    return found


def checked_curve(lines: Iterable[Mapping[str, Any]]) -> dict[str, list[list[float | int | None]]]:
    """By kind ("train", "dev"): step, the first number that was logged, and the check of all up to there."""
    checks: dict[str, int] = {}
    by_kind: dict[str, list[list[float | int | None]]] = {}
    for line in lines:
        kind, step = str(line["kind"]), int(line["step"])
        numbers = {key: value for key, value in line.items() if key not in ("kind", "step") and _told(key, value)}
        said = f"{step} {sorted(numbers.items())!r}".encode()
        checks[kind] = zlib.crc32(said, checks.get(kind, 0))
        first = next(iter(numbers.values()), None)
        by_kind.setdefault(kind, []).append([step, None if first is None else float(f"{first:.5g}"), checks[kind]])
    return {kind: thinned(points) for kind, points in by_kind.items()}


def _told(key: str, value: object) -> bool:
    """Numbers that a seed and a machine decide, and no clock does."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and value == value
    return number and "second" not in key and "time" not in key


def thinned(points: list[Any]) -> list[Any]:
    """At most `_POINTS` of the points, evenly, with the last."""
    every = -(-len(points) // _POINTS)
    return points if every <= 1 else [*points[::every], *([points[-1]] if (len(points) - 1) % every else [])]


def read_curve(workdir: Path, record: Record) -> list[dict[str, Any]]:
    """The training log of a run; empty where it is damaged."""
    try:
        return RunFolder(workdir, record.id).curves()
    except InputError:
        return []
