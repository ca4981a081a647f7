"""Runs of equal settings with other scores: what their environments differ in, and since when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.errors import InputError
from harness.files.printable import join_some
from harness.results.record import Record
from harness.results.store import RunFolder
from reports.document.table import number_text
from reports.load import RecordedResults

_IGNORED = ("memory_bytes",)
_NO_TERMS = ("step", "kind")


def compare_equal_runs(
    one: RecordedResults, other: RecordedResults, label: str
) -> tuple[list[str], list[dict[str, Any]]]:
    """Return, in lines and as numbers, how the runs of a row in two work directories differ.

    Raises:
        InputError: one of them has no such row, or no seed is in both.
    """
    by_seed = _runs_by_seed(one, label)
    others = _runs_by_seed(other, label)
    seeds = sorted(by_seed.keys() & others.keys())
    if not seeds:
        raise InputError(f'row "{label}" has no seed that was run in both', key="--against")
    lines = []
    data = []
    for seed in seeds:
        curves = []
        for folder, record in ((one.workdir, by_seed[seed]), (other.workdir, others[seed])):
            curves.append(RunFolder(folder, record.id).curves())
        found = _compare_records(by_seed[seed], others[seed])
        found["first_step"] = first_difference(*curves)
        data.append({"seed": seed, **found})
        lines.append(f"{label}, seed {seed}: {_describe(found)}")
    return lines, data


def _runs_by_seed(comparison: RecordedResults, label: str) -> dict[int, Record]:
    """Return the finished runs of a row.

    Raises:
        InputError: there is no such row.
    """
    for row in comparison.rows:
        if row.label == label:
            return {record.seed: record for record in row.finished}
    known = ", ".join(row.label for row in comparison.rows)
    raise InputError(
        f'no row "{label}"; rows: {known}', file=comparison.workdir, key=comparison.name
    )


def _compare_records(one: Record, other: Record) -> dict[str, Any]:
    scores = _scores_of(one)
    others = _scores_of(other)
    largest = ""
    points = 0.0
    for key in sorted(scores.keys() & others.keys()):
        gap = 100 * (scores[key] - others[key])
        if abs(gap) > abs(points):
            largest = key
            points = gap
    return {
        "equal": not largest and scores.keys() == others.keys(),
        "settings": _list_differences(one.spec.model_dump(), other.spec.model_dump()),
        "environment": _list_differences(one.environment, other.environment),
        "largest": largest,
        "points": points,
        "scored_in_one": sorted(scores.keys() ^ others.keys()),
    }


def _scores_of(record: Record) -> dict[str, float]:
    found = {}
    for score in record.scores:
        parts = [score.source, score.task, score.split, score.metric]
        if score.aggregation:
            parts.append(score.aggregation)
        found[":".join(parts)] = score.value
    return found


def _list_differences(
    one: Mapping[str, Any],
    other: Mapping[str, Any],
    prefix: str = "",
) -> list[str]:
    """Return the keys whose values differ, with both values."""
    found = []
    for key in sorted(one.keys() | other.keys()):
        first = one.get(key)
        second = other.get(key)
        if key in _IGNORED or first == second:
            continue
        name = f"{prefix}{key}"
        if isinstance(first, Mapping) and isinstance(second, Mapping):
            found += _list_differences(first, second, f"{name}.")
        else:
            found.append(f"{name} {first}, not {second}")
    return found


def first_difference(
    one: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]
) -> int | None:
    """Return the first training step at which the logs of two runs differ; None where they do not."""
    terms = _terms_of(one)
    others = _terms_of(other)
    steps = []
    for key in terms.keys() & others.keys():
        if terms[key] != others[key]:
            step, *_ = key
            steps.append(step)
    return min(steps, default=None)


def _terms_of(log: Sequence[Mapping[str, Any]]) -> dict[tuple[int, str, str], Any]:
    """Return (step, kind, name of a term) -> its value."""
    found = {}
    for line in log:
        for name, value in line.items():
            if name not in _NO_TERMS:
                found[line["step"], line["kind"], name] = value
    return found


def _describe(found: Mapping[str, Any]) -> str:
    if found["equal"]:
        return "equal scores."
    if found["largest"]:
        gap = number_text(found["points"], 4, signed=True)
        text = f"{gap} points on {found['largest']}"
    else:
        text = "equal scores"
    if found["scored_in_one"]:
        text += f"; in one of them alone: {join_some(found['scored_in_one'], 4)}"
    step = found["first_step"]
    if step is not None:
        text += f"; the training logs part at step {step}"
    if found["settings"]:
        text += f"; settings differ: {'; '.join(found['settings'])}"
    if found["environment"]:
        text += f"; environment: {'; '.join(found['environment'])}"
    else:
        text += "; the recorded environments are equal"
    return f"{text}."
