"""Views that are made inside the model: what leaves its embedding block is changed, for each half
of the batch.

Source: ConSERT (Yan et al., ACL 2021), section 3.3; the counts are those of its code, which scales
nothing up for what it sets to zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from harness.encoder.dropout import ViewRates

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Change = Callable[[Tensor, Tensor], Tensor]
"""Embeddings (n, length, d) and mask (n, length) to changed embeddings; it draws from torch's
generator.
"""


def keep_unchanged(embeddings: Tensor, mask: Tensor) -> Tensor:
    """Return the embeddings without a change."""
    return embeddings


def token_cutoff(embeddings: Tensor, mask: Tensor, *, rate: float) -> Tensor:
    """Set floor(rate * length) of a sentence's tokens, special ones included, to zero."""
    draws = torch.rand(mask.shape, device=mask.device).masked_fill(mask == 0, 2.0)
    counts = (rate * mask.sum(1, keepdim=True)).long()
    lost = _ranks(draws) < counts
    return embeddings.masked_fill(lost.unsqueeze(-1), 0.0)


def feature_cutoff(embeddings: Tensor, mask: Tensor, *, rate: float) -> Tensor:
    """Set floor(rate * d) features to zero, the same ones in all tokens of a sentence."""
    n, _, d = embeddings.shape
    lost = _ranks(torch.rand(n, d, device=embeddings.device)) < int(rate * d)
    return embeddings.masked_fill(lost.unsqueeze(1), 0.0)


def element_dropout(embeddings: Tensor, mask: Tensor, *, rate: float) -> Tensor:
    """Set each number to zero with probability `rate`; the others stay as they are."""
    return embeddings.masked_fill(torch.rand_like(embeddings, dtype=torch.float32) < rate, 0.0)


def shift_by(noise: Tensor) -> Change:
    """Return a change that adds `noise` (n, length, d)."""

    def move(embeddings: Tensor, mask: Tensor) -> Tensor:
        moved: Tensor = embeddings + noise.to(embeddings.dtype)
        return moved

    return move


def adversarial_step(gradient: Tensor, norm: float) -> Tensor:
    """Return, of a loss's gradient (..., d), the step of length `norm` for each token that raises the
    loss fastest.
    """
    step: Tensor = norm * gradient / (gradient.norm(dim=-1, keepdim=True) + 1e-10)
    return step


class EmbeddingRecorder:
    """A change that changes nothing and records the embeddings, which have a gradient."""

    embeddings: Tensor

    def __call__(self, embeddings: Tensor, mask: Tensor) -> Tensor:
        if not embeddings.requires_grad:  # the embedding block is frozen
            embeddings = embeddings.detach().requires_grad_()
        self.embeddings = embeddings
        return embeddings


@contextmanager
def change_embeddings(
    transformer: PreTrainedModel,
    change_a: Change,
    change_b: Change,
) -> Iterator[None]:
    """Change embeddings in forward passes inside the block: those of the first half of the rows by
    `change_a`, those of the second by `change_b`, padded also where the batch is packed. The
    backward pass may follow outside, unless it encodes parts of a batch again.
    """
    rates = cast(ViewRates, transformer.view_rates)
    mask: list[Tensor] = []

    def record_mask(module: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        mask[:] = [kwargs["attention_mask"]]

    def change(module: nn.Module, args: Any, output: Tensor) -> Tensor:
        packing = rates.packing
        if packing is None:
            embeddings = output
        else:
            embeddings = packing.pad(output)
        half = len(embeddings) // 2
        first = change_a(embeddings[:half], mask[0][:half])
        second = change_b(embeddings[half:], mask[0][half:])
        changed = torch.cat([first, second])
        if packing is None:
            return changed
        return packing.pack(changed)

    block = cast(
        nn.Module, getattr(transformer, "embeddings", None) or transformer.get_input_embeddings()
    )
    handles = [
        transformer.register_forward_pre_hook(record_mask, with_kwargs=True),
        block.register_forward_hook(change),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _ranks(draws: Tensor) -> Tensor:
    """Return the rank of every entry within its row, from 0."""
    return draws.argsort(dim=1).argsort(dim=1)
