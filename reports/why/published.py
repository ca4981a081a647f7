"""What is left between a row and the published number that it repeats."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

from harness.errors import InputError
from harness.results.published import PublishedRow, published_rows
from harness.tasks.mteb.benchmarks import PREFIX, SUMMEVAL_METRIC
from harness.tasks.senteval.transfer import TRANSFER
from reports.document.table import number_text
from reports.results import STS_ORDER, base_name
from reports.stats.simultaneous import ALPHA
from reports.targets import Measure, Target
from reports.why.explanation import Explanation

_AVERAGE = re.compile(r"(sts )?avg\.?|average", re.IGNORECASE)
_AVERAGED = (frozenset(STS_ORDER), frozenset(TRANSFER))  # the tasks that papers print a mean of
_PRINTED = {"sst2": "sst"}  # our name of a task -> that of most papers
_AGGREGATIONS = {"(all)": ("all", ""), "wmean": ("wmean",), "mean_over_subtasks": ("mean",)}
_REGRESSOR = "regressor:"
_SCAN = "hyper-parameter scan"  # a maximum or quantile over trials is the score of no row


def compare_with_published(key: str, found: Explanation, base_model: str) -> str:
    """Return a sentence on the published number and on what the settings do not explain.

    Args:
        key: "FILE.csv:MODEL".
        base_model: of the second row.

    Raises:
        InputError: as `find_published`.
    """
    value = find_published(key, found.target, base_model)
    row = found.rows[0]
    left = row.mean - value
    (printed_base,) = {one["base_model"] for one in _rows_on(key, base_model)}
    source = key
    if printed_base.lower() not in _names_of(base_model):
        source += f", on {printed_base}"
    text = f"Published {number_text(value, 2)} ({source}): not explained by settings that are "
    text += f"known: {number_text(left, 2, signed=True)}"
    if row.sd is None or row.runs < 2:
        return f"{text}."
    critical = -float(stdtrit(row.runs - 1, ALPHA / 2))
    half = critical * row.sd / np.sqrt(row.runs)
    low = number_text(left - half, 2)
    high = number_text(left + half, 2)
    return f"{text} [{low}, {high}], by the {row.runs} runs of {found.b}."


def find_published(key: str, target: Target, base_model: str) -> float:
    """Return the published number of a target: the mean over its tasks, or, of the seven STS or
    transfer tasks, the average that the paper prints. Numbers of another metric are left out.

    Raises:
        InputError: no such published row, several base models of which none is this one, or no
            number of the target's tasks.
    """
    rows = [row for row in _rows_on(key, base_model) if _is_number(row["value"])]
    values = []
    for measure in target.measures:
        values += [float(row["value"]) for row in rows if _is_printed(measure, row)][:1]
    if len(values) == len(target.measures):
        return float(np.mean(values))

    if frozenset(measure.task for measure in target.measures) in _AVERAGED:
        first = target.measures[0]
        for row in rows:
            if _AVERAGE.fullmatch(row["task"]) and _has_metric(first, row["metric"]):
                return float(row["value"])
    printed = dict.fromkeys(f"{row['task']} ({row['metric']})" for row in rows)
    raise InputError(
        f"{key} has no number of {target.title}; it has: {', '.join(printed) or 'none'}",
        key="--published",
    )


def _rows_on(key: str, base_model: str) -> Sequence[PublishedRow]:
    """Return the published rows on a base model; on another one, where all are on the same.

    Raises:
        InputError: no such published row, or several base models of which none is this one.
    """
    rows = published_rows(key)
    for name in _names_of(base_model):
        same = [row for row in rows if row["base_model"].lower() == name]
        if same:
            return same
    bases = sorted({row["base_model"] for row in rows})
    if len(bases) > 1:
        raise InputError(
            f"{key} has numbers on {', '.join(bases)}, and none on {base_name(base_model)}",
            key="--published",
        )
    return rows


def _names_of(base_model: str) -> tuple[str, ...]:
    """Return the names that papers give a base model, the nearest first."""
    full = base_model.lower()
    short = full.rpartition("/")[2]
    return full, short, short.removesuffix("-uncased")


def _is_printed(measure: Measure, row: PublishedRow) -> bool:
    """True if a published row is of a task and of the score that rows are compared by."""
    is_fitted = measure.task.startswith(_REGRESSOR)
    if is_fitted != ("regressor" in row["metric"]):
        return False
    name = measure.task.removeprefix(_REGRESSOR).removeprefix(PREFIX).lower()
    is_task = row["task"].lower() in (name, _PRINTED.get(name))
    return is_task and _has_metric(measure, row["metric"])


def _has_metric(measure: Measure, printed: str) -> bool:
    """True if a metric as papers print it, such as "Spearman x100 (all)", is that of a measure."""
    text = re.sub(r"[\s-]+", "_", printed.lower().replace("@", "_at_"))
    is_of_dev = "(dev)" in text and measure.split != "dev"
    if _SCAN in printed or is_of_dev:
        return False
    for words, stated in _AGGREGATIONS.items():
        if words in text and measure.aggregation not in stated:
            return False
    metric = measure.metric.removeprefix("cosine_")
    if metric == "ap" or metric.endswith("_ap"):
        metric = "average_precision"
    if metric == SUMMEVAL_METRIC:
        metric = "spearman"
    return metric in text or text.startswith("main_score")


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
