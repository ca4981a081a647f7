"""A frozen masked language model that writes words into sentences."""

from __future__ import annotations

import torch
from torch import nn

from harness.encoder import Encoder
from harness.encoder.masked_lm import IGNORED, MaskedLM
from harness.encoder.network import TokenIds
from harness.errors import InputError


class Generator(nn.Module):
    """A frozen masked language model that writes sentences again from masked copies of them."""

    def __init__(self, name: str, like: Encoder, method: str) -> None:
        super().__init__()
        self.encoder = Encoder.from_pretrained(name).to(like.device)
        if self.encoder.tokenizer.get_vocab() != like.tokenizer.get_vocab():
            raise InputError(
                f'{method}: key "generator": "{name}" has another vocabulary than the base model',
                key="generator",
                remedy=(
                    "give a masked language model with the same vocabulary, or leave it empty "
                    "to take the base model itself"
                ),
            )
        self.head = MaskedLM.from_base(name, self.encoder)
        if not self.head.pretrained:
            raise InputError(
                f'{method}: "{name}" has no masked-language head of its own, so it cannot '
                "write sentences",
                file=name,
                remedy='set "generator" to a masked language model with the same vocabulary',
            )
        self.requires_grad_(False)

    def write(
        self,
        ids: TokenIds,
        masked: TokenIds,
    ) -> list[list[int]]:
        """Return `ids` with every ordinary token replaced by the likeliest one, given `masked`."""
        special = set(self.encoder.tokenizer.all_special_ids)
        written: list[list[int]] = []
        for row, best in zip(ids, self._likeliest(masked), strict=True):
            pairs = zip(row, best, strict=True)
            written.append([old if old in special else new for old, new in pairs])
        return written

    def fill(
        self,
        masked: TokenIds,
        labels: TokenIds,
    ) -> list[list[int]]:
        """Return `masked` with the likeliest token in the places that have a label of
        `harness.encoder.masked_lm.mask_tokens`, and its own tokens elsewhere.
        """
        filled: list[list[int]] = []
        for row, truth, best in zip(masked, labels, self._likeliest(masked), strict=True):
            places = zip(row, truth, best, strict=True)
            filled.append([old if label == IGNORED else new for old, label, new in places])
        return filled

    @torch.no_grad()
    def _likeliest(self, masked: TokenIds) -> list[list[int]]:
        features = self.encoder.collate(masked)
        states = self.eval().encoder.hidden_states(features)[-1]
        # One row at a time: logits have the vocabulary's width.
        found = []
        for row, state in zip(masked, states, strict=True):
            found.append(self.head(state[: len(row)]).argmax(-1).tolist())
        return found
