"""What a comparison gives to who called it: the records, the report, the searches before it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from harness.comparison.experiment import Experiment
from harness.comparison.tuning import Tuning
from harness.results.record import Record


@dataclass(frozen=True)
class ComparisonResult:
    """What a comparison came to."""

    experiment: Experiment
    workdir: Path
    records: list[Record]  # one a cell, in the order of the table
    report: dict[str, Path] = field(default_factory=dict)  # format -> what was written
    tuning: Tuning | None = None
    further: dict[str, dict[str, Path]] = field(default_factory=dict)  # reports that the file asks for beside its own

    @property
    def failed(self) -> list[Record]:
        """The records of cells that failed; the same call tries them again. A rehearsal goes without what it lacks."""
        return [r for r in self.records if r.status == "failed" and r not in self.left_out]

    @property
    def left_out(self) -> list[Record]:
        """The records of a rehearsal whose row asks for something that is not there."""
        return [r for r in self.records if r.rehearsal and r.lacking]

    @property
    def status(self) -> Literal["finished", "failed"]:
        """Did every cell come to a result? A collapsed or diverged training is one."""
        return "failed" if self.failed else "finished"
