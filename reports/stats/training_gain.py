"""Did training find better weights than those that it began with, by the score that selects them?"""

from __future__ import annotations

from reports.read.comparison_runs import ResultRow


def never_beat_the_start(row: ResultRow) -> tuple[int, int]:
    """Of how many finished runs no dev score was above the untrained one, and of how many both scores are known."""
    known = [
        (best, initial)
        for record in row.finished
        if (best := record.training.get("best_dev")) is not None
        and (initial := record.training.get("initial_dev")) is not None
    ]
    return sum(best <= initial for best, initial in known), len(known)


def remark(row: ResultRow) -> str:
    """The same as a sentence; empty where every run got better than it began."""
    never, known = never_beat_the_start(row)
    if not never:
        return ""
    if never == known:
        return "no gain on dev"
    return f"no gain on dev in {never} of {known} runs"
