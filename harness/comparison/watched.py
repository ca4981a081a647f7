"""A run that is watched while it trains, and may be given up: through two small files of the work directory.

The worker adds a line for each score on the dev set; the coordinator reads them, and leaves word when it has seen
enough. The run then ends after its next update, with a record of what was done. For a worker that does not see the work
directory both files are carried (`harness.comparison.carried`).
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from harness.errors import InputError, TrainingStopped
from harness.files.atomic import write_atomic

EVERY = 1.0  # seconds between two looks for the word to stop


class CannotWatch(InputError):  # noqa: N818 - says what it is
    """A worker does not see the work directory, and its executor has no post, so that its run cannot be given up."""


class Watched:
    """What the worker of a run does."""

    def __init__(self, workdir: Path, cell: str) -> None:
        self._scores, self._stop = scores_file(workdir, cell), stop_file(workdir, cell)
        self._looked = 0.0

    def on_dev(self, step: int, score: float) -> None:
        """As `FitContext.on_dev`."""
        self._scores.parent.mkdir(parents=True, exist_ok=True)
        with self._scores.open("a", encoding="utf-8") as file:
            file.write(json.dumps([step, score]) + "\n")
        self._looked = 0.0
        self.look()

    def look(self) -> None:
        """Look for the word to stop, now and then.

        Raises:
            TrainingStopped: it is there.
        """
        if time.monotonic() - self._looked >= EVERY:
            self._looked = time.monotonic()
            if self._stop.exists():
                raise TrainingStopped("pruned", self._stop.read_text("utf-8"))


def scores(workdir: Path, cell: str) -> list[tuple[int, float]]:
    """Update and score of the evaluations so far. A line that is just being written is left for the next time."""
    try:
        lines = scores_file(workdir, cell).read_text("utf-8").splitlines(keepends=True)
    except FileNotFoundError:
        return []
    return [(step, score) for step, score in (json.loads(line) for line in lines if line.endswith("\n"))]


def give_up(workdir: Path, cell: str, reason: str) -> None:
    """Have a run end as soon as it looks."""
    write_atomic(stop_file(workdir, cell), reason)


def forget(workdir: Path, cell: str) -> None:
    """Remove what was told of a run: before it is begun, so that no word to an earlier one ends it, and when it has
    ended."""
    for file in (scores_file(workdir, cell), stop_file(workdir, cell)):
        file.unlink(missing_ok=True)


def scores_file(workdir: Path, cell: str) -> Path:
    """Where the worker writes the scores."""
    return workdir / "live" / "watched" / f"{cell}.jsonl"


def stop_file(workdir: Path, cell: str) -> Path:
    """Where the coordinator leaves the word to stop."""
    return workdir / "live" / "watched" / f"{cell}.stop"
