"""Any model, opened for its evaluation: a saved method, our encoder, or one that
sentence-transformers runs; and what decides the cost of a sentence.
"""

from __future__ import annotations

import copy
import inspect
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

from harness import registry
from harness.encoder import Encoder
from harness.encoder.adapters import ADAPTER
from harness.encoder.foreign import (
    ForeignEncoder,
    open_model,
    own_prompts,
    pick_prompts,
    run_by_sentence_transformers,
)
from harness.encoder.layout import is_whole_method
from harness.encoder.loading import read_max_length, transformer_folder
from harness.encoder.precision import dtype_of
from harness.errors import HarnessError, InputError, NotFitted
from harness.evaluation.outside_models import OutsideModel
from harness.evaluation.outside_models import choose_prompts as choose_outside_prompts
from harness.evaluation.vector_cache import EmbeddingCache, StoredVectors, folder_hash
from harness.files.hashing import content_id
from harness.files.model_names import UNKNOWN
from harness.files.printable import first_line
from harness.machine.environment import device_name
from harness.method import Method
from harness.results.spec import NUMERICS, method_version
from harness.saved_method import METHOD_FILE, check_weights, read_saved_settings
from harness.sources import resolve_model
from harness.sources.embedded import model_fingerprint
from harness.sources.remote.cache_folder import cache_root
from harness.tasks.prompts import Prompts

_FOREIGN = {"fp32": "float32"}  # its name in the keys of vectors that are stored

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OpenedModel:
    """A model ready to encode.

    Attributes:
        model: with the `encode` of a method.
        how: its vectors are pooled.
        remark: what a reader should know of how it is run.
        backend: that runs it, where that is not torch.
    """

    model: Any
    how: str
    remark: str = ""
    backend: str = ""

    @property
    def pooling(self) -> str:
        """How its vectors are made, with the default prompt that is before every text now: other
        prompts take it away.
        """
        parts = [self.how]
        if isinstance(self.model, ForeignEncoder) and self.model.default_prompt:
            parts.append(f'prompt "{self.model.default_prompt}"')
        if self.backend:
            parts.append(self.backend)
        return ", ".join(parts)


def saved_method(folder: str | Path) -> Method:
    """The method that `Method.save` wrote to `folder`, fitted.

    Raises:
        InputError: the method is not installed, or the folder is damaged.
    """
    settings = read_saved_settings(folder)
    kind: type[Method] = registry.load(registry.METHODS, settings["method"])
    try:
        return kind.load(folder)
    except HarnessError:
        raise
    except (
        Exception
    ) as error:  # each library has classes of its own for a file that is missing or damaged
        raise InputError(
            f"a damaged saved method ({first_line(error):.200})",
            file=folder,
            remedy="save it again",
        ) from error


def open_for_evaluation(
    name: str,
    pooling: str | None = None,
    max_length: int | None = None,
    backend: str = "torch",
) -> OpenedModel:
    """The model behind a hub id, a folder or embedded:NAME.

    A folder that only its method can read (word vectors, a flow, several encoders) is loaded by
    that method; a model that our encoder does not know is run by sentence-transformers.

    Raises:
        InputError: no such model, a damaged one, a length that cannot be set, or a backend that is
            not installed.
    """
    if backend != "torch":
        if pooling:
            raise InputError(f"{backend} pools as the model says", key="pooling")
        foreign = run_by_sentence_transformers(name, f"backend {backend}", backend=backend)
        if max_length:
            foreign.set_length(max_length)
        return OpenedModel(foreign, foreign.module_names, f"run by {backend}", backend)
    if pooling:
        return OpenedModel(
            Encoder.from_pretrained(name, pooling=pooling, max_length=max_length), pooling
        )
    folder = Path(resolve_model(name))
    if (folder / METHOD_FILE).is_file() and is_whole_method(folder):
        if max_length:
            raise InputError(
                f"--max-length: {name} is a saved method with a length of its own",
                key="--max-length",
                remedy="leave it out",
            )
        method = saved_method(folder)
        return OpenedModel(method, str(method.config.pooling))
    if (folder / METHOD_FILE).is_file():
        check_weights(folder)
    model = open_model(name)
    if isinstance(model, ForeignEncoder):
        if max_length:
            model.set_length(max_length)
        remark = f"run by sentence-transformers ({model.modules}): {model.why}"
        return OpenedModel(model, model.module_names, remark)
    if max_length:
        model.set_length(max_length)
    return OpenedModel(model, model.pooling.name, model.why)


