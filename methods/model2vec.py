"""Model2Vec: any row distilled into a vector for every word piece; a sentence is their mean, and no
model is run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from harness import registry
from harness.config import Config, option
from harness.encoder.prompts import frame_of
from harness.errors import InputError
from harness.files.hashing import content_id
from harness.method import (
    FitContext,
    FitReport,
    Method,
    MethodConfig,
    Supervision,
    Text,
    require_corpus,
)
from harness.recipes import RecipeFile, Recipes
from harness.results.spec import method_version
from methods.static import Static

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from harness.encoder import Encoder
    from harness.sources import Corpus, TrainingText

ROWS = 1024  # tokens encoded at a time


def principal_components(vectors: NDArray[Any], dimensions: int) -> NDArray[np.float64]:
    """Return (n, k): the rows of (n, d), centred, along the k directions of most variance, largest
    first.

    k is at most d and n - 1. Signs are those of the eigenvectors, which no cosine depends on.
    """
    x = vectors.astype(np.float64)
    x -= x.mean(0)
    _, directions = np.linalg.eigh(x.T @ x)
    k = min(dimensions, x.shape[1], max(len(x) - 1, 1))
    components: NDArray[np.float64] = x @ directions[:, ::-1][:, :k]
    return components


def sif_weights(probabilities: NDArray[Any], coefficient: float) -> NDArray[np.float64]:
    """Return a / (a + p) for every word piece of probability p: smooth inverse frequency (Arora et
    al., ICLR 2017).
    """
    weights: NDArray[np.float64] = coefficient / (coefficient + probabilities.astype(np.float64))
    return weights


def zipf(count: int) -> NDArray[np.float64]:
    """Return probabilities of `count` tokens by frequency: p(r) proportional to 1 / (r + 1), r >= 1."""
    inverse = 1.0 / np.arange(2, count + 2)
    probabilities: NDArray[np.float64] = inverse / inverse.sum()
    return probabilities


class RowConfig(Config):
    """Row that is distilled."""

    method: str = Field(description="name of the method")
    preset: str | None = option(None, "a preset of it")
    family: str | None = option(None, "whose values of the preset; empty: those for the base model")
    config: dict[str, Any] = option({}, "values that override the preset")

    @property
    def kind(self) -> type[Method]:
        """Class of the method."""
        return registry.load(registry.METHODS, self.method)  # type: ignore[no-any-return]

    def settings(self) -> Any:
        """Return its validated config."""
        return self.kind.configure(self.config, preset=self.preset, family=self.family)


class Model2VecConfig(MethodConfig):
    """Defaults: the library's, on SimCSE."""

    pooling: Literal["none"] = option("none", "that of the row that is distilled")
    max_length: int | None = option(
        None, "maximum number of tokens of a sentence; empty: all", ge=1
    )
    of: RowConfig = option(
        RowConfig(method="simcse"), "the row: a table of method, preset and config"
    )
    dimensions: int = option(
        256,
        "of the vectors, by principal components",
        ge=1,
        sweep=[64, 128, 256, 512],
    )
    sif: float | None = option(
        1e-4, "coefficient of the weights a / (a + p); empty: none", gt=0, lt=1
    )
    frequencies: Literal["zipf", "corpus"] = option(
        "zipf",
        "p: by the place in the vocabulary, which lists frequent pieces first, or counted in the corpus",
    )

    @field_validator("of")
    @classmethod
    def _is_a_row(cls, value: RowConfig) -> RowConfig:
        try:
            value.settings()
        except InputError as error:
            raise ValueError(str(error)) from None
        return value


