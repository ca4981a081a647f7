"""DiffCSE: SimCSE, and a discriminator that gets a sentence's vector and finds which of its words
were replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from harness.config import option
from harness.encoder import Encoder
from harness.encoder.masked_lm import MaskedLM, mask_tokens
from harness.errors import InputError
from harness.method import MethodConfig
from harness.recipes import RecipeFile
from harness.sources.embedded import model_fingerprint
from harness.training import Batch
from methods.parts.embedding_views import embeddings_changed
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


class Generator(nn.Module):
    """A frozen masked language model that writes sentences again from masked copies of them."""

    def __init__(self, name: str, like: Encoder) -> None:
        super().__init__()
        self.encoder = Encoder.from_pretrained(name).to(like.device)
        if self.encoder.tokenizer.get_vocab() != like.tokenizer.get_vocab():
            raise InputError(
                f'diffcse: key "generator": "{name}" has another vocabulary than the base model; give a masked '
                "language model with the same vocabulary, or leave it empty to take the base model itself"
            )
        self.head = MaskedLM.from_base(name, self.encoder)
        if not self.head.pretrained:
            raise InputError(
                f'diffcse: "{name}" has no masked-language head of its own, so it cannot write sentences; set '
                '"generator" to a masked language model with the same vocabulary'
            )
        self.requires_grad_(False)

    @torch.no_grad()
    def write(
        self, ids: Sequence[Sequence[int]], masked: Sequence[Sequence[int]]
    ) -> list[list[int]]:
        """Token rows with the likeliest token, given `masked`, in the place of every ordinary token
        of `ids`.
        """
        features = self.encoder.collate(masked)
        states = self.eval().encoder.hidden_states(features)[-1]
        special = set(self.encoder.tokenizer.all_special_ids)
        written: list[list[int]] = []
        for row, state in zip(
            ids, states, strict=True
        ):  # one at a time: logits have the vocabulary's width
            best = self.head(state[: len(row)]).argmax(-1).tolist()
            written.append(
                [old if old in special else new for old, new in zip(row, best, strict=True)]
            )
        return written


class Discriminator(nn.Module):
    """A copy of the base model that reads a sentence's vector in the place of its first token's
    embedding.
    """

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.transformer = encoder.copy().transformer
        self.head = nn.Linear(int(encoder.transformer.config.hidden_size), 2)

    def forward(self, features: dict[str, Tensor], z_a: Tensor, z_b: Tensor) -> Tensor:
        """Logits (2n, length, 2) of rows of view a, then of view b, given z_a and z_b, (n, d)."""

        def told(z: Tensor) -> Any:
            return lambda states, mask: torch.cat(
                [z.unsqueeze(1).to(states.dtype), states[:, 1:]], dim=1
            )

        with embeddings_changed(self.transformer, told(z_a), told(z_b)):
            logits: Tensor = self.head(self.transformer(**features).last_hidden_state)
        return logits


class DiffCSEConfig(SimCSEConfig):
    """Defaults: the released script for BERT-base."""

    learning_rate: float = option(
        7e-6, "peak learning rate of AdamW", gt=0, sweep=(1e-6, 3e-4), log=True
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
    Config: ClassVar[type[MethodConfig]] = DiffCSEConfig

    @property
    def inputs(self) -> dict[str, str]:
        """The generator's fingerprint, where it is a model of its own."""
        return (
            {"generator": model_fingerprint(self.config.generator)} if self.config.generator else {}
        )

    def heads(self, encoder: Encoder) -> nn.Module:
        """SimCSE's, with DiffCSE's projector; the frozen generator and the discriminator."""
        heads = super().heads(encoder)
        d = encoder.dimension
        if d != int(encoder.transformer.config.hidden_size):
            raise InputError(
                "diffcse: the discriminator reads vectors of the model's width; choose another pooling"
            )
        if self.config.head == "batchnorm":
            first, norm, relu, second = projector(d, (2 * d, d), bias="none", init="normal")
            heads.mlp = nn.Sequential(first, norm, relu, second, nn.BatchNorm1d(d, affine=False))
        heads.generator = Generator(self.config.generator or self.base_model, encoder)
        heads.discriminator = Discriminator(encoder)
        return heads

    def projected(
        self,
        encoder: Encoder,
        heads: Any,
        ids_a: Sequence[Sequence[int]],
        ids_b: Sequence[Sequence[int]],
    ) -> tuple[Tensor, Tensor]:
        """As SimCSE's; both views in one call, so that BatchNorm sees both."""
        z_a, z_b = heads.mlp(torch.cat(self.encoded(encoder, ids_a, ids_b))).chunk(2)
        return z_a, z_b

    def further_terms(
        self,
        z_a: Tensor,
        z_b: Tensor,
        encoder: Encoder,
        heads: Any,
        ids: Sequence[Sequence[int]],
        batch: Batch,
    ) -> dict[str, Tensor]:
        config: DiffCSEConfig = self.config
        masked, _ = mask_tokens(ids, encoder.tokenizer, batch.rng, probability=config.mask)
        edited = encoder.collate(heads.generator.write(ids, masked))
        features = {name: tensor.to(z_a.device) for name, tensor in edited.items()}
        logits = heads.discriminator(features, z_a, z_b)
        original = encoder.collate(ids)["input_ids"].to(z_a.device)
        found = replaced_token_detection(
            logits, features["input_ids"], original, features["attention_mask"]
        )
        return {"detection": config.rtd_weight * found}
