"""Reading a folder or hub repository in the SentenceTransformer layout: ours, or any of modules that we know."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import torch
from torch import nn

from harness.encoder.convolution import TokenConvolution
from harness.encoder.layout.loading import from_pretrained, no_model
from harness.encoder.layout.whole_method import names_us
from harness.encoder.network import Network
from harness.encoder.normalize import Normalize
from harness.encoder.pooling import Mode, Pooling
from harness.errors import InputError, UnsupportedModel

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

N = TypeVar("N", bound=Network)

_ACTIVATIONS: dict[str, type[nn.Module]] = {
    "Tanh": nn.Tanh,
    "Identity": nn.Identity,
    "ReLU": nn.ReLU,
    "GELU": nn.GELU,
    "Sigmoid": nn.Sigmoid,
}
_SBERT_CONFIGS = ("sentence_bert_config.json", "sentence_roberta_config.json", "sentence_distilbert_config.json")


def load(cls: type[N], name: str) -> N:
    """See `Encoder.load`."""
    from harness.sources import resolve_model

    resolved = resolve_model(name)
    modules = _read_json(name, resolved, "modules.json")
    if modules is None:
        return from_pretrained(cls, name, Pooling("mean"), None)
    if names_us(modules):
        raise InputError(f"{name}: a saved method that is more than one encoder; open it with `harness.load`")
    kinds = [(str(module["type"]).rpartition(".")[2], str(module.get("path", ""))) for module in modules]
    if not kinds or kinds[0][0] != "Transformer":
        raise UnsupportedModel(f"{name}: modules.json must begin with a Transformer, not {kinds[:1]}")
    extras = _read_json(name, resolved, "config_sentence_transformers.json") or {}
    if extras.get("default_prompt_name"):
        raise UnsupportedModel(
            f'{name}: puts the prompt "{extras["default_prompt_name"]}" before sentences; prompts are not supported'
        )
    root = kinds[0][1]
    settings: dict[str, Any] = {}
    for file in _SBERT_CONFIGS:
        settings = _read_json(name, resolved, _join(root, file)) or {}
        if settings:
            break

    mode: str | None = None
    weights: torch.Tensor | None = None
    weighed: torch.Tensor | None = None
    convolution: TokenConvolution | None = None
    copies: dict[str, Any] | None = None
    head: list[nn.Module] = []
    for kind, path in kinds[1:]:
        if kind == "Pooling" and mode is None:
            mode = _mode(name, _read_json(name, resolved, _join(path, "config.json")) or {})
        elif kind == "WeightedLayerPooling" and mode is None:
            weights = _weighted_layers(name, resolved, path)
        elif kind == "WordWeights" and mode is None and convolution is None:
            weighed = _word_weights(name, resolved, path)
        elif kind == "CNN" and mode is None and convolution is None:
            convolution = _convolution(name, resolved, path)
        elif kind == "SecondCopy" and mode is None:
            copies = _read_json(name, resolved, _join(path, "config.json")) or {}
        elif kind == "Dense" and mode is not None:
            head += _dense(name, resolved, path)
        elif kind == "Normalize" and mode is not None:
            head.append(Normalize())
        else:
            raise UnsupportedModel(
                f"{name}: modules.json holds {kind} where Transformer, WeightedLayerPooling, WordWeights, CNN, "
                "SecondCopy, Pooling, Dense, Normalize are understood, in that order"
            )
    if mode is None:
        raise UnsupportedModel(f"{name}: modules.json has no Pooling module")

    pooling = Pooling(mode) if weights is None else _layer_pooling(name, weights, cast(Mode, mode))
    # The transformer was cut when it was saved, and its pooler became a Dense module: neither is done again here.
    encoder = from_pretrained(cls, name, pooling, settings.get("max_seq_length"), saved=True, subfolder=root)
    encoder.pooling = _label(
        extras.get("harness") or copies, pooling, int(encoder.transformer.config.num_hidden_layers)
    )
    _check_word_weights(name, weighed, encoder)
    _check_echo(name, copies, encoder)
    encoder.token_module = convolution
    if settings.get("do_lower_case"):
        _lower_case(encoder.tokenizer)
    if len(head) and isinstance(head[-1], nn.Linear):
        encoder.affine = head.pop()  # type: ignore[assignment]
    encoder.head = nn.Sequential(*head)
    return encoder.eval()


def _lower_case(tokenizer: PreTrainedTokenizerBase) -> None:
    from tokenizers import normalizers

    backend = tokenizer.backend_tokenizer
    parts = [normalizers.Lowercase()] if backend.normalizer is None else [normalizers.Lowercase(), backend.normalizer]
    backend.normalizer = normalizers.Sequence(parts)


def _join(folder: str, file: str) -> str:
    return f"{folder}/{file}" if folder else file


def _file(name: str, resolved: str, file: str) -> Path | None:
    """The local path of a file of a folder or hub repository; None where it has no such file."""
    from huggingface_hub import hf_hub_download, try_to_load_from_cache
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    if ".." in Path(file).parts or Path(file).is_absolute():
        raise InputError(f'{name}: modules.json points outside its folder: "{file}"')
    if Path(resolved).is_dir():
        path = Path(resolved, file)
        return path if path.is_file() else None
    try:
        return Path(hf_hub_download(resolved, file))
    except LocalEntryNotFoundError as error:  # no connection: a model that was fetched before simply has no such file
        if isinstance(try_to_load_from_cache(resolved, "config.json"), str):
            return None
        raise no_model(name, error) from error
    except EntryNotFoundError:
        return None
    except Exception as error:  # no such model, no access, a name that the hub refuses
        raise no_model(name, error) from error


def _read_json(name: str, resolved: str, file: str) -> Any:
    path = _file(name, resolved, file)
    if path is None:
        return None
    try:
        return json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise InputError(f"{name}: {file} is not valid JSON: {error}") from error


def _tensors(name: str, resolved: str, folder: str) -> dict[str, torch.Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = _file(name, resolved, _join(folder, "model.safetensors"))
    if path is None:
        raise InputError(f"{name}: {folder} has no model.safetensors (pickled weights are not read)")
    try:
        return {key: tensor.float() for key, tensor in load_file(path).items()}
    except (SafetensorError, OSError) as error:
        raise InputError(f"{name}: {folder}/model.safetensors cannot be read: {error}") from error


def _mode(name: str, config: dict[str, Any]) -> str:
    modes = config.get("pooling_mode")
    if modes is None:
        old = {"cls_token": "cls", "mean_tokens": "mean", "max_tokens": "max", "lasttoken": "last"}
        modes = [
            old.get(key.removeprefix("pooling_mode_"), key)
            for key, on in config.items()
            if key.startswith("pooling_mode_") and on
        ] or "mean"
    if not isinstance(modes, str) and len(modes) == 1:
        modes = modes[0]
    modes = "last" if modes == "lasttoken" else modes
    if modes not in ("cls", "mean", "max", "last"):
        raise UnsupportedModel(f"{name}: pooling {modes!r} is not one of cls, mean, max, lasttoken")
    return str(modes)


def _label(saved: Any, pooling: Pooling, depth: int) -> Pooling:
    """The name under which the same rule was chosen ("layer:2:mean" of a model cut to 2 layers), where one is saved."""
    try:
        named = Pooling.parse(str(saved["pooling"]), int(saved.get("first_layer", 1)))
    except (TypeError, KeyError, ValueError, AttributeError, InputError):
        return pooling
    same = named.mode == pooling.mode and (named.reads == "last") == (pooling.reads == "last")
    same = same and set(named.layers(depth)) == set(pooling.layers(depth))
    return named if same else pooling


def _weighted_layers(name: str, resolved: str, folder: str) -> torch.Tensor:
    config = _read_json(name, resolved, _join(folder, "config.json")) or {}
    weights = _tensors(name, resolved, folder).get("layer_weights")
    if weights is None:
        raise InputError(f"{name}: {folder}/model.safetensors has no layer_weights")
    return torch.cat((torch.zeros(int(config.get("layer_start", 0))), weights))


def _layer_pooling(name: str, weights: torch.Tensor, mode: Mode) -> Pooling:
    """The rule that a WeightedLayerPooling amounts to."""
    depth = len(weights) - 1
    used = [int(layer) for layer in weights.nonzero().flatten()]
    if len(used) == 1:
        return Pooling(f"layer:{used[0]}:{mode}")
    if mode == "mean" and len(used) == 2 and bool(weights[used[0]] == weights[used[1]]):
        if used in ([0, depth], [1, depth]):
            return Pooling("first_last_avg", used[0])
        if used == [depth - 1, depth]:
            return Pooling("last2_avg")
    raise UnsupportedModel(f"{name}: a weighted mean of layers {used} is none of the poolings known here")


def _word_weights(name: str, resolved: str, folder: str) -> torch.Tensor:
    weights = _tensors(name, resolved, folder).get("emb_layer.weight")
    if weights is None:
        raise UnsupportedModel(f"{name}: {folder} weights no words, which is not supported")
    return weights


def _check_word_weights(name: str, weights: torch.Tensor | None, encoder: Network) -> None:
    """Accept the WordWeights that `saving` writes, and no others: ones say that padding counts as zeros, a single one
    at the mask token that a prompt's pooling reads it."""
    if encoder.pooling.reads == "mask":
        mask = encoder.tokenizer.mask_token_id
        if weights is not None and weights.flatten().nonzero().flatten().tolist() == [mask]:
            return
        raise UnsupportedModel(f"{name}: its pooling reads the mask token, its modules do not say so")
    if weights is not None and not bool((weights == 1).all()):
        raise UnsupportedModel(f"{name}: modules.json weights words, which is not supported")


