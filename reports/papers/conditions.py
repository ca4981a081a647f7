"""What makes a run one of a paper's rows, and what makes it another one than the paper's: model, text, recipe."""

from __future__ import annotations

from typing import Any

from harness.results.record import Record
from reports.papers import recipes, training_text
from reports.papers.agreement import Obstacle
from reports.papers.definition import Definition, PaperRow
from reports.read.comparison_runs import ResultRow, rehearsed
from reports.read.run_library import matches

_WEIGHTS = ("base_model", "model", "vectors")  # what a rehearsal replaces by something small


class Conditions:
    """The conditions that a definition states for its rows, asked of runs that were made or are planned."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition

    def is_of(self, spec: PaperRow, record: Record) -> bool:
        """Whether a run is one of a paper's row: its method, as `where` says, and on its text where that is the point.

        A rehearsal has what its own recipe says where the row has what the paper's says, and may have a stand-in for
        the text.
        """
        if record.method != spec.method or not matches(record, self._where(spec, record)):
            return False
        wanted = self.definition.data.get(spec.data)
        if not spec.by_text or wanted is None:
            return True
        stands_in = rehearsed(record) and not any(
            training_text.is_text(text, record) for text in self.definition.data.values()
        )
        return stands_in or training_text.is_text(wanted, record)

    def _where(self, spec: PaperRow, record: Record) -> dict[str, Any]:
        if not rehearsed(record):
            return spec.where
        families = [self.definition.family(base) for base in self.definition.bases]
        asked = {key: value for key, value in spec.where.items() if key not in _WEIGHTS}
        return {key: recipes.rehearsed_values(spec, families, key, value) for key, value in asked.items()}

    def base(self, base: str, spec: PaperRow, base_model: str) -> list[Obstacle]:
        """`base`: as the published file names the paper's."""
        names = {base_model, base_model.rstrip("/").rsplit("/", 1)[-1]}  # of a file of vectors, its own name
        own = names & set(spec.same_weights) if spec.same_weights else self.definition.same_base(base, base_model)
        return [] if own else [Obstacle("base model", f"{base_model}, not {base}")]

    def text(self, spec: PaperRow, row: ResultRow) -> list[Obstacle]:
        """How the training text differs from the paper's."""
        wanted = self.definition.data.get(spec.data)
        if wanted is None or row.records[0].supervision == "untrained":
            return []
        said = dict.fromkeys(training_text.difference(wanted, record) for record in row.finished)  # in the order met
        return [Obstacle("training data", detail) for detail in said if detail]

    def recipe(self, base: str, spec: PaperRow, row: ResultRow) -> list[Obstacle]:
        """In which of the hyperparameters that a published row on `base` states our runs differ."""
        family = self.definition.family(base)
        unlike = dict.fromkeys(text for r in row.finished for text in recipes.differences(r, spec, family))
        return [Obstacle("recipe", ", ".join(unlike))] if unlike else []

    def obstacles(self, base: str, spec: PaperRow, row: ResultRow) -> list[Obstacle]:
        """Why a row of ours is not the row that a paper publishes on `base`."""
        return [*self.base(base, spec, row.base_model), *self.text(spec, row), *self.recipe(base, spec, row)]

    def of_training(self, spec: PaperRow, row: ResultRow) -> list[Obstacle]:
        """How a row of ours was trained otherwise than the paper's row on the same base model; on a base model that the
        paper does not have, the text alone says it."""
        published = self.published_base(row.base_model)
        recipe = self.recipe(published, spec, row) if published else []
        return [*self.text(spec, row), *recipe]

    def published_base(self, base_model: str) -> str:
        """Our name of a base model as the published file names it; "" of one that the paper does not have."""
        return next((base for base in self.definition.bases if self.definition.same_base(base, base_model)), "")

    def remarks(self, base: str, spec: PaperRow, row: ResultRow) -> tuple[str, ...]:
        """What of the training is unlike a published row's on `base` without making it another thing."""
        wanted, family = self.definition.data.get(spec.data), self.definition.family(base)
        texts = [training_text.remark(wanted, record) for record in row.finished] if wanted else []
        said = [text for record in row.finished for text in recipes.schedule(record, spec, family)]
        return tuple(dict.fromkeys(text for text in (*texts, *said) if text))