class Model2Vec(Static):
    """h = mean over a sentence's tokens of w_p PCA(f(p)), f the row that is distilled, w_p = a / (a
    + p).
    """

    name = "model2vec"
    version = 2  # 1: special and unused tokens had vectors, and moved the components and the ranks of all others
    sheet = RecipeFile.beside(__file__)
    Config = Model2VecConfig

    @classmethod
    def values_for(
        cls,
        values: Mapping[str, Any],
        family: str | None,
        base_model: str | None,
    ) -> Mapping[str, Any]:
        """Return `values`, in which a row whose preset depends on the base model gets its family."""
        of = values.get("of")
        if not isinstance(of, Mapping) or of.get("family") or not of.get("preset"):
            return values
        try:
            presets = registry.load(registry.METHODS, str(of.get("method"))).presets
        except InputError:  # reported when the row is validated
            return values
        depends_on_base = isinstance(presets.get(of["preset"]), Recipes)
        if family is None and base_model is not None and depends_on_base:
            from harness.encoder.loading import family_of

            family = family_of(base_model)
        return {**values, "of": {**of, "family": family}}

    @cached_property
    def _row(self) -> Method:
        """Method that is distilled."""
        of = self.config.of
        row: Method = of.kind(of.settings(), base_model=self.base_model)
        return row

    @property
    def text(self) -> Text:
        """Text that the row learns from; sentences where only frequencies are counted."""
        if self._row.text == "none" and self.config.frequencies == "corpus":
            return "sentences"
        return self._row.text

    @property
    def supervision(self) -> Supervision:
        """Supervision of the row; unsupervised where only frequencies are counted."""
        if self._row.supervision == "untrained" and self.config.frequencies == "corpus":
            return "unsupervised"
        return self._row.supervision

    @property
    def start_model(self) -> str:
        """Model that the row starts from."""
        return self._row.start_model

    @property
    def untrained_start(self) -> tuple[str, dict[str, Any]] | None:
        """Untrained start of the row, distilled."""
        start = self._row.untrained_start
        if start is None or self.supervision == "untrained":
            return None
        values = self.config.model_dump(exclude={"of"}, exclude_defaults=True)
        return self.name, {**values, "of": {"method": start[0], "config": start[1]}}

    @property
    def inputs(self) -> dict[str, str]:
        """Inputs of the row, its version and its config, which a preset's name does not fix."""
        inputs = {}
        for key, value in self._row.inputs.items():
            inputs[f"of {key}"] = value
        content = content_id(self._row.config.model_dump(mode="json"))
        return {**inputs, "of version": str(method_version(type(self._row))), "of config": content}

    @property
    def uses_dev(self) -> bool:
        """True if the row uses the dev set."""
        return self._row.uses_dev

    def fit(self, corpus: TrainingText | None = None, context: FitContext | None = None) -> Self:
        """Fit the row, then encode its vocabulary.

        Raises:
            InputError: no corpus, or one of the wrong kind; the row is no single encoder.
        """
        context = context or FitContext()
        of = self.config.of
        if self.text != "none":
            text = require_corpus(self, corpus)
        else:
            text = None
        row = of.kind(of.settings(), base_model=self.base_model)
        if row.transductive:
            raise InputError(
                f"model2vec: {of.method} is fitted to each task's text, so it has no vectors of its own"
            )

        if context.folder:
            folder = context.folder / "of"
        else:
            folder = None
        row.fit(text, replace(context, folder=folder))
        if row._encoder is None:
            raise InputError(
                f"model2vec: {of.method} is not a single encoder of tokens",
                remedy="distil a row that is one",
            )

        encoder = row.encoder
        self._tokenizer = plain_tokenizer(encoder, self.config.max_length)
        ordinary = ordinary_tokens(encoder)
        vectors = principal_components(encode_tokens(encoder, ordinary), self.config.dimensions)
        if self.config.sif is not None:
            vectors *= sif_weights(self._frequencies(text, ordinary), self.config.sif)[:, None]
        self._matrix = np.zeros(
            (self._tokenizer.get_vocab_size(), vectors.shape[1]), dtype=np.float32
        )
        self._matrix[ordinary] = vectors

        report = row.fit_report
        about = {
            "of": {"method": row.name, **report.training},
            "pieces": len(vectors),
            "dimensions": vectors.shape[1],
        }
        self.fit_report = FitReport(training=about, cost=dict(report.cost))
        return self

    def _frequencies(self, corpus: Corpus | None, ordinary: Sequence[int]) -> NDArray[np.float64]:
        """Return the probabilities of the ordinary tokens."""
        if self.config.frequencies == "zipf":
            return zipf(len(ordinary))
        tokenizer = self._tokenizer
        assert tokenizer is not None
        assert corpus is not None
        counts = np.zeros(tokenizer.get_vocab_size())
        for start in range(0, len(corpus), ROWS):
            items = corpus[start : start + ROWS]
            texts = [item if isinstance(item, str) else item.anchor for item in items]
            for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False):
                np.add.at(counts, encoding.ids, 1.0)
        counts = counts[ordinary]
        shares: NDArray[np.float64] = counts / max(float(counts.sum()), 1.0)
        return shares


def plain_tokenizer(encoder: Encoder, length: int | None) -> Tokenizer:
    """Return the encoder's tokenizer without its frame; an empty text counts as "."."""
    from tokenizers import Regex, Tokenizer, normalizers

    tokenizer = Tokenizer.from_str(encoder.tokenizer.backend_tokenizer.to_str())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    if length is not None:
        tokenizer.enable_truncation(length)
    empty = normalizers.Replace(Regex(r"\A\s*\z"), ".")
    steps = [empty]
    if tokenizer.normalizer:
        steps.append(tokenizer.normalizer)
    tokenizer.normalizer = normalizers.Sequence(steps)
    return tokenizer


def ordinary_tokens(encoder: Encoder) -> list[int]:
    """Return the ids of the tokens of text, in the order of the vocabulary: neither special tokens
    nor [unusedN].
    """
    backend = encoder.tokenizer.backend_tokenizer
    special = set(encoder.tokenizer.all_special_ids)
    names = {index: name for name, index in backend.get_vocab().items()}
    found = []
    for i in sorted(names):
        if i not in special and not re.fullmatch(r"\[unused\d+\]", names[i]):
            found.append(i)
    return found


def encode_tokens(encoder: Encoder, tokens: Sequence[int]) -> NDArray[np.float32]:
    """Encode n tokens, each as a sentence of its own: vectors (n, d) in float32."""
    import torch

    echo = encoder.echo_frame
    if echo is None:
        first, *others = frame_of(encoder.tokenizer)
    else:
        first, *others = echo.pieces(encoder.tokenizer)
    parts: list[NDArray[np.float32]] = []
    encoder.eval()
    for start in range(0, len(tokens), ROWS):
        rows: list[list[int]] = []
        for token in tokens[start : start + ROWS]:
            row = list(first)
            for part in others:
                row += [token, *part]
            rows.append(row)
        with torch.inference_mode():
            parts.append(encoder(encoder.collate(rows)).float().cpu().numpy())
    return np.concatenate(parts)
