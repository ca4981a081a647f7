"""What training and inference of a row cost, by the steadiest clock that its records have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.results.measurements import PROCESSOR, InferenceCost, read_inference
from harness.results.record import Record
from reports.load import RecordedResults, RecordedRow

# Kinds of training cost, the steadiest first: key in `cost` -> unit.
CLOCKS = {
    "train_gpu_seconds": "GPU seconds",
    "train_cpu_seconds": "processor seconds",
    "train_seconds": "seconds",
}


@dataclass(frozen=True)
class Speed:
    """Sentences a second of an architecture: median of its passes, and where their middle half
    lies.
    """

    median: float
    low: float
    high: float
    measured: InferenceCost

    @property
    def unit(self) -> str:
        if self.measured.clock == PROCESSOR:
            return "sentences a processor second"
        return "sentences a second"


def speeds(comparison: RecordedResults) -> dict[tuple[str, str], Speed]:
    """Row key -> the speed of its architecture, one for all rows of it; rows of earlier versions
    have none.
    """
    kept = list(read_inference(comparison.workdir).values())
    found = {}
    for row in comparison.rows:
        for record in row.finished:
            if (cost := _of(record, kept)) is not None:
                found[row.key] = _speed(cost)
                break
    return found


def _of(record: Record, kept: Sequence[InferenceCost]) -> InferenceCost | None:
    device = record.environment.get("device_name")
    fitting = []
    for c in kept:
        if c.architecture == record.architecture and c.device == device and c.seconds:
            fitting.append(c)
    if record.architecture and fitting:
        return fitting[0]
    return None


def _speed(cost: InferenceCost) -> Speed:
    speeds = cost.sentences / np.array(cost.seconds)
    low, median, high = np.quantile(speeds, (0.25, 0.5, 0.75))
    return Speed(float(median), float(low), float(high), cost)


def training_clock(rows: Sequence[RecordedRow]) -> str:
    """The steadiest kind of training cost that every trained row has; wall seconds where there is
    none.
    """
    trained = []
    for row in rows:
        if any(r.cost.get("train_seconds", -1) >= 0 for r in row.finished):
            trained.append(row)
    for clock in CLOCKS:
        if all(training_cost(row, clock) is not None for row in trained):
            return clock
    return "train_seconds"


def training_cost(row: RecordedRow, clock: str) -> float | None:
    """Mean over the finished seeds; 0 where nothing was trained. A supervised model was trained
    elsewhere: unknown.
    """
    if row.supervision == "supervised":
        return None
    if row.supervision == "untrained":
        return 0.0
    values = []
    for r in row.finished:
        if r.cost.get(clock, -1) >= 0:
            values.append(r.cost[clock])
    if values:
        return float(np.mean(values))
    return None
