"""Any model, opened for its evaluation: a saved method, our encoder, or one that sentence-transformers runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import registry
from harness.encoder import Encoder
from harness.encoder.foreign import ForeignEncoder, open_model
from harness.encoder.layout.whole_method import is_whole_method
from harness.errors import HarnessError, InputError
from harness.evaluation.vector_cache import EmbeddingCache, StoredVectors, folder_hash
from harness.identity.code import code_ids
from harness.identity.models import model_fingerprint
from harness.machine.environment import device_name
from harness.method import METHOD_FILE, Method, saved_settings
from harness.sources import resolve_model
from harness.sources.remote.cache_folder import cache_root


@dataclass(frozen=True)
class OpenedModel:
    """A model ready to encode."""

    model: Any  # with the `encode` of a method
    pooling: str  # how its vectors are pooled
    remark: str = ""  # what a reader should know of how it is run


def saved_method(folder: str | Path) -> Method:
    """The method that `Method.save` wrote to `folder`, fitted.

    Raises:
        InputError: the method is not installed, or the folder is damaged.
    """
    kind: type[Method] = registry.load(registry.METHODS, saved_settings(folder)["method"])
    try:
        return kind.load(folder)
    except HarnessError:
        raise
    except Exception as error:  # each library has classes of its own for a file that is missing or damaged
        said = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise InputError(f"{folder}: a damaged saved method ({said:.200}); save it again") from error


def open_for_evaluation(name: str, pooling: str | None = None, max_length: int | None = None) -> OpenedModel:
    """The model behind a hub id, a folder or embedded:NAME.

    A folder that only its method can read (word vectors, a flow, several encoders) is loaded by that method; a model
    that our encoder does not know is run by sentence-transformers.

    Raises:
        InputError: no such model, a damaged one, or a length that cannot be set.
    """
    if pooling:
        return OpenedModel(Encoder.from_pretrained(name, pooling=pooling, max_length=max_length), pooling)
    folder = Path(resolve_model(name))
    if (folder / METHOD_FILE).is_file() and is_whole_method(folder):
        if max_length:
            raise InputError(f"--max-length: {name} is a saved method with a length of its own; leave it out")
        method = saved_method(folder)
        return OpenedModel(method, str(method.config.pooling))
    model = open_model(name)
    if isinstance(model, ForeignEncoder):
        if max_length:
            model.limit_length(max_length)
        return OpenedModel(model, model.modules, f"run by sentence-transformers ({model.modules}): {model.why}")
    if max_length:
        model.max_length = min(max_length, model.max_length)
    return OpenedModel(model, model.pooling.name)


def stored_vectors(name: str, opened: OpenedModel, max_length: int | None, device: str) -> StoredVectors | None:
    """The vectors of a model that earlier evaluations kept; None for one whose content cannot be told."""
    folder = Path(resolve_model(name))
    try:
        content = folder_hash(folder) if folder.is_dir() else model_fingerprint(name)
    except InputError:  # no transformer: word vectors on the hub have no fingerprint
        return None
    if content == "None":  # a hub without commits
        return None
    cache = EmbeddingCache(cache_root() / "embeddings")
    code = code_ids(type(opened.model))[0]
    return cache.of(content, opened.pooling, code=code, device=device_name(device), max_length=max_length)
