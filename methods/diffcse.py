"""DiffCSE: SimCSE, and a discriminator that gets a sentence's vector and finds which of its words
were replaced.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from harness.config import option
from harness.encoder import Encoder
from harness.encoder.masked_lm import mask_tokens
from harness.encoder.network import Features, TokenIds
from harness.errors import InputError
from harness.recipes import RecipeFile
from harness.sources.embedded import model_fingerprint
from harness.training import Batch
from methods.parts.embedding_views import Change, change_embeddings
from methods.parts.generator import Generator
from methods.parts.projection_heads import projector
from methods.simcse import SimCSE, SimCSEConfig


def replaced_token_detection(logits: Tensor, ids: Tensor, original: Tensor, mask: Tensor) -> Tensor:
    """Mean cross-entropy in nats of telling, for every real token, whether it was replaced.

    L = -(1/T) sum_it log softmax(logits_it)[ids_it != original_it], T the number of tokens with
    mask 1.

    Args:
        logits: (n, length, 2). ids, original, mask: (n, length).

    Source: Chuang et al., NAACL 2022, Eq. 2 and 3, there a sum; the code's mean counts padding as
        well.
    """
    real = mask.bool()
    return functional.cross_entropy(logits[real].float(), (ids != original)[real].long())


class Discriminator(nn.Module):
    """A copy of the base model that reads a sentence's vector in the place of its first token's
    embedding.
    """

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.transformer = encoder.copy().transformer
        self.head = nn.Linear(int(encoder.transformer.config.hidden_size), 2)

    def forward(self, features: Features, z_a: Tensor, z_b: Tensor) -> Tensor:
        """Return logits (2n, length, 2) of rows of view a, then of view b; z_a, z_b: (n, d)."""
        with change_embeddings(self.transformer, _replace_first(z_a), _replace_first(z_b)):
            logits: Tensor = self.head(self.transformer(**features).last_hidden_state)
        return logits


def _replace_first(vectors: Tensor) -> Change:
    """Put `vectors` (n, d) in the place of the first token's embeddings."""

    def change(embeddings: Tensor, mask: Tensor) -> Tensor:
        first = vectors.unsqueeze(1).to(embeddings.dtype)
        return torch.cat([first, embeddings[:, 1:]], dim=1)

    return change


class DiffCSEConfig(SimCSEConfig):
    """Defaults: the released script for BERT-base."""

    learning_rate: float = option(
        7e-6,
        "peak learning rate of AdamW",
        gt=0,
        sweep=(1e-6, 3e-4),
        log=True,
    )
    head: Literal["batchnorm", "training"] = option(  # type: ignore[assignment]
        "batchnorm",
        "in training only: Linear-BatchNorm-ReLU-Linear-BatchNorm, or SimCSE's tanh layer (training)",
    )
    rtd_weight: float = option(
        0.005,
        "weight of the detection of replaced tokens (lambda)",
        ge=0,
        sweep=(1e-4, 0.1),
        log=True,
    )
    mask: float = option(
        0.3,
        "share of the tokens that are masked for the generator",
        gt=0,
        lt=1,
        sweep=[0.15, 0.2, 0.3],
    )
    generator: str = option(
        "", "masked language model that writes the edited sentence; empty: the base model, frozen"
    )
    in_parts: ClassVar[bool] = False


class DiffCSE(SimCSE):
    """L = NT-Xent(zA, zB) + lambda * `replaced_token_detection` of edited sentences, given zA or
    zB.
    """

    name = "diffcse"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = DiffCSEConfig

    @property
    def inputs(self) -> dict[str, str]:
        """Fingerprint of the generator; none where it is the base model."""
        if not self.config.generator:
            return {}
        return {"generator": model_fingerprint(self.config.generator)}

    def heads(self, encoder: Encoder) -> nn.Module:
        """Return SimCSE's heads with DiffCSE's projector, the frozen generator and the
        discriminator.

        Raises:
            InputError: the vectors are not as wide as the model, or the generator does not fit.
        """
        heads = super().heads(encoder)
        d = encoder.dimension
        if d != int(encoder.transformer.config.hidden_size):
            raise InputError(
                "diffcse: the discriminator reads vectors of the model's width",
                remedy="choose another pooling",
            )
        if self.config.head == "batchnorm":
            first, norm, relu, second = projector(d, (2 * d, d), bias="none", init="normal")
            heads.mlp = nn.Sequential(first, norm, relu, second, nn.BatchNorm1d(d, affine=False))
        heads.generator = Generator(self.config.generator or self.base_model, encoder, self.name)
        heads.discriminator = Discriminator(encoder)
        return heads

    def project_views(
        self,
        encoder: Encoder,
        heads: Any,
        ids_a: TokenIds,
        ids_b: TokenIds,
    ) -> tuple[Tensor, Tensor]:
        """Return the projections (n, d) of both views, made in one call, so that BatchNorm sees
        both.
        """
        h_a, h_b = self.encode_views(encoder, ids_a, ids_b)
        z_a, z_b = heads.mlp(torch.cat([h_a, h_b])).chunk(2)
        return z_a, z_b

    def further_terms(
        self,
        z_a: Tensor,
        z_b: Tensor,
        encoder: Encoder,
        heads: Any,
        ids: TokenIds,
        batch: Batch,
    ) -> dict[str, Tensor]:
        config: DiffCSEConfig = self.config
        masked, _ = mask_tokens(ids, encoder.tokenizer, batch.rng, probability=config.mask)
        edited = encoder.collate(heads.generator.write(ids, masked))
        features = {name: tensor.to(z_a.device) for name, tensor in edited.items()}
        logits = heads.discriminator(features, z_a, z_b)
        original = encoder.collate(ids)["input_ids"].to(z_a.device)
        detection = replaced_token_detection(
            logits, features["input_ids"], original, features["attention_mask"]
        )
        return {"detection": config.rtd_weight * detection}
