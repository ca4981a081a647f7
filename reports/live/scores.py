"""Scores of rows while seeds still come in: by the targets of the reports, with Student's interval over seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.live.state import RowScore
from harness.results.record import Record
from harness.seeds import PartSeed

FEWEST = 3  # seeds of an interval: that of two is twelve deviations wide
COLUMNS = 4  # targets that a page while it runs has room for


def scores(records: Sequence[Record]) -> list[RowScore]:
    """Of every row with a finished run: mean over seeds, in points, for each target of the report.

    The interval is of the mean over seeds alone: mean ± t s / sqrt(n), t Student's with n - 1 degrees of freedom. The
    report's verdicts also draw the test examples anew.
    """
    from pathlib import Path

    from scipy.special import stdtrit

    from reports.read.comparison_runs import Comparison, ResultRow
    from reports.stats.estimate import mean_sd
    from reports.stats.targets import targets

    by_row: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if not isinstance(record.drawn, PartSeed):
            by_row.setdefault((record.row, record.base_model), []).append(record)
    rows = tuple(ResultRow(label, base, tuple(runs)) for (label, base), runs in by_row.items())
    found = []
    for target in targets(Comparison("", Path(), rows))[:COLUMNS]:
        for row in rows:
            each = [[one.value(record) for one in target.measures] for record in row.finished]
            values = [
                100 * math.fsum(known) / len(known)
                for run in each
                if len(known := [value for value in run if value is not None]) == len(run)
            ]
            if not values:
                continue
            mean, deviation = mean_sd(values)
            n = len(values)
            score = RowScore(row.label, row.base_model, target.short, n, mean, deviation)
            if deviation is not None and n >= FEWEST:
                half = float(stdtrit(n - 1, 0.975)) * deviation / math.sqrt(n)
                score = RowScore(row.label, row.base_model, target.short, n, mean, deviation, mean - half, mean + half)
            found.append(score)
    return found
