"""How losses of other libraries are called with two views, by their signatures."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from harness.encoder import Encoder
from harness.errors import InputError
from harness.files.printable import first_line

_NEEDS = {
    "DenoisingAutoEncoderLoss": "decodes text; the method tsdae is this loss",
    "GISTEmbedLoss": "needs a guide model",
    "CachedGISTEmbedLoss": "needs a guide model",
    "DistillKLDivLoss": "needs scores of a teacher",
    "EmbedDistillLoss": "needs vectors of a teacher",
    "MarginMSELoss": "needs scores of a teacher",
    "MSELoss": "needs vectors of a teacher",
    "CoSENTLoss": "needs a score of each pair",
    "AnglELoss": "needs a score of each pair",
    "CosineSimilarityLoss": "needs a score of each pair",
    "ContrastiveLoss": "needs pairs that are labelled as unlike",
    "OnlineContrastiveLoss": "needs pairs that are labelled as unlike",
    "ContrastiveTensionLoss": "needs pairs of unlike sentences; the method contrastive_tension is this loss",
    "SoftmaxLoss": "needs a label of each pair",
    "TripletLoss": "needs a negative of each pair",
    "AdaptiveLayerLoss": "reads the layers of a SentenceTransformer",
    "Matryoshka2dLoss": "reads the layers of a SentenceTransformer",
}
"""Losses of sentence-transformers that two views alone cannot feed."""


class ThinModel(nn.Module):
    """What a loss of sentence-transformers takes for its model: our encoder behind that interface.

    Attributes:
        rates: (hidden, attention) dropout of both views, each a pair or None.
        vectors: (view, vectors) of each call with a gradient since it was emptied.
    """

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.rates: tuple[Any, Any] = (None, None)
        self.vectors: list[tuple[int, Tensor]] = []

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Add the vectors (n, d) of a view as "sentence_embedding"."""
        view = int(features["view"][0])
        inputs = {}
        for key, value in features.items():
            if key in _INPUTS:
                inputs[key] = value
        hidden, attention = (
            None if pair is None else (pair[view], pair[view]) for pair in self.rates
        )
        rows = len(inputs["attention_mask"])
        rates = self.encoder.view_rates
        with rates.inside(rows, hidden, attention):
            vectors = self.encoder(inputs)
            if self.encoder.training:
                rates.check_used(str(self.encoder.transformer.config.model_type))
        if vectors.requires_grad:
            self.vectors.append((view, vectors))
        return {**features, "sentence_embedding": vectors}

    def __deepcopy__(self, memo: dict[int, Any]) -> ThinModel:
        return ThinModel(self.encoder.copy())

    def __getitem__(self, place: int) -> ThinModel:
        return self

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name in ("device", "dimension", "tokenizer", "max_length", "tokenize"):
                return getattr(self.encoder, name)
            raise AttributeError(
                f'a loss reads "{name}" of its model, which an encoder of the harness does not have'
            ) from None

    def get_embedding_dimension(self) -> int:
        """Return d of the vectors."""
        return self.encoder.dimension

    get_sentence_embedding_dimension = get_embedding_dimension


_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


@dataclass(frozen=True)
class Call:
    """One way to call a loss.

    Attributes:
        on_features: it takes token ids of both views, and encodes them itself.
        run: called with the loss and the vectors of both views (or both features).
    """

    name: str
    run: Callable[[Any, Any, Any], Any]
    on_features: bool = False


def _twice(a: Tensor) -> Tensor:
    numbers = torch.arange(len(a), device=a.device)
    return numbers.repeat(2)


def _with_miner(built: Any, a: Tensor, b: Tensor) -> Any:
    both = torch.cat([a, b])
    miner = getattr(built, "harness_miner", None)
    if miner is None:
        return built(both, _twice(a))
    labels = _twice(a)
    return built(both, labels, miner(both, labels))


_PAIR = Call("f(a, b)", lambda f, a, b: f(a, b))
_LIST = Call("f([a, b])", lambda f, a, b: f([a, b]))
_EMBEDDINGS = Call(
    "compute_loss_from_embeddings([a, b])",
    lambda f, a, b: f.compute_loss_from_embeddings([a, b], None),
)
_LABELLED = Call(
    "compute_loss_from_embeddings([a and b], labels)",
    lambda f, a, b: f.compute_loss_from_embeddings([torch.cat([a, b])], _twice(a)),
)
_METRIC = Call("f(a and b, labels)", _with_miner)
_REFERENCE = Call("f(a, ref_emb=b)", lambda f, a, b: f(a, ref_emb=b))
_PROJECTIONS = Call(
    "f(local_proj, global_proj)",
    lambda f, a, b: f(local_proj=b.unsqueeze(0), global_proj=a.unsqueeze(0)),
)
_FEATURES = Call("f([features of a, of b])", lambda f, a, b: f([a, b], None), on_features=True)


