"""Adapters of PEFT (LoRA and others) in the folder of a model: merged into the weights that they
adapt.

transformers applies an adapter where peft is installed, and else gives the base model without a
word. Here a folder with one is refused without peft. A merged model is trained and saved as any
other.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import nn

from harness.errors import InputError
from harness.files.reading import read_json

if TYPE_CHECKING:
    from transformers import PreTrainedModel

ADAPTER = "adapter_config.json"
_BASE = "base_model_name_or_path"


def has_adapter(folder: Path) -> bool:
    """True if a folder of a transformer has an adapter."""
    return (folder / ADAPTER).is_file()


def require_peft(name: str, folder: Path) -> None:
    """Refuse an adapter that nothing here can apply.

    Raises:
        InputError: peft is not installed.
    """
    if has_adapter(folder) and find_spec("peft") is None:
        raise InputError(
            f'model "{name}" has an adapter, which only peft can apply',
            file=folder / ADAPTER,
            remedy='pip install "sentence-harness[lora]", or merge the adapter and save the model',
        )


def read_base_name(folder: Path) -> str | None:
    """Return the model that the adapter in a folder names, where the folder has no weights of its
    own; None for every other folder.

    Raises:
        InputError: the adapter names none.
    """
    if not has_adapter(folder) or (folder / "config.json").is_file():
        return None
    base = read_json(folder / ADAPTER).get(_BASE)
    if not isinstance(base, str) or not base.strip():
        message = (
            "expected the name or folder of the base model, for the adapter has none beside it"
        )
        raise InputError(message, file=folder / ADAPTER, key=_BASE)
    return base


@contextmanager
def without_adapter(folder: Path) -> Iterator[Path]:
    """A folder with the same files but for the adapter, which transformers would else apply."""
    if not has_adapter(folder):
        yield folder
        return
    with tempfile.TemporaryDirectory() as room:
        for file in folder.iterdir():
            if file.is_file() and not file.name.startswith("adapter_"):
                (Path(room) / file.name).symlink_to(file.resolve())
        yield Path(room)


def merge_adapter(name: str, folder: Path, transformer: PreTrainedModel) -> None:
    """Apply the adapter in a folder to a transformer, and add it to the weights.

    Raises:
        InputError: it does not fit the model, or cannot be merged.
    """
    from peft.tuners.tuners_utils import BaseTunerLayer
    from peft.utils.other import ModulesToSaveWrapper

    place = folder / ADAPTER
    if read_json(place).get("use_dora"):
        _merge_dora(name, folder, transformer)
        return
    # How names of weights are written: loading an adapter replaces it by peft's names.
    conversions = getattr(transformer, "_weight_conversions", None)
    try:
        report: Any = transformer.load_adapter(str(folder))
    except Exception as error:  # peft and transformers raise classes of their own
        raise InputError(
            f'the adapter does not fit model "{name}": {_first_words(error)}', file=place
        ) from error
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if keys := sorted(map(str, getattr(report, kind, ()))):
            word = kind.removesuffix("_keys")
            message = f'the adapter does not fit model "{name}": {word} weight {keys[0]}'
            raise InputError(message, file=place)
    adapted = 0
    for path, module in list(transformer.named_modules()):
        if isinstance(module, BaseTunerLayer):
            plain = _merge_layer(name, place, module)
        elif isinstance(module, ModulesToSaveWrapper):
            plain = module.modules_to_save[module.active_adapters[0]]
        else:
            continue
        parent, _, leaf = path.rpartition(".")
        setattr(transformer.get_submodule(parent), leaf, plain)
        adapted += 1
    if not adapted:
        peft_type = read_json(place).get("peft_type")
        raise InputError(
            f"an adapter of type {peft_type} cannot be merged", file=place, key="peft_type"
        )
    transformer._hf_peft_config_loaded = False  # else the adapter alone would be saved
    del transformer.peft_config
    transformer._weight_conversions = conversions
    transformer.float().requires_grad_(True)


def _merge_dora(name: str, folder: Path, transformer: PreTrainedModel) -> None:
    """Merge an adapter with magnitudes of rows, which transformers leaves out, by peft itself.

    Raises:
        InputError: its weights are not those of the model.
    """
    from peft import PeftModel, get_peft_model_state_dict
    from safetensors import safe_open

    with safe_open(folder / "adapter_model.safetensors", "pt") as file:
        stored = set(file.keys())
    model = PeftModel.from_pretrained(transformer, str(folder))
    if differ := sorted(stored ^ set(get_peft_model_state_dict(model))):
        message = f'the adapter does not fit model "{name}": weight {differ[0]}'
        raise InputError(message, file=folder / ADAPTER)
    model.merge_and_unload(safe_merge=True)
    transformer.float().requires_grad_(True)


def _merge_layer(name: str, place: Path, layer: Any) -> nn.Module:
    try:
        layer.merge(safe_merge=True)
        plain: nn.Module = layer.get_base_layer()
    except Exception as error:  # a kind of layer that has no merged form
        raise InputError(
            f'the adapter of model "{name}" cannot be merged: {_first_words(error)}', file=place
        ) from error
    return plain


def _first_words(error: Exception) -> str:
    words = " ".join(str(error).split()) or type(error).__name__
    return words[:200]
