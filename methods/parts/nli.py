"""Sentence vectors from natural language inference: pairs with their labels, and a softmax over
joined vectors, as SBERT and InferSent train.

Both sentences go through one encoder, their vectors u and v are
joined to one long vector, and a classifier says whether the first sentence entails the second,
contradicts it, or neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Self

import torch
from pydantic import AfterValidator
from torch import Tensor
from torch.nn import functional

from harness.config import nearest
from harness.errors import InputError
from harness.method import FitContext, require_corpus
from harness.sources import Corpus, Pair, TrainingText
from harness.training import BatchStream, TrainedMethod
from methods.parts.row_vectors import check_rows, full_precision

LABELS = ("entailment", "contradiction", "neutral")
JOINED = ("u", "v", "|u-v|", "u*v")
TWO_CLASSES = (
    "trained on two classes, entailment and contradiction: the pairs have negatives instead of labels, and no neutral "
    "ones; the original has three"
)


class LabelledPairs(Sequence[Pair]):
    """Pairs with one of `LABELS`: those of the corpus, or of every triplet the two that its
    negative makes.

    Attributes:
        classes: 3 with labels, 2 of triplets (entailment and contradiction).
    """

    def __init__(self, corpus: Corpus[Pair]) -> None:
        self._pairs = corpus
        labels: set[str | None] = set()
        negatives = 0
        gaps = 0
        for pair in corpus:
            labels.add(pair.label)
            negatives += pair.negative is not None
            gaps += pair.label is None
        unknown = sorted(label for label in labels if label is not None and label not in LABELS)
        if unknown:
            raise InputError(
                f'the label "{unknown[0]}" is none of '
                f"{', '.join(LABELS)}{nearest(unknown[0], list(LABELS))}",
                file=corpus.uri,
                remedy="rename the labels or leave such pairs out",
            )
        if labels != {None} and gaps:
            raise InputError(
                f"{gaps:,} of {len(corpus):,} pairs have no label",
                file=corpus.uri,
                remedy="give every pair one",
            )
        if labels == {None} and negatives < len(corpus):
            raise InputError(
                "its pairs have neither labels nor a negative each, so that there is "
                "nothing to learn from",
                file=corpus.uri,
                remedy=(
                    'take the corpus "nli-labelled", name the column of the labels as label, or '
                    'take "nli"'
                ),
            )
        if labels != {None}:
            self.classes = len(LABELS)
        else:
            self.classes = 2

    def __len__(self) -> int:
        return len(self._pairs) * self.of_each

    @property
    def of_each(self) -> int:
        """How many labelled pairs an item of the corpus makes; they follow one another."""
        if self.classes == len(LABELS):
            return 1
        return 2

    def __getitem__(self, index: Any) -> Any:
        if self.of_each == 1:
            return self._pairs[index]
        pair = self._pairs[index // 2]
        if index % 2:
            return Pair(pair.anchor, pair.negative or "", label="contradiction")
        return Pair(pair.anchor, pair.positive, label="entailment")


def join_vectors(u: Tensor, v: Tensor, parts: Sequence[str]) -> Tensor:
    """Join the vectors (n, d) of both sentences to (n, d * len(parts)); `parts` are of `JOINED`, in
    order.

    Source: Conneau et al., EMNLP 2017, figure 1; Reimers & Gurevych, EMNLP 2019, section 3 and
    table 6.
    """
    check_rows(u, v)
    made = {
        "u": u,
        "v": v,
        "|u-v|": (u - v).abs(),
        "u*v": u * v,
    }
    return torch.cat([made[part] for part in parts], dim=1)


def split_parts(text: str) -> tuple[str, ...]:
    """Split a text such as "u,v,|u-v|" into its parts.

    Raises:
        ValueError: one of them is none of `JOINED`, or there is none of them.
    """
    parts = tuple(part.strip() for part in text.split(","))
    is_known = set(parts) <= set(JOINED)
    has_repeats = len(set(parts)) < len(parts)
    if not is_known or has_repeats:
        raise ValueError(f"must be some of {', '.join(JOINED)}, each once, joined by commas")
    return parts


Joined = Annotated[str, AfterValidator(lambda text: ",".join(split_parts(text)))]  # of a config


@full_precision
def label_loss(logits: Tensor, classes: Tensor) -> Tensor:
    """L = mean over i of -log softmax(logits_i)[class_i]; logits (n, classes), classes (n,) whole
    numbers.
    """
    return functional.cross_entropy(logits, classes.long())


def class_indices(pairs: Sequence[Pair]) -> Tensor:
    """Return (n,), the place of each pair's label in `LABELS`."""
    return torch.tensor([LABELS.index(pair.label or "") for pair in pairs])


class NLIMethod(TrainedMethod):
    """Trained on labelled pairs. Subclasses write `loss`, with `classified` for its end."""

    _classes = len(LABELS)

    def examples(self, corpus: Corpus) -> LabelledPairs:
        """Return the labelled pairs of a corpus; from then on the loss has as many classes as they."""
        examples = LabelledPairs(corpus)
        self._classes = examples.classes
        return examples

    def stream(self, corpus: Corpus, seed: int) -> BatchStream:
        return super().stream(self.examples(corpus), seed)  # type: ignore[arg-type]  # needs no more than a sequence

    def loss_and_accuracy(self, logits: Tensor, pairs: Sequence[Pair]) -> dict[str, Tensor]:
        """Return the loss of logits (n, 3), of which triplets use the first two, and the accuracy."""
        logits = logits[:, : self._classes]
        classes = class_indices(pairs).to(logits.device)
        accuracy = (logits.argmax(1) == classes).float().mean()
        return {"loss": label_loss(logits, classes), "accuracy": accuracy}

    def fit(self, corpus: TrainingText | None = None, context: FitContext | None = None) -> Self:
        """Train on the pairs of the corpus; a note says where they gave two classes."""
        super().fit(require_corpus(self, corpus), context)
        if self._classes == 2:
            self.fit_report.training.setdefault("notes", []).append(TWO_CLASSES)
        return self
