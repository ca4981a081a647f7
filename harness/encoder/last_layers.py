"""Training of a transformer's last layers alone: what lies below them is frozen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

from harness.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from harness.encoder.network import Network

KEY = "trainable_layers"


def freeze_below(encoder: Network, count: int, base_model: str) -> None:
    """Freeze the transformer of `encoder` up to its last `count` layers, embeddings included.

    What follows the layers (a last normalisation, a pooler) and what is not the transformer's
    learns as before. Nothing that is frozen already is made to learn.

    Raises:
        InputError: the model has fewer layers, or its layers cannot be told apart.
    """
    transformer = getattr(encoder, "transformer", nn.Module())  # none: a recurrent encoder
    layers = _layers(transformer)
    if layers is None:
        raise InputError(
            f'model "{base_model}" has no list of layers of their own weights',
            file=base_model,
            key=KEY,
            remedy="leave it empty, or take another base model",
        )
    check_depth(count, len(layers), base_model)

    learning = set()
    for layer in layers[-count:]:
        for parameter in layer.parameters():
            learning.add(id(parameter))
    follows = False
    for child in transformer.children():
        if follows:
            learning |= {id(parameter) for parameter in child.parameters()}
        if any(module is layers for module in child.modules()):
            follows = True
    for module in transformer.modules():
        frozen = isinstance(module, nn.Embedding)
        for parameter in module.parameters(recurse=False):
            if frozen or id(parameter) not in learning:
                parameter.requires_grad_(False)


def check_depth(count: int, depth: int, base_model: str) -> None:
    """Check that a model of `depth` layers has `count` last ones.

    Raises:
        InputError: it has fewer.
    """
    if count > depth:
        raise InputError(
            f'{count}, but model "{base_model}" has {depth} layers',
            key=KEY,
            remedy=f"set it to a number from 1 to {depth}, or leave it empty to train all",
        )


def _layers(transformer: PreTrainedModel) -> nn.ModuleList | None:
    """Return the list of all layers; None of a model that shares one layer's weights."""
    depth = getattr(getattr(transformer, "config", None), "num_hidden_layers", None)
    for module in transformer.modules():
        if isinstance(module, nn.ModuleList) and len(module) == depth:
            return module
    return None