def open_any(
    model: Any,
    pooling: str | None = None,
    max_length: int | None = None,
    backend: str = "torch",
    dtype: str = "fp32",
    *,
    copied: bool = False,
) -> OpenedModel:
    """A model by name or folder, or one that is in memory, which computes in `dtype`; with `copied`
    a copy of it, whose settings can be changed.

    Raises:
        InputError: as `open_for_evaluation`, or a dtype that the model cannot compute in.
    """
    named = isinstance(model, str | Path)
    if backend != "torch" and not named:
        raise InputError("goes with the name or folder of a model", key="backend")
    if named:
        opened = open_for_evaluation(str(model), pooling, max_length, backend)
    else:
        opened = in_hand(model, pooling, max_length)
    weights = hasattr(opened.model, "set_dtype")
    if not named and weights and (copied or dtype != "fp32"):  # the caller's own is not changed
        opened = replace(opened, model=copy.deepcopy(opened.model))
    if dtype == "fp32":
        return opened
    if backend != "torch" or not weights:
        message = f"the weights of this model are not loaded here, so {dtype} cannot be set"
        raise InputError(message, key="dtype", remedy="leave it out")
    opened.model.set_dtype(dtype)
    return opened


def choose_prompts(
    model: Any, opened: OpenedModel, asked: Mapping[str, str] | Literal["own"] | None
) -> tuple[Prompts | None, str]:
    """The prompts to evaluate with, and what a reader should know where a model has some that are
    not used.

    Args:
        model: its name or folder, or an opened model.

    Raises:
        InputError: the model has none of its own, or leaves prompts out of its pooling.
    """
    if isinstance(model, OutsideModel):
        return choose_outside_prompts(model, asked), ""
    if asked is None and isinstance(model, Method):
        return model.prompts, ""
    named = isinstance(model, str | Path)
    if named:
        own = own_prompts(str(model))
    else:
        given = getattr(model, "prompts", None)
        own = (
            {key: text for key, text in given.items() if text} if isinstance(given, Mapping) else {}
        )
    name = str(model) if named else "the model"
    texts, unused = pick_prompts(name, opened.model, own, asked)
    keys = ", ".join(f'"{key}"' for key in unused)
    said = (
        f'the model has prompts of its own ({keys}), which are not used; prompts "own" takes them'
        if unused
        else ""
    )
    return Prompts(texts) if texts is not None else None, said


def public_name(name: str, given: str | None, revision: str | None) -> tuple[str, str]:
    """Name (ORG/NAME) and revision under which the results of a model are published.

    Raises:
        InputError: a folder or embedded model for which no name is given, one that is not ORG/NAME,
            or a revision that cannot be the name of a folder.
    """
    folder = Path(resolve_model(name))
    public = given or name
    is_hub_name = re.fullmatch(r"[\w.-]+/[\w.-]+", public) is not None
    is_folder = given is None and folder.is_dir()
    if not is_hub_name or is_folder:
        raise InputError(
            f'--model-name: expected ORG/NAME, as on the hub, not "{public}"', key="--model-name"
        )
    if revision and not re.fullmatch(r"\w[\w.-]*", revision):  # it names a folder of the results
        raise InputError(
            f'--revision: expected the name of a commit, branch or tag, not "{revision}"',
            key="--revision",
        )
    return public, revision or (
        folder_hash(folder)[:40] if folder.is_dir() else model_fingerprint(name)
    )


def in_hand(model: Any, pooling: str | None = None, max_length: int | None = None) -> OpenedModel:
    """A fitted method, a SentenceTransformer, or a function of texts; it pools as it does.

    Raises:
        InputError: none of these, or a pooling or length that cannot be set.
    """
    if pooling or max_length:
        raise InputError(
            "cannot be set for a model that pools and cuts texts itself",
            key="pooling" if pooling else "max_length",
            remedy="leave it out, or give the name or folder of a model",
        )
    if isinstance(model, Method):
        return OpenedModel(model, str(model.config.pooling))
    parents = type(model).__mro__
    kinds = {f"{kind.__module__}.{kind.__name__}" for kind in parents}
    if any(
        name.startswith("sentence_transformers.") and name.endswith(".SentenceTransformer")
        for name in kinds
    ):
        foreign = ForeignEncoder(model, "it was given as an object")
        return OpenedModel(foreign, foreign.module_names)
    if isinstance(model, OutsideModel):
        return OpenedModel(model, UNKNOWN)
    if callable(getattr(model, "encode", None)):
        takes_all = _keywords_of(model.encode) is None
        return OpenedModel(model if takes_all else _with_encode(model.encode), UNKNOWN)
    if callable(model):
        return OpenedModel(_with_encode(model), UNKNOWN)
    raise InputError(
        f"model: expected a name, a folder or what makes vectors of texts, not {type(model).__name__}",
        key="model",
    )


