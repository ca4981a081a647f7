"""How long the tasks themselves take: fits of classifiers above all, measured on random vectors."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from harness.comparison.disk import architecture
from harness.comparison.plan import Plan, PlannedCell
from harness.errors import InputError
from harness.evaluation.scoring import evaluate
from harness.files.atomic import write_atomic
from harness.machine.environment import cpu_model
from harness.tasks.base import Array, Task, needs_model, task_key

log = logging.getLogger(__name__)


class ScoringTimes:
    """`WORKDIR/full-size-tasks.json`: seconds by task, width of the vectors and processor."""

    def __init__(self, plan: Plan, workdir: Path) -> None:
        self.plan = plan
        self.file = workdir / "full-size-tasks.json"
        self._known: dict[str, float] = {}
        try:
            known = json.loads(self.file.read_text("utf-8")) if self.file.exists() else {}
            self._known = {key: float(seconds) for key, seconds in known.items()}
        except (ValueError, TypeError, AttributeError):
            log.warning("%s: damaged; the tasks are timed again", self.file)

    def measure(self) -> Iterator[tuple[str, int, float]]:
        """Task, width and seconds of what is not known yet; each is kept before the next one is timed.

        A task that fails with random vectors is left out.
        """
        for task, width in dict.fromkeys(
            (task, width_of(cell)) for cell in self.plan.cells if not cell.fault for task in self._timed(cell)
        ):
            if self._key(task, width) in self._known:
                continue
            try:
                seconds = _seconds(task, width)
            except Exception as error:
                log.warning("%s: not timed: %s", task.name, error)
                continue
            self._known[self._key(task, width)] = seconds
            self.file.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(self.file, json.dumps(self._known, indent=1) + "\n")
            yield task.name, width, seconds

    def of(self, cell: PlannedCell) -> float:
        """Seconds for all tasks of one run, as far as they are known."""
        return sum(self._known.get(self._key(task, width_of(cell)), 0.0) for task in cell.tasks)

    def left_out(self) -> list[str]:
        """The tasks whose time nobody knows, but for those that cannot be scored here."""
        left = [cell for cell in self.plan.cells if not cell.fault]
        return list(
            dict.fromkeys(
                task.name
                for cell in left
                for task in cell.tasks
                if task.name not in self.plan.unreadable and self._key(task, width_of(cell)) not in self._known
            )
        )

    def _timed(self, cell: PlannedCell) -> list[Task]:
        """Those that can be timed without a model, and with the data that is here."""
        return [
            task
            for task in cell.tasks
            if task.name not in self.plan.unreadable and not needs_model(task) and not hasattr(task, "at_least")
        ]

    def _key(self, task: Task, width: int) -> str:
        return f"{task_key(task)} {self.plan.evaluation[task_key(task)]}, {width} numbers, {cpu_model()}"


def width_of(cell: PlannedCell) -> int:
    """Numbers of a sentence vector: the base model's width, 768 where that is not known."""
    try:
        return architecture(cell.row.base_model)[1]
    except InputError:
        return 768


def _seconds(task: Task, width: int) -> float:
    generator = np.random.default_rng(0)

    def drawn(texts: list[str]) -> Array:
        return generator.standard_normal((len(texts), width), dtype=np.float32)

    return evaluate(drawn, [task], pooling="random").cost["evaluate_seconds"]
