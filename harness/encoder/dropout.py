"""Different dropout rates for the two views of one forward pass, and passes without padding, around
transformers.

Source: SCD, spec of its patched modelling files: embedding dropout, attention-probability dropout,
attention-output dropout and feed-forward-output dropout take the rate of the view a row belongs to.
Here the first half of the rows is view a, the second half view b.

Hidden states pass through `nn.Dropout` modules, which `attach` replaces. Attention probabilities
are dropped inside a fused kernel that takes one scalar rate, so transformers' attention registry
gets a function that calls the kernel once for each half. Models outside that registry (MPNet,
DeBERTa) drop their probabilities by an `nn.Dropout`, which is
replaced too: probabilities are (rows, heads, length, length), hidden states (rows, length, d).
ModernBERT, whose checkpoints drop nothing, has no dropout module after its attention: rates act on
its embeddings, in its feed-forward blocks and on attention probabilities.

A pass without padding (`run_packed`) works for any model whose tokens are mixed only in
transformers' attention functions. There is no list of such models; `packs` tries each: BERT,
RoBERTa, XLM-R, DistilBERT, ModernBERT and Qwen3 are among them, whatever their mask (all tokens, a
sliding window, the past alone); MPNet, whose attention is its own, is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from harness.encoder import packing as attention
from harness.encoder.packing import Packing
from harness.encoder.quiet import evaluation, quiet_transformers
from harness.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Rates = tuple[float, float]
ATTENTION = "harness_views"


class ViewRates:
    """The rates now in force, shared by all dropouts of one encoder. None means the checkpoint's
    own rates.

    Attributes:
        packing: of the packed batch that the transformer now reads; None where it is padded.
        jagged: may attention over a packed batch read rows of unequal length? Not where it is
            computed again in the
            backward pass: torch cannot save such tensors for that.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.jagged = True
        self.packing: Packing | None = None
        self.hidden: Rates | None = None
        self.attention: Rates | None = None
        self.used: set[str] = set()

    @contextmanager
    def inside(self, rows: int, hidden: Rates | None, attention: Rates | None) -> Iterator[None]:
        """Use these rates for forward passes of `rows` rows inside the block.

        Raises:
            InputError: a rate outside [0, 1).
        """
        for name, pair in (("hidden_dropout", hidden), ("attention_dropout", attention)):
            if pair is None:
                continue
            if not all(0.0 <= rate < 1.0 for rate in pair):
                raise InputError(f"{name} must be two rates in [0, 1), not {pair!r}", key=name)
        self.used = set()
        with self.during(rows=rows, hidden=hidden, attention=attention):
            yield

    @contextmanager
    def during(self, **state: Any) -> Iterator[None]:
        """Other values of these attributes inside the block."""
        before = {name: getattr(self, name) for name in state}
        vars(self).update(state)
        try:
            yield
        finally:
            vars(self).update(before)

    def again(self) -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
        """For gradient checkpointing: contexts of a layer's pass and of its repetition in the
        backward pass, which has the rates and the packing that are in force now.
        """
        names = ("rows", "hidden", "attention", "packing")
        now = {name: getattr(self, name) for name in names}
        return nullcontext(), self.during(**now)

    def halves(self, states: Tensor) -> list[Tensor] | None:
        """`states` of view a and of view b, along dimension 0 or, of a packed batch, 1; None where
        it has no views.
        """
        if self.rows and states.shape[0] == self.rows:
            return list(states.tensor_split([self.rows // 2]))
        if self.rows and self.packing is not None and self.packing.is_packed(states):
            return list(states.tensor_split([self.packing.half], dim=1))
        return None

    def check_used(self, model_type: str) -> None:
        """Raise InputError where a rate above 0 is set and the model has no place that uses it."""
        for place, pair in (("hidden", self.hidden), ("attention", self.attention)):
            if pair is not None and any(pair) and place not in self.used:
                other = {"hidden": "attention", "attention": "hidden"}[place]
                raise InputError(
                    f'a model of type "{model_type}" has no {place} dropout whose rate could '
                    "be set",
                    key=f"{place}_dropout",
                    remedy=(
                        f"leave the {place} rate empty and set the {other} rate alone, or take "
                        "another base model"
                    ),
                )


class PerViewDropout(nn.Dropout):
    """`nn.Dropout` that drops the two halves of a batch at their own rates while `rates` says so."""

    def __init__(self, p: float, rates: ViewRates) -> None:
        super().__init__(p)
        self.rates = rates

    def forward(self, input: Tensor) -> Tensor:
        """Drop `input` (rows, ...), or (1, tokens, ...) packed; tensors of other shapes keep the
        module's own rate.
        """
        rates = self.rates
        if self.training:
            halves = rates.halves(input)
        else:
            halves = None
        if halves is None:
            return super().forward(input)
        if input.dim() == 4:
            place = "attention"
            pair = rates.attention
        else:
            place = "hidden"
            pair = rates.hidden
        if pair is None:
            return super().forward(input)
        rates.used.add(place)
        if pair[0] == pair[1]:
            return functional.dropout(input, pair[0])
        dropped = []
        for half, rate in zip(halves, pair, strict=True):
            dropped.append(functional.dropout(half, rate))
        axis = 0 if len(input) == rates.rows else 1
        return torch.cat(dropped, dim=axis)


def _attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Fused attention with a dropout rate a half; `query` is (rows, heads, length, d of a head), or
    (1, heads, tokens, d of a head) of a packed batch, whose mask is that of the padded one.
    """
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    rates: ViewRates | None = getattr(module, "view_rates", None)
    packing = rates.packing if rates is not None else None
    if rates is not None and packing is not None and packing.is_packed(query.transpose(1, 2)):
        states = (query, key, value)
        return _attend_packed(module, rates, packing, states, attention_mask, dropout, kwargs), None
    pair = None
    is_training = rates is not None and module.training
    if rates is not None and is_training and query.shape[0] == rates.rows:
        pair = rates.attention
    if rates is None or pair is None:
        output, _ = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, **kwargs
        )
        return output, None
    rates.used.add("attention")
    if pair[0] == pair[1]:
        output, _ = sdpa_attention_forward(
            module,
            query,
            key,
            value,
            attention_mask,
            dropout=pair[0],
            **kwargs,
        )
        return output, None
    outputs = []
    half = rates.rows // 2
    halves = (slice(half), slice(half, None))
    for rows, rate in zip(halves, pair, strict=True):
        mask = attention_mask
        if mask is not None and mask.shape[0] == rates.rows:
            mask = mask[rows]
        part = query[rows], key[rows], value[rows]
        output, _ = sdpa_attention_forward(module, *part, mask, dropout=rate, **kwargs)
        outputs.append(output)
    return torch.cat(outputs), None


def _attend_packed(
    module: nn.Module,
    rates: ViewRates,
    packing: Packing,
    states: tuple[Tensor, Tensor, Tensor],
    attention_mask: Tensor | None,
    dropout: float,
    settings: dict[str, Any],
) -> Tensor:
    """Attention of a packed batch: of its rows as they are where there are kernels for it, else of
    the padded rows. `states` are query, key and value.
    """
    query, key, value = states
    jagged = rates.jagged and attention.has_kernels(query)
    if jagged and attention.fits(query, key, attention_mask, packing, settings):
        drops = _drops(rates, packing, module.training) or (dropout,)
        return attention.attend(query, key, value, packing, drops, settings.get("scaling"))
    padded = [packing.pad(part.transpose(1, 2)) for part in states]
    query, key, value = (part.transpose(1, 2) for part in padded)
    output, _ = _attend(module, query, key, value, attention_mask, dropout, **settings)
    return packing.pack(output)


def _drops(rates: ViewRates, packing: Packing, training: bool) -> tuple[float, ...] | None:
    """What the views of a packed batch drop of their attention, one rate where it is the same;
    None: as the model.
    """
    if rates.attention is None or not training or packing.rows != rates.rows:
        return None
    rates.used.add("attention")
    a, b = rates.attention
    if a == b:
        return (a,)
    return (a, b)


def _mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    attention_mask: Tensor | None = None,
    **kwargs: Any,
) -> Any:
    """The mask of the padded batch, also where the transformer reads it packed, as a batch of one
    row.
    """
    from transformers.masking_utils import sdpa_mask

    if attention_mask is not None and len(attention_mask) != batch_size:
        batch_size, q_length = attention_mask.shape
        kv_length = q_length
    return sdpa_mask(batch_size, q_length, kv_length, attention_mask=attention_mask, **kwargs)


@cache
def register_attention() -> None:
    """Make the attention known to transformers, whose models take seconds to import: with the first
    model.
    """
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(ATTENTION, _attend)
    AttentionMaskInterface.register(ATTENTION, _mask)


def attach(transformer: PreTrainedModel) -> ViewRates:
    """Make `transformer` able to drop per view and return the object that holds its rates.

    With no rates set the model behaves exactly as before. Its weights and its saved files do not
    change.
    """
    register_attention()
    rates = ViewRates()
    for module in list(transformer.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Dropout):
                setattr(module, name, PerViewDropout(child.p, rates))
        module.view_rates = rates  # any module may be the one that calls the attention
    with (
        quiet_transformers()
    ):  # a model outside the attention registry warns and uses its own attention
        transformer.set_attn_implementation(ATTENTION)
    return rates


_SAME = 1e-4  # what rounding may change in float32, as a share of the largest number


def run_packed(
    transformer: PreTrainedModel,
    rates: ViewRates,
    features: dict[str, Tensor],
    **options: Any,
) -> tuple[tuple[Tensor, ...], Tensor]:
    """A forward pass of collated `features` (rows, length) without their padding, padded again at
    the end.

    The transformer gets ids, types and positions (1, tokens) and the mask (rows, length) unchanged,
    by which the mask function that `attach` registers sees that the batch is packed.

    Returns the hidden states of every layer where `options` ask for them, else none, and the last
    ones; each (rows, length, d), and 0 at padding. There must be several rows: of one, `_mask`
    cannot see that it is packed.
    """
    packing = Packing(features["attention_mask"])
    given = {}
    for name, tensor in features.items():
        if name != "attention_mask":
            given[name] = packing.pack(tensor)
    positions = position_ids(transformer, features["input_ids"])
    given.setdefault("position_ids", packing.pack(positions))
    with rates.during(packing=packing):
        output = transformer(**given, attention_mask=features["attention_mask"], **options)
    hidden_states = output.get("hidden_states") or ()
    states = tuple([packing.pad(state) for state in hidden_states])
    return states, packing.pad(output.last_hidden_state)


def packs(transformer: PreTrainedModel, rates: ViewRates, features: dict[str, Tensor]) -> bool:
    """Does a packed pass of collated `features` give the states of a padded one?

    Compared in evaluation mode, up to the rounding of float32 or of the half precision that
    autocast sets. Nothing is drawn at random.
    """
    device = features["input_ids"].device.type
    mask = features["attention_mask"] == 1
    rough = torch.is_autocast_enabled(device)
    if rough:
        tolerance = 4 * torch.finfo(torch.get_autocast_dtype(device)).eps
    else:
        tolerance = _SAME
    with evaluation(transformer), torch.no_grad():
        expected = transformer(**features).last_hidden_state[mask]
        try:
            found = run_packed(transformer, rates, features)[1][mask]
        except (
            TypeError,
            ValueError,
            IndexError,
            RuntimeError,
        ):  # of a model's own attention, or of a GPU's kernels
            return False
    difference = float((found - expected).abs().max())
    return difference <= tolerance * float(expected.abs().max())


def position_ids(transformer: PreTrainedModel, ids: Tensor) -> Tensor:
    """The positions (rows, length) that the model would give the padded rows."""
    embeddings: Any = getattr(transformer, "embeddings", None)
    own = getattr(
        embeddings, "create_position_ids_from_input_ids", None
    )  # RoBERTa and related models
    if own is not None:
        positions: Tensor = own(ids, embeddings.padding_idx)
        return positions
    positions = torch.arange(ids.shape[1], device=ids.device)
    return positions.expand(ids.shape)
