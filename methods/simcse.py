"""Unsupervised SimCSE: contrastive learning whose only augmentation is dropout."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator
from torch import Tensor, nn

from harness.config import option
from harness.encoder import Encoder
from harness.encoder.network import TokenIds
from harness.method import POOLING_HELP, MethodConfig
from harness.recipes import RecipeFile
from harness.training import Batch, TrainedMethod, TrainingConfig
from harness.views.settings import both
from methods.objectives import nt_xent
from methods.parts.projection_heads import tanh_mlp

STATE_A_RATE = "set dropout, or attention_rate alone, to a rate above 0, such as 0.1"


class ContrastiveConfig(TrainingConfig):
    """Options that the unsupervised and the supervised form share."""

    pooling: str = option("cls", POOLING_HELP)
    temperature: float = option(
        0.05,
        "divides the similarities",
        gt=0,
        sweep=(0.001, 1.0),
        log=True,
    )
    similarity: Literal["cosine", "dot"] = option(
        "cosine", "of two sentences in the loss; the paper's dot is unscaled"
    )
    head: Literal["training", "mlp", "none"] = option(
        "training", "tanh layer: in the loss only, also when encoding (mlp), or none"
    )
    mlm_weight: float = option(
        0.0,
        "weight of masked-language modelling on separately masked copies (paper: 0.1); 0: none",
        ge=0,
    )
    mlm_probability: float = option(0.15, "share of the tokens that it masks", gt=0, lt=1)
    in_parts: ClassVar[bool] = True

    @model_validator(mode="after")
    def _mlm_needs_all_tokens(self) -> Self:
        if self.mlm_weight and self.micro_batch is not None:
            raise ValueError(
                'keys "mlm_weight" and "micro_batch": masked-language modelling encodes the batch as a whole; leave '
                "micro_batch empty (gradient_checkpointing = true saves memory too)"
            )
        return self


class SimCSEConfig(ContrastiveConfig):
    """Defaults: the released script for BERT-base."""

    dropout: float | None = option(
        None,
        "hidden and attention dropout of both views; empty: the checkpoint's own",
        ge=0,
        lt=1,
        sweep=(0.0, 0.5),
    )
    attention_rate: float | None = option(
        None, "dropout of attention probabilities in both views; empty: as dropout", ge=0, lt=1
    )
    same_mask: bool = option(
        False, "drop the same units in both views (the paper's ablation, which fails)"
    )


class SimCSE(TrainedMethod):
    """L = mean over i of -log softmax_j( cos(zA_i, zB_j) / temperature ) at j = i, plus mlm_weight
    times MLM.
    """

    name = "simcse"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config: ClassVar[type[MethodConfig]] = SimCSEConfig

    def heads(self, encoder: Encoder) -> nn.Module:
        """Return the tanh layer "mlp" and the vocabulary layer "mlm", where the config has them."""
        config: ContrastiveConfig = self.config
        heads = nn.ModuleDict({"mlp": nn.Identity()})
        if config.head == "training":
            heads["mlp"] = tanh_mlp(encoder.dimension)
        elif config.head == "mlp":
            head = nn.Sequential(*encoder.head, *tanh_mlp(encoder.dimension))
            encoder.head = head.to(encoder.device)
        if config.mlm_weight:
            from harness.encoder.masked_lm import MaskedLM

            heads["mlm"] = MaskedLM.from_base(self.base_model, encoder)
        return heads

    def loss(self, encoder: Encoder, heads: nn.Module, batch: Batch) -> dict[str, Tensor]:
        ids_a, ids_b = self.views(encoder, batch)
        z_a, z_b = self.project_views(encoder, heads, ids_a, ids_b)
        contrast = self.contrast(z_a, z_b, heads, batch)
        ids = [*ids_a, *ids_b]
        terms = self.with_mlm(contrast, encoder, heads, ids, batch)
        for name, term in self.further_terms(z_a, z_b, encoder, heads, ids, batch).items():
            terms |= {"loss": terms["loss"] + term, "contrast": contrast, name: term}
        return terms

    def further_terms(
        self,
        z_a: Tensor,
        z_b: Tensor,
        encoder: Encoder,
        heads: Any,
        ids: TokenIds,
        batch: Batch,
    ) -> dict[str, Tensor]:
        """Return the terms that a subclass adds to the loss, given the projections (n, d) and the
        token rows of both views.
        """
        return {}

    def views(self, encoder: Encoder, batch: Batch) -> tuple[list[list[int]], list[list[int]]]:
        """Return the token rows of both views of a batch; here the same."""
        ids = encoder.tokenize(batch.texts, max_length=self.config.train_length)
        return ids, ids

    def project_views(
        self,
        encoder: Encoder,
        heads: nn.Module,
        ids_a: TokenIds,
        ids_b: TokenIds,
    ) -> tuple[Tensor, Tensor]:
        """Return the projections (n, d) of both views."""
        h_a, h_b = self.encode_views(encoder, ids_a, ids_b)
        return heads.mlp(h_a), heads.mlp(h_b)  # type: ignore[operator]

    def encode_views(
        self,
        encoder: Encoder,
        ids_a: TokenIds,
        ids_b: TokenIds,
    ) -> tuple[Tensor, Tensor]:
        """Return the vectors (n, d) of both views, with dropout at the config's rates."""
        config: SimCSEConfig = self.config
        if config.attention_rate is None:
            attention = config.dropout
        else:
            attention = config.attention_rate
        h_a, h_b = encoder.two_views(
            ids_a,
            ids_b,
            hidden_dropout=both(config.dropout, config.dropout),
            attention_dropout=both(attention, attention),
            differ_by=None if config.same_mask else STATE_A_RATE,
        )
        if config.same_mask:  # equal text and equal masks are equal vectors
            return h_a, h_a
        return h_a, h_b

    def contrast(self, z_a: Tensor, z_b: Tensor, heads: nn.Module, batch: Batch) -> Tensor:
        """Return the contrastive term of the two views' projections, (n, d) each."""
        return nt_xent(
            z_a,
            z_b,
            temperature=self.config.temperature,
            similarity=self.config.similarity,
        )

    def with_mlm(
        self,
        contrast: Tensor,
        encoder: Encoder,
        heads: nn.Module,
        ids: TokenIds,
        batch: Batch,
    ) -> dict[str, Tensor]:
        """Return the terms of the loss: `contrast`, and MLM on the token rows `ids` in a forward pass
        of its own, at the checkpoint's own dropout rates.
        """
        config: ContrastiveConfig = self.config
        if not config.mlm_weight:
            return {"loss": contrast}
        from harness.encoder.masked_lm import IGNORED, mask_tokens, masked_lm_loss, pad_labels

        masked, labels = mask_tokens(
            ids, encoder.tokenizer, batch.rng, probability=config.mlm_probability
        )
        truth = pad_labels(labels)
        states = encoder.hidden_states(encoder.collate(masked))[-1]
        chosen = truth != IGNORED
        logits = heads.mlm(states[chosen.to(states.device)])  # type: ignore[operator]
        mlm = config.mlm_weight * masked_lm_loss(logits, truth[chosen])
        return {"loss": contrast + mlm, "contrast": contrast, "mlm": mlm}
