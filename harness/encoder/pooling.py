"""How the hidden states of a transformer become one vector a sentence: names, parsing, formulas,
and modules around.

`TokenConvolution` differs from sentence-transformers' `CNN` in the treatment of padding. There the
transformer's output at padding leaks into the last tokens of a sentence, so that a vector depends
on what else is in its batch. Here padding counts as zeros. A saved model expresses this by a
`WordWeights` of ones before the `CNN`: it multiplies by the mask.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from harness.config import nearest
from harness.encoder.prompts import DEFAULT, Echo, Prompt
from harness.errors import InputError

Mode = Literal["cls", "mean", "max"]
NAMES = (
    "cls",
    "cls_pooler",
    "mean",
    "max",
    "first_last_avg",
    "last2_avg",
    "last",
    "echo",
    "echo_last",
)
PROMPT = "prompt:"
_LAYER = re.compile(r"layer:(\d+):(cls|mean|max)")
_TEMPLATED = re.compile("(prompt|echo|echo_last):(.*)", re.DOTALL)


@dataclass(frozen=True)
class Pooling:
    """A pooling rule.

    H_0 is the output of the embedding block, H_1..H_L are the layers' outputs. Special tokens
    count, padding does not.

        >>> Pooling.parse("first_last_avg", 1).layers(12)
        (1, 12)

    - cls: H_L at the first token
    - cls_pooler: tanh(W H_L[first] + b) with the checkpoint's own pooler
    - mean, max: over the tokens of H_L
    - first_last_avg: mean over the tokens of (H_f + H_L)/2, f = `first_layer`
    - last2_avg: mean over the tokens of (H_(L-1) + H_L)/2
    - layer:K:cls, layer:K:mean, layer:K:max: the same on H_K
    - last: H_L at the last token
    - prompt:TEMPLATE: H_L at the token of the template that is read, see `harness.encoder.prompts`
    - echo, echo:TEMPLATE: mean of H_L over the second of two copies of the sentence, see `harness.encoder.prompts`
    - echo_last, echo_last:TEMPLATE: H_L at the last token of the second copy

    `first_layer` is 1 as in SimCSE's present code and BERT-flow; 0 (the static embeddings)
    reproduces the published first-last rows (56.70 for BERT-base), see SimCSE's issues 133 and 285.
    """

    name: str
    first_layer: int = 1

    @classmethod
    def parse(cls, name: str, first_layer: int = 1) -> Self:
        """The rule called `name`.

        Raises:
            InputError: no such pooling, a template that is none, or a `first_layer` other than 0
                and 1.
        """
        if templated := _TEMPLATED.fullmatch(name):
            try:
                kind = Prompt if templated[1] == "prompt" else Echo
                kind.parse(templated[2])
            except ValueError as error:
                raise InputError(
                    f"pooling {templated[1]}:TEMPLATE {error}", key="pooling"
                ) from None
        elif name not in NAMES and not _LAYER.fullmatch(name):
            raise InputError(
                f'unknown pooling "{name}"{nearest(name, list(NAMES))}; known: {", ".join(NAMES)}, '
                "layer:K:cls, layer:K:mean, layer:K:max, prompt:TEMPLATE, echo:TEMPLATE, echo_last:TEMPLATE",
                key="pooling",
            )
        if first_layer not in (0, 1):
            raise InputError(
                f"first_layer must be 0 (the embeddings) or 1 (the first layer), not {first_layer!r}",
                key="first_layer",
            )
        return cls(name, first_layer)

    @property
    def mode(self) -> Mode:
        """How tokens are reduced: "cls" takes the first, "mean" and "max" are over unmasked tokens."""
        of_layer = _LAYER.fullmatch(self.name)
        if of_layer:
            name = of_layer[2]
        else:
            name = self.name.removesuffix("_pooler")
        if name in ("cls", "max"):
            return cast(Mode, name)
        return "mean"

    @property
    def layer(self) -> int | None:
        """K of "layer:K:...", else None."""
        of_layer = _LAYER.fullmatch(self.name)
        if of_layer:
            return int(of_layer[1])
        return None

    @property
    def prompt(self) -> Prompt | None:
        """The template around every sentence, if there is one."""
        kind, _, template = self.name.partition(":")
        if kind == "prompt":
            return Prompt.parse(template)
        return None

    @property
    def echo(self) -> Echo | None:
        """The template around two copies of every sentence, if there is one."""
        kind, colon, template = self.name.partition(":")
        if kind in ("echo", "echo_last"):
            return Echo.parse(template if colon else DEFAULT)
        return None

    @property
    def reads(self) -> Literal["all", "mask", "last"]:
        """The tokens that are reduced, of an echo's second copy or of the whole row: all, or one."""
        prompt = self.prompt
        if prompt is not None and prompt.reads_mask:
            return "mask"
        kind = self.name.partition(":")[0]
        if prompt is not None or kind in ("last", "echo_last"):
            return "last"
        return "all"

    def layers(self, depth: int) -> tuple[int, ...]:
        """Indices into (H_0 .. H_depth) whose average is reduced over tokens; `(depth,)` for the
        last layer alone.
        """
        if self.layer is not None:
            return (self.layer,)
        if self.name == "first_last_avg":
            return (self.first_layer, depth)
        if self.name == "last2_avg":
            return (depth - 1, depth)
        return (depth,)


