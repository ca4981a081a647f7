"""InfoNCE: SimCSE's loss on any two views, such as crops of a document."""

from __future__ import annotations

from typing import ClassVar, Literal

from torch import Tensor, nn

from harness.config import option
from harness.encoder import Encoder
from harness.encoder.masked_lm import IGNORED, mask_tokens
from harness.method import POOLING_HELP
from harness.recipes import RecipeFile
from harness.training import Batch, TrainingConfig, ViewMethod
from harness.views import ViewConfig, make_views
from harness.views.make import Template, encode
from methods.objectives import nt_xent
from methods.parts.generator import Generator
from methods.parts.projection_heads import tanh_mlp


class InfoNCEConfig(ViewConfig, TrainingConfig):
    """Defaults: the loss of González-Márquez et al., and the optimisation of all methods."""

    pooling: str = option("mean", POOLING_HELP)
    temperature: float = option(0.05, "divides the cosines", gt=0, sweep=(0.001, 1.0), log=True)
    directions: Literal[1, 2] = option(
        1, "1: the first view finds the second; 2: also the second the first, averaged"
    )
    head: Literal["none", "training"] = option(
        "none", "SimCSE's tanh layer, in the loss only, or none"
    )
    predicted: float = option(
        0.0,
        "share of the tokens of both views in whose place the untrained base model writes its likeliest ones",
        ge=0,
        lt=1,
        sweep=(0.05, 0.5),
        later=True,
    )
    in_parts: ClassVar[bool] = True

    @property
    def of_tokens(self) -> bool:
        """Are the views made from token ids, or words written into them?"""
        return super().of_tokens or self.predicted > 0


class ProjectionHead(nn.Module):
    """SimCSE's tanh layer or none, (n, d) -> (n, d), and the model that writes words into views."""

    def __init__(self, mlp: nn.Module, generator: Generator) -> None:
        super().__init__()
        self.mlp = mlp
        self.generator = generator

    def forward(self, vectors: Tensor) -> Tensor:
        projected: Tensor = self.mlp(vectors)
        return projected


class InfoNCE(ViewMethod):
    """L = mean over i of -log softmax_j( cos(zA_i, zB_j) / temperature ) at j = i, of the two views
    A and B.
    """

    name = "infonce"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = InfoNCEConfig

    def heads(self, encoder: Encoder) -> nn.Module:
        training = self.config.head == "training"
        mlp = tanh_mlp(encoder.dimension) if training else nn.Identity()
        if not self.config.predicted:
            return mlp
        return ProjectionHead(mlp, Generator(self.base_model, encoder, self.name))

    def loss(self, encoder: Encoder, heads: nn.Module, batch: Batch) -> dict[str, Tensor]:
        config: InfoNCEConfig = self.config
        views = make_views(batch.items, encoder, config, batch.rng, max_length=config.train_length)
        if isinstance(heads, ProjectionHead):
            ids_a = self._write(encoder, heads.generator, views.ids_a, batch)
            ids_b = self._write(encoder, heads.generator, views.ids_b, batch)
            views = views._replace(ids_a=ids_a, ids_b=ids_b)
        h_a, h_b = encode(encoder, views, config.differ_by)
        z_a = heads(h_a)
        z_b = heads(h_b)
        loss = nt_xent(z_a, z_b, temperature=config.temperature)
        if config.directions == 2:
            loss = (loss + nt_xent(z_b, z_a, temperature=config.temperature)) / 2
        return {"loss": loss}

    def _write(
        self,
        encoder: Encoder,
        generator: Generator,
        ids: list[list[int]],
        batch: Batch,
    ) -> list[list[int]]:
        """Return token rows in which a share of the sentences' tokens is the generator's."""
        template = Template.of(encoder)
        parts = [template.split(row) for row in ids]
        masked, labels = mask_tokens(
            [sentence for _, sentence, _ in parts],
            encoder.tokenizer,
            batch.rng,
            probability=self.config.predicted,
            shares=(1.0, 0.0),
        )
        rows = []
        truth = []
        for (before, _, after), sentence, of_sentence in zip(parts, masked, labels, strict=True):
            rows.append([*before, *sentence, *after])
            truth.append([IGNORED] * len(before) + of_sentence + [IGNORED] * len(after))
        return generator.fill(rows, truth)
