"""MetaEOL: the mean of a sentence's vectors in several prompts, which ask for different words;
nothing is learnt.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import field_validator

from harness.config import option
from harness.encoder import Encoder
from harness.encoder.network import Features
from harness.encoder.pooling import Pooling
from harness.encoder.prompts import Prompt
from harness.errors import InputError, NotFitted
from harness.method import FitContext, MethodConfig, load_unfitted
from harness.recipes import RecipeFile
from methods.parts.array_method import ArrayMethod, new_folder
from methods.parts.vector_maps import ENCODER, twin

if TYPE_CHECKING:
    from torch import Tensor

    from harness.sources import Corpus, TrainingText

EIGHT = (  # two for each family of tasks: classification, sentiment, paraphrase, extraction
    'Texts are sorted by subject: science, sport, politics, money, health or art. The subject of "[X]" in one word:"',
    'Some statements are facts, others are opinions. Whether "[X]" is a fact or an opinion, in one word:"',
    'Customers rate what they bought from one (very bad) to five (very good). The rating in "[X]" is, in one word:"',
    'People write down how they feel: glad, sad, angry, afraid or in love. The feeling in "[X]" in one word:"',
    'Two sentences may say the same in other words. To compare it with another one, "[X]" means in one word:"',
    'A phrase may replace another one where both mean the same in a sentence. To find it, "[X]" means in one word:"',
    'A news report is summarised by its most important fact. The fact in "[X]" in one word:"',
    'An abstract names things and how they are related. The main thing or relation in "[X]" in one word:"',
)


class MetaEOLConfig(MethodConfig):
    """Prompts, and the layer that is read."""

    pooling: Literal["none"] = option("none", "the templates define which token is read")
    templates: tuple[str, ...] = option(
        EIGHT, "prompts with [X] for the sentence, as in the pooling prompt:TEMPLATE"
    )
    layer: int = option(
        -1,
        "hidden states that are read: 0 the embeddings, -1 the last, -2 those of the layer before",
    )

    @field_validator("templates")
    @classmethod
    def _parse_templates(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value:
            raise ValueError("must be at least one template")
        for template in value:
            Prompt.parse(template)
        return value


class LayerEncoder(Encoder):
    """An encoder that reads the hidden states `layer`."""

    layer = -1

    def _tokens(self, features: Features) -> Tensor:
        if self.layer == -1:
            return super()._tokens(features)
        states, last = self._run(features, every_layer=True)
        return (*states[:-1], last)[self.layer]


class MetaEOL(ArrayMethod):
    """v = (1/m) sum over templates t of H[layer] at the last token of t(sentence), or at its mask
    token.
    """

    name = "metaeol"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = MetaEOLConfig
    kind: ClassVar[type[LayerEncoder]] = LayerEncoder

    _encoders: Sequence[LayerEncoder] = ()

    def check(self, corpus: Corpus | None) -> None:
        """Also refuse a layer, a mask token or a template's room that the base model lacks, before
        any run.
        """
        super().check(corpus)
        self._use(self._base())

    def fit(self, corpus: TrainingText | None = None, context: FitContext | None = None) -> Self:
        """Load the base model; there is nothing to learn, a corpus is ignored.

        Raises:
            InputError: no such model, or one that lacks the layer, the mask token or the room of a
                template.
        """
        context = context or FitContext()
        base = self._base()
        self._prepare(base, context.seed)
        return self._use(base.to(context.device).eval())

    def _base(self) -> LayerEncoder:
        return self.kind.from_pretrained(
            self.base_model,
            pooling="last",
            max_length=self.config.max_length,
        )

    def _prepare(self, base: LayerEncoder, seed: int) -> None:
        """Change the base model before templates are put around sentences."""

    def _use(self, base: LayerEncoder) -> Self:
        depth = int(base.transformer.config.num_hidden_layers)
        if not -depth - 1 <= self.config.layer <= depth:
            raise InputError(
                f'{self.name}: layer {self.config.layer}: model "{self.base_model}" has 0 to {depth}',
                key="layer",
            )
        base.layer = self.config.layer

        encoders = [base]
        for template in self.config.templates:
            prompt = Prompt.parse(template)
            if sum(map(len, prompt.pieces(base.tokenizer))) >= base.max_length:
                raise InputError(
                    f"{self.name}: no room for a sentence in {base.max_length} tokens: {template!r:.80}"
                )
            encoder = twin(base)
            encoder.tokenizer = copy.deepcopy(base.tokenizer)
            encoder.pooling = Pooling.parse(f"prompt:{template}")
            prompt.apply(encoder.tokenizer)
            encoders.append(encoder)
        self._encoders = encoders
        self._encoder = encoders[1]
        return self

    @property
    def encoders(self) -> Sequence[LayerEncoder]:
        """Base model, which reads its last token, and the same in each template.

        Raises:
            NotFitted: before `fit`.
        """
        if not self._encoders:
            raise NotFitted(f"{self.name} is not fitted yet: call fit() or load() first")
        return self._encoders

    def _vectors(self, texts: Sequence[str], **options: Any) -> NDArray[np.float32]:
        vectors = [encoder.encode(texts, **options) for encoder in self.encoders[1:]]
        mean: NDArray[np.float32] = np.mean(vectors, axis=0)
        return mean

    def save(self, path: str | Path, *, card: str = "") -> None:
        """Write the base model and the templates."""
        base = self.encoders[0]
        with new_folder(self, path, card) as folder:
            base.save(folder / ENCODER)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Load what `save` wrote.

        Raises:
            InputError: the folder is not one, or another method's.
        """
        return load_unfitted(cls, path)._use(cls.kind.load(Path(path) / ENCODER).eval())
