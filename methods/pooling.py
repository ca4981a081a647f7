"""Untrained baselines: a pretrained encoder's hidden states pooled into one vector."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

from harness.method import FitContext, Method, MethodCard
from harness.recipes import Presets, RecipeFile

if TYPE_CHECKING:
    from harness.sources import Corpus, TrainingText


class PoolingMethod(Method):
    """The base model without training; `pooling` (and `first_layer`) say how. One preset for every usual pooling."""

    name = "pooling"
    version = 2  # 1: no full stop behind a sentence in a prompt
    card = MethodCard(
        title="Pooling of a pretrained encoder",
        paper="baselines of Gao, Yao & Chen, SimCSE, EMNLP 2021 (and of all later papers)",
        reference="github.com/princeton-nlp/SimCSE",
        deterministic=True,
        notes="first_last_avg: the SimCSE and SCD tables used the embedding block as first layer (first_layer=0), "
        "today's SimCSE code and BERT-flow / whitening use layer 1 (the default here). prompt: the state at [MASK] of "
        "a template (PromptBERT's untrained row, 67.85 on BERT-base), or at its last token (PromptEOL, causal models), "
        "with the full stop that the authors' evaluations put behind a sentence without one. "
        "echo: the mean over the second of two copies of the sentence, or its last token, in the template of Springer "
        "et al., ICLR 2025 (arXiv 2402.15449), made for causal models. Both copies together have the length of a text; "
        "the authors' code allows it to each copy.",
    )
    presets: ClassVar[Presets] = RecipeFile.beside(__file__)

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