def reduce_tokens(tokens: Tensor, mask: Tensor, mode: Mode) -> Tensor:
    """Reduce token vectors (n, length, d) to (n, d) by `mode`; `mask` (n, length) is 1 where a
    token counts.

    Computed in float32 at least, so that a long sum loses nothing under autocast.
    """
    if tokens.dtype in (torch.float16, torch.bfloat16):
        tokens = tokens.float()
    if mode == "cls":
        return tokens[:, 0]
    weights = mask.unsqueeze(-1).to(tokens.dtype)
    if mode == "max":
        least = torch.finfo(tokens.dtype).min
        return tokens.masked_fill(weights == 0, least).amax(dim=1)
    count = weights.sum(dim=1).clamp_min(1.0)
    return (tokens * weights).sum(dim=1) / count


def one_token(mask: Tensor, at: Tensor | None = None) -> Tensor:
    """`mask` (n, length) without all but the last real token of each row, or but those `at` (n,
    length) which it is true; the mean of the rest is that token's state.

    Raises:
        InputError: a row has none of them.
    """
    if at is None:
        places = torch.arange(mask.shape[1], device=mask.device) * mask
        last = places.argmax(dim=1, keepdim=True)
        return torch.zeros_like(mask).scatter_(1, last, 1)
    kept = mask * at.to(mask.dtype)
    if not bool(kept.any(dim=1).all()):
        raise InputError(
            "a pooling that reads the mask token was given rows without one; this method makes its own rows"
        )
    return kept


def average_layers(hidden_states: Sequence[Tensor], layers: Sequence[int]) -> Tensor:
    """The mean of the chosen hidden states (n, length, d); one layer is returned unchanged."""
    if len(set(layers)) == 1:
        return hidden_states[layers[0]]
    states = [hidden_states[layer].float() for layer in layers]
    return torch.stack(states).mean(dim=0)


class TokenConvolution(nn.Module):
    """Convolutions of several odd widths side by side, `filters` each, stride 1, same length, no
    activation.

    IS-BERT (Zhang et al., EMNLP 2020) takes widths 1, 3 and 5 with 256 filters each.
    """

    def __init__(self, inputs: int, filters: int = 256, widths: Sequence[int] = (1, 3, 5)) -> None:
        super().__init__()
        is_odd = [width > 0 and width % 2 == 1 for width in widths]
        if not widths or not all(is_odd):
            raise InputError(
                f"a token convolution needs odd numbers, not {list(widths)}",
                key="widths",
            )
        if filters < 1:
            raise InputError(f"a token convolution needs at least 1, not {filters}", key="filters")
        self.inputs = inputs
        self.filters = filters
        self.widths = tuple(widths)
        self.convs = nn.ModuleList(
            nn.Conv1d(inputs, filters, width, padding=width // 2) for width in self.widths
        )

    @property
    def out_features(self) -> int:
        """d' of the token vectors: filters times widths."""
        return self.filters * len(self.widths)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Token vectors (n, length, d) to (n, length, d'), zero where `mask` (n, length) is 0."""
        kept = mask.unsqueeze(1).to(tokens.dtype)
        channels = tokens.transpose(1, 2) * kept
        outputs = [conv(channels) for conv in self.convs]
        out = torch.cat(outputs, dim=1)
        return (out * kept.to(out.dtype)).transpose(1, 2)


class Normalize(nn.Module):
    """Scale rows to unit length."""

    def forward(self, vectors: Tensor) -> Tensor:
        """(n, d) to (n, d)."""
        return functional.normalize(vectors, dim=-1)
