"""Two or more methods side by side: their vectors, one after the other."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from harness import registry
from harness.config import Config, option
from harness.errors import InputError, NotFitted
from harness.files.atomic import write_atomic
from harness.files.hashing import content_id
from harness.method import (
    FitContext,
    FitReport,
    Method,
    MethodCard,
    MethodConfig,
    Supervision,
    Text,
    require_corpus,
    unfitted,
)
from harness.recipes import Presets, Recipes
from harness.results.spec import method_version
from methods.parts.array_method import ArrayMethod, unit
from methods.parts.saved_folder import new_folder
from methods.parts.vector_maps import text_chunks
from methods.whitening import moments_of, whitening_matrix

if TYPE_CHECKING:
    from harness.sources import Corpus, TrainingText

WHITENING = "whitening.safetensors"
_MOST_KNOWN: tuple[Supervision, ...] = ("untrained", "unsupervised", "transductive", "supervised")


class PartConfig(Config):
    """One of the methods."""

    method: str = Field(description="name of the method")
    preset: str | None = option(None, "a preset of it")
    family: str | None = option(None, "whose values of the preset; empty: those for the base model")
    config: dict[str, Any] = option({}, "values that override the preset")
    seed: int = option(0, "added to the run's seed, so that two equal parts can differ", ge=0)

    @property
    def kind(self) -> type[Method]:
        """The plugin."""
        return registry.load(registry.METHODS, self.method)  # type: ignore[no-any-return]

    def settings(self) -> Any:
        """Its validated config."""
        return self.kind.configure(self.config, preset=self.preset, family=self.family)

    def inputs(self, name: str) -> dict[str, str]:
        """What the method called `name` refers to, its version and its config, which a preset's name does not fix."""
        settings = self.settings()
        inputs = {f"{name} {key}": value for key, value in self.kind.inputs(settings).items()}
        version, content = str(method_version(self.kind)), content_id(settings.model_dump(mode="json"))
        return {**inputs, f"{name} version": version, f"{name} config": content}


class ConcatConfig(MethodConfig):
    """The parts, and what is done with their vectors."""

    pooling: Literal["none"] = option("none", "every part has its own")
    max_length: int | None = option(None, "no effect: every part has its own")
    parts: tuple[PartConfig, ...] = option(
        (PartConfig(method="pooling"), PartConfig(method="simcse")),
        "tables of method, preset, config and seed; two or more",
    )
    normalize: bool = option(True, "scale the vectors of every part to unit length first")
    whiten: bool = option(False, "whiten the long vectors on the corpus")
    k: int | None = option(None, "dimensions after whitening; empty: all that have a variance", ge=1)
    epsilon: float = option(0.0, "shrinkage added to the variances when whitening", ge=0)

    @field_validator("parts")
    @classmethod
    def _parts_fit(cls, parts: tuple[PartConfig, ...]) -> tuple[PartConfig, ...]:
        if len(parts) < 2:
            raise ValueError("needs two parts at least")
        kinds: dict[Text, str] = {}
        for number, part in enumerate(parts, 1):
            try:
                kinds.setdefault(part.kind.text_for(part.settings()), part.method)
            except InputError as error:
                raise ValueError(f"part {number}: {error}") from None
        kinds.pop("none", None)
        if len(kinds) > 1:
            told = " and ".join(f"{kind} ({method})" for kind, method in kinds.items())
            raise ValueError(f"all parts must learn from the same kind of text (or none), not from {told}")
        return parts


