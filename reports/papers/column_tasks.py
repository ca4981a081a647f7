"""The tasks that a column of a paper's table needs: its own, or all that its average goes over."""

from __future__ import annotations

from harness.tasks.averages import Mean
from harness.tasks.mteb.benchmarks import MTEB_SUITES, PREFIX
from harness.tasks.senteval.transfer import transfer_mean
from harness.tasks.sts import STS, YEARS
from reports.papers.declutr_averages import declutr_means
from reports.papers.definition import PaperColumn

_CATEGORIES = MTEB_SUITES["mteb-en-v1"]


def column_tasks(column: PaperColumn) -> frozenset[str]:
    """By our names; none for a column of the paper alone, of a study, or of differences."""
    if column.task:
        return frozenset((column.task,))
    name = column.average
    if not name:
        return frozenset()
    if name.startswith("mteb"):
        if name.startswith("mteb-task:"):
            return frozenset((PREFIX + name.removeprefix("mteb-task:"),))
        sets = [one for group, members in _CATEGORIES.items() for one in members if name in ("mteb", f"mteb:{group}")]
        return frozenset(PREFIX + one for one in sets)
    if name.startswith("sts"):
        return frozenset(YEARS if name == "sts-years" else STS)
    mean: Mean = transfer_mean(column.split) if name == "transfer" else declutr_means(column.split)[name]
    return frozenset(mean.tasks)
