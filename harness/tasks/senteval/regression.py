"""SentEval's relatedness tasks: pair scores by a trained regressor."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.results.facts import PAIRS, Facts
from harness.results.outcomes import outcomes_frame
from harness.results.text_ids import pair_units, stacked
from harness.sources.senteval.labelled import PREPARATION
from harness.tasks.base import TaskResult, Vectors, finite
from harness.tasks.protocol import Description, add_score
from harness.tasks.senteval.transfer import Load, data_remarks, pair_features
from harness.tasks.sts import pearson, spearman

if TYPE_CHECKING:
    from harness.sources.senteval.labelled import Labelled, LabelledSplit
    from harness.tasks.senteval.pair_regressor import Regression


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

    @property
    def tested(self) -> LabelledSplit:
        """The test part."""
        return self.data.parts["test"]

    def remarks(self, damaged: int) -> list[str]:
        """What a reader should know of the scores: sizes that are not the published ones, and damaged vectors."""
        return data_remarks(self.name, self.dataset, self.data.parts, damaged)

    def texts(self) -> list[str]:
        return [text for part in self.data.parts.values() for side in (part.first, part.second) for text in side]

    def outcome(self, vectors: Vectors) -> tuple[Regression, int]:
        """The fit, and how many vectors held NaN or infinity (replaced by 0)."""
        from harness.tasks.senteval.pair_regressor import regress

        x, damaged = {}, 0
        for name, part in self.data.parts.items():
            (u, bad_u), (v, bad_v) = finite(vectors(part.first)), finite(vectors(part.second))
            x[name] = pair_features(u, v)
            damaged += bad_u + bad_v
        return regress(x, {name: part.labels for name, part in self.data.parts.items()}, seed=self.seed), damaged

    def evaluate(self, vectors: Vectors, *, pooling: str) -> TaskResult:
        result = TaskResult()
        fit, damaged = self.outcome(vectors)
        result.notes += self.remarks(damaged)
        dev, test = self.data.parts["dev"], self.tested
        gold = np.asarray(test.labels, dtype=np.float64)
        values = {
            ("test", "spearman"): spearman(fit.predicted, gold),
            ("test", "pearson"): pearson(fit.predicted, gold),
            ("test", "mse"): float(((fit.predicted - gold) ** 2).mean()),
            ("dev", "pearson"): fit.dev_pearson,
        }
        for (split, metric), value in values.items():
            description = self._describe(split, metric)
            n = len(test) if split == "test" else len(dev)
            add_score(result, description, suite=self.suite, pooling=pooling, value=value, n=n)
        about: dict[str, Any] = {"task": self.name, "source": self.source, "split": "test"}
        about["unit"] = pair_units(test.first, test.second)
        frames = [
            outcomes_frame(**about, metric=metric, outcome=fit.predicted, target=gold)
            for metric in ("spearman", "pearson")
        ]
        result.outcomes = stacked([*frames, outcomes_frame(**about, metric="mse", outcome=(fit.predicted - gold) ** 2)])
        result.figures[self.name] = Facts(PAIRS, metric="spearman", chance=0.0).plain()
        return result

    def _describe(self, split: str, metric: str) -> Description:
        from harness.tasks.senteval.pair_regressor import VERSION

        return Description(
            self.name,
            self.source,
            split,
            metric,
            self.data.sha256,
            preparation=PREPARATION,
            particular={
                "features": "|u-v|, u*v",
                "regressor": {"version": VERSION, "seed": self.seed, "loss": "mse", "selection": "dev pearson"},
            },
        )


def regressor_task(dataset: str, *, root: Path | None = None) -> RegressorTask:
    """ "SICK-R" or "STS-B" from SentEval's files, read on first use."""

    def load() -> Labelled:
        from harness.sources.senteval.labelled import downstream_folder, read_task

        return read_task(dataset, downstream_folder(root))

    return RegressorTask(dataset, load)
