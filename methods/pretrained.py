"""Any model that exists: a hub id or folder as a row of its own, pooled as its own configuration
says.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeVar

from pydantic import AfterValidator, field_validator, model_validator

from harness.config import option
from harness.errors import InputError, NotFitted
from harness.evaluation.named_models import open_outside
from harness.evaluation.outside_models import OutsideModel, choose_prompts
from harness.files.atomic import write_atomic
from harness.files.model_names import is_file, kind_of_model
from harness.files.reading import read_json
from harness.method import (
    DEFAULT_BASE_MODEL,
    POOLING_HELP,
    FitContext,
    FitReport,
    Method,
    MethodConfig,
    Supervision,
    load_unfitted,
)
from harness.recipes import RecipeFile
from harness.sources.embedded import model_fingerprint
from harness.sources.remote.hub import hub_reachable
from harness.tasks.prompts import Prompts

if TYPE_CHECKING:
    import numpy as np
    import torch

    from harness.encoder import Encoder
    from harness.encoder.foreign import ForeignEncoder
    from harness.sources import Corpus, TrainingText

OWN: Final = "own"


def _check_pooling(value: str) -> str:
    if value == OWN:
        return value
    return MethodConfig._check_pooling(value)


OwnPooling = Annotated[str, AfterValidator(_check_pooling)]
"""Pooling of another model, in a config: "own", as its configuration says, or one of ours."""


_OF_WEIGHTS = (
    ("pooling", OWN),
    ("max_length", None),
    ("backend", "torch"),
    ("dtype", "fp32"),
)  # keys of models whose weights are loaded here, and their defaults


class PretrainedConfig(MethodConfig):
    """Model, its prompts, and its supervision."""

    pooling: str = option(
        OWN, f"own: what the model's configuration says, else mean; or {POOLING_HELP}"
    )
    model: str = option(
        DEFAULT_BASE_MODEL,
        "hub id, folder, embedded:NAME, a file of vectors (.parquet, .npz), module:function, "
        "http(s)://HOST/v1#NAME or mteb:NAME, whatever the comparison's base models",
    )
    model_by_seed: list[str] = option(
        [], "models that were trained elsewhere: seed 1 is the first, seed 2 the second", later=True
    )
    version: str = option(
        "", "of a model whose content cannot be hashed, as that of an endpoint", later=True
    )
    trust_remote_code: bool = option(
        False, "a model of mteb may run the code of its repository", later=True
    )
    backend: Literal["torch", "onnx", "openvino"] = option(
        "torch", "what sentence-transformers runs the model with", later=True
    )
    prompts: dict[str, str] | list[dict[str, str]] | Literal["own"] | None = option(
        None,
        'texts before those of tasks, by kind of task as in mteb ({STS = "query: "}), or own: those of the model\'s '
        "configuration; a list: seed 1 uses the first, seed 2 the second, ... (the row has their mean and spread); "
        "empty: the default prompt of the model, if it names one",
    )
    supervision: Supervision = option(
        "supervised", "what its authors trained it with; labels, more often than not"
    )

    @field_validator("pooling")
    @classmethod
    def _check_pooling(cls, value: str) -> str:
        return _check_pooling(value)

    @field_validator("prompts")
    @classmethod
    def _has_prompts(cls, value: Any) -> Any:
        empty = value in ({}, [])
        if empty or (isinstance(value, list) and {} in value):
            raise ValueError('needs at least one, as {STS = "query: "}')
        if isinstance(value, list):
            for place, one in enumerate(value):
                if one in value[:place]:
                    raise ValueError("expected different prompts for each seed")
        return value

    @field_validator("model_by_seed")
    @classmethod
    def _models_differ(cls, value: list[str]) -> list[str]:
        if len(set(value)) != len(value):
            raise ValueError("expected a different model for each seed")
        return value

    @model_validator(mode="after")
    def _vectors_are_made_elsewhere(self) -> Self:
        if self.model_by_seed and self.model != DEFAULT_BASE_MODEL:
            raise ValueError('keys "model" and "model_by_seed" exclude each other')
        if kinds := sorted(filter(None, map(kind_of_model, self.models))):
            for key, usual in _OF_WEIGHTS:
                if getattr(self, key) != usual:
                    raise ValueError(f'key "{key}" does not go with a model that is a {kinds[0]}')
        if self.backend != "torch" and self.dtype != "fp32":
            raise ValueError(f'key "dtype" does not go with the backend "{self.backend}"')
        return self

    @property
    def models(self) -> list[str]:
        """The model, or that of each seed."""
        return self.model_by_seed or [self.model]


class Pretrained(Method):
    """A finished sentence encoder; nothing is trained. What our encoder does not know,
    sentence-transformers runs.
    """

    name = "pretrained"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = PretrainedConfig

    _model: Encoder | ForeignEncoder | OutsideModel | None = None

    @property
    def start_model(self) -> str:
        """Name of the model itself: no base model of the comparison enters."""
        return ", ".join(self.config.models)

    @property
    def supervision(self) -> Supervision:
        """Supervision that the configuration declares."""
        declared: Supervision = self.config.supervision
        return declared

    @property
    def deterministic(self) -> bool:
        """True but for a list of models or prompts, of which each seed uses another."""
        return not self.config.model_by_seed and not isinstance(self.config.prompts, list)

    @property
    def untrained_start(self) -> None:
        """None: nothing is trained here."""

    @property
    def inputs(self) -> dict[str, str]:
        """Fingerprint of the model, and how it is computed where earlier versions did otherwise.

        Raises:
            InputError: two models of `model_by_seed` are the same.
        """
        from harness.encoder.foreign import in_half_precision, leaves_prompts_out

        models = self.config.models
        fingerprints = [self._fingerprint(name) for name in models]
        _refuse_copies(models, fingerprints)
        inputs = {"model": " ".join(fingerprints)}
        weights = [name for name in models if not kind_of_model(name)]
        if self.config.pooling == OWN and any(map(in_half_precision, weights)):
            inputs["precision"] = "float32"
        if self.config.prompts and any(map(leaves_prompts_out, weights)):
            inputs["prompts"] = "not pooled"
        if self.config.pooling == OWN and any(map(self._is_lengthened, weights)):
            inputs["length"] = "as set"
        return inputs

    def _is_lengthened(self, name: str) -> bool:
        """True if `max_length` is more than a model takes by itself."""
        from harness.encoder.loading import LONGEST, own_length

        longest = self.config.max_length
        return longest is not None and longest > (own_length(name) or LONGEST)

    def _fingerprint(self, name: str) -> str:
        outside = self._outside(name)
        return fingerprint(name) if outside is None else outside.identity

    def _outside(self, name: str) -> OutsideModel | None:
        c = self.config
        return open_outside(name, version=c.version, trust_remote_code=c.trust_remote_code)

    @property
    def by_content(self) -> tuple[str, ...]:
        """The model, of vectors in files."""
        names = self.config.models
        if not all(map(is_file, names)):
            return ()
        return ("model_by_seed", "model") if self.config.model_by_seed else ("model",)

    @property
    def has_weights(self) -> bool:
        """True of models that are loaded here, and not run as ONNX or by OpenVINO."""
        return self.config.backend == "torch" and not isinstance(self._model, OutsideModel)

    @property
    def timed(self) -> bool:
        """False for vectors of a file and for endpoints."""
        return not isinstance(self._model, OutsideModel) or self._model.timed

    def fault_of(self, texts: Sequence[str]) -> InputError | None:
        """Return which texts a file of vectors lacks."""
        if isinstance(self._model, OutsideModel):
            return self._model.fault_of(texts)
        return None

    def check(self, corpus: Corpus | None) -> None:
        """Refuse to go on without the model's own prompts, where they are required.

        Raises:
            InputError: its configuration has none.
        """
        from harness.encoder.foreign import check_backend, own_prompts, pick_prompts

        super().check(corpus)
        check_backend(self.config.backend)
        for name in self.config.models:
            outside = self._outside(name)
            if outside is not None:
                choose_prompts(outside, _first(self.config.prompts))
            elif self.config.prompts == OWN:
                pick_prompts(name, None, own_prompts(name), OWN)

    def fit(self, corpus: TrainingText | None = None, context: FitContext | None = None) -> Self:
        """Load the model; there is nothing to learn, a corpus is ignored.

        Raises:
            InputError: no such model, a damaged one, or one that needs code of its own; fewer
                prompts than seeds.
        """
        seed = 1 if context is None else int(context.seed)
        c = self.config
        if c.model_by_seed:
            name = of_seed(c.model_by_seed, seed, "model_by_seed")
        else:
            name = c.model
        outside = self._outside(name)
        if outside is not None:
            self._use_outside(outside, kind_of_model(name), seed)
            return self
        self._open(name, own=c.pooling == OWN, seed=seed)
        if context is not None:
            self.encoding_model.to(context.device)
        return self

    def _use_outside(self, model: OutsideModel, kind: str, seed: int) -> None:
        self._model = model
        asked = self.config.prompts
        if isinstance(asked, list):
            asked = of_seed(asked, seed, "prompts")
        self.prompts = choose_prompts(model, asked)
        if isinstance(asked, dict):
            facts = {"prompts": dict(asked)}
        else:
            facts = {}
        self.fit_report = FitReport(training={"encoder": kind, **facts})

    def _open(self, name: str, *, own: bool, seed: int = 1) -> None:
        from harness.encoder.foreign import ForeignEncoder

        c = self.config
        options = {"max_length": c.max_length, "first_layer": c.first_layer}
        self._model = open_pooled(name, OWN if own else c.pooling, backend=c.backend, **options)
        self.set_dtype(c.dtype)
        if isinstance(self._model, ForeignEncoder):
            if c.max_length is not None:
                self._model.set_length(c.max_length)
            how = {
                "encoder": "sentence-transformers",
                "modules": self._model.modules,
                "why": self._model.why,
            }
        else:
            self._encoder = self._model
            if c.max_length is not None:
                self._model.set_length(c.max_length)
            how = {"encoder": "harness", "pooling": self._model.pooling.name}
            if self._model.why:
                how["why"] = self._model.why
        self.prompts, facts = self._choose_prompts(name, seed)
        self.fit_report = FitReport(training=how | facts)

    def _choose_prompts(self, name: str, seed: int) -> tuple[Prompts | None, dict[str, Any]]:
        """Return the prompts before texts, and how a record describes them."""
        from harness.encoder.foreign import own_prompts, pick_prompts

        requested = self.config.prompts
        if isinstance(requested, list):
            requested = of_seed(requested, seed, "prompts")
        texts, unused = pick_prompts(name, self._model, own_prompts(name), requested)
        default = getattr(self._model, "default_prompt", "")
        facts = {"prompts": texts, "unused_prompts": unused, "default_prompt": default}
        facts = {key: value for key, value in facts.items() if value}
        prompts = Prompts(texts) if texts is not None else None
        return prompts, facts

    @property
    def model(self) -> Encoder | ForeignEncoder | OutsideModel:
        """Loaded model.

        Raises:
            NotFitted: before `fit`.
        """
        if self._model is None:
            raise NotFitted(f"{self.name} is not fitted yet: call fit() or load() first")
        return self._model

    @property
    def encoding_model(self) -> Encoder | ForeignEncoder:
        """Loaded model, where its weights are here.

        Raises:
            InputError: they are elsewhere.
        """
        model = self.model
        if isinstance(model, OutsideModel):
            raise InputError(f"{model.name} has no weights here", key="model")
        return model

    def num_parameters(self) -> int:
        """Return the number of parameters of the model; 0 where it has no weights here."""
        if isinstance(self.model, OutsideModel):
            return 0
        return super().num_parameters()

    def encode(self, sentences: str | Sequence[str], **options: Any) -> np.ndarray | torch.Tensor:
        """Encode as `Method.encode` does: vectors (n, d) in float32."""
        return self.model.encode(sentences, **options)  # type: ignore[no-any-return]

    def save(self, path: str | Path, *, card: str = "") -> None:
        """Write the model in the SentenceTransformer layout, with its configuration.

        Raises:
            InputError: it has no weights here.
        """
        super().save(path, card=card)
        if self.prompts is not None:
            from harness.encoder.layout import CONFIG

            file = Path(path) / CONFIG
            settings = {**read_json(file), "prompts": self.prompts.by_key}
            write_atomic(file, json.dumps(settings, indent=2) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Load what `save` wrote.

        Raises:
            InputError: the folder is not one, or another method's.
        """
        method = load_unfitted(cls, path)
        if isinstance(method.config.prompts, list):  # the folder has those of its seed
            method.config = method.config.model_copy(update={"prompts": OWN})
        # The layout says how to pool, whichever way that was chosen.
        method._open(str(path), own=True)
        return method


