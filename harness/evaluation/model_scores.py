"""What an evaluation gives to who called it: the scores of one model, and how it was run."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from harness.machine.environment import describe
from harness.results import frames
from harness.tasks.base import TaskResult

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = ["task", "split", "metric", "aggregation", "value", "n"]


@dataclass(frozen=True)
class Scores:
    """The scores of one model. `print` and a notebook show them as a table.

        >>> found = harness.evaluate("embedded:mini-bert", "Embedded-STS-contrast", cached=False)
        >>> len(found.pairs()), found.costs()["sentences"].tolist() == [float(found.result.cost["sentences"])]
        (300, True)
        >>> sorted(found.as_dict())[:3]
        ['cost', 'environment', 'figures']

    Attributes:
        result: everything that the tasks gave; `result.scores` are the scores one by one.
        remark: what a reader should know of how the model was run.
        dtype: what its vectors were computed in.
    """

    model: str
    pooling: str
    device: str
    result: TaskResult = field(repr=False)
    remark: str = ""
    dtype: str = "fp32"

    def scores(self) -> pd.DataFrame:
        """One row a score: "model", then the columns of `harness.results.frames.SCORES` that are
        not about runs.
        """
        return frames.scores_of_one(self.result.scores, self.model)

    def pairs(self) -> pd.DataFrame:
        """One row a scored pair of sentences: the columns of `harness.results.frames.PAIRS` that
        are not about runs.
        """
        import pandas as pd

        columns = [name for name in frames.PAIRS if name not in frames.RUN]
        if self.result.pairs is None:
            return pd.DataFrame(columns=columns)
        return self.result.pairs.copy()

    def costs(self) -> pd.DataFrame:
        """One row: sentences, seconds of encoding and of scoring."""
        import pandas as pd

        return pd.DataFrame([{"model": self.model, **self.result.cost}])

    def as_dict(self) -> dict[str, Any]:
        """Scores, protocols and costs as plain values, as `harness evaluate --json` writes them."""
        return {
            "model": self.model,
            "pooling": self.pooling,
            "scores": [score.model_dump() for score in self.result.scores],
            "protocols": self.result.protocols,
            "missing": {task: why.text for task, why in self.result.missing.items()},
            "notes": self.result.notes,
            "figures": self.result.figures,
            "cost": self.result.cost,
            "environment": describe(self.device, self.dtype),
        }

    def __str__(self) -> str:
        table = self.scores()[_SHOWN].to_string(index=False)
        return f"{self.model}, {self.pooling}\n{table}"

    def _repr_html_(self) -> str:
        frame = self.scores()[_SHOWN]
        notes = [f"<p>{escape(note)}</p>" for note in self.result.notes]
        table: str = frame.to_html(index=False, float_format="{:.4f}".format)
        title = f"<p>{escape(self.model)}, {escape(self.pooling)}</p>"
        return f"{title}{table}{''.join(notes)}"
