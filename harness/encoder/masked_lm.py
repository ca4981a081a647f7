"""Masked-language modelling on top of an `Encoder`: the head, the masking of tokens and the loss
(Devlin et al. 2019).

BERT, RoBERTa, DistilBERT, MPNet, XLM-R, ALBERT, ELECTRA and ModernBERT all have the same head: a
linear layer, an activation, a normalisation, and a decoder that is the input embeddings with a bias
of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from harness.encoder.network import Network, TokenIds
from harness.encoder.quiet import quiet_transformers
from harness.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

IGNORED = -100  # the label of a token that is not predicted


class MaskedLM(nn.Module):
    """Token states to logits over the vocabulary: decoder(norm(activation(dense(states)))) + bias.

    The decoder is the embedding matrix of the encoder that it was made for. It is no parameter of
    this module, so that an optimiser and a checkpoint of both see it once.

    Attributes:
        pretrained: are the weights those of the checkpoint's own head.
    """

    def __init__(
        self,
        embeddings: nn.Module,
        dense: nn.Linear,
        norm: nn.Module,
        bias: Tensor,
        activation: str,
    ) -> None:
        from transformers.activations import ACT2FN

        super().__init__()
        self._embeddings = (embeddings,)  # in a tuple it is not registered
        self.dense = dense
        self.norm = norm
        if isinstance(bias, nn.Parameter):
            self.bias = bias
        else:
            self.bias = nn.Parameter(bias)
        self.activation: nn.Module = ACT2FN[activation]
        self.pretrained = False

    @classmethod
    def from_base(cls, name: str, encoder: Network) -> Self:
        """The head of the base model `name`, from which `encoder` was loaded, on the encoder's
        device.

        A checkpoint without such a head gets a fresh one: weights N(0, 0.02), biases 0, from
        torch's global generator.
        """
        transformer = encoder.transformer
        embeddings = transformer.get_input_embeddings()
        weight = embeddings.weight
        assert isinstance(weight, Tensor)
        rows, width = weight.shape
        config = transformer.config
        own = _own_head(name)
        fits = own is not None and own[2].shape == (rows,)
        if own is not None and fits and own[0].out_features == width:
            head = cls(embeddings, *own)
            head.pretrained = True
        else:
            dense = nn.Linear(int(config.hidden_size), width)
            nn.init.normal_(dense.weight, std=0.02)
            nn.init.zeros_(dense.bias)
            eps = float(getattr(config, "layer_norm_eps", 1e-12))
            norm = nn.LayerNorm(width, eps=eps)
            head = cls(embeddings, dense, norm, torch.zeros(rows), _activation(config))
        return head.to(encoder.device)

    def forward(self, states: Tensor) -> Tensor:
        """Logits (..., vocabulary) of token states (..., d).

        Almost all the cost is in the decoder, and the loss looks at masked tokens only: give it
        those, `head(states[labels != IGNORED])`.
        """
        embeddings = self._embeddings[0].weight
        assert isinstance(embeddings, Tensor)
        hidden = self.norm(self.activation(self.dense(states)))
        return functional.linear(hidden, embeddings, self.bias)


_Parts = tuple[
    nn.Linear, nn.Module, Tensor, str
]  # dense layer, normalisation, bias of the decoder, activation


def _own_head(name: str) -> _Parts | None:
    """What the checkpoint's own head consists of; None where it has none of this form."""
    from transformers import AutoModelForMaskedLM

    from harness.sources import resolve_model

    try:
        with quiet_transformers(), torch.random.fork_rng(devices=[]):
            model, report = AutoModelForMaskedLM.from_pretrained(
                resolve_model(name),
                output_loading_info=True,
                dtype=torch.float32,
                trust_remote_code=False,
                use_safetensors=True,
            )
    except (
        OSError,
        ValueError,
        KeyError,
    ):  # no plain checkpoint there, or a family without such a head
        return None
    prefix = f"{model.base_model_prefix}."
    if all(key.startswith(prefix) for key in report["missing_keys"]):
        return _parts(model)
    return None


def _parts(model: PreTrainedModel) -> _Parts | None:
    base = f"{model.base_model_prefix}."
    decoder = model.get_output_embeddings()
    outside = []
    for name, module in model.named_modules():
        if not name.startswith(base) and module is not decoder:
            outside.append(module)
    dense = [module for module in outside if isinstance(module, nn.Linear)]
    norms = [module for module in outside if isinstance(module, nn.LayerNorm)]
    tied = decoder is not None and decoder.weight is model.get_input_embeddings().weight
    is_one_head = len(dense) == 1 and len(norms) == 1
    if not tied or not is_one_head or decoder.bias is None:
        return None
    activation = _activation(model.config)
    return dense[0], norms[0], decoder.bias, activation


def _activation(config: PreTrainedConfig) -> str:
    stated = getattr(config, "hidden_act", None)
    return str(stated or getattr(config, "activation", None) or "gelu")


def mask_tokens(
    ids: TokenIds,
    tokenizer: PreTrainedTokenizerBase,
    rng: np.random.Generator,
    *,
    probability: float = 0.15,
    shares: tuple[float, float] = (0.8, 0.1),
    mask: int | None = None,
    places: Sequence[Sequence[bool]] | None = None,
) -> tuple[list[list[int]], list[list[int]]]:
    """Choose each token that is not special with `probability`; of the chosen ones the first of
    `shares` become the mask token, the second a random ordinary token, and the rest stay.

    Args:
        mask: the id of the mask token; None for the tokenizer's own.
        places: of each row, the tokens that are chosen, in place of the draw with `probability`.

    Returns the ids so changed, and labels: the token's true id where it was chosen, else -100.

    Raises:
        InputError: the tokenizer has no mask token.
    """
    mask = tokenizer.mask_token_id if mask is None else mask
    if mask is None:
        raise InputError(
            "masked-language modelling needs a base model whose tokenizer has a mask token; this one's has none"
        )
    if not ids:
        return [], []
    flat = np.array(list(chain.from_iterable(ids)), dtype=np.int64)
    maskable = np.ones(len(tokenizer), dtype=bool)
    maskable[tokenizer.all_special_ids] = False
    ordinary = np.flatnonzero(maskable)
    if places is None:
        wanted = rng.random(flat.shape) < probability
    else:
        wanted = np.concatenate(places)
    chosen = wanted & maskable[flat]
    how = rng.random(flat.shape)
    drawn = ordinary[rng.integers(len(ordinary), size=flat.shape)]
    is_masked = chosen & (how < shares[0])
    is_drawn = chosen & (how >= 1 - shares[1])
    masked = np.where(is_masked, int(mask), flat)
    masked = np.where(is_drawn, drawn, masked)
    labels = np.where(chosen, flat, IGNORED)
    lengths = [len(row) for row in ids]
    ends = np.cumsum(lengths)[:-1]
    return [part.tolist() for part in np.split(masked, ends)], [
        part.tolist() for part in np.split(labels, ends)
    ]


def pad_labels(labels: TokenIds) -> Tensor:
    """Rows of labels as (n, length), -100 behind the shorter ones."""
    return pad_sequence(
        [torch.tensor(row) for row in labels],
        batch_first=True,
        padding_value=IGNORED,
    )


def masked_lm_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy in nats over the tokens whose label is not -100; `logits` (...,
    vocabulary), `labels` (...).

    Zero, with a zero gradient, where no token was chosen. Computed in float32.
    """
    labels = labels.to(logits.device)
    chosen = labels != IGNORED
    if not bool(chosen.any()):
        return logits.float().sum() * 0.0
    return functional.cross_entropy(logits[chosen].float(), labels[chosen])
