"""What is read from a base model: transformer, tokenizer, pooler, the longest row, and the family."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from harness.encoder.layout import no_model
from harness.encoder.pooling import Pooling
from harness.encoder.quiet import quiet_transformers
from harness.errors import InputError, UnsupportedModel

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_LONGEST = 512
# Families whose last hidden state is the output of the last layer; others normalise it, so that a
# model cut after layer K would not give H_K.
_NO_FINAL_NORM = frozenset(
    {"albert", "bert", "camembert", "distilbert", "electra", "mpnet", "roberta", "xlm-roberta"}
)

MINI = "mini"
_MINI_WIDTH = 256  # of the embedded model; no model that a paper starts from is as narrow
_MULTILINGUAL_VOCABULARY = (
    100_000  # tokens of mBERT: 119,547; of BERT in one language: about 30,000
)

# Type, width, depth -> family: what a paper means by "BERT-base".
_FAMILIES = {
    ("bert", 768, 12): "bert-base",
    ("bert", 1024, 24): "bert-large",
    ("roberta", 768, 12): "roberta-base",
    ("roberta", 1024, 24): "roberta-large",
    ("roberta", 768, 6): "distilroberta",
    ("distilbert", 768, 6): "distilbert",
    ("xlm-roberta", 768, 12): "xlm-roberta-base",
    ("xlm-roberta", 1024, 24): "xlm-roberta-large",
    ("modernbert", 768, 22): "modernbert-base",
    ("modernbert", 1024, 28): "modernbert-large",
    ("albert", 768, 12): "albert-base",
    ("mpnet", 768, 12): "mpnet-base",
}


def read_parts(
    name: str, folder: Path, pooling: Pooling
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, nn.Sequential | None]:
    """The transformer in float32 without a pooler, the tokenizer, and for "cls_pooler" the pooler
    as modules.

    Args:
        name: of the model, for error messages.
        folder: holds config.json, safetensors and the files of the tokenizer.

    Raises:
        InputError: a damaged model, or one without weights, layers or a pooler that the pooling
            needs.
        UnsupportedModel: not a text encoder.
    """
    from transformers import AutoModel

    with _one_line(name):
        config = _config(name, str(folder))
        _cut(name, config, pooling)
        config.output_hidden_states = (
            False  # saved models that average layers have it on; we request them per call
        )
        with torch.random.fork_rng(
            devices=[]
        ):  # a pooler that the file lacks is drawn at random, then dropped
            transformer, report = AutoModel.from_pretrained(
                str(folder),
                config=config,
                output_loading_info=True,
                trust_remote_code=False,
                use_safetensors=True,
                dtype=torch.float32,  # some files are in half precision, in which training does not work
            )
        tokenizer = _tokenizer(str(folder))
    missing = sorted(key for key in report["missing_keys"] if "pooler" not in key)
    if missing:
        raise InputError(
            f'model "{name}": its file lacks {len(missing)} weights, first "{missing[0]}"'
        )
    head = None
    if pooling.name == "cls_pooler":
        pooler = getattr(transformer, "pooler", None)
        linear = pooler if isinstance(pooler, nn.Linear) else getattr(pooler, "dense", None)
        if not isinstance(linear, nn.Linear) or any(
            "pooler" in key for key in report["missing_keys"]
        ):
            raise InputError(
                f'model "{name}" has no pooler of its own, so "cls_pooler" is not possible; use "cls"'
            )
        head = nn.Sequential(linear, nn.Tanh())
    if "add_pooling_layer" in inspect.signature(type(transformer)).parameters:
        transformer.pooler = (
            None  # parameters that no vector depends on would be counted, clipped and saved
        )
    return transformer, tokenizer, head


@cache
def tokens_of(name: str, max_length: int | None = None) -> tuple[PreTrainedTokenizerBase, int]:
    """The tokenizer of a base model and the `max_length` of its encoder, without reading the
    weights.

    Raises:
        InputError: as `Encoder.from_pretrained`, as far as configuration and tokenizer show it.
    """
    from transformers import AutoModel

    from harness.sources import resolve_model

    source = resolve_model(name)
    with _one_line(name):
        config = _config(name, source)
        with (
            torch.device("meta"),
            torch.random.fork_rng(devices=[]),
        ):  # shapes alone: no memory, nothing drawn
            transformer = AutoModel.from_config(config, trust_remote_code=False)
        tokenizer = _tokenizer(source)
    return tokenizer, longest_row(name, transformer, tokenizer, max_length)


@cache
def family_of(base_model: str) -> str:
    """The family of "embedded:NAME", a folder or a hub id; recipes (`harness.recipes`) are declared
    by family.

    Type, width, depth and vocabulary in its configuration decide, never its name: a model that a
    user has trained further, renamed or copied into a folder keeps its family. "mini" is the
    embedded model and every model as narrow, "bert-base-multilingual" a BERT-base with a vocabulary
    above 100,000; a model of none of the known families is called "TYPE-WIDTHxDEPTH".

    Raises:
        InputError: no such model, or one whose configuration transformers does not know.
    """
    config = _read_config(base_model)
    width, depth = (
        int(getattr(config, "hidden_size", 0)),
        int(getattr(config, "num_hidden_layers", 0)),
    )
    if 0 < width <= _MINI_WIDTH:
        return MINI
    family = _FAMILIES.get(
        (config.model_type, width, depth), f"{config.model_type}-{width}x{depth}"
    )
    many = int(getattr(config, "vocab_size", 0)) > _MULTILINGUAL_VOCABULARY
    return "bert-base-multilingual" if family == "bert-base" and many else family


@cache
def depth_of(base_model: str) -> int:
    """Number of layers of the transformer of a base model; 0 where its configuration names none.

    Raises:
        InputError: as `family_of`.
    """
    return int(getattr(_read_config(base_model), "num_hidden_layers", 0))


def _read_config(base_model: str) -> Any:
    from transformers import AutoConfig

    from harness.sources import resolve_model
    from harness.sources.remote.hub import hub_reachable

    source = resolve_model(base_model)
    with _one_line(base_model):
        return AutoConfig.from_pretrained(
            source, trust_remote_code=False, local_files_only=not hub_reachable()
        )


def positions_of(transformer: PreTrainedModel) -> int:
    """How many tokens of a row the model has positions for; a very large number where it has no
    limit.
    """
    positions = getattr(transformer.config, "max_position_embeddings", None)
    limit = int(positions) if positions and positions > 0 else 10**9
    for part, module in transformer.named_modules():
        # RoBERTa and related models number positions from padding_idx + 1, so that many are never
        # used.
        if (
            part.endswith("position_embeddings")
            and getattr(module, "padding_idx", None) is not None
        ):
            limit -= int(module.padding_idx) + 1
    return limit


def longest_row(
    name: str, transformer: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, wanted: int | None
) -> int:
    """The `max_length` of an encoder.

    Raises:
        InputError: the model has no positions for as many tokens as `wanted`.
    """
    limit = positions_of(transformer)
    if wanted is None:
        return min(int(tokenizer.model_max_length), limit, _LONGEST)
    if not 3 <= wanted <= limit:
        raise InputError(
            f'max_length must be from 3 to {limit}, the positions of model "{name}", not {wanted}'
        )
    return wanted


def _config(name: str, source: str) -> Any:
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(source, trust_remote_code=False)
    if getattr(config, "is_encoder_decoder", False) or not hasattr(config, "num_hidden_layers"):
        raise UnsupportedModel(
            f'model "{name}" of type "{config.model_type}" is not a text encoder such as BERT or RoBERTa'
        )
    return config


def _cut(name: str, config: Any, pooling: Pooling) -> None:
    """Leave out the layers above the one that is pooled."""
    layer, depth = pooling.layer, int(config.num_hidden_layers)
    if layer is None:
        return
    if layer > depth:
        raise InputError(f'pooling "{pooling.name}": model "{name}" has layers 0 to {depth}')
    kept = max(layer, 1) if config.model_type in _NO_FINAL_NORM else min(layer + 1, depth)
    if kept < depth and not hasattr(config, "layer_types"):
        config.num_hidden_layers = kept


def _tokenizer(source: str) -> PreTrainedTokenizerBase:
    from transformers import AutoTokenizer

    tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
        source, trust_remote_code=False
    )
    if tokenizer.pad_token is None:  # causal models have none; the states at padding are never read
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


@contextmanager
def _one_line(name: str) -> Iterator[None]:
    """Silence transformers inside the block, and report each of its errors as one line."""
    try:
        with quiet_transformers():
            yield
    except InputError:
        raise
    except (
        Exception
    ) as error:  # safetensors, tokenizers and the hub client raise classes of their own
        raise no_model(name, error) from error
