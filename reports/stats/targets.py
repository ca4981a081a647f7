"""What the rows of a comparison are compared by: averages over STS tasks, and the embedded tasks one by one."""

from __future__ import annotations

from dataclasses import dataclass

from reports.read.comparison_runs import STS_ORDER, Comparison

SOURCES = {"senteval": "SentEval", "mteb": "MTEB", "embedded": "embedded"}


@dataclass(frozen=True)
class Target:
    """What rows are compared by. `tasks` are (task, source)."""

    key: str
    title: str  # "Avg. of 7 STS tasks (SentEval)"
    short: str  # "STS average"
    tasks: tuple[tuple[str, str], ...]


def targets(comparison: Comparison) -> list[Target]:
    """The seven-task averages of each source, then every embedded task alone (never averaged with anything)."""
    wanted = []
    by_source: dict[str, list[str]] = {}
    for task, source in comparison.columns("sts"):
        by_source.setdefault(source, []).append(task)
    for source, tasks in by_source.items():
        name = SOURCES.get(source, source)
        if len(tasks) == 1:
            title, short = f"{tasks[0]} ({name})", tasks[0]
        else:
            count = "the seven" if set(tasks) == set(STS_ORDER) else str(len(tasks))
            title, short = f"the average of {count} STS tasks ({name})", "STS average"
        if len(by_source) > 1:
            short = f"{short} ({name})"
        wanted.append(Target(f"sts-{source}", title, short, tuple((task, source) for task in tasks)))
    for task, source in comparison.columns("embedded"):
        if not task.startswith("geometry:"):
            wanted.append(Target(f"embedded-{task}", task, task, ((task, source),)))
    return wanted
