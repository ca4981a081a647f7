"""Making an `Encoder` from a base model: a folder, a hub id or an embedded one."""

from __future__ import annotations

import inspect
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import nn

from harness.encoder.echo import EchoFrame
from harness.encoder.network import Network
from harness.encoder.pooling import Pooling
from harness.encoder.quiet import quiet_transformers
from harness.errors import InputError, UnsupportedModel

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

N = TypeVar("N", bound=Network)

_LONGEST = 512
# Families whose last hidden state is the last layer's output as it is; others put a normalisation behind it, so that
# a model cut after layer K would not give H_K.
_NO_FINAL_NORM = frozenset({"albert", "bert", "camembert", "distilbert", "electra", "mpnet", "roberta", "xlm-roberta"})


def from_pretrained(
    cls: type[N], name: str, pooling: Pooling, max_length: int | None, *, saved: bool = False, subfolder: str = ""
) -> N:
    """See `Encoder.from_pretrained`.

    For a `saved` sentence encoder `max_length` is its author's: kept where the model has the positions, and without
    one the tokenizer's limit counts however long. `subfolder` is where in the repository the transformer lies.
    """
    from harness.sources import resolve_model

    resolved = resolve_model(name)
    with quiet_transformers():
        transformer, head = _transformer(name, resolved, pooling, subfolder)
        tokenizer = _tokenizer(name, resolved, subfolder)
    longest = _max_length(name, transformer, tokenizer, max_length, saved)
    if pooling.prompt is not None and not saved:  # a saved tokenizer has its template
        pooling.prompt.apply(tokenizer)
    if pooling.echo is not None and not saved:
        pooling.echo.apply(tokenizer)
        longest = _echoed(name, EchoFrame.of(tokenizer), longest)
    return cls(transformer, tokenizer, pooling=pooling, max_length=longest, head=head)


def _echoed(name: str, frame: EchoFrame, limit: int) -> int:
    """The longest row of a template with two copies of a sentence that is within `limit`."""
    if frame.longest(limit) > limit:
        raise InputError(
            f'model "{name}": the echo template has {frame.total} tokens, which leaves no room for two copies of a '
            f"sentence in max_length = {limit}; give a shorter template or a larger max_length"
        )
    return frame.longest(limit)


@cache
def tokens_of(name: str, max_length: int | None = None) -> tuple[PreTrainedTokenizerBase, int]:
    """The tokenizer of a base model and the `max_length` of its encoder, told without reading the weights.

    Raises:
        InputError: as `from_pretrained`, as far as configuration and tokenizer say so.
    """
    from transformers import AutoModel

    from harness.sources import resolve_model

    resolved = resolve_model(name)
    with quiet_transformers():
        config = _config(name, resolved, "")
        with torch.device("meta"), torch.random.fork_rng(devices=[]):  # shapes alone: no memory, nothing drawn
            transformer = AutoModel.from_config(config, trust_remote_code=False)  # type: ignore[no-untyped-call]
        tokenizer = _tokenizer(name, resolved, "")
    return tokenizer, _max_length(name, transformer, tokenizer, max_length, saved=False)


def refuse_pickled(name: str, folder: Path) -> None:
    """Refuse weights that are there as a pickle alone, before anything opens it.

    Raises:
        InputError: `folder` has `pytorch_model.bin`, whole or in parts, and no safetensors file; how to convert it.
    """
    if any(folder.glob("pytorch_model*.bin")) and not any(folder.glob("*.safetensors")):
        raise _pickled(name, str(folder))


def _pickled(name: str, source: str) -> InputError:
    convert = f"AutoModel.from_pretrained({source!r}, use_safetensors=False).save_pretrained('FOLDER')"
    return InputError(
        f'model "{name}": has its weights as a pickle alone (pytorch_model.bin), which is not read; where you trust '
        f'its source, convert it once: python -c "from transformers import AutoModel; {convert}", copy the other '
        "files, and name FOLDER"
    )


def no_model(name: str, error: Exception) -> InputError:
    """The one line that says why `name` cannot be loaded."""
    from harness.sources.remote.hub import remedy

    if "cannot be loaded with `safetensors`" in str(error):  # transformers' words for a repository of the hub
        return _pickled(name, name)
    reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    said = f"(not a folder, not on the hub, or damaged): {reason:.300}{remedy(name, 'model')}"
    return InputError(f'model "{name}" cannot be loaded {said}')


