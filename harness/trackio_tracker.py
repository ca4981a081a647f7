"""Runs in trackio: `--tracking-uri trackio://`, or `trackio://PROJECT`; a project of the
comparison's name without it.

Trackio stores them where TRACKIO_DIR says; `trackio show` opens them. It is also the example of a
tracker by choice.
"""

from __future__ import annotations

import os
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from harness.results.flat import curve_points, record_numbers, row_params
from harness.results.record import Record
from harness.results.store import RunFolder
from harness.seeds import seed_text


class Trackio:
    """A `harness.tracking.Backend`: each record is a run in the group of its row."""

    def __init__(self, workdir: Path, name: str, uri: str) -> None:
        import trackio

        self.workdir = workdir
        self.project = uri.partition("://")[2] or name
        try:
            runs = trackio.Api().runs(self.project)
            self.sent = {run.name: run for run in runs}
        except ValueError:  # no such project yet
            self.sent = {}

    def send(self, record: Record) -> bool:
        """Store a record; False if it is there already."""
        import trackio

        seed = seed_text(record.random_seed)
        begin = record.id[:8]
        name = f"{record.row} seed {seed} {begin}"
        about = {
            **row_params(record),
            "seed": seed,
            "status": record.status,
            "ended": record.finished,
        }
        if name in self.sent:
            sent = self.sent[name].config or {}
            if sent.get("ended") == record.finished:
                return False
            self.sent[name].delete()
        by_step: dict[int, dict[str, float]] = {}
        points = curve_points(RunFolder(self.workdir, record.id))
        for (metric, step), value in points.items():
            by_step.setdefault(step, {})[metric] = value
        with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
            run: Any = trackio.init(
                self.project,
                name=name,
                group=record.row,
                config=about,
                embed=False,
                auto_log_gpu=False,
                auto_log_cpu=False,
            )
            for step, values in sorted(by_step.items()):
                run.log(values, step=step)
            run.log(record_numbers(record), step=max(by_step, default=0))
            run.finish()
        return True

    def end_rows(self) -> None:
        """Trackio groups runs on its own."""
