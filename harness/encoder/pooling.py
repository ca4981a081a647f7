"""How the hidden states of a transformer become one vector a sentence: names, parsing and the formulas."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self, cast

import torch
from torch import Tensor

from harness.config import nearest
from harness.errors import InputError

Mode = Literal["cls", "mean", "max"]
NAMES = ("cls", "cls_pooler", "mean", "max", "first_last_avg", "last2_avg")
_LAYER = re.compile(r"layer:(\d+):(cls|mean|max)")


@dataclass(frozen=True)
class Pooling:
    """A pooling rule.

    H_0 is the output of the embedding block, H_1..H_L are the layers' outputs. Special tokens count, padding does not.

    | name | vector |
    |---|---|
    | cls | H_L at the first token |
    | cls_pooler | tanh(W H_L[first] + b) with the checkpoint's own pooler |
    | mean, max | over the tokens of H_L |
    | first_last_avg | mean over the tokens of (H_f + H_L)/2, f = `first_layer` |
    | last2_avg | mean over the tokens of (H_(L-1) + H_L)/2 |
    | layer:K:cls, layer:K:mean, layer:K:max | the same on H_K |

    `first_layer` is 1 as in SimCSE's present code and BERT-flow; 0 (the static embeddings) reproduces the published
    first-last rows (56.70 for BERT-base), see SimCSE's issues 133 and 285.
    """

    name: str
    first_layer: int = 1

    @classmethod
    def parse(cls, name: str, first_layer: int = 1) -> Self:
        """The rule called `name`.

        Raises:
            InputError: no such pooling, or a `first_layer` other than 0 and 1.
        """
        if name not in NAMES and not _LAYER.fullmatch(name):
            raise InputError(
                f'unknown pooling "{name}"{nearest(name, list(NAMES))}; known: {", ".join(NAMES)}, '
                "layer:K:cls, layer:K:mean, layer:K:max"
            )
        if first_layer not in (0, 1):
            raise InputError(f"first_layer must be 0 (the embeddings) or 1 (the first layer), not {first_layer!r}")
        return cls(name, first_layer)

    @property
    def mode(self) -> Mode:
        """How tokens are reduced: "cls" takes the first, "mean" and "max" are over unmasked tokens."""
        of_layer = _LAYER.fullmatch(self.name)
        if of_layer:
            return cast(Mode, of_layer[2])
        if self.name in ("cls", "cls_pooler"):
            return "cls"
        return "max" if self.name == "max" else "mean"

    @property
    def layer(self) -> int | None:
        """K of "layer:K:...", else None."""
        of_layer = _LAYER.fullmatch(self.name)
        return int(of_layer[1]) if of_layer else None

    def layers(self, depth: int) -> tuple[int, ...]:
        """Indices into (H_0 .. H_depth) whose average is reduced over tokens; `(depth,)` for the last layer alone."""
        if self.layer is not None:
            return (self.layer,)
        if self.name == "first_last_avg":
            return (self.first_layer, depth)
        if self.name == "last2_avg":
            return (depth - 1, depth)
        return (depth,)


def reduce_tokens(tokens: Tensor, mask: Tensor, mode: Mode) -> Tensor:
    """Reduce token vectors (n, length, d) to (n, d) by `mode`; `mask` (n, length) is 1 where a token counts.

    Computed in float32 at least, so that a long sum loses nothing under autocast.
    """
    if tokens.dtype in (torch.float16, torch.bfloat16):
        tokens = tokens.float()
    if mode == "cls":
        return tokens[:, 0]
    weights = mask.unsqueeze(-1).to(tokens.dtype)
    if mode == "max":
        return tokens.masked_fill(weights == 0, torch.finfo(tokens.dtype).min).amax(dim=1)
    return (tokens * weights).sum(dim=1) / weights.sum(dim=1).clamp_min(1.0)


def average_layers(hidden_states: Sequence[Tensor], layers: Sequence[int]) -> Tensor:
    """The mean of the chosen hidden states (n, length, d); one layer is returned as it is."""
    if len(set(layers)) == 1:
        return hidden_states[layers[0]]
    return torch.stack([hidden_states[layer].float() for layer in layers]).mean(dim=0)
