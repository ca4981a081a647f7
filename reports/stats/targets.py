"""What the rows of a comparison are compared by: averages over STS tasks, and the embedded tasks one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reports.read.comparison_runs import STS_ORDER, Comparison, ResultRow

SOURCES = {"senteval": "SentEval", "mteb": "MTEB", "embedded": "embedded"}


@dataclass(frozen=True)
class Target:
    """What rows are compared by. `tasks` are (task, source); `others` were asked of few rows, and are in no average."""

    key: str
    title: str  # "the average of the seven STS tasks (SentEval)"
    short: str  # "STS average"
    tasks: tuple[tuple[str, str], ...]
    others: tuple[tuple[str, str], ...] = ()


def asked_of_most(
    rows: Sequence[ResultRow], tasks: Sequence[tuple[str, str]]
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Those of some (task, source) that most finished rows were asked for, and the others.

    A task whose data was missing was asked for: an average without it must not look whole. Where no task is one of most
    rows, all are.
    """
    finished = [row for row in rows if row.finished]
    count = dict.fromkeys(tasks, 0)
    for row in finished:
        scored = {(s.task, s.source) for r in row.finished for s in r.scores if s.split != "dev"}
        missing = {task for r in row.finished for task in r.missing}
        for key in tasks:
            count[key] += key in scored or key[0] in missing
    most = [key for key in tasks if 2 * count[key] > len(finished)]
    if not most:
        return list(tasks), []
    return most, [key for key in tasks if key not in most]


def targets(comparison: Comparison) -> list[Target]:
    """The average of each source's STS tasks that most rows have, then every embedded task alone (never averaged)."""
    wanted = []
    by_source: dict[str, list[str]] = {}
    for task, source in comparison.columns("sts"):
        by_source.setdefault(source, []).append(task)
    for source, names in by_source.items():
        tasks, others = asked_of_most(comparison.rows, [(task, source) for task in names])
        name = SOURCES.get(source, source)
        if len(tasks) == 1:
            title, short = f"{tasks[0][0]} ({name})", tasks[0][0]
        else:
            count = "the seven" if {task for task, _ in tasks} == set(STS_ORDER) else str(len(tasks))
            title, short = f"the average of {count} STS tasks ({name})", "STS average"
        if len(by_source) > 1:
            short = f"{short} ({name})"
        wanted.append(Target(f"sts-{source}", title, short, tuple(tasks), tuple(others)))
    for task, source in comparison.columns("embedded"):
        if not task.startswith("geometry:"):
            wanted.append(Target(f"embedded-{task}", task, task, ((task, source),)))
    return wanted
