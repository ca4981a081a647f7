"""Writing an `Encoder` in the SentenceTransformer layout, in whole or not at all.

The type names in modules.json and the keys of the Pooling module are the ones that every release since 2.x reads.
"""

from __future__ import annotations

import inspect
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn

from harness.encoder.convolution import TokenConvolution
from harness.encoder.layout.card_text import card_text
from harness.encoder.network import Network
from harness.encoder.quiet import quiet_transformers
from harness.errors import InputError
from harness.files.atomic import open_folder, share_files

_TYPES = {"SecondCopy": "harness.modules.SecondCopy"}  # folders name it: this path stays whatever moves


def save(encoder: Network, path: Path, card: str) -> None:
    """See `Encoder.save`."""
    if path.exists() and not (path.is_dir() and ((path / "modules.json").exists() or not any(path.iterdir()))):
        raise InputError(f"{path} exists and is not a saved model; choose another folder or remove it")
    with staged_folder(path) as staged:
        _write(encoder, staged, card)


@contextmanager
def staged_folder(path: Path) -> Iterator[Path]:
    """An empty folder to write into, which takes the place of `path` when the block ends well and is gone otherwise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = open_folder(path)
    try:
        yield staged
        share_files(staged)
        if path.exists():
            old = open_folder(path)
            path.rename(old / path.name)
            staged.rename(path)
            shutil.rmtree(old, ignore_errors=True)
        else:
            staged.rename(path)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise


def _write(encoder: Network, folder: Path, card: str) -> None:
    transformer, pooling = encoder.transformer, encoder.pooling
    depth, width = int(transformer.config.num_hidden_layers), int(transformer.config.hidden_size)
    if encoder.tokenizer.is_fast:
        # It keeps the last call's cut, which a resumed training may not have made: the file is to be the same.
        encoder.tokenizer.backend_tokenizer.no_truncation()
    with quiet_transformers():
        transformer.save_pretrained(folder)
        encoder.tokenizer.save_pretrained(folder)
    frame = encoder.echo_frame
    if (
        pooling.prompt is not None or frame is not None
    ):  # a model's own class would build its tokenizer anew, without the template
        about = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
        _json(folder / "tokenizer_config.json", {**about, "tokenizer_class": "PreTrainedTokenizerFast"})
    longest = encoder.max_length if frame is None else frame.cut(encoder.max_length)  # readers cut one copy
    settings: dict[str, Any] = {"max_seq_length": longest, "do_lower_case": False}
    if "add_pooling_layer" in inspect.signature(type(transformer)).parameters:
        settings["model_args"] = {"add_pooling_layer": False}  # else a reader would add one with random weights
    _json(folder / "sentence_bert_config.json", settings)

    modules = [("Transformer", "")]

    def add(kind: str, config: dict[str, Any], tensors: dict[str, torch.Tensor] | None = None) -> None:
        place = folder / f"{len(modules)}_{kind}"
        place.mkdir()
        _json(place / f"{'cnn_' if kind == 'CNN' else ''}config.json", config)
        if tensors:
            plain = {name: tensor.detach().float().cpu().contiguous() for name, tensor in tensors.items()}
            save_file(plain, place / "model.safetensors")
        modules.append((kind, place.name))

    layers = pooling.layers(depth)
    if layers != (depth,):
        # The layers' average is linear, so that averaging before reducing over tokens is the same vector.
        weights = torch.zeros(depth + 1)
        for layer in layers:
            weights[layer] += 1.0
        shape = {"word_embedding_dimension": width, "num_hidden_layers": depth, "layer_start": 0}
        add("WeightedLayerPooling", shape, {"layer_weights": weights})
        written = json.loads((folder / "config.json").read_text("utf-8"))
        _json(folder / "config.json", {**written, "output_hidden_states": True})
    if encoder.token_module is not None:
        _token_module(encoder, add)
    if pooling.reads == "mask":  # the mean of one token is that token's state
        if encoder.token_module is not None:
            raise InputError(f'pooling "{pooling.name}" cannot be saved together with a module over tokens')
        _word_weights(encoder, add, {str(encoder.tokenizer.mask_token): 1}, others=0)
    if frame is not None:
        add("SecondCopy", {"pooling": pooling.name, **asdict(frame)})
    flags = {"cls": "pooling_mode_cls_token", "mean": "pooling_mode_mean_tokens", "max": "pooling_mode_max_tokens"}
    mode = "last" if pooling.reads == "last" else pooling.mode
    if mode == "last":
        flags["last"] = "pooling_mode_lasttoken"
    tokens = getattr(encoder.token_module, "out_features", width)
    add("Pooling", {"word_embedding_dimension": tokens, **{key: mode == m for m, key in flags.items()}})

    steps = [*encoder.head, *([encoder.affine] if encoder.affine is not None else [])]
    for position, step in enumerate(steps):
        if isinstance(step, nn.Linear):
            after = steps[position + 1] if position + 1 < len(steps) else nn.Identity()
            activation = nn.Identity() if isinstance(after, nn.Linear) or not _is_activation(after) else after
            config = {
                "in_features": step.in_features,
                "out_features": step.out_features,
                "bias": step.bias is not None,
                "activation_function": f"{type(activation).__module__}.{type(activation).__name__}",
            }
            add("Dense", config, {f"linear.{name}": tensor for name, tensor in step.state_dict().items()})
        elif not _is_activation(step):
            add("Normalize", {})

    _json(
        folder / "modules.json",
        [
            {"idx": i, "name": str(i), "path": path, "type": _TYPES.get(kind, f"sentence_transformers.models.{kind}")}
            for i, (kind, path) in enumerate(modules)
        ],
    )
    _json(
        folder / "config_sentence_transformers.json",
        {
            "__version__": {},
            "prompts": {},
            "default_prompt_name": None,
            "similarity_fn_name": "cosine",
            "harness": {"pooling": pooling.name, "first_layer": pooling.first_layer},
        },
    )
    (folder / "README.md").write_text(_card(encoder, card), "utf-8")


def _token_module(encoder: Network, add: Callable[..., None]) -> None:
    module = encoder.token_module
    if not isinstance(module, TokenConvolution):
        raise InputError(f"a token module of type {type(module).__name__} cannot be saved; use a TokenConvolution")
    # Ones times the mask, so that padding is zeros.
    _word_weights(encoder, add, {}, others=1)
    shape = {"in_word_embedding_dimension": module.inputs, "out_channels": module.filters}
    widths = {"kernel_sizes": list(module.widths), "stride_sizes": [1] * len(module.widths)}
    add("CNN", {**shape, **widths}, module.state_dict())


def _word_weights(encoder: Network, add: Callable[..., None], named: dict[str, float], *, others: float) -> None:
    """A weight for some words, and one for all others; readers take them from the configuration or from the tensor."""
    rows = int(encoder.transformer.config.vocab_size)
    words = [word or "" for word in encoder.tokenizer.convert_ids_to_tokens(list(range(rows)))]
    weights = torch.tensor([[named.get(word, others)] for word in words])
    config = {"vocab": words, "word_weights": named, "unknown_word_weight": others}
    add("WordWeights", config, {"emb_layer.weight": weights})


def _is_activation(step: nn.Module) -> bool:
    return type(step).__module__.startswith("torch.nn.modules.") and not isinstance(step, nn.Linear)


def _card(encoder: Network, card: str) -> str:
    parameters = sum(p.numel() for p in encoder.parameters())
    text = card.strip() or "# Sentence embeddings\n\nA sentence encoder saved by the harness."
    about = f"""
## Model

| | |
|---|---|
| architecture | {encoder.transformer.config.model_type} |
| parameters | {parameters:,} |
| pooling | {encoder.pooling.name} |
| dimension | {encoder.dimension} |
| longest input | {encoder.max_length} tokens |
"""
    return card_text(text, second_copy=encoder.echo_frame is not None, after=about)


def _json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", "utf-8")
