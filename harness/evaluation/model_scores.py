"""What an evaluation gives to who called it: the scores of one model, and how it was run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.machine.environment import describe
from harness.results.record import Score
from harness.tasks.base import TaskResult


@dataclass(frozen=True)
class Evaluation:
    """The scores of one model."""

    model: str
    pooling: str
    device: str
    result: TaskResult
    remark: str = ""  # what a reader should know of how the model was run

    @property
    def scores(self) -> list[Score]:
        """All scores."""
        return self.result.scores

    def as_dict(self) -> dict[str, Any]:
        """Scores, protocols and costs as plain values, as `harness evaluate --json` writes them."""
        return {
            "model": self.model,
            "pooling": self.pooling,
            "scores": [score.model_dump() for score in self.scores],
            "protocols": self.result.protocols,
            "missing": {task: why.text for task, why in self.result.missing.items()},
            "notes": self.result.notes,
            "figures": self.result.figures,
            "cost": self.result.cost,
            "environment": describe(self.device, "fp32"),
        }
