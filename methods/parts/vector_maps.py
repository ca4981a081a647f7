"""Methods that leave the encoder unchanged and learn a map of its vectors, from a corpus or from
each task's text.
"""

from __future__ import annotations

import copy
import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from harness.config import option
from harness.errors import InputError, StopRequested
from harness.method import (
    FitContext,
    FitReport,
    Method,
    MethodConfig,
    Supervision,
    Text,
    load_unfitted,
    require_corpus,
)
from harness.saved_method import read_saved_seed
from harness.seeds import seed_fields
from methods.parts.array_method import new_folder

if TYPE_CHECKING:
    from harness.encoder import Encoder
    from harness.sources import TrainingText

ENCODER = "encoder"
CHUNK = 8192  # items encoded at a time: memory stays the same however large the corpus is


class VectorMapConfig(MethodConfig):
    """Pooling and length are those of BERT-flow and BERT-whitening."""

    pooling: str = option(
        "first_last_avg", "cls, cls_pooler, mean, max, first_last_avg, last2_avg or layer:K:..."
    )
    max_length: int | None = option(
        64, "maximum number of tokens, when fitting and when encoding", ge=4
    )
    fit_on: Literal["sentences", "pairs", "task"] = option(
        "sentences",
        "text to fit to: sentences, both sides of pairs (NLI), or each task's own text (transductive)",
    )


class VectorMap(Method):
    """Subclasses write `_learn`; a map that is not the encoder's `affine` also needs a
    `_without_map` of its own.

    Fitted to tasks (`fit_on = "task"`), the method has no map before `for_task`: it then gives the
    encoder's vectors.
    """

    Config = VectorMapConfig

    _context: FitContext | None = None

    @property
    def text(self) -> Text:
        """Sentences, pairs, or none of a comparison's corpora."""
        kinds: dict[str, Text] = {"sentences": "sentences", "pairs": "pairs", "task": "none"}
        return kinds[self.config.fit_on]

    @property
    def supervision(self) -> Supervision:
        """Transductive where the map is fitted to the unlabelled text of each task."""
        if self.config.fit_on == "task":
            return "transductive"
        return self.card.supervision

    @property
    def transductive(self) -> bool:
        """True if the map is fitted to each task's text."""
        return bool(self.config.fit_on == "task")

    def fit(self, corpus: TrainingText | None = None, context: FitContext | None = None) -> Self:
        """Learn the map of the corpus's vectors; with `fit_on = "task"` only load the encoder.

        Raises:
            InputError: no corpus, one of the wrong kind, or one that no map can be learnt from.
        """
        self._context = context = context or FitContext()
        if self.transductive:
            self._encoder = self.load_base().to(context.device).eval()
            self.fit_report = FitReport(training={"fitted_to": "each task's own sentences"})
            return self
        items = require_corpus(self, corpus)
        self._fit_to(self.load_base().to(context.device).eval(), items, items.uri, context)
        return self

    def for_task(self, texts: Sequence[str]) -> Self:
        """Return a copy whose map is fitted to `texts`; the encoder's weights are shared with this
        method.

        Raises:
            NotFitted: before `fit`.
            InputError: texts that no map can be learnt from.
        """
        fitted = copy.copy(self)
        context = copy.copy(self._context or FitContext(device=str(self.encoder.device)))
        context.folder = None
        context.progress = None
        fitted._fit_to(self._without_map(), texts, "the task's text", context)
        return fitted

    def _fit_to(
        self,
        encoder: Encoder,
        items: Sequence[Any],
        uri: str,
        context: FitContext,
    ) -> None:
        if len(items) < 2:
            raise InputError(
                f"{self.name} needs at least 2 sentences, this corpus has {len(items)}", file=uri
            )
        started = time.perf_counter()
        self.fit_report = self._learn(encoder, items, context)
        self.fit_report.cost.setdefault("train_seconds", time.perf_counter() - started)
        self._encoder = encoder

    def _without_map(self) -> Encoder:
        """Return the encoder as it was before the map: another object with the same weights."""
        encoder = twin(self.encoder)
        encoder.affine = None
        return encoder

    def _stands_alone(self) -> bool:
        """True if the encoder is the whole method: not where the map is elsewhere, or is still to be
        fitted to a task.
        """
        return not self.transductive or self.encoder.affine is not None

    def _save_map(self, folder: Path) -> None:
        """Write what the encoder does not hold."""

    def _load_map(self, folder: Path) -> None:
        """Read what `_save_map` wrote."""

    def save(self, path: str | Path, *, card: str = "") -> None:
        """Write the SentenceTransformer layout; where it would not be the whole method, into the
        folder `encoder`.
        """
        if self._stands_alone():
            super().save(path, card=card)
            return
        encoder = self.encoder
        seed = self._context.seed if self._context else 0
        with new_folder(self, path, card, **seed_fields(seed)) as folder:
            encoder.save(folder / ENCODER)
            self._save_map(folder)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Load what `save` wrote.

        Raises:
            InputError: the folder is not one, or another method's.
        """
        from harness.encoder import Encoder

        folder = Path(path)
        if not (folder / ENCODER).is_dir():
            return super().load(path)
        method = load_unfitted(cls, path)
        method._context = FitContext(seed=read_saved_seed(folder))
        method._encoder = Encoder.load(folder / ENCODER)
        method._load_map(folder)
        return method

    @abstractmethod
    def _learn(self, encoder: Encoder, items: Sequence[Any], context: FitContext) -> FitReport:
        """Learn the map from `items` (str or Pair) and attach it to `encoder` or to this method."""


E = TypeVar("E", bound="Encoder")


def twin(encoder: E) -> E:
    """Return a second encoder on the same weights, to which another map can be attached."""
    other = copy.copy(encoder)
    other._modules = dict(encoder._modules)
    return other


def texts_of(item: Any) -> list[str]:
    """Return the texts of a corpus's item: itself, or anchor, positive and, where there is one,
    negative of a pair.
    """
    if isinstance(item, str):
        return [item]
    return [text for text in (item.anchor, item.positive, item.negative) if text is not None]


def text_chunks(
    items: Sequence[Any],
    context: FitContext,
    size: int = CHUNK,
) -> Iterator[list[str]]:
    """Yield the texts of `items`, `size` items at a time.

    Raises:
        StopRequested: by `context.stop`; nothing is saved, as the map is learnt from all of them.
    """
    for start in range(0, len(items), size):
        if context.stop is not None and context.stop():
            raise StopRequested
        texts: list[str] = []
        for item in items[start : start + size]:
            texts += texts_of(item)
        yield texts
