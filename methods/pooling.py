"""Untrained baselines: a pretrained encoder's hidden states pooled into one vector."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

from harness.method import FitContext, Method, MethodCard
from harness.recipes import Presets, RecipeFile

if TYPE_CHECKING:
    from harness.sources import Corpus, TrainingText

SHEET = RecipeFile.beside(__file__)


class PoolingMethod(Method):
    """The base model without training; `pooling` (and `first_layer`) say how. One preset for every usual pooling."""

    name = "pooling"
    version = 2  # 1: no full stop behind a sentence in a prompt
    card = MethodCard(**SHEET.card)
    presets: ClassVar[Presets] = SHEET

    def check(self, corpus: Corpus | None) -> None:
        """Also refuse a layer, a mask token or a template's room that the base model has not, before any run."""
        super().check(corpus)
        if self.config.pooling.startswith(("layer:", "prompt:", "echo")):
            self.load_base()

    def fit(self, corpus: TrainingText | None = None, context: FitContext | None = None) -> Self:
        """Load the base model; there is nothing to learn, a corpus is ignored."""
        device = context.device if context else "cpu"
        self._encoder = self.load_base().to(device).eval()
        return self
