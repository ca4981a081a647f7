"""SentEval's relatedness tasks (senteval/sick.py, tools/relatedness.py): pair scores by a trained
regressor.

The score is expected from a distribution over the grades 1 to 5 that a linear layer with softmax
gives for the features [|u - v|, u * v] (Tai et al. 2015). SentEval trains it by the squared error
between the two distributions, although a comment there speaks of the KL divergence.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own convention

from harness.results.facts import PAIRS, Facts
from harness.results.outcomes import outcomes_frame
from harness.results.text_ids import pair_units, stack
from harness.tasks.base import Array, TaskResult, Vectors
from harness.tasks.senteval.classifier import Classifier
from harness.tasks.senteval.fits import ClassifierStack, logits, with_ones
from harness.tasks.senteval.transfer import LabelledTask, Load, downstream
from harness.tasks.sts import pearson, spearman

VERSION = "harness-senteval-relatedness-1"
GRADES = 5
_PASSES = 50
_MAX_PASSES = 1000
_TENACITY = 3


@dataclass(frozen=True)
class Regression:
    """Pearson on dev at the check whose weights are used, in [-1, 1]; predicted test scores (n,) in
    [1, 5].
    """

    dev_pearson: float
    predicted: NDArray[np.float64]


def grade_targets(scores: Array) -> NDArray[np.float32]:
    """(n, 5): the mass of score y on grade floor(y) is floor(y) + 1 - y, on grade floor(y) + 1 it
    is y - floor(y).

    There is no grade 0, so a score below 1 leaves a total below 1: SentEval's own arithmetic, which
    STS-B's scale from 0 meets.
    """
    y = np.asarray(scores, dtype=np.float64)[:, None]
    grade = np.arange(1, GRADES + 1)[None]
    low = np.floor(y)
    above = np.where(grade == low + 1, y - low, 0.0)
    below = np.where(grade == low, low - y + 1, 0.0)
    mass = above + below
    return mass.astype(np.float32)


def regress(x: dict[str, Array], scores: dict[str, Array], *, seed: int = 1111) -> Regression:
    """Fit on "train", keep the weights of the best Pearson on "dev", predict "test"; x (n, d),
    scores (n,).

    Adam, batches of 64; a check every 50 passes; the end at the 4th check that did not improve
    (counted over the whole fit) or past 1000 passes.
    """
    features = {part: with_ones(rows) for part, rows in x.items()}
    train = features["train"]
    targets = grade_targets(scores["train"])
    target = torch.as_tensor(targets.T.copy(), device=train.device)

    def errors(z: Tensor, rows: Tensor) -> Tensor:
        """Of the mean squared error (p - target)^2 over the batch and the grades, p the softmax."""
        p = F.pad(z, (0, 0, 1, 0)).softmax(2)
        by_p = (p - target[:, rows[0]]) * (2 / p.numel())
        mean = (by_p * p).sum(2, keepdim=True)
        by_logits = p * (by_p - mean)
        return by_logits[:, :, 1:]

    def predict(part: str) -> NDArray[np.float64]:
        with torch.no_grad():
            z = logits(heads.layers, features[part][None])
            p = z[0, 0].double().softmax(0).cpu().numpy()
        grade = np.arange(1, GRADES + 1)
        grades: NDArray[np.float64] = grade @ p
        return grades

    every = torch.arange(len(train), device=train.device)[None]
    heads = ClassifierStack(
        train,
        every,
        torch.zeros(1, 1, device=train.device),
        GRADES,
        Classifier(seed=seed),
        0,
    )
    best = -1.0
    kept = predict("test")
    failures = 0
    passes = 0
    while passes <= _MAX_PASSES and failures <= _TENACITY:
        for _ in range(_PASSES):
            heads.train_epoch(errors)
        passes += _PASSES
        now = pearson(predict("dev"), scores["dev"])
        if now > best:
            best = now
            kept = predict("test")
        else:
            failures += 1
    return Regression(best, kept)


class RegressorTask(LabelledTask):
    """SICK-R or STS-B with SentEval's supervised regressor: Pearson, Spearman and MSE on test,
    Pearson on dev.

    Not to be mixed with the plain cosine scores of the same sets, which need no training
    (`harness.tasks.sts`).
    """

    def __init__(
        self,
        dataset: str,
        load: Load,
        *,
        name: str = "",
        seed: int = 1111,
    ) -> None:
        super().__init__(
            dataset,
            load,
            name=name or f"regressor:{dataset}",
            suite="downstream",
        )
        self.seed = seed

    def outcome(self, vectors: Vectors) -> tuple[Regression, int]:
        """The fit, and how many vectors held NaN or infinity (replaced by 0)."""
        x, damaged = self.inputs(vectors)
        return regress(
            x,
            {name: part.labels for name, part in self.data.parts.items()},
            seed=self.seed,
        ), damaged

    def evaluate(self, vectors: Vectors, *, pooling: str) -> TaskResult:
        result = TaskResult()
        fit, damaged = self.outcome(vectors)
        result.notes += self.remarks(damaged)
        test = self.tested
        gold = np.asarray(test.labels, dtype=np.float64)
        regressor = {
            "version": VERSION,
            "seed": self.seed,
            "loss": "mse",
            "selection": "dev pearson",
        }
        particular = {"features": self.features, "regressor": regressor}
        for split, metric, value in (
            ("test", "spearman", spearman(fit.predicted, gold)),
            ("test", "pearson", pearson(fit.predicted, gold)),
            ("test", "mse", float(((fit.predicted - gold) ** 2).mean())),
            ("dev", "pearson", fit.dev_pearson),
        ):
            self._add(result, split, metric, value, pooling, particular)
        about: dict[str, Any] = {"task": self.name, "source": self.source, "split": "test"}
        about["unit"] = pair_units(test.first, test.second)
        frames = []
        for m in ("spearman", "pearson"):
            frame = outcomes_frame(**about, metric=m, outcome=fit.predicted, target=gold)
            frames.append(frame)
        squares = (fit.predicted - gold) ** 2
        frames.append(outcomes_frame(**about, metric="mse", outcome=squares))
        result.outcomes = stack(frames)
        result.figures[self.name] = Facts(PAIRS, metric="spearman", chance=0.0).plain()
        return result


def regressor_task(dataset: str, *, root: Path | None = None) -> RegressorTask:
    """ "SICK-R" or "STS-B" from SentEval's files, read on first use."""
    return RegressorTask(dataset, downstream(dataset, root))
