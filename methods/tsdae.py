"""TSDAE: a decoder writes the whole sentence from the vector of one that lost most of its words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from harness.config import option
from harness.encoder import Encoder
from harness.encoder.masked_lm import IGNORED
from harness.errors import InputError
from harness.method import POOLING_HELP
from harness.recipes import RecipeFile
from harness.training import Batch, TrainedMethod, TrainingConfig

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_WORD = re.compile(r"\s*(?:\w+|[^\w\s])")  # a word or a punctuation mark, with the blanks before it


def delete_words(text: str, share: float, rng: np.random.Generator) -> str:
    """Delete each word or punctuation mark of `text` with probability `share`; one at least stays, in
    the same order.
    """
    words = _WORD.findall(text)
    if not words:
        return text
    stays = rng.random(len(words)) >= share
    if not stays.any():
        stays[rng.integers(len(words))] = True
    return "".join(words[place] for place in np.flatnonzero(stays)).strip()


def load_decoder(
    name: str,
    encoder: Encoder,
    *,
    tied: bool,
    layers: int | None = None,
) -> PreTrainedModel:
    """Load a left-to-right language model with cross-attention, from the checkpoint `name` that
    `encoder` was loaded from.

    Where the checkpoint has no weights (cross-attention always) they are drawn as the model's
    family draws them.
    `tied`: every weight that the encoder has too is the encoder's, and no parameter of the decoder,
    so that an optimiser of both sees it once. `layers` keeps the first so many.

    Raises:
        InputError: the family has no such decoder, or the numbers of layers or dimensions do not
            fit.
    """
    from transformers import AutoConfig, AutoModelForCausalLM

    from harness.encoder.quiet import quiet_transformers
    from harness.sources import resolve_model

    resolved = resolve_model(name)
    with quiet_transformers():
        config = AutoConfig.from_pretrained(resolved, trust_remote_code=False)
        config.is_decoder = True
        config.add_cross_attention = True
        depth = int(config.num_hidden_layers)
        if layers is not None:
            if layers > depth:
                raise InputError(
                    f'tsdae: decoder_layers = {layers}, but base model "{name}" has {depth} layers',
                    key="decoder_layers",
                )
            config.num_hidden_layers = layers
        try:
            decoder: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
                resolved,
                config=config,
                dtype=torch.float32,
                trust_remote_code=False,
                use_safetensors=True,
            )
        except (ValueError, OSError) as error:
            raise _no_decoder(name, config.model_type) from error
    if not any("crossattention" in part for part, _ in decoder.named_parameters()):
        raise _no_decoder(name, config.model_type)
    if encoder.dimension != int(config.hidden_size):
        raise InputError(
            f"tsdae: the vectors have {encoder.dimension} dimensions, the decoder "
            f"{config.hidden_size}",
            remedy="use a pooling that keeps the model's width",
        )
    decoder.to(encoder.device)
    if tied:
        _share(decoder, encoder)
    return decoder


def _no_decoder(name: str, family: str) -> InputError:
    return InputError(
        f'tsdae: base model "{name}" of type "{family}" has no decoder with cross-attention '
        "in transformers",
        file=name,
        remedy="use one of type bert, roberta, xlm-roberta, camembert or electra",
    )


def _share(decoder: PreTrainedModel, encoder: Encoder) -> None:
    """Put the encoder's weights in the place of the decoder's own, as plain attributes that are not
    registered.
    """
    weights = dict(encoder.transformer.named_parameters())
    twins: dict[int, nn.Parameter] = {}
    for name, p in decoder.base_model.named_parameters():
        if name in weights and weights[name].shape == p.shape:
            twins[id(p)] = weights[name]

    for module in decoder.modules():
        for leaf, p in list(module._parameters.items()):
            if p is not None and id(p) in twins:
                del module._parameters[leaf]
                module.__dict__[leaf] = twins[id(p)]


class TSDAEConfig(TrainingConfig):
    """Defaults: the released example."""

    pooling: str = option("cls", POOLING_HELP)
    batch_size: int = option(8, "sentences per training step", ge=2, sweep=[8, 16, 32, 64])
    train_length: int = option(
        128, "maximum number of tokens in training, special tokens included", ge=4
    )
    eval_every: int = option(1000, "training steps between two evaluations on the dev set", ge=1)
    deletion: float = option(
        0.6,
        "probability that a word is deleted",
        ge=0,
        lt=1,
        sweep=(0.1, 0.9),
    )
    tied: bool = option(
        True, "the decoder uses the encoder's weights (its cross-attention is its own), or a copy"
    )
    decoder_layers: int | None = option(
        None, "layers of the decoder, from below; empty: all of the checkpoint", ge=1
    )
    decay: bool = option(
        False, "linear decay of the learning rate after the warm-up; the example keeps it constant"
    )


class TSDAE(TrainedMethod):
    """L = mean over tokens of -log p(x_t | x_<t, h), h = vector of the sentence with words deleted."""

    name = "tsdae"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = TSDAEConfig

    def schedule(self, step: int, steps: int) -> float:
        if self.config.decay or step < self.config.warm_updates(steps):
            return super().schedule(step, steps)
        return 1.0

    def heads(self, encoder: Encoder) -> nn.Module:
        config = self.config
        decoder: nn.Module = load_decoder(
            self.base_model, encoder, tied=config.tied, layers=config.decoder_layers
        )
        return decoder

    def loss(self, encoder: Encoder, heads: nn.Module, batch: Batch) -> dict[str, Tensor]:
        config = self.config
        damaged = [delete_words(text, config.deletion, batch.rng) for text in batch.texts]
        vectors = encoder(damaged)
        whole = encoder.collate(encoder.tokenize(batch.texts, max_length=config.train_length))
        return {"loss": reconstruction(heads, vectors, whole["input_ids"], whole["attention_mask"])}


def reconstruction(decoder: nn.Module, vectors: Tensor, ids: Tensor, mask: Tensor) -> Tensor:
    """Mean cross-entropy in nats of every token but the first, given those before it and the
    sentence's vector.

    L = -(1/T) sum_{i, t > 1} log softmax(decoder(x_i1 .. x_i,t-1; h_i))[x_it], T the number of such
    tokens.

    Args:
        decoder: gives `.logits` (n, length, vocabulary) for ids that attend to
            `encoder_hidden_states`.
        vectors: (n, d), all that the decoder sees of the encoder. ids, mask: (n, length), padded on
            the right.
    """
    ids = ids.to(vectors.device)
    mask = mask.to(vectors.device)
    logits: Tensor = decoder(
        input_ids=ids[:, :-1],
        attention_mask=mask[:, :-1],
        encoder_hidden_states=vectors.unsqueeze(1),
        use_cache=False,
    ).logits
    labels = ids[:, 1:].masked_fill(mask[:, 1:] == 0, IGNORED)
    return functional.cross_entropy(
        logits.flatten(0, 1).float(),
        labels.flatten(),
        ignore_index=IGNORED,
    )
