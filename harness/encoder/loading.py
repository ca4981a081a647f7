"""What is read from a base model: transformer, tokenizer, pooler, the longest row, and the family."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from harness.encoder.adapters import (
    ADAPTER,
    has_adapter,
    merge_adapter,
    read_base_name,
    require_peft,
    without_adapter,
)
from harness.encoder.layout import MODULES, check_settings, model_folder, modules_of, no_model
from harness.encoder.pooling import Pooling
from harness.encoder.quiet import quiet_transformers
from harness.errors import InputError, UnsupportedModel
from harness.files.reading import read_json
from harness.sources.embedded import cached_by_model

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

LONGEST = 512  # tokens of a row, where a model does not say
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
    name: str,
    folder: Path,
    pooling: Pooling,
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

    base = read_base_name(folder)
    if base is None:
        weights = folder
    else:
        weights = model_folder(base)
    if base is not None and has_adapter(weights):
        message = "an adapter of a model that has an adapter itself"
        raise InputError(message, file=folder / ADAPTER, remedy="merge the first, and save it")
    with _one_line(name), without_adapter(weights) as plain:
        config = _config(name, str(plain))
        _drop_layers(name, config, pooling)
        # Saved models that average layers have it on; we request them per call.
        config.output_hidden_states = False
        # A pooler that the file lacks is drawn at random, then dropped.
        with torch.random.fork_rng(devices=[]):
            transformer, report = AutoModel.from_pretrained(
                str(plain),
                config=config,
                output_loading_info=True,
                trust_remote_code=False,
                use_safetensors=True,
                dtype=torch.float32,  # some files are in half precision, in which training does not work
            )
        tokenizer = _tokenizer(name, _tokenizer_folder(folder, weights))
    keys = [key for key in report["missing_keys"] if "pooler" not in key]
    missing = sorted(keys)
    if missing:
        raise InputError(
            f'model "{name}": its file lacks {len(missing)} weights, first "{missing[0]}"',
            file=name,
        )
    if has_adapter(folder):
        with _one_line(name):
            merge_adapter(name, folder, transformer)
    with _one_line(name):
        _check_tokens(name, tokenizer, transformer.get_input_embeddings())
    head = None
    if pooling.name == "cls_pooler":
        head = _pooler_of(name, transformer, report["missing_keys"])
    if "add_pooling_layer" in inspect.signature(type(transformer)).parameters:
        # Parameters that no vector depends on would be counted, clipped and saved.
        transformer.pooler = None
    return transformer, tokenizer, head


def _pooler_of(name: str, transformer: Any, missing_keys: Iterable[str]) -> nn.Sequential:
    """Return the pooler of a transformer as modules.

    Raises:
        InputError: it has none, or its file lacks the weights of it.
    """
    pooler = getattr(transformer, "pooler", None)
    dense = getattr(pooler, "dense", None)
    linear = pooler if isinstance(pooler, nn.Linear) else dense
    is_missing = any("pooler" in key for key in missing_keys)
    if not isinstance(linear, nn.Linear) or is_missing:
        raise InputError(
            f'model "{name}" has no pooler of its own, so "cls_pooler" is not possible',
            file=name,
            remedy='use "cls"',
        )
    return nn.Sequential(linear, nn.Tanh())


@cached_by_model
def tokens_of(name: str, max_length: int | None = None) -> tuple[PreTrainedTokenizerBase, int]:
    """The tokenizer of a base model and the `max_length` of its encoder, without reading the
    weights.

    Raises:
        InputError: as `Encoder.from_pretrained`, as far as configuration and tokenizer show it.
    """
    from transformers import AutoModel

    from harness.sources import resolve_model

    source = config_source(name)
    with _one_line(name):
        config = _config(name, source)
        with (
            torch.device("meta"),
            torch.random.fork_rng(devices=[]),
        ):  # shapes alone: no memory, nothing drawn
            transformer = AutoModel.from_config(config, trust_remote_code=False)
        resolved = Path(resolve_model(name))
        if resolved.is_dir():
            folder = transformer_folder(name, resolved)
        else:
            folder = None
        if folder is None:
            tokens = source
        else:
            tokens = _tokenizer_folder(folder, Path(source))
        tokenizer = _tokenizer(name, tokens)
        _check_tokens(name, tokenizer, transformer.get_input_embeddings())
    return tokenizer, longest_row(name, transformer, tokenizer, max_length, own_length(name))


def transformer_folder(name: str, folder: Path) -> Path:
    """Return where the transformer of a model lies: in the folder, or in that of its first module.

    Raises:
        InputError: modules.json is damaged.
    """
    if (folder / "config.json").is_file() or has_adapter(folder):
        return folder
    if not (folder / MODULES).is_file():
        return folder
    modules = modules_of(name, folder)
    if modules:
        return folder / modules[0][1]
    return folder


def config_source(name: str) -> str:
    """Return the folder or hub id with the config.json of a model: of an adapter, its base model's.

    Raises:
        InputError: no such model, or an adapter where peft is not installed.
    """
    from harness.sources import resolve_model

    source = resolve_model(name)
    if not Path(source).is_dir():
        return source
    folder = transformer_folder(name, Path(source))
    require_peft(name, folder)
    base = read_base_name(folder)
    if base is None:
        return str(folder)
    return resolve_model(base)


_LENGTH_FILES = "sentence_*_config.json"  # sentence_bert_config.json, and names of old versions


def read_max_length(folder: Path) -> int | None:
    """Return the `max_seq_length` that sentence-transformers cuts at; None where none is stated."""
    for file in sorted(folder.glob(_LENGTH_FILES)):
        length = read_json(file).get("max_seq_length")
        if isinstance(length, bool) or not isinstance(length, int):
            continue
        if length > 0:
            return length
    return None


@cached_by_model
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
    config = read_config(base_model)
    width = int(getattr(config, "hidden_size", 0))
    depth = int(getattr(config, "num_hidden_layers", 0))
    if 0 < width <= _MINI_WIDTH:
        return MINI
    family = _FAMILIES.get(
        (config.model_type, width, depth), f"{config.model_type}-{width}x{depth}"
    )
    many = int(getattr(config, "vocab_size", 0)) > _MULTILINGUAL_VOCABULARY
    if family == "bert-base" and many:
        return "bert-base-multilingual"
    return family


@cached_by_model
def depth_of(base_model: str) -> int:
    """Number of layers of the transformer of a base model; 0 where its configuration names none.

    Raises:
        InputError: as `family_of`.
    """
    return int(getattr(read_config(base_model), "num_hidden_layers", 0))


def read_config(base_model: str) -> Any:
    """The configuration of a base model.

    Raises:
        InputError: as `family_of`.
    """
    from transformers import AutoConfig

    from harness.sources.remote.hub import hub_reachable

    source = config_source(base_model)
    # Of a folder the hub knows nothing: it is not even asked whether it is there.
    is_here = Path(source).is_dir() or not hub_reachable()
    with _one_line(base_model):
        check_settings(base_model, Path(source))
        return AutoConfig.from_pretrained(source, trust_remote_code=False, local_files_only=is_here)


def own_length(name: str) -> int | None:
    """Return what a sentence encoder states as its longest row; None for a transformer alone.

    Raises:
        InputError: no such model.
    """
    from harness.sources import resolve_model
    from harness.sources.remote.hub import hub_file

    source = resolve_model(name)
    if Path(source).is_dir():
        return read_max_length(transformer_folder(name, Path(source)))
    try:
        file = hub_file(source, "sentence_bert_config.json", kind="model")
    except InputError:  # most models have no such file
        return None
    return read_max_length(file.parent)


def positions_of(transformer: PreTrainedModel) -> int:
    """How many tokens of a row the model has positions for; a very large number where it has no
    limit.
    """
    positions = getattr(transformer.config, "max_position_embeddings", None)
    if positions and positions > 0:
        limit = int(positions)
    else:
        limit = 10**9
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
    name: str,
    transformer: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    wanted: int | None,
    stated: int | None = None,
) -> int:
    """The `max_length` of an encoder.

    Args:
        stated: what a sentence encoder, from which training may start, states as its own.

    Raises:
        InputError: the model has no positions for as many tokens as `wanted`.
    """
    limit = positions_of(transformer)
    if wanted is None and stated is not None:
        return min(stated, limit)
    if wanted is None:
        return min(int(tokenizer.model_max_length), limit, LONGEST)
    check_length(f'model "{name}"', wanted, limit)
    return wanted


def check_length(model: str, wanted: int, positions: int) -> None:
    """Check that a model has positions for rows of `wanted` tokens.

    Raises:
        InputError: it has not, or the special tokens leave no room for a word.
    """
    if not 3 <= wanted <= positions:
        message = f"max_length must be from 3 to {positions}, the positions of {model}"
        raise InputError(f"{message}, not {wanted}", key="max_length")


def _config(name: str, source: str) -> Any:
    from transformers import AutoConfig
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES as ENCODER_DECODERS,
    )

    check_settings(name, Path(source))
    config = AutoConfig.from_pretrained(source, trust_remote_code=False)
    kind = config.model_type
    # An encoder of T5 saved alone says that it is no encoder-decoder; Funnel may shorten its rows.
    has_decoder = getattr(config, "is_encoder_decoder", False) or kind in ENCODER_DECODERS
    shortens = (config.architectures or [""])[0] == "FunnelBaseModel"
    if has_decoder or shortens or not hasattr(config, "num_hidden_layers"):
        raise UnsupportedModel(
            f'model "{name}" of type "{kind}" is not a text encoder such as BERT or RoBERTa',
            file=name,
        )
    return config


def _drop_layers(name: str, config: Any, pooling: Pooling) -> None:
    """Leave out the layers above the one that is pooled."""
    layer = pooling.layer
    depth = int(config.num_hidden_layers)
    if layer is None:
        return
    if layer > depth:
        raise InputError(
            f'pooling "{pooling.name}": model "{name}" has layers 0 to {depth}',
            file=name,
            key="pooling",
        )
    if config.model_type in _NO_FINAL_NORM:
        kept = max(layer, 1)
    else:
        kept = min(layer + 1, depth)
    if kept < depth and not hasattr(config, "layer_types"):
        config.num_hidden_layers = kept


_TOKENIZER_FILES = ("tokenizer*", "vocab*", "*.model")


def _tokenizer_folder(folder: Path, base: Path) -> str:
    """Return where the tokenizer lies: with an adapter, or else with its base model."""
    for pattern in _TOKENIZER_FILES:
        if any(folder.glob(pattern)):
            return str(folder)
    return str(base)


def _tokenizer(name: str, source: str) -> PreTrainedTokenizerBase:
    from transformers import AutoTokenizer

    tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
        source, trust_remote_code=False
    )
    longest = tokenizer.model_max_length
    if not isinstance(longest, int | float) or not longest >= 1:  # NaN is neither
        message = f'model "{name}": expected a number of tokens, not {longest!r:.40}'
        raise InputError(
            message, file=f"{source}/tokenizer_config.json", key='key "model_max_length"'
        )
    if tokenizer.pad_token is None:  # causal models have none; the states at padding are never read
        tokenizer.pad_token = tokenizer.eos_token
    if tokenizer.pad_token is None:
        raise InputError(
            f'model "{name}": its tokenizer has neither a padding token nor an end token, so no library can '
            "encode a batch with it",
            file=source,
            remedy="name a token of it as pad_token in its tokenizer_config.json",
        )
    return tokenizer


def _check_tokens(name: str, tokenizer: PreTrainedTokenizerBase, embeddings: nn.Module) -> None:
    """Refuse a tokenizer that gives tokens without vectors.

    Raises:
        InputError: an empty vocabulary, or an id that is no row of the embedding matrix.
    """
    vocabulary = tokenizer.get_vocab()
    if not vocabulary:
        raise InputError(f'model "{name}": the vocabulary of its tokenizer is empty', file=name)
    rows = getattr(embeddings, "num_embeddings", None)
    if rows is None:
        return
    framed = tokenizer("a")["input_ids"]  # its special tokens may be no part of the vocabulary
    largest = max(*vocabulary.values(), *framed, 0)
    if largest >= rows:
        raise InputError(
            f'model "{name}": its tokenizer has tokens up to number {largest:,}, but the model has vectors for '
            f"{rows:,} tokens",
            file=name,
            remedy="resize the model (resize_token_embeddings) and save it, or take the tokenizer it was saved with",
        )


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
