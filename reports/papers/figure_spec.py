"""The figures that a paper's definition asks for: their kinds, and what each is drawn by."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from harness.config import Config, nearest

# Kind -> what the report says where nothing was measured that it could show; "" where the figure's title says it.
KINDS = {
    "alignment-uniformity": "alignment against uniformity. No run has the suite geometry.",
    "histograms": "cosines by gold score. No run stored them: the suites geometry and embedded do.",
    "layers": "score by layer and pooling. No run has the suite layers.",
    "tradeoff": "score against cost. No run has a whole STS average.",
    "scan": "",  # scores of a study's trials by one hyperparameter, or by two
    "levels": "",  # score by the levels of each of some factors
    "amounts": "",  # score by the levels of one factor, and by the amount of text
    "additions": "",  # score by something that may be added to a method, beside the method without it
}
_NEEDS = {"scan": ("key", "title", "method", "factors")} | dict.fromkeys(
    ("levels", "amounts", "additions"), ("key", "title", "method", "factors", "columns")
)
_MOST = {"scan": 2, "amounts": 1}  # factors


class Factor(Config):
    """An option of a method that a figure is drawn by."""

    key: str = Field(description="of the method's configuration")
    title: str = Field(default="", description='above its panel; of a scan by groups with "{}" for the group')
    axis: str = Field(default="", description="below its panel")
    labels: dict[str, str] = Field(default={}, description="level -> how it is shown; of amounts also their order")
    beside: str = Field(default="", description="additions: a second option that tells levels apart")


class PaperFigure(Config):
    """A figure of a paper's report. A definition may give the kind alone, where that needs nothing else."""

    kind: str
    key: str = Field(default="", pattern=r"^[\w.-]*$", max_length=80)
    title: str = ""
    method: str = Field(default="", description="our method whose runs or trials it shows")
    where: dict[str, Any] = Field(default={}, description="which of its runs (as in rows of tables)")
    factors: list[Factor] = Field(default=[], description="what it is drawn by, a panel each")
    columns: str = Field(default="", description="column set: the first of those columns that most rows have is drawn")
    same: list[str] = Field(default=[], description="options that stay at the value that most rows have")
    by: str = Field(default="", description="scan: option of the rows of its tables that sorts trials into groups")
    within: dict[str, str] = Field(
        default={}, description="scan: option that all trials shown share -> sentence about its value {}"
    )
    caption: str = Field(default="", description="scan: what else the caption says")
    alt: str = Field(default="", description="what it shows, for those who cannot see it")
    absent: str = Field(default="", description="what the report says where it cannot be drawn")

    @model_validator(mode="before")
    @classmethod
    def _kind_alone(cls, value: Any) -> Any:
        return {"kind": value} if isinstance(value, str) else value

    def fault(self) -> str:
        """What is wrong with it, in a line; "" of a whole one. The definition that holds it tells."""
        if self.kind not in KINDS:
            return f'unknown figure "{self.kind}"{nearest(self.kind, list(KINDS))}; known: {", ".join(KINDS)}'
        named = f'figure "{self.key or self.kind}" of kind "{self.kind}"'
        for key in _NEEDS.get(self.kind, ()):
            if not getattr(self, key):
                return f'{named}: lacks the key "{key}"'
        most = _MOST.get(self.kind, len(self.factors))
        return f"{named}: {len(self.factors)} factors, at most {most} can be drawn" if len(self.factors) > most else ""

    @property
    def missing_text(self) -> str:
        """What the report says where it cannot be drawn."""
        return self.absent or KINDS[self.kind] or f"{self.title}. No run here has what it shows."
