"""Image-caption retrieval (SentEval's senteval/rank.py, tools/ranking.py) with given image
features.

Two linear maps lead into one space, in which images and captions are ranked by cosine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import InputError
from harness.results.facts import IMAGES, Facts
from harness.results.outcomes import outcomes_frame
from harness.results.text_ids import stack, text_ids
from harness.sources.senteval.labelled import downstream_folder
from harness.sources.senteval.prepared import CAPTIONS, find_or_prepare, read_captions
from harness.tasks.base import Array, TaskResult, Vectors, finite
from harness.tasks.protocol import add_number

if TYPE_CHECKING:
    from torch import Tensor

VERSION = "harness-senteval-retrieval-1"
PREPARATION = "captions as given; words joined by single spaces"
_FIRST = (1, 5, 10)
_FOLD = 1000  # images ranked against each other
_FOLDS = 5
WIDTH = 1000  # dimensions of the common space
_BATCH = 128
_CONTRASTS = 30
_MARGIN = 0.2
_MAX_PASSES = 20
_TENACITY = 3


@dataclass(frozen=True)
class Recalls:
    """`image_ranks` (n,) and `caption_ranks` (n, 5) say of each ranked image, and each of its
    captions, how many of its fold are nearer than what belongs to it. `folds` of equal size were
    ranked one by one.
    """

    image_ranks: NDArray[np.int64]
    caption_ranks: NDArray[np.int64]
    folds: int = 1

    @property
    def image_to_text(self) -> tuple[float, ...]:
        """Recall at 1, 5 and 10 in percent and the median rank (from 1), averaged over the folds."""
        return self._average_folds(self.image_ranks)

    @property
    def text_to_image(self) -> tuple[float, ...]:
        """The same for captions."""
        return self._average_folds(self.caption_ranks)

    @property
    def total(self) -> float:
        """The sum of the six recalls: what SentEval selects by and calls devacc."""
        images = sum(self.image_to_text[:3])
        captions = sum(self.text_to_image[:3])
        return images + captions

    def _average_folds(self, ranks: NDArray[np.int64]) -> tuple[float, ...]:
        rows = []
        for fold in np.split(ranks, self.folds):
            rows.append(
                [
                    *(100 * float((fold < k).mean()) for k in _FIRST),
                    float(np.floor(np.median(fold)) + 1),
                ]
            )
        return tuple(np.array(rows).mean(axis=0).tolist())


def rank_recalls(images: Array, captions: Array) -> Recalls:
    """Of unit vectors of n images and 5n captions (five of each image, in the images' order).

    Up to five folds of 1000 images are ranked; fewer images than one fold are ranked together.
    """
    folds = max(1, min(_FOLDS, len(images) // _FOLD))
    size = min(len(images), _FOLD)
    image_ranks = []
    caption_ranks = []
    for first in range(0, folds * size, size):
        last = first + size
        x = np.asarray(images[first:last], dtype=np.float64)
        y = np.asarray(captions[first * CAPTIONS : last * CAPTIONS], dtype=np.float64)
        scores = y @ x.T  # (5 size, size)
        image_of = np.repeat(np.arange(size), CAPTIONS)
        own = scores[np.arange(len(y)), image_of]
        better_images = (scores > own[:, None]).sum(1)
        caption_ranks.append(better_images.reshape(size, CAPTIONS))
        best_own = own.reshape(size, CAPTIONS).max(1)
        image_ranks.append((scores > best_own[None]).sum(0))
    return Recalls(np.concatenate(image_ranks), np.concatenate(caption_ranks), folds)


def _draw_batches(
    n: int, shuffle: np.random.RandomState
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
    """Yield the rows of the batches of one pass over n captions, with the contrasts of their images
    and of their captions.
    """
    order = shuffle.permutation(n)
    for begin in range(0, n, _BATCH):
        rows = order[begin : begin + _BATCH]
        before = order[:begin]
        after = order[begin + _BATCH :]
        others = np.concatenate([before, after])
        for_images = shuffle.choice(others, _CONTRASTS * len(rows))
        for_texts = shuffle.choice(others, _CONTRASTS * len(rows))
        yield rows, for_images, for_texts


def _hinge_loss(
    images: Tensor,
    captions: Tensor,
    other_images: Tensor,
    other_captions: Tensor,
) -> Tensor:
    """Hinge loss of pairs (b, d) against k contrasts of each in both directions, (b, k, d)."""
    import torch

    own = (images * captions).sum(1, keepdim=True)
    to_captions = torch.einsum("bd,bkd->bk", images, other_captions)
    to_images = torch.einsum("bd,bkd->bk", captions, other_images)
    by_text = (_MARGIN - own + to_captions).clamp_min(0).sum()
    by_image = (_MARGIN - own + to_images).clamp_min(0).sum()
    return by_text + by_image


def fit_and_rank(
    images: dict[str, Array],
    captions: dict[str, Array],
    *,
    seed: int = 1111,
    width: int = WIDTH,
) -> tuple[Recalls, Recalls]:
    """Recalls on dev and test of the weights best on dev; images (n, d), captions (5n, e) by
    "train", "dev", "test".

    Hinge loss with margin 0.2 against 30 random contrasts an item in both directions, summed; Adam;
    a dev check after every pass, at most 20 passes (a 21st is begun as in SentEval), the end at the
    4th check that did not improve.

    Raises:
        InputError: too few training captions for a batch and its contrasts.
    """
    import torch
    from torch.nn import functional as F  # noqa: N812 - torch's own convention

    device = "cuda" if torch.cuda.is_available() else "cpu"

    def to_tensor(vectors: Array) -> Tensor:
        return torch.as_tensor(np.asarray(vectors, dtype=np.float32), device=device)

    x = {part: to_tensor(vectors) for part, vectors in images.items()}
    t = {part: to_tensor(vectors) for part, vectors in captions.items()}
    n = len(t["train"])
    if n <= _BATCH:
        raise InputError(
            f"caption retrieval: {n} training captions; contrasts need more than one batch of {_BATCH}",
            key="caption retrieval",
        )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        image_width = x["train"].shape[1]
        text_width = t["train"].shape[1]
        image_map = torch.nn.Linear(image_width, width).to(device)
        text_map = torch.nn.Linear(text_width, width).to(device)
    maps = torch.nn.ModuleList([image_map, text_map])
    optimizer = torch.optim.Adam(maps.parameters())
    shuffle = np.random.RandomState(seed)
    kept = None
    best = None
    best_total = -1.0
    failures = 0

    def map_images(vectors: Tensor) -> Tensor:
        return F.normalize(image_map(vectors), dim=1)

    def map_texts(vectors: Tensor) -> Tensor:
        return F.normalize(text_map(vectors), dim=1)

    def recalls(part: str) -> Recalls:
        with torch.no_grad():
            u = map_images(x[part]).cpu().numpy()
            v = map_texts(t[part]).cpu().numpy()
        return rank_recalls(u, v)

    for _ in range(_MAX_PASSES + 1):
        for rows, image_contrasts, text_contrasts in _draw_batches(n, shuffle):
            u = map_images(x["train"][rows // CAPTIONS])
            v = map_texts(t["train"][rows])
            cu = map_images(x["train"][image_contrasts // CAPTIONS])
            cv = map_texts(t["train"][text_contrasts])
            cu = cu.view(len(rows), _CONTRASTS, -1)
            cv = cv.view(len(rows), _CONTRASTS, -1)
            optimizer.zero_grad()
            _hinge_loss(u, v, cu, cv).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        now = recalls("dev")
        if now.total > best_total:
            best = now
            best_total = now.total
            kept = {key: value.clone() for key, value in maps.state_dict().items()}
        else:
            failures += 1
            if failures > _TENACITY:
                break
    assert kept is not None
    assert best is not None
    maps.load_state_dict(kept)
    return best, recalls("test")


_PARTS = ("train", "dev", "test")


@dataclass(frozen=True)
class CaptionSet:
    """By part: image features (n, d) and captions (5n, five of each image)."""

    images: dict[str, Array]
    captions: dict[str, list[str]]
    sha256: str


class CaptionRetrievalTask:
    """COCO retrieval with given image features: recall at 1, 5 and 10 in both directions, and their
    mean.
    """

    name = "caption-retrieval"
    source = "senteval"
    suite = "downstream"

    def __init__(self, root: Path | None = None, *, seed: int = 1111, width: int = 1000) -> None:
        self.root = root
        self.width = width
        self.seed = seed

    @cached_property
    def data(self) -> CaptionSet:
        images = {}
        captions = {}
        digest = hashlib.sha256()
        folder = find_or_prepare(downstream_folder(self.root), "COCO")
        for part, file in (("train", "train"), ("dev", "valid"), ("test", "test")):
            images[part], captions[part] = read_captions(folder / f"{file}.pkl")
            digest.update(np.ascontiguousarray(images[part]).tobytes())
            joined = "\n".join(captions[part])
            digest.update(joined.encode("utf-8", "surrogatepass"))
        return CaptionSet(images, captions, digest.hexdigest())

    @property
    def sha256(self) -> str:
        return self.data.sha256

    def texts(self) -> list[str]:
        return [text for part in _PARTS for text in self.data.captions[part]]

    def outcome(self, vectors: Vectors) -> tuple[Recalls, Recalls, int]:
        """Recalls on dev and test, and how many vectors held NaN or infinity (replaced by 0)."""
        vectors_by_part = {}
        for part, texts in self.data.captions.items():
            vectors_by_part[part] = finite(vectors(texts))
        captions = {}
        damaged = 0
        for part, (x, bad) in vectors_by_part.items():
            captions[part] = x
            damaged += bad
        dev, test = fit_and_rank(self.data.images, captions, seed=self.seed, width=self.width)
        return dev, test, damaged

    def evaluate(self, vectors: Vectors, *, pooling: str) -> TaskResult:
        result = TaskResult()
        dev, test, damaged = self.outcome(vectors)
        result.note_damaged(self.name, damaged)
        values = {
            ("test", "recall"): test.total / 6,
            ("dev", "recall"): dev.total / 6,
        }
        for direction, recalls in (("i2t", test.image_to_text), ("t2i", test.text_to_image)):
            for k, recall in zip(_FIRST, recalls[:3], strict=True):
                values["test", f"{direction}_r{k}"] = recall
        for (split, metric), value in values.items():
            n = len(self.data.captions[split])
            about: dict[str, Any] = {
                "ranking": {"version": VERSION, "seed": self.seed, "width": self.width}
            }
            about |= {
                "aggregation": "mean of six recalls" if metric == "recall" else "",
                "preparation": PREPARATION,
            }
            add_number(result, self, metric, value / 100, n, pooling, split=split, **about)
        self._set_outcomes(result, test)
        result.figures[self.name] = Facts(IMAGES).plain()
        return result

    def _set_outcomes(self, result: TaskResult, test: Recalls) -> None:
        """Whether what belongs to an image or a caption was among the first k. An image is known by
        its first caption: its five have one picture, and are no independent queries.
        """
        images = test.image_ranks
        captions = test.caption_ranks
        first_captions = self.data.captions["test"][: captions.size : CAPTIONS]
        ids = text_ids(first_captions)
        ids_of_captions = np.repeat(ids, CAPTIONS)
        hits = {f"i2t_r{k}": (images < k, ids) for k in _FIRST}
        for k in _FIRST:
            hits[f"t2i_r{k}"] = ((captions < k).ravel(), ids_of_captions)
        both = [images < k for k in _FIRST]
        both += [(captions < k).mean(axis=1) for k in _FIRST]
        hits["recall"] = np.mean(both, axis=0), ids
        about: dict[str, Any] = {"task": self.name, "source": self.source, "split": "test"}
        frames = []
        for m, (hit, unit) in hits.items():
            frame = outcomes_frame(**about, metric=m, outcome=hit, unit=unit)
            frames.append(frame)
        result.outcomes = stack(frames)