class Concat(ArrayMethod):
    """h = [h_1 / |h_1|, h_2 / |h_2|, ...], every part fitted as if it stood alone, with the same seed."""

    name = "concat"
    version = 1
    card = MethodCard(
        title="Concatenated vectors of several methods",
        paper="a usual baseline: Arora et al. 2017 and Rueckle et al. 2018 join word vectors so",
        text="sentences",
        supervision="unsupervised",
        cost="the sum of its parts",
        notes="Text and supervision are those of the parts; a part that learns nothing adds its vectors.",
    )
    Config: ClassVar[type[MethodConfig]] = ConcatConfig
    presets: ClassVar[Presets] = {
        "poolings": {"parts": [{"method": "pooling", "preset": "cls"}, {"method": "pooling", "preset": "mean"}]},
        "ensemble": {"parts": [{"method": "simcse"}, {"method": "simcse", "seed": 1000}]},
        "mini": {"parts": [{"method": "pooling"}, {"method": "simcse", "preset": "mini"}]},
    }

    @classmethod
    def values_for(cls, values: Mapping[str, Any], family: str | None, base_model: str | None) -> Mapping[str, Any]:
        """A part whose preset depends on the base model gets its family."""
        parts = values.get("parts")
        if not isinstance(parts, list | tuple):
            return values
        return {**values, "parts": [with_family(part, family, base_model) for part in parts]}

    def __init__(self, config: MethodConfig | None = None, **options: Any) -> None:
        super().__init__(config, **options)
        self._parts: list[Method] = []
        self._whitening: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None  # (d, k) and (k,)

    @classmethod
    def text_for(cls, config: Any) -> Text:
        """What the parts learn from; sentences where only the whitening learns."""
        kinds = {part.kind.text_for(part.settings()) for part in config.parts} - {"none"}
        return kinds.pop() if kinds else "sentences" if config.whiten else "none"

    @classmethod
    def supervision_for(cls, config: Any) -> Supervision:
        """That of the part which knows most."""
        known = [part.kind.supervision_for(part.settings()) for part in config.parts]
        known += ["unsupervised"] if config.whiten else []
        return max(known, key=_MOST_KNOWN.index)

    @classmethod
    def base_for(cls, config: Any, base_model: str) -> str:
        """The base model if any part starts from it, else what the parts start from."""
        bases = [part.kind.base_for(part.settings(), base_model) for part in config.parts]
        return base_model if base_model in bases else " + ".join(dict.fromkeys(bases))

    @classmethod
    def untrained(cls, config: Any) -> tuple[str, dict[str, Any]] | None:
        """The parts as each of them starts, not whitened. None where a part that learns has no such start."""
        parts: list[dict[str, Any]] = []
        learns = config.whiten
        for part in config.parts:
            start = part.kind.untrained(part.settings())
            trained = part.kind.supervision_for(part.settings()) != "untrained"
            if trained and start is None:
                return None
            learns |= trained
            parts.append(part.model_dump() if start is None else {"method": start[0], "config": start[1]})
        if not learns:
            return None
        return cls.name, {"parts": parts, "normalize": config.normalize}

    @classmethod
    def inputs(cls, config: Any) -> dict[str, str]:
        """Those of the parts."""
        parts = enumerate(config.parts, 1)
        return {key: value for number, part in parts for key, value in part.inputs(f"part {number}").items()}

    @classmethod
    def uses_dev(cls, config: Any) -> bool:
        """Where any part does."""
        return any(part.kind.uses_dev(part.settings()) for part in config.parts)

    @property
    def transductive(self) -> bool:
        """Is any part fitted to each task's text?"""
        return any(part.transductive for part in self._parts or self._new_parts())

    def _new_parts(self) -> list[Method]:
        return [part.kind(part.settings(), base_model=self.base_model) for part in self.config.parts]

    def fit(self, corpus: TrainingText | None = None, context: FitContext | None = None) -> Self:
        """Fit one part after the other; a part that an earlier, interrupted fit had finished is read from its folder.

        Raises:
            InputError: no corpus, or one of the wrong kind.
        """
        context = context or FitContext()
        items = require_corpus(self, corpus) if self.text_for(self.config) != "none" else None
        if self.config.whiten and self.transductive:
            raise InputError("concat: whiten learns from the corpus, so no part may be fitted to the task's text")
        parts: list[Method] = []
        self.fit_report = FitReport()
        for number, (part, settings) in enumerate(zip(self._new_parts(), self.config.parts, strict=True), 1):
            own = replace(context, seed=context.seed + settings.seed, progress=_named(context.progress, number, part))
            parts.append(self._fit_part(part, number, items, own))
            self._report(parts[-1], number)
        self._parts = parts
        if self.config.whiten:
            assert items is not None
            self._learn_whitening(items, context)
        return self

    def _fit_part(self, part: Method, number: int, corpus: Corpus | None, context: FitContext) -> Method:
        learns = part.text_for(part.config) != "none"
        if context.folder is None or not learns:
            return part.fit(corpus if learns else None, context)
        done = context.folder / "checkpoint" / f"part-{number}"
        report = done.with_suffix(".json")
        if not report.exists():
            folder = context.folder / f"part-{number}"  # its curves stay; what it needs to resume goes when it is done
            part.fit(corpus, replace(context, folder=folder))
            part.save(done)
            write_atomic(report, json.dumps(asdict(part.fit_report)) + "\n")
            shutil.rmtree(folder / "checkpoint", ignore_errors=True)
        loaded = type(part).load(done)
        loaded.fit_report = FitReport(**json.loads(report.read_text()))
        return loaded

    def _report(self, part: Method, number: int) -> None:
        told = part.fit_report
        self.fit_report.training[f"part {number}"] = {"method": part.name, **told.training}
        if "precision" in told.training:
            self.fit_report.training["precision"] = told.training["precision"]
        for key, value in told.cost.items():
            if not key.endswith("per_second"):
                self.fit_report.cost[key] = self.fit_report.cost.get(key, 0.0) + value

    def _learn_whitening(self, corpus: Corpus, context: FitContext) -> None:
        rows = (self._joined(texts, device=context.device) for texts in text_chunks(corpus))
        moments = moments_of(rows, context, total=len(corpus))
        w = whitening_matrix(moments.covariance(), k=self.config.k, epsilon=self.config.epsilon)
        self._whitening = w.astype(np.float32), (-moments.mean() @ w).astype(np.float32)

    def for_task(self, texts: Sequence[str]) -> Self:
        """A copy whose transductive parts are fitted to `texts`."""
        fitted = copy.copy(self)
        fitted._parts = [part.for_task(texts) if part.transductive else part for part in self._fitted()]
        return fitted

    def _fitted(self) -> list[Method]:
        if not self._parts:
            raise NotFitted(f"{self.name} is not fitted yet: call fit() or load() first")
        return self._parts

    def num_parameters(self) -> int:
        """How many numbers the parts and the whitening hold."""
        own = sum(array.size for array in self._whitening) if self._whitening else 0
        return own + sum(part.num_parameters() for part in self._fitted())

    def _joined(self, texts: Sequence[str], **options: Any) -> NDArray[np.float32]:
        """(n, sum of the parts' d)"""
        vectors = [np.asarray(part.encode(texts, **options), dtype=np.float32) for part in self._fitted()]
        return np.hstack([unit(v) for v in vectors] if self.config.normalize else vectors)

    def _vectors(self, texts: Sequence[str], **options: Any) -> NDArray[np.float32]:
        """d is the sum of the parts' dimensions, or k after whitening."""
        vectors = self._joined(texts, **options)
        return vectors if self._whitening is None else vectors @ self._whitening[0] + self._whitening[1]

    def save(self, path: str | Path, *, card: str = "") -> None:
        """Write every part into a folder of its own, `part-1` and so on, with the whitening."""
        from safetensors.numpy import save_file

        parts = self._fitted()
        with new_folder(self, path, card) as folder:
            for number, part in enumerate(parts, 1):
                part.save(folder / f"part-{number}")
            if self._whitening is not None:
                matrix, bias = (np.ascontiguousarray(array) for array in self._whitening)
                save_file({"matrix": matrix, "bias": bias}, folder / WHITENING)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """What `save` wrote.

        Raises:
            InputError: the folder is not one, or another method's.
        """
        from safetensors.numpy import load_file

        method = unfitted(cls, path)
        folder = Path(path)
        method._parts = [
            part.kind.load(folder / f"part-{number}") for number, part in enumerate(method.config.parts, 1)
        ]
        if (folder / WHITENING).is_file():
            arrays = load_file(folder / WHITENING)
            method._whitening = arrays["matrix"], arrays["bias"]
        return method


def with_family(part: Any, family: str | None, base_model: str | None) -> Any:
    """A part's table, with the family whose values its preset has where these differ by family."""
    if not isinstance(part, Mapping) or part.get("family") or not part.get("preset"):
        return part
    try:
        presets = registry.load(registry.METHODS, str(part.get("method"))).presets
    except InputError:  # told when the part is validated
        return part
    if not isinstance(presets.get(part["preset"]), Recipes):
        return part
    if family is None and base_model is not None:
        from harness.encoder.families import family_of

        family = family_of(base_model)
    return {**part, "family": family} if family else part


def _named(
    progress: Callable[[int, int, str], None] | None, number: int, part: Method
) -> Callable[[int, int, str], None] | None:
    if progress is None:
        return None
    return lambda step, steps, text: progress(step, steps, f"part {number} ({part.name}): {text}")
