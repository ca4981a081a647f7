"""A forward pass without padding, for any model whose tokens meet in transformers' attention functions alone.

There is no list of such models, each is tried out: BERT, RoBERTa, XLM-R, DistilBERT, ModernBERT and Qwen3 are among
them, whatever their mask (all tokens, a sliding window, the past alone); MPNet, with an attention of its own, is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from harness.encoder.dropout import ViewRates
from harness.encoder.eval_mode import evaluation
from harness.encoder.packing import Packing
from harness.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_SAME = 1e-4  # what rounding may change, as a share of the largest number


def packed_pass(
    transformer: PreTrainedModel, rates: ViewRates, features: dict[str, Tensor], **options: Any
) -> tuple[tuple[Tensor, ...], Tensor]:
    """A forward pass of collated `features` (rows, length) without their padding, padded again at the end.

    The transformer gets ids, types and positions (1, tokens) and the mask (rows, length) as it is, by which the mask
    function that `attach` registers sees that the batch is packed.

    Returns the hidden states of every layer where `options` ask for them, else none, and the last ones; each (rows,
    length, d), and 0 at padding.
    """
    packing = Packing(features["attention_mask"])
    given = {name: packing.pack(tensor) for name, tensor in features.items() if name != "attention_mask"}
    given.setdefault("position_ids", packing.pack(_positions(transformer, features["input_ids"])))
    with rates.packed(packing):
        output = transformer(**given, attention_mask=features["attention_mask"], **options)
    states = tuple(packing.pad(state) for state in output.get("hidden_states") or ())
    return states, packing.pad(output.last_hidden_state)


def check_packs(transformer: PreTrainedModel, rates: ViewRates, features: dict[str, Tensor]) -> None:
    """Compare a packed pass of collated `features` with a padded one, in evaluation mode.

    Raises:
        InputError: they differ, or the model cannot be called with packed rows.
    """
    with evaluation(transformer), torch.no_grad():
        expected = transformer(**features).last_hidden_state[features["attention_mask"] == 1]
        try:
            found = packed_pass(transformer, rates, features)[1][features["attention_mask"] == 1]
        except (TypeError, ValueError, IndexError, RuntimeError):  # of a model's own attention, in its own words
            found = None
    if found is None or float((found - expected).abs().max()) > _SAME * float(expected.abs().max()):
        raise InputError(
            f'a model of type "{transformer.config.model_type}" cannot read a batch without padding: its tokens meet '
            "outside of transformers' attention functions; leave packed at false, or take another base model"
        )


def _positions(transformer: PreTrainedModel, ids: Tensor) -> Tensor:
    """The positions (rows, length) that the model would give the padded rows."""
    embeddings: Any = getattr(transformer, "embeddings", None)
    own = getattr(embeddings, "create_position_ids_from_input_ids", None)  # RoBERTa and its kin
    if own is not None:
        positions: Tensor = own(ids, embeddings.padding_idx)
        return positions
    return torch.arange(ids.shape[1], device=ids.device).expand(ids.shape)
