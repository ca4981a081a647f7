"""Which layer, pooled how, makes the best sentence vector of a model: STS of all layers from one
forward pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import InputError, NotFitted
from harness.sources.pair_sets import EMBEDDED_STS
from harness.tasks.base import Array, TaskResult, finite
from harness.tasks.protocol import Description, add_score
from harness.tasks.sts import COSINE, ModelOnPairs, cosine, spearman
from harness.tasks.suite import Suite, TaskFamily

if TYPE_CHECKING:
    from harness.encoder import Encoder
    from harness.encoder.pooling import Mode
    from harness.sources.pair_sets import Source

POOLINGS: tuple[Mode, ...] = ("cls", "mean", "max")
_TOGETHER = 256  # pairs whose vectors of all layers are held at a time: 60 MB for BERT-base
_BATCH = 64


def layer_vectors(encoder: Encoder, texts: Sequence[str]) -> Array:
    """Vectors (n, layers + 1, poolings, d) of n texts: H_0 (the embeddings) to H_L, each pooled in
    every way.

    What an encoder has after its pooling (dense layers, a whitening) belongs to its last layer and
    is left out.
    """
    import torch

    from harness.encoder.pooling import reduce_tokens
    from harness.encoder.quiet import evaluation

    ids = encoder.tokenize(texts)
    lengths = [len(tokens) for tokens in ids]
    order = sorted(range(len(ids)), key=lengths.__getitem__)
    batches: list[Array] = []
    with evaluation(encoder), torch.inference_mode():
        for start in range(0, len(order), _BATCH):
            rows_of_batch = order[start : start + _BATCH]
            features = encoder.collate([ids[row] for row in rows_of_batch])
            mask = features["attention_mask"].to(encoder.device)
            states = encoder.hidden_states(features)
            pooled = []
            for state in states:
                by_pooling = [reduce_tokens(state, mask, mode) for mode in POOLINGS]
                pooled.append(torch.stack(by_pooling, 1))
            batch = torch.stack(pooled, 1)
            batches.append(batch.float().cpu().numpy())
    rows: Array = np.concatenate(batches)[np.argsort(order)]
    return rows


def encoder_of(model: Any, task: str) -> Encoder:
    """The one transformer of a method or of anything else that encodes.

    Raises:
        InputError: it has none, several, or one that only sentence-transformers can run.
    """
    from harness.encoder import Encoder

    try:
        encoder = model if isinstance(model, Encoder) else getattr(model, "encoder", None)
    except NotFitted:  # so says a method that encodes with something else
        encoder = None
    if not isinstance(encoder, Encoder):
        raise InputError(
            f"{task}: needs a model that is one transformer whose layers can be read", key=task
        )
    return encoder


class LayersTask(ModelOnPairs):
    """Spearman "all" on one pair set for every layer and pooling of a model.

    Named "layers:" and the pair set; its scores are named "PAIRS@layer:K:POOLING", as the poolings
    of an encoder are.
    """

    suite = "layers"

    def evaluate_model(self, model: Any, *, device: str, pooling: str) -> TaskResult:
        """Raises:
        InputError: `model` is not one transformer.
        """
        encoder = encoder_of(model, self.name)
        encoder.to(device)
        result = TaskResult()
        similarities, damaged = self._similarities(encoder)
        result.note_damaged(self.name, damaged)
        gold = np.concatenate([subset.gold for subset in self.pairs.data.subsets])
        drawn: dict[str, list[float]] = {mode: [] for mode in POOLINGS}
        for layer in range(similarities.shape[1]):
            for place, mode in enumerate(POOLINGS):
                value = spearman(similarities[:, layer, place], gold)
                drawn[mode].append(value)
                rule = f"layer:{layer}:{mode}"
                pairs = self.pairs
                about = Description(
                    f"{pairs.name}@{rule}",
                    self.source,
                    pairs.split,
                    "spearman",
                    self.sha256,
                    "all",
                    pairs.data.preparation,
                    COSINE,
                )
                add_score(
                    result,
                    about,
                    suite=self.suite,
                    pooling=rule,
                    value=value,
                    n=len(gold),
                )
        result.figures[self.name] = {"spearman_by_layer": drawn}
        return result

    def _similarities(self, encoder: Encoder) -> tuple[NDArray[np.float32], int]:
        """Cosines (pairs, layers + 1, poolings), and how many vectors were damaged."""
        pairs: list[tuple[str, str]] = []
        for subset in self.pairs.data.subsets:
            pairs += zip(subset.sentences1, subset.sentences2, strict=True)
        lengths = []
        for left, right in pairs:
            lengths.append(len(left) + len(right))
        order = sorted(range(len(pairs)), key=lengths.__getitem__)
        parts = []
        damaged = 0
        for start in range(0, len(order), _TOGETHER):
            rows = order[start : start + _TOGETHER]
            similar, bad = _compare(encoder, [pairs[row] for row in rows])
            parts.append(similar)
            damaged += bad
        shape = (len(pairs), *parts[0].shape[1:])
        similarities = np.empty(shape, dtype=np.float32)
        similarities[order] = np.concatenate(parts)
        return similarities, damaged


def _compare(encoder: Encoder, pairs: Sequence[tuple[str, str]]) -> tuple[Array, int]:
    """Return the cosines (n, layers + 1, poolings) of n pairs, and how many vectors were damaged."""
    left = [first for first, _ in pairs]
    right = [second for _, second in pairs]
    place: dict[str, int] = {}
    for text in [*left, *right]:
        place.setdefault(text, len(place))
    vectors = layer_vectors(encoder, list(place))
    width = vectors.shape[-1]
    flat, damaged = finite(vectors.reshape(-1, width))
    vectors = flat.reshape(vectors.shape)
    u = vectors[[place[text] for text in left]]
    v = vectors[[place[text] for text in right]]
    similar = cosine(u.reshape(-1, width), v.reshape(-1, width))
    return similar.reshape(u.shape[:-1]), damaged


def _task(name: str, source: Source) -> LayersTask:
    pair_set = name.removeprefix("layers:")
    return LayersTask(pair_set, "embedded" if pair_set in EMBEDDED_STS else source)


TASKS = TaskFamily(("layers:STS-B", *(f"layers:{name}" for name in EMBEDDED_STS)), _task)
SUITE = Suite(
    ("layers:STS-B",),
    "STS-B by every layer and pooling of a transformer (SG figure 1)",
    metric="spearman",
    chance=0.0,
)
EMBEDDED = Suite(
    TASKS.names[1:],
    "layers and poolings on the embedded pairs",
    metric="spearman",
    chance=0.0,
)
