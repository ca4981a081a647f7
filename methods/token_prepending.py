"""Token prepending: an extra token before the sentence holds what the last one knew a layer below,
so that the words of the sentence can see it under causal attention; nothing is learnt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from pydantic import field_validator
from torch import Tensor, nn

from harness.config import option
from harness.encoder.network import Features
from harness.errors import InputError
from harness.recipes import RecipeFile
from harness.seeds import torch_generator
from methods.metaeol import LayerEncoder, MetaEOL, MetaEOLConfig

if TYPE_CHECKING:
    from transformers import PreTrainedModel

PLACEHOLDER = "<PST>"  # as the authors call it


class TokenPrependingConfig(MetaEOLConfig):
    """Place of the extra token, and the layers in which it changes."""

    templates: tuple[str, ...] = option(
        ('This sentence : <PST> "[X]" means in one word:"',),
        "prompts with <PST> for the extra token and, behind it, [X] for the sentence; their mean is the vector",
    )
    start: int = option(
        1, "the first layer, from 0, at whose input the extra token is overwritten", ge=0
    )
    exit: int | None = option(
        None, "the first layer at whose input it no longer is; empty: none", ge=1
    )

    @field_validator("templates")
    @classmethod
    def _has_placeholder(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for template in value:
            before = template.partition("[X]")[0]
            if before.count(PLACEHOLDER) != 1:
                raise ValueError(f"must have {PLACEHOLDER} once before [X]")
        return value


class PrependingEncoder(LayerEncoder):
    """Encoder in which, at the input of layers `start` to `exit` - 1, the state of the extra token
    becomes that of the last token.
    """

    start: int = 1
    exit: int | None = None

    def _run(
        self,
        features: Features,
        *,
        every_layer: bool = False,
    ) -> tuple[tuple[Tensor, ...], Tensor]:
        ids = features["input_ids"]
        rows = torch.arange(len(ids))
        place = ids.eq(self.tokenizer.convert_tokens_to_ids(PLACEHOLDER)).int().argmax(dim=1)
        last = features["attention_mask"].sum(dim=1) - 1

        def overwrite(
            layer: nn.Module,
            inputs: tuple[Any, ...],
            named: dict[str, Any],
        ) -> tuple[Any, dict[str, Any]]:
            states = (inputs[0] if inputs else named["hidden_states"]).clone()
            states[rows, place] = states[rows, last]
            if inputs:
                return (states, *inputs[1:]), named
            return inputs, {**named, "hidden_states": states}

        blocks = _blocks(self.transformer)[self.start : self.exit]
        hooks = [block.register_forward_pre_hook(overwrite, with_kwargs=True) for block in blocks]
        try:
            return super()._run(features, every_layer=every_layer)
        finally:
            for hook in hooks:
                hook.remove()


def _blocks(transformer: PreTrainedModel) -> nn.ModuleList:
    """Return the layers of a transformer, whatever it calls them."""
    depth = int(transformer.config.num_hidden_layers)
    lists = (part for part in transformer.modules() if isinstance(part, nn.ModuleList))
    return next(part for part in lists if len(part) == depth)


class TokenPrepending(MetaEOL):
    """H_l[p] := H_l[last] for start <= l < exit, p the extra token; v = H[layer] at the last token
    of the template.
    """

    name = "token_prepending"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = TokenPrependingConfig
    kind = PrependingEncoder

    def _prepare(self, base: LayerEncoder, seed: int) -> None:
        """Add the extra token, whose embedding is drawn from N(0, I)."""
        base.tokenizer.add_tokens([PLACEHOLDER])
        token = int(base.tokenizer.convert_tokens_to_ids(PLACEHOLDER))
        vector = torch.randn(base.dimension, generator=torch_generator(seed, "init extra token"))
        # The new row is drawn at random, then overwritten.
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            if token >= base.transformer.config.vocab_size:
                base.transformer.resize_token_embeddings(token + 1, mean_resizing=False)
            embeddings = base.transformer.get_input_embeddings()
            assert isinstance(embeddings, nn.Embedding)
            embeddings.weight[token] = vector

    def _use(self, base: LayerEncoder) -> TokenPrepending:
        assert isinstance(base, PrependingEncoder)
        config: TokenPrependingConfig = self.config
        depth = len(_blocks(base.transformer))
        if not config.start < (config.exit or depth) <= depth:
            raise InputError(
                f"{self.name}: start {config.start} and exit {config.exit} must be layers, in this order, of the "
                f'{depth} of model "{self.base_model}"',
                file=self.base_model,
                key="start",
            )
        base.start = config.start
        base.exit = config.exit
        return super()._use(base)