def _check_echo(name: str, copies: dict[str, Any] | None, encoder: Network) -> None:
    """Hold the echo that the pooling names against the module that reads it; the length is then that of both copies."""
    frame = encoder.echo_frame
    if copies != (None if frame is None else {"pooling": encoder.pooling.name, **asdict(frame)}):
        raise UnsupportedModel(f"{name}: its pooling, its tokenizer and the module SecondCopy do not belong together")
    if frame is not None:
        encoder.max_length = 2 * encoder.max_length - frame.total


def _convolution(name: str, resolved: str, folder: str) -> TokenConvolution:
    config = _read_json(name, resolved, _join(folder, "cnn_config.json")) or {}
    inputs = config.get("in_word_embedding_dimension", config.get("in_embedding_dimension"))
    strides, widths = config.get("stride_sizes") or [], config.get("kernel_sizes") or []
    if any(stride != 1 for stride in strides) or any(width % 2 == 0 for width in widths):
        raise UnsupportedModel(f"{name}: {folder}/cnn_config.json has strides or even widths, which is not supported")
    tensors = _tensors(name, resolved, folder)
    try:
        module = TokenConvolution(int(str(inputs)), int(config["out_channels"]), widths)
        module.load_state_dict(tensors)
    except (RuntimeError, KeyError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{name}: {folder}/model.safetensors does not fit its cnn_config.json: {reason}") from error
    return module


def _dense(name: str, resolved: str, folder: str) -> list[nn.Module]:
    config = _read_json(name, resolved, _join(folder, "config.json")) or {}
    activation = str(config.get("activation_function", "Tanh")).rpartition(".")[2]
    inputs = {config.get("module_input_name"), config.get("module_output_name")} - {None, "sentence_embedding"}
    if activation not in _ACTIVATIONS or config.get("use_residual") or inputs:
        raise UnsupportedModel(
            f"{name}: {folder}/config.json describes a Dense module that is not understood: {config}"
        )
    tensors = _tensors(name, resolved, folder)
    try:
        linear = nn.Linear(int(config["in_features"]), int(config["out_features"]), bias=bool(config.get("bias", True)))
        linear.load_state_dict({key.removeprefix("linear."): tensor for key, tensor in tensors.items()})
    except (RuntimeError, KeyError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{name}: {folder}/model.safetensors does not fit its config.json: {reason}") from error
    return [linear] if activation == "Identity" else [linear, _ACTIVATIONS[activation]()]
