"""SentEval's image-caption retrieval as a task."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.results.facts import IMAGES, Facts
from harness.results.outcomes import outcomes_frame
from harness.results.text_ids import stacked, text_ids
from harness.tasks.base import Array, TaskResult, Vectors, finite
from harness.tasks.protocol import Description, add_score

if TYPE_CHECKING:
    import pandas as pd

    from harness.tasks.senteval.caption_ranking import Recalls

_PARTS = ("train", "dev", "test")
_FIRST = (1, 5, 10)


@dataclass(frozen=True)
class CaptionSet:
    """By part: image features (n, d) and captions (5n, five of each image)."""

    images: dict[str, Array]
    captions: dict[str, list[str]]
    sha256: str


class CaptionRetrievalTask:
    """COCO retrieval with given image features: recall at 1, 5 and 10 in both directions, and their mean."""

    name = "caption-retrieval"
    source = "senteval"
    suite = "downstream"

    def __init__(self, root: Path | None = None, *, seed: int = 1111, width: int = 1000) -> None:
        self.root = root
        self.width = width
        self.seed = seed

    @cached_property
    def data(self) -> CaptionSet:
        from harness.sources.senteval.captions import read_captions
        from harness.sources.senteval.labelled import downstream_folder
        from harness.sources.senteval.prepared import given_or_prepared

        images, captions, digest = {}, {}, hashlib.sha256()
        folder = given_or_prepared(downstream_folder(self.root), "COCO")
        for part, file in (("train", "train"), ("dev", "valid"), ("test", "test")):
            images[part], captions[part] = read_captions(folder, file)
            digest.update(np.ascontiguousarray(images[part]).tobytes())
            digest.update("\n".join(captions[part]).encode("utf-8", "surrogatepass"))
        return CaptionSet(images, captions, digest.hexdigest())

    @property
    def sha256(self) -> str:
        return self.data.sha256

    def texts(self) -> list[str]:
        return [text for part in _PARTS for text in self.data.captions[part]]

    def outcome(self, vectors: Vectors) -> tuple[Recalls, Recalls, int]:
        """Recalls on dev and test, and how many vectors held NaN or infinity (replaced by 0)."""
        from harness.tasks.senteval.caption_ranking import fit_and_rank

        vectors_by_part = {part: finite(vectors(texts)) for part, texts in self.data.captions.items()}
        captions = {part: x for part, (x, _) in vectors_by_part.items()}
        dev, test = fit_and_rank(self.data.images, captions, seed=self.seed, width=self.width)
        return dev, test, sum(bad for _, bad in vectors_by_part.values())

    def remarks(self, damaged: int) -> list[str]:
        """What a reader should know of the scores; `damaged`: how many vectors held NaN or infinity."""
        return [f"{self.name}: vectors with NaN or infinity, replaced by 0: {damaged}"] if damaged else []

    def evaluate(self, vectors: Vectors, *, pooling: str) -> TaskResult:
        from harness.tasks.senteval.caption_ranking import VERSION

        result = TaskResult()
        dev, test, damaged = self.outcome(vectors)
        result.notes += self.remarks(damaged)
        recalls_by = {("test", "recall"): test.total / 6, ("dev", "recall"): dev.total / 6}
        for direction, recalls in (("i2t", test.image_to_text), ("t2i", test.text_to_image)):
            recalls_by |= {("test", f"{direction}_r{k}"): r for k, r in zip(_FIRST, recalls[:3], strict=True)}
        for (split, metric), value in recalls_by.items():
            description = Description(
                self.name,
                self.source,
                split,
                metric,
                self.data.sha256,
                "mean of six recalls" if metric == "recall" else "",
                "captions as given; words joined by single spaces",
                {"ranking": {"version": VERSION, "seed": self.seed, "width": self.width}},
            )
            n = len(self.data.captions[split])
            add_score(result, description, suite=self.suite, pooling=pooling, value=value / 100, n=n)
        result.outcomes = self._outcomes(test)
        result.figures[self.name] = Facts(IMAGES).plain()
        return result

    def _outcomes(self, test: Recalls) -> pd.DataFrame | None:
        """Whether what belongs to an image or a caption was among the first k. An image is known by its first caption:
        its five have one picture, and are no independent queries."""
        if test.image_ranks is None or test.caption_ranks is None:
            return None
        images, captions = test.image_ranks, test.caption_ranks
        ids = text_ids(self.data.captions["test"][: captions.size : captions.shape[1]])
        hits = {f"i2t_r{k}": (images < k, ids) for k in _FIRST}
        hits |= {f"t2i_r{k}": ((captions < k).ravel(), np.repeat(ids, captions.shape[1])) for k in _FIRST}
        both = [hits[f"i2t_r{k}"][0] for k in _FIRST] + [(captions < k).mean(axis=1) for k in _FIRST]
        hits["recall"] = np.mean(both, axis=0), ids
        about: dict[str, Any] = {"task": self.name, "source": self.source, "split": "test"}
        frames = [outcomes_frame(**about, metric=m, outcome=hit, unit=unit) for m, (hit, unit) in hits.items()]
        return stacked(frames)
