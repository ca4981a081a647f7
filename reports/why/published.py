"""What is left between a row and the published number that it repeats."""

from __future__ import annotations

import re

import numpy as np
from scipy.special import stdtrit

from harness.errors import InputError
from harness.results.published import published_rows
from reports.document.table import number_text
from reports.stats.simultaneous import ALPHA
from reports.targets import Target
from reports.why.explanation import Explanation

_AVERAGE = re.compile(r"(sts )?avg\.?|average", re.IGNORECASE)


def compare_with_published(key: str, found: Explanation, base_model: str) -> str:
    """Return a sentence on the published number and on what the settings do not explain.

    Args:
        key: "FILE.csv:MODEL".
        base_model: of the second row; published rows of another one are left out where some are of
            this one.

    Raises:
        InputError: no such published row, or none of the target's tasks.
    """
    value = find_published(key, found.target, base_model)
    row = found.rows[0]
    left = row.mean - value
    text = f"Published {number_text(value, 2)} ({key}): not explained by settings that are known: "
    text += number_text(left, 2, signed=True)
    if row.sd is None or row.runs < 2:
        return f"{text}."
    critical = -float(stdtrit(row.runs - 1, ALPHA / 2))
    half = critical * row.sd / np.sqrt(row.runs)
    low = number_text(left - half, 2)
    high = number_text(left + half, 2)
    return f"{text} [{low}, {high}], by the {row.runs} runs of {found.b}."


def find_published(key: str, target: Target, base_model: str) -> float:
    """Return the published number of a target: the mean over its tasks, or the average that the
    paper prints.

    Raises:
        InputError: no such published row, or none of the target's tasks.
    """
    rows = published_rows(key)
    full_name = base_model.lower()
    names = (full_name, full_name.rpartition("/")[2])
    same = [row for row in rows if row["base_model"].lower() in names]
    by_task: dict[str, float] = {}
    for row in same or rows:
        task = row["task"].lower()
        if task not in by_task and _is_number(row["value"]):
            by_task[task] = float(row["value"])

    wanted = [measure.task.rpartition(":")[2].lower() for measure in target.measures]
    if all(task in by_task for task in wanted):
        return float(np.mean([by_task[task] for task in wanted]))
    if len(wanted) > 1:
        for task, value in by_task.items():
            if _AVERAGE.fullmatch(task):
                return value
    known = ", ".join(by_task) or "none"
    raise InputError(
        f"{key} has no number of {target.title}; its tasks: {known}", key="--published"
    )


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
