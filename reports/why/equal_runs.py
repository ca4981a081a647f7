"""Runs of equal settings with other scores: what their environments differ in, and since when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.results.record import Record
from harness.results.store import RunFolder
from reports.document.table import number_text
from reports.load import RecordedResults, RecordedRow

_IGNORED = ("memory_bytes",)
_NO_TERMS = ("step", "kind")


def compare_equal_runs(
    one: RecordedResults, other: RecordedResults, label: str
) -> tuple[list[str], list[dict[str, Any]]]:
    """Return, in lines and as numbers, how the runs of a row in two work directories differ.

    Raises:
        InputError: one of them has no such row, or no seed is in both.
    """
    rows = [_row(comparison, label) for comparison in (one, other)]
    by_seed = [{record.seed: record for record in row.finished} for row in rows]
    seeds = sorted(by_seed[0].keys() & by_seed[1].keys())
    if not seeds:
        raise InputError(f'row "{label}" has no seed that was run in both', key="--against")
    lines, data = [], []
    for seed in seeds:
        pair = [by_seed[0][seed], by_seed[1][seed]]
        found = _compare(pair, (one.workdir, other.workdir))
        data.append({"seed": seed, **found})
        lines.append(f"{label}, seed {seed}: {_describe(found)}")
    return lines, data


def _row(comparison: RecordedResults, label: str) -> RecordedRow:
    found = [row for row in comparison.rows if row.label == label]
    if not found:
        known = ", ".join(row.label for row in comparison.rows)
        raise InputError(
            f'no row "{label}"; rows: {known}', file=comparison.workdir, key=comparison.name
        )
    return found[0]


def _compare(pair: Sequence[Record], folders: Sequence[Path]) -> dict[str, Any]:
    scores = [
        {f"{s.source}:{s.task}:{s.split}:{s.metric}": s.value for s in record.scores}
        for record in pair
    ]
    gaps = {
        key: 100 * (scores[0][key] - scores[1][key])
        for key in scores[0].keys() & scores[1].keys()
        if scores[0][key] != scores[1][key]
    }
    largest = max(gaps, key=lambda key: abs(gaps[key]), default="")
    curves = [
        RunFolder(folder, record.id).curves() for folder, record in zip(folders, pair, strict=True)
    ]
    return {
        "equal": not gaps,
        "settings": _differing(pair[0].spec.model_dump(), pair[1].spec.model_dump()),
        "environment": _differing(pair[0].environment, pair[1].environment),
        "largest": largest,
        "points": gaps.get(largest, 0.0),
        "first_step": first_difference(*curves),
    }


def _differing(one: Mapping[str, Any], other: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return the keys whose values differ, with both values."""
    found = []
    for key in sorted(one.keys() | other.keys()):
        first, second = one.get(key), other.get(key)
        if key in _IGNORED or first == second:
            continue
        name = f"{prefix}{key}"
        if isinstance(first, Mapping) and isinstance(second, Mapping):
            found += _differing(first, second, f"{name}.")
        else:
            found.append(f"{name} {first}, not {second}")
    return found


def first_difference(
    one: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]
) -> int | None:
    """Return the first training step at which the logs of two runs differ; None where they do not."""
    terms = [
        {
            (line["step"], line["kind"], name): value
            for line in log
            for name, value in line.items()
            if name not in _NO_TERMS
        }
        for log in (one, other)
    ]
    shared = terms[0].keys() & terms[1].keys()
    steps = [key[0] for key in shared if terms[0][key] != terms[1][key]]
    return min(steps, default=None)


def _describe(found: Mapping[str, Any]) -> str:
    if found["equal"]:
        return "equal scores."
    gap = number_text(found["points"], 4, signed=True)
    text = f"{gap} points on {found['largest']}"
    step = found["first_step"]
    text += f"; the training logs part at step {step}" if step is not None else ""
    if found["settings"]:
        text += f"; settings differ: {'; '.join(found['settings'])}"
    if found["environment"]:
        text += f"; environment: {'; '.join(found['environment'])}"
    else:
        text += "; the recorded environments are equal"
    return f"{text}."