T = TypeVar("T")


def _refuse_copies(models: Sequence[str], fingerprints: Sequence[str]) -> None:
    """Check that models differ: copies of one would count as seeds that agree.

    Raises:
        InputError: two of them are the same.
    """
    first: dict[str, str] = {}
    for model, found in zip(models, fingerprints, strict=True):
        if found in first:
            message = f"{first[found]} and {model} are the same model"
            remedy = "name a model of another training for each seed"
            raise InputError(message, key="model_by_seed", remedy=remedy)
        first[found] = model


def of_seed(values: Sequence[T], seed: int, key: str) -> T:
    """Return the value of a seed: seed 1 has the first.

    Raises:
        InputError: there is none.
    """
    if not 1 <= seed <= len(values):
        count = len(values)
        raise InputError(
            f"seed {seed}, but there are {count}", key=key, remedy=f"set seeds = 1 to {count}"
        )
    return values[seed - 1]


def _first(prompts: Any) -> Any:
    return prompts[0] if isinstance(prompts, list) else prompts


def open_pooled(
    name: str,
    pooling: str,
    *,
    backend: str = "torch",
    **options: Any,
) -> Encoder | ForeignEncoder:
    """Open a model to evaluate: pooled as its own configuration says ("own"), or as a base model with
    that `pooling`.

    Args:
        backend: "onnx" and "openvino" are run by sentence-transformers, pooled as the model says.
        options: of `Encoder.from_pretrained`; a model that does its own pooling has none.

    Raises:
        InputError: no such model, a damaged one, or one that needs code of its own.
    """
    from harness.encoder import Encoder
    from harness.encoder.foreign import open_model, run_by_sentence_transformers

    if backend != "torch":
        if pooling != OWN:
            raise InputError(
                f"{backend} pools as the model says", key="pooling", remedy="leave it out"
            )
        return run_by_sentence_transformers(name, f"backend {backend}", backend=backend)
    if pooling != OWN:
        return Encoder.from_pretrained(name, pooling=pooling, **options).eval()
    model = open_model(name)
    return model.eval() if isinstance(model, Encoder) else model


def fingerprint(name: str) -> str:
    """Return the content hash of a model folder, or the commit of a model on the hub.

    Raises:
        InputError: there is no such model.
    """
    try:
        return model_fingerprint(name)
    except InputError as error:
        # A repository without a transformer's config.json (word vectors): cached files lie in a
        # folder of its commit.
        from huggingface_hub import hf_hub_download

        offline = not hub_reachable()
        try:
            return Path(hf_hub_download(name, "modules.json", local_files_only=offline)).parent.name
        except Exception:  # the hub client raises classes of its own
            raise error from None