def _transformer(
    name: str, resolved: str, pooling: Pooling, subfolder: str
) -> tuple[PreTrainedModel, nn.Sequential | None]:
    from transformers import AutoModel

    config = _config(name, resolved, subfolder)
    depth = int(config.num_hidden_layers)
    _cut(name, config, pooling, depth)
    refuse_pickled(name, Path(resolved, subfolder))
    if str(getattr(config, "transformers_weights", None) or "").endswith(".bin"):
        raise _pickled(name, resolved)
    config.output_hidden_states = False  # a saved first-last average has it on; we ask for them call by call
    options: dict[str, Any] = {"config": config, "subfolder": subfolder, "trust_remote_code": False}
    options["use_safetensors"] = True
    options["dtype"] = torch.float32  # some files are in half precision, in which training does not work
    try:
        with torch.random.fork_rng(devices=[]):  # a pooler that the file lacks is drawn at random, then dropped
            transformer, report = AutoModel.from_pretrained(resolved, output_loading_info=True, **options)
    except Exception as error:  # safetensors and the hub client raise classes of their own
        raise no_model(name, error) from error
    missing = sorted(key for key in report["missing_keys"] if "pooler" not in key)
    if missing:
        raise InputError(f'model "{name}": its file lacks {len(missing)} weights, first "{missing[0]}"')
    head = None
    if pooling.name == "cls_pooler":
        linear = _pooler(transformer)
        if linear is None or any("pooler" in key for key in report["missing_keys"]):
            raise InputError(f'model "{name}" has no pooler of its own, so "cls_pooler" is not possible; use "cls"')
        head = nn.Sequential(linear, nn.Tanh())
    if "add_pooling_layer" in inspect.signature(type(transformer)).parameters:
        transformer.pooler = None  # parameters that no vector depends on would be counted, clipped and saved
    return transformer, head


def _config(name: str, resolved: str, subfolder: str) -> Any:
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(resolved, subfolder=subfolder, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise no_model(name, error) from error
    if getattr(config, "is_encoder_decoder", False) or not hasattr(config, "num_hidden_layers"):
        raise UnsupportedModel(
            f'model "{name}" of type "{config.model_type}" is not a text encoder such as BERT or RoBERTa'
        )
    return config


def _cut(name: str, config: Any, pooling: Pooling, depth: int) -> None:
    """Leave off the layers above the one that is pooled."""
    layer = pooling.layer
    if layer is None:
        return
    if layer > depth:
        raise InputError(f'pooling "{pooling.name}": model "{name}" has layers 0 to {depth}')
    kept = max(layer, 1) if config.model_type in _NO_FINAL_NORM else min(layer + 1, depth)
    if kept < depth and not hasattr(config, "layer_types"):
        config.num_hidden_layers = kept


def _pooler(transformer: PreTrainedModel) -> nn.Linear | None:
    pooler = getattr(transformer, "pooler", None)
    linear = pooler if isinstance(pooler, nn.Linear) else getattr(pooler, "dense", None)
    return linear if isinstance(linear, nn.Linear) else None


def _tokenizer(name: str, resolved: str, subfolder: str) -> PreTrainedTokenizerBase:
    from transformers import AutoTokenizer

    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            resolved, subfolder=subfolder, trust_remote_code=False
        )
    except Exception as error:
        raise no_model(name, error) from error
    return tokenizer


def _max_length(
    name: str, transformer: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, wanted: int | None, saved: bool
) -> int:
    positions = getattr(transformer.config, "max_position_embeddings", None)
    limit = int(positions) if positions and positions > 0 else 10**9
    for part, module in transformer.named_modules():
        # RoBERTa and its kin number positions from padding_idx + 1, so that many are never used.
        if part.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            limit -= int(module.padding_idx) + 1
    if saved:
        return min(int(wanted or tokenizer.model_max_length), limit)
    if wanted is None:
        return min(int(tokenizer.model_max_length), limit, _LONGEST)
    if not 3 <= wanted <= limit:
        raise InputError(f'max_length must be from 3 to {limit}, the positions of model "{name}", not {wanted}')
    return wanted
