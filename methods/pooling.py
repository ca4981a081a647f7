"""Untrained baselines: a pretrained encoder's hidden states pooled into one vector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from harness.method import FitContext, Method
from harness.recipes import RecipeFile

if TYPE_CHECKING:
    from harness.sources import Corpus, TrainingText


class PoolingMethod(Method):
    """Base model without training, pooled as `pooling` (and `first_layer`) say; a preset for every
    usual pooling.
    """

    name = "pooling"
    version = 2  # 1: no full stop behind a sentence in a prompt
    sheet = RecipeFile.beside(__file__)

    def check(self, corpus: Corpus | None) -> None:
        """Also refuse a layer, a mask token or a template's room that the base model has not,
        before any run.
        """
        super().check(corpus)
        if self.config.pooling.startswith(("layer:", "prompt:", "echo")):
            self.load_base()

    def fit(self, corpus: TrainingText | None = None, context: FitContext | None = None) -> Self:
        """Load the base model; there is nothing to learn, a corpus is ignored."""
        device = context.device if context else "cpu"
        self._encoder = self.load_base().eval().finish()
        self.set_dtype(self.config.dtype)  # before it goes to the device, where memory may be short
        self._encoder.to(device)
        return self
