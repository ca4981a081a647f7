"""SentEval's other downstream tasks: pair scores by a trained regressor, and image-caption retrieval."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.sources.senteval.labelled import PREPARATION
from harness.tasks.base import Array, TaskResult, Vectors, finite
from harness.tasks.protocol import add_score
from harness.tasks.sts import pearson, spearman
from harness.tasks.transfer import Load, pair_features

if TYPE_CHECKING:
    from harness.sources.senteval.labelled import Labelled
    from harness.tasks.relatedness import Regression
    from harness.tasks.retrieval import Recalls

_PARTS = ("train", "dev", "test")


class RegressorTask:
    """SICK-R or STS-B with SentEval's supervised regressor: Pearson, Spearman and MSE on test, Pearson on dev.

    Not to be mixed with the plain cosine scores of the same sets, which need no training (`harness.tasks.sts`).
    """

    source = "senteval"
    suite = "downstream"

    def __init__(self, dataset: str, load: Load, *, name: str = "", seed: int = 1111) -> None:
        self.dataset = dataset
        self.name = name or f"regressor:{dataset}"
        self.seed = seed
        self._load = load

    @cached_property
    def data(self) -> Labelled:
        return self._load()

    @property
    def sha256(self) -> str:
        return self.data.sha256

    def texts(self) -> list[str]:
        return [text for part in self.data.parts.values() for side in (part.first, part.second) for text in side]

    def outcome(self, vectors: Vectors) -> tuple[Regression, int]:
        """The fit, and how many vectors held NaN or infinity (replaced by 0)."""
        from harness.tasks.relatedness import regress

        x, damaged = {}, 0
        for name, part in self.data.parts.items():
            (u, bad_u), (v, bad_v) = finite(vectors(part.first)), finite(vectors(part.second))
            x[name] = pair_features(u, v)
            damaged += bad_u + bad_v
        return regress(x, {name: part.labels for name, part in self.data.parts.items()}, seed=self.seed), damaged

    def evaluate(self, vectors: Vectors, *, pooling: str) -> TaskResult:
        result = TaskResult()
        fit, damaged = self.outcome(vectors)
        if damaged:
            result.notes.append(f"{self.name}: vectors with NaN or infinity, replaced by 0: {damaged}")
        dev, test = self.data.parts["dev"], self.data.parts["test"]
        gold = np.asarray(test.labels, dtype=np.float64)
        found = {
            ("test", "spearman"): spearman(fit.predicted, gold),
            ("test", "pearson"): pearson(fit.predicted, gold),
            ("test", "mse"): float(((fit.predicted - gold) ** 2).mean()),
            ("dev", "pearson"): fit.dev_pearson,
        }
        for (split, metric), value in found.items():
            description = self._describe(split, metric)
            n = len(test) if split == "test" else len(dev)
            add_score(result, description, suite=self.suite, pooling=pooling, value=value, n=n)
        return result

    def _describe(self, split: str, metric: str) -> dict[str, Any]:
        from harness.tasks.relatedness import VERSION

        return {
            "task": self.name,
            "source": self.source,
            "split": split,
            "data": self.data.sha256,
            "preparation": PREPARATION,
            "features": "|u-v|, u*v",
            "regressor": {"version": VERSION, "seed": self.seed, "loss": "mse", "selection": "dev pearson"},
            "metric": metric,
            "aggregation": "",
        }


def regressor_task(dataset: str, *, root: Path | None = None) -> RegressorTask:
    """ "SICK-R" or "STS-B" from SentEval's files, read on first use."""

    def load() -> Labelled:
        from harness.sources.senteval.labelled import downstream_folder, read_task

        return read_task(dataset, downstream_folder(root))

    return RegressorTask(dataset, load)


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

        images, captions, digest = {}, {}, hashlib.sha256()
        folder = downstream_folder(self.root) / "COCO"
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
        from harness.tasks.retrieval import fit_and_rank

        found = {part: finite(vectors(texts)) for part, texts in self.data.captions.items()}
        captions = {part: x for part, (x, _) in found.items()}
        dev, test = fit_and_rank(self.data.images, captions, seed=self.seed, width=self.width)
        return dev, test, sum(bad for _, bad in found.values())

    def evaluate(self, vectors: Vectors, *, pooling: str) -> TaskResult:
        from harness.tasks.retrieval import VERSION

        result = TaskResult()
        dev, test, damaged = self.outcome(vectors)
        if damaged:
            result.notes.append(f"{self.name}: vectors with NaN or infinity, replaced by 0: {damaged}")
        found = {("test", "recall"): test.total / 6, ("dev", "recall"): dev.total / 6}
        for direction, recalls in (("i2t", test.image_to_text), ("t2i", test.text_to_image)):
            found |= {("test", f"{direction}_r{k}"): r for k, r in zip((1, 5, 10), recalls[:3], strict=True)}
        for (split, metric), value in found.items():
            description = {
                "task": self.name,
                "source": self.source,
                "split": split,
                "data": self.data.sha256,
                "preparation": "captions as given; words joined by single spaces",
                "ranking": {"version": VERSION, "seed": self.seed, "width": self.width},
                "metric": metric,
                "aggregation": "mean of six recalls" if metric == "recall" else "",
            }
            n = len(self.data.captions[split])
            add_score(result, description, suite=self.suite, pooling=pooling, value=value / 100, n=n)
        return result
