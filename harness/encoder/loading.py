"""Making an `Encoder` from a base model or from a folder in the SentenceTransformer layout."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import nn
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from harness.encoder.pooling import Mode, Pooling
from harness.encoder.quiet import quiet_transformers
from harness.errors import InputError

if TYPE_CHECKING:
    from harness.encoder.model import Encoder

E = TypeVar("E", bound="Encoder")

_LONGEST = 512
# Families whose last hidden state is the last layer's output as it is; others put a normalisation behind it, so that
# a model cut after layer K would not give H_K.
_NO_FINAL_NORM = frozenset(
    {"albert", "bert", "camembert", "distilbert", "electra", "mpnet", "roberta", "xlm-roberta"}
)
_ACTIVATIONS: dict[str, type[nn.Module]] = {
    "Tanh": nn.Tanh, "Identity": nn.Identity, "ReLU": nn.ReLU, "GELU": nn.GELU, "Sigmoid": nn.Sigmoid
}  # fmt: skip
_SBERT_CONFIGS = ("sentence_bert_config.json", "sentence_roberta_config.json", "sentence_distilbert_config.json")


def from_pretrained(cls: type[E], name: str, pooling: Pooling, max_length: int | None, subfolder: str = "") -> E:
    """See `Encoder.from_pretrained`; `subfolder` is where in the repository the transformer lies."""
    from harness.encoder.model import Encoder  # noqa: F401  (the import order: model imports this module lazily)

    resolved = _resolve(name)
    with quiet_transformers():
        transformer, head = _transformer(name, resolved, pooling, subfolder)
        tokenizer = _tokenizer(name, resolved, subfolder)
    return cls(
        transformer,
        tokenizer,
        pooling=pooling,
        max_length=_max_length(name, transformer, tokenizer, max_length),
        head=head,
    )


def load(cls: type[E], name: str) -> E:
    """See `Encoder.load`."""
    resolved = _resolve(name)
    modules = _read_json(name, resolved, "modules.json")
    if modules is None:
        return from_pretrained(cls, name, Pooling("mean"), None)
    kinds = [(str(module["type"]).rpartition(".")[2], str(module.get("path", ""))) for module in modules]
    if not kinds or kinds[0][0] != "Transformer":
        raise InputError(f'{name}: modules.json must begin with a Transformer, not {kinds[0][0] if kinds else "nothing"}')
    extras = _read_json(name, resolved, "config_sentence_transformers.json") or {}
    if extras.get("default_prompt_name"):
        raise InputError(
            f'{name}: puts the prompt "{extras["default_prompt_name"]}" before every sentence, which is not supported here'
        )
    root = kinds[0][1]
    settings: dict[str, Any] = {}
    for file in _SBERT_CONFIGS:
        settings = _read_json(name, resolved, _join(root, file)) or {}
        if settings:
            break

    mode: Mode | None = None
    weights: torch.Tensor | None = None
    head: list[nn.Module] = []
    for kind, path in kinds[1:]:
        if kind == "Pooling" and mode is None:
            mode = _mode(name, _read_json(name, resolved, _join(path, "config.json")) or {})
        elif kind == "WeightedLayerPooling" and mode is None:
            weights = _weighted_layers(name, resolved, path)
        elif kind == "Dense" and mode is not None:
            head += _dense(name, resolved, path)
        elif kind == "Normalize" and mode is not None:
            from harness.encoder.model import Normalize

            head.append(Normalize())
        else:
            raise InputError(
                f"{name}: modules.json holds {kind} where Transformer, WeightedLayerPooling, Pooling, Dense, Normalize "
                "are understood, in that order"
            )
    if mode is None:
        raise InputError(f"{name}: modules.json has no Pooling module")

    pooling = Pooling(mode)
    if weights is not None:
        pooling = _layer_pooling(name, weights, mode)
    saved = extras.get("harness")
    if isinstance(saved, dict):  # what the layout itself cannot say: the name under which the same rule was chosen
        pooling = Pooling.parse(str(saved.get("pooling", pooling.name)), int(saved.get("first_layer", 1)))
    # The saved transformer is already cut and its pooler already is a Dense module, so it is loaded plain.
    encoder = from_pretrained(cls, name, Pooling(mode) if weights is None else pooling, settings.get("max_seq_length"), root)
    if weights is None:
        encoder.pooling = pooling
    if settings.get("do_lower_case"):
        _lower_case(encoder.tokenizer)
    if len(head) and isinstance(head[-1], nn.Linear):
        encoder.affine = head.pop()  # type: ignore[assignment]
    encoder.head = nn.Sequential(*head)
    return encoder.eval()


def _resolve(name: str) -> str:
    from harness.sources import resolve_model

    resolved = resolve_model(name)
    is_path = resolved.startswith(("/", "./", "../", "~")) or resolved.count("/") > 1
    if Path(resolved).is_file() or (is_path and not Path(resolved).is_dir()):
        raise InputError(f'model "{name}": no such folder; give a folder, a hub id "org/name" or "embedded:NAME"')
    return resolved


def _no_model(name: str, error: Exception) -> InputError:
    reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return InputError(f'model "{name}" cannot be loaded (not a folder, not on the hub, or damaged): {reason:.300}')


def _transformer(
    name: str, resolved: str, pooling: Pooling, subfolder: str
) -> tuple[PreTrainedModel, nn.Sequential | None]:
    try:
        config = AutoConfig.from_pretrained(resolved, subfolder=subfolder)
    except (OSError, ValueError, KeyError) as error:
        raise _no_model(name, error) from error
    if getattr(config, "is_encoder_decoder", False) or not hasattr(config, "num_hidden_layers"):
        raise InputError(f'model "{name}" of type "{config.model_type}" is not a text encoder such as BERT or RoBERTa')
    depth = int(config.num_hidden_layers)
    _cut(name, config, pooling, depth)
    config.output_hidden_states = False  # a saved first-last average has it on; we ask for them call by call
    options: dict[str, Any] = {"config": config, "subfolder": subfolder, "dtype": torch.float32}
    wants_pooler = pooling.name == "cls_pooler"
    # Parameters that no vector depends on would be counted, clipped and saved for nothing.
    model_class = AutoModel._model_mapping[type(config)] if type(config) in AutoModel._model_mapping else None
    if model_class is not None and "add_pooling_layer" in inspect.signature(model_class.__init__).parameters:
        options["add_pooling_layer"] = wants_pooler
    try:
        transformer, report = AutoModel.from_pretrained(resolved, output_loading_info=True, **options)
    except Exception as error:  # safetensors and the hub client raise classes of their own
        raise _no_model(name, error) from error
    missing = sorted(key for key in report["missing_keys"] if "pooler" not in key)
    if missing:
        raise InputError(f'model "{name}": its file lacks {len(missing)} weights, first "{missing[0]}"')
    head = None
    if wants_pooler:
        linear = _pooler(transformer)
        if linear is None or any("pooler" in key for key in report["missing_keys"]):
            raise InputError(f'model "{name}" has no pooler of its own, so pooling "cls_pooler" is not possible; use "cls"')
        head = nn.Sequential(linear, nn.Tanh())
    if hasattr(transformer, "pooler"):
        transformer.pooler = None
    return transformer, head


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
    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(resolved, subfolder=subfolder)
    except Exception as error:
        raise _no_model(name, error) from error
    return tokenizer


def _max_length(
    name: str, transformer: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, wanted: int | None
) -> int:
    positions = getattr(transformer.config, "max_position_embeddings", None)
    limit = int(positions) if positions and positions > 0 else 10**9
    for part, module in transformer.named_modules():
        # RoBERTa and its kin number positions from padding_idx + 1, so that many are never used.
        if part.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            limit -= int(module.padding_idx) + 1  # type: ignore[arg-type]
    if wanted is None:
        return min(int(tokenizer.model_max_length), limit, _LONGEST)
    if not 3 <= wanted <= limit:
        raise InputError(f'max_length must be from 3 to {limit}, the positions of model "{name}", not {wanted}')
    return wanted


def _lower_case(tokenizer: PreTrainedTokenizerBase) -> None:
    from tokenizers import normalizers

    backend = tokenizer.backend_tokenizer
    parts = [normalizers.Lowercase()] if backend.normalizer is None else [normalizers.Lowercase(), backend.normalizer]
    backend.normalizer = normalizers.Sequence(parts)


def _join(folder: str, file: str) -> str:
    return f"{folder}/{file}" if folder else file


def _file(name: str, resolved: str, file: str) -> Path | None:
    """The local path of a file of a folder or hub repository; None where it has no such file."""
    from transformers.utils import cached_file

    if ".." in Path(file).parts or Path(file).is_absolute():
        raise InputError(f'{name}: modules.json points outside its folder: "{file}"')
    try:
        found = cached_file(
            resolved,
            file,
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_gated_repo=True,
        )
    except (OSError, ValueError) as error:
        raise _no_model(name, error) from error
    return Path(found) if found else None


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


def _mode(name: str, config: dict[str, Any]) -> Mode:
    modes = config.get("pooling_mode")
    if modes is None:
        old = {"cls_token": "cls", "mean_tokens": "mean", "max_tokens": "max"}
        modes = [
            old.get(key.removeprefix("pooling_mode_"), key)
            for key, on in config.items()
            if key.startswith("pooling_mode_") and on
        ] or "mean"
    if not isinstance(modes, str) and len(modes) == 1:
        modes = modes[0]
    if modes not in ("cls", "mean", "max"):
        raise InputError(f"{name}: pooling {modes!r} is not one of cls, mean, max")
    mode: Mode = modes
    return mode


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
    raise InputError(f"{name}: a weighted mean of layers {used} is none of the poolings known here")


def _dense(name: str, resolved: str, folder: str) -> list[nn.Module]:
    config = _read_json(name, resolved, _join(folder, "config.json")) or {}
    activation = str(config.get("activation_function", "Tanh")).rpartition(".")[2]
    inputs = {config.get("module_input_name"), config.get("module_output_name")} - {None, "sentence_embedding"}
    if activation not in _ACTIVATIONS or config.get("use_residual") or inputs:
        raise InputError(f"{name}: {folder}/config.json describes a Dense module that is not understood: {config}")
    linear = nn.Linear(int(config["in_features"]), int(config["out_features"]), bias=bool(config.get("bias", True)))
    tensors = _tensors(name, resolved, folder)
    try:
        linear.load_state_dict({key.removeprefix("linear."): tensor for key, tensor in tensors.items()})
    except RuntimeError as error:
        raise InputError(f"{name}: {folder}/model.safetensors does not fit its config.json: {error}") from error
    return [linear] if activation == "Identity" else [linear, _ACTIVATIONS[activation]()]