def _with_encode(function: Callable[..., Any]) -> SimpleNamespace:
    """Return an object whose `encode` gives a function those options only that it takes."""
    taken = _keywords_of(function)

    def encode(texts: Sequence[str], **options: Any) -> Any:
        known = options
        if taken is not None:
            known = {key: options[key] for key in options if key in taken}
        return function(texts, **known)

    return SimpleNamespace(encode=encode)


def _keywords_of(function: Callable[..., Any]) -> set[str] | None:
    """Return the names of the keywords that a function takes; None where it takes any."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # of compiled code
        return set()
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return None
    return {one.name for one in parameters[1:]}


def stored_vectors(
    name: str,
    opened: OpenedModel,
    max_length: int | None,
    device: str,
    *,
    prompted: bool = False,
) -> StoredVectors | None:
    """The vectors that earlier evaluations of a model stored; None for a model without a known
    content.

    `prompted`: prompts are in the texts themselves, and not before each as the model's own default.
    """
    folder = Path(resolve_model(name))
    try:
        if folder.is_dir():
            content = folder_hash(folder)
        else:
            content = model_fingerprint(name)
    except InputError:  # no transformer: word vectors on the hub have no fingerprint
        return None
    if content == "None":  # a hub without commits
        return None
    try:
        cache = EmbeddingCache(cache_root() / "embeddings")
    except InputError as error:
        log.warning("vectors are not cached: %s", error)
        return None
    code = f"{NUMERICS}.{method_version(type(opened.model))}"
    apart: dict[str, Any] = {}
    if isinstance(opened.model, ForeignEncoder):
        apart = {"prompt": "in the text"} if prompted else {}
        apart["dtype"] = _FOREIGN.get(opened.model.dtype, opened.model.dtype)
    elif dtype_of(opened.model) != "fp32":
        apart = {"dtype": dtype_of(opened.model)}
    if max_length is not None:  # version 0.1 cut at the model's own length where that was less
        apart["length"] = "as set"
    if left_out := getattr(opened.model, "left_out", ()):
        apart["left_out"] = sorted(left_out)
    if folder.is_dir() and any(folder.rglob(ADAPTER)):
        apart["adapter"] = [version("peft"), model_fingerprint(name)]
    if isinstance(opened.model, Encoder) and max_length is None:
        if folder.is_dir():
            stated = read_max_length(transformer_folder(name, folder))
        else:
            stated = None
        apart |= {"length": opened.model.max_length} if stated else {}
    return cache.of(
        content,
        opened.pooling,
        code=code,
        device=device_name(device),
        max_length=max_length,
        **apart,
    )


# Options of transformers that change the work and no shape.
_WORK = (
    "model_type",
    "num_attention_heads",
    "num_hidden_layers",
    "hidden_act",
    "attention_window",
    "sliding_window",
)
_SAME_WORK = {"cls": "mean"}  # one vector of the last layer, whichever way


def architecture(method: Method) -> str:
    """A short hash of a fitted method's build: its transformer, pooling, what comes after, and its
    longest text.

    Encoders without a transformer of ours (word vectors, a flow, recurrent layers, several joined)
    have one of their
    own: method, config and base model.
    """
    own = {
        "method": method.name,
        "config": method.config.model_dump(mode="json"),
        "base": method.base_model,
    }
    try:
        encoder = method.encoder
    except NotFitted:
        encoder = None
    if not isinstance(encoder, Encoder) or not hasattr(encoder, "transformer"):
        return content_id(own)
    if type(method).encode is Method.encode:
        own = {}
    config = encoder.transformer.config
    pooling = encoder.pooling.name
    return content_id(
        {
            **own,
            "shapes": [[name, list(tensor.shape)] for name, tensor in encoder.state_dict().items()],
            "work": {key: getattr(config, key, None) for key in _WORK},
            "pooling": [_SAME_WORK.get(pooling, pooling), encoder.pooling.first_layer],
            "max_length": encoder.max_length,
        }
    )