def calls_of(loss: Any) -> list[Call]:
    """Return the ways in which a loss may be called, by its signature; the first that works is used.

        >>> [call.name for call in calls_of(lambda a, b: (a - b).square().sum())]
        ['f(a, b)']

    Raises:
        InputError: it needs something else than two views.
    """
    check_class(type(loss))
    if hasattr(loss, "compute_loss_from_embeddings"):
        return [_EMBEDDINGS, _LABELLED]
    parameters = _parameters(loss.forward if isinstance(loss, nn.Module) else loss)
    names = [parameter.name for parameter in parameters]
    if "sentence_features" in names:
        return [_FEATURES]
    if {"embeddings", "labels", "ref_emb"} <= set(names):
        return [_METRIC, _REFERENCE]
    if {"local_proj", "global_proj"} <= set(names):
        return [_PROJECTIONS]
    needed = [one.name for one in parameters if one.default is one.empty]
    open_ended = any(one.kind is one.VAR_POSITIONAL for one in parameters)
    if len(needed) == 1 and len(names) == 1 and not open_ended:
        return [_LIST]
    takes_one = len(names) < 2 and not open_ended
    if len(needed) > 2 or takes_one:
        raise InputError(
            f"{getattr(loss, '__name__', type(loss).__name__)} takes ({', '.join(names)}), but a loss gets two views",
            key="loss",
            remedy="write a function of two views that gives it the rest",
        )
    return [_PAIR]


def check_class(kind: Any) -> None:
    """Refuse a class of losses that needs more than two views, before it is made.

    Raises:
        InputError: it does; the message says what it needs.
    """
    name = getattr(kind, "__name__", "")
    if str(kind.__module__).startswith("sentence_transformers.") and name in _NEEDS:
        raise InputError(f"{name} {_NEEDS[name]}", key="loss")


def _parameters(function: Any) -> list[inspect.Parameter]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a function of C has none
        return [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in "ab"]
    return [parameter for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD]


def choose_call(calls: Sequence[Call], make: Callable[[], Any], dimension: int) -> Call:
    """Return the first of several calls that has a gradient to both views, on random vectors.

    Args:
        make: gives another instance of the loss for each try.

    Raises:
        InputError: none has.
    """
    if len(calls) == 1:
        return calls[0]
    reasons = []
    with torch.random.fork_rng(devices=[]):
        for call in calls:
            torch.manual_seed(0)
            a = torch.randn(8, dimension, requires_grad=True)
            b = torch.randn(8, dimension, requires_grad=True)
            try:
                loss = total(call.run(make(), a, b))["loss"]
            except Exception as error:  # whatever a loss raises on what it does not take
                reason = f"{first_line(error):.150}"
                reasons.append(f"{call.name}: {reason}")
                continue
            fault = gradient_fault(loss, [(0, a), (1, b)], zero_counts=False)
            if not fault:
                return call
            reasons.append(f"{call.name}: {fault}")
    raise InputError("cannot be called with two views: " + "; ".join(reasons), key="loss")


def total(returned: Any) -> dict[str, Tensor]:
    """Return the terms of a loss: a tensor alone, or a dict of terms, whose sum is "loss" where none
    is named so.

        >>> total({"near": torch.tensor(1.0), "far": torch.tensor(2.0)})["loss"]
        tensor(3.)

    Raises:
        InputError: it is neither.
    """
    if isinstance(returned, dict) and returned:
        terms = dict(returned)
        if "loss" not in terms:
            terms["loss"] = sum(terms.values())
        return terms
    if not torch.is_tensor(returned):
        raise InputError(
            f"a loss returns a scalar tensor or a dict of them, but returned {type(returned).__name__}",
            key="loss",
        )
    return {"loss": returned}


def gradient_fault(
    loss: Tensor,
    vectors: Sequence[tuple[int, Tensor]],
    *,
    zero_counts: bool = True,
) -> str:
    """Return why views cannot be learned from, given the vectors of view 0 and 1; empty if they can.

    Args:
        zero_counts: a gradient of zeros is one, as of a margin that all vectors of a batch keep.
    """
    if not torch.is_tensor(loss) or loss.numel() != 1:
        return "it is no scalar"
    if not bool(torch.isfinite(loss)):
        return ""  # the loop reports it
    if not loss.requires_grad:
        return "it does not depend on the vectors; is it detached?"
    tensors = [tensor for _, tensor in vectors]
    gradients = torch.autograd.grad(loss, tensors, retain_graph=True, allow_unused=True)
    learned = set()
    for (view, _), gradient in zip(vectors, gradients, strict=True):
        if gradient is not None and (zero_counts or bool(gradient.any())):
            learned.add(view)
    if not learned:
        return "it has no gradient to the vectors of either view"
    missing = {0, 1} - learned
    if missing:
        return f"it has no gradient to the {'first' if 0 in missing else 'second'} view"
    return ""
