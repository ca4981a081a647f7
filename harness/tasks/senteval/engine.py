"""A drop-in for scripts written for SentEval: `from harness.senteval import engine; engine.SE(...).eval(tasks)`.

The same params keys (task_path, seed, kfold, usepytorch, batch_size, nhid, classifier), the same calls of the script's
`prepare` and `batcher`, the same result keys; the work is done by `harness.tasks`. Two things are added: exact fits by
the classifier's "solver": "lbfgs", and faults in one task's files leave the other tasks of a list their results: such
a task gets {"error": one line}.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from harness.config import nearest
from harness.errors import InputError, RunError
from harness.tasks.base import Array, finite
from harness.tasks.senteval.fits.problem import Classifier
from harness.tasks.senteval.probing import PROBING

_DOWNSTREAM = {name: name for name in ("MR", "CR", "SUBJ", "MPQA", "SST2", "SST5", "TREC", "MRPC", "SNLI")}
_CLASSIFICATION = {**_DOWNSTREAM, "SICKEntailment": "SICK-E"}
_REGRESSION = {"SICKRelatedness": "SICK-R", "STSBenchmark": "STS-B"}
_YEARS = ("STS12", "STS13", "STS14", "STS15", "STS16")
_RETRIEVAL = "ImageCaptionRetrieval"
TASKS = (*_CLASSIFICATION, *_REGRESSION, _RETRIEVAL, *_YEARS, *PROBING)
_CLASSIFIER_KEYS = ("nhid", "optim", "batch_size", "tenacity", "epoch_size", "max_epoch", "dropout", "solver")

Batcher = Callable[[Any, list[list[str]]], Any]
Prepare = Callable[[Any, list[list[str]]], Any]


class Params(dict[str, Any]):
    """A dict whose keys are attributes too, as SentEval hands it to `prepare` and `batcher`."""

    def __getattr__(self, name: str) -> Any:
        return self.get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class SE:
    """SentEval's engine.

    `params["task_path"]`: SentEval's data folder (with downstream and probing); without it the hub's copy is used.
    """

    def __init__(self, params: dict[str, Any], batcher: Batcher, prepare: Prepare | None = None) -> None:
        """Raises:
        InputError: a setting that SentEval has no place for or that is out of its range.
        """
        self.params = Params(params)
        for key, value in (("usepytorch", True), ("seed", 1111), ("batch_size", 32), ("nhid", 0), ("kfold", 5)):
            self.params.setdefault(key, value)
        if not self.params.get("classifier"):
            self.params.classifier = {"nhid": 0}
        if not self.params.usepytorch:
            raise InputError(
                'params["usepytorch"]: scikit-learn\'s head is not offered; leave it True, and for the exact solution '
                'add "solver": "lbfgs" to params["classifier"]'
            )
        given = self.params.classifier
        if "nhid" not in given:
            raise InputError('params["classifier"]: "nhid" is missing; 0 means logistic regression')
        for key in given:
            if key not in _CLASSIFIER_KEYS:
                known = list(_CLASSIFIER_KEYS)
                raise InputError(f'params["classifier"]: unknown key "{key}"{nearest(key, known)}; known: {known}')
        self.classifier = Classifier(**given, kfold=self.params.kfold, seed=self.params.seed)
        self.batcher = batcher
        self.prepare = prepare or (lambda params, samples: None)
        self.results: dict[str, Any] = {}

    def eval(self, name: str | Sequence[str]) -> dict[str, Any]:
        """The results of one task, or of a list of tasks by name.

        Raises:
            InputError: an unknown task; the files of a task that was asked for alone are missing or damaged.
        """
        names = [name] if isinstance(name, str) else list(name)
        for one in names:
            if one not in TASKS:
                raise InputError(f'unknown task "{one}"{nearest(one, list(TASKS))}; known: {", ".join(TASKS)}')
        if isinstance(name, str):
            self.results = self._eval(name)
            return self.results
        results: dict[str, Any] = {}
        for one in names:
            try:
                results[one] = self._eval(one)
            except InputError as error:
                results[one] = {"error": str(error)}
        self.results = results
        return results

    def _eval(self, name: str) -> dict[str, Any]:
        root = Path(self.params.task_path) if self.params.get("task_path") else None
        self.params.current_task = name
        if name in _YEARS:
            return self._sts(name, root)
        if name in _REGRESSION:
            return self._regression(_REGRESSION[name], root)
        if name == _RETRIEVAL:
            return self._retrieval(root)
        return self._classification(name, root)

    def _vectors(self, texts: Sequence[str]) -> Array:
        """Vectors of the script's batcher, which gets lists of words in batches of `batch_size`."""
        size = self.params.batch_size
        parts = []
        for begin in range(0, len(texts), size):
            batch = [text.split() for text in texts[begin : begin + size]]
            part = np.asarray(self.batcher(self.params, batch))
            if part.ndim != 2 or len(part) != len(batch):
                raise RunError(f"batcher returned shape {part.shape} for {len(batch)} sentences; expected one row each")
            parts.append(part)
        return np.concatenate(parts).astype(np.float32, copy=False)

    def _prepare(self, texts: Sequence[str]) -> None:
        self.prepare(self.params, [text.split() for text in texts])

    def _classification(self, name: str, root: Path | None) -> dict[str, Any]:
        from harness.tasks.senteval.probing import probing_task
        from harness.tasks.senteval.transfer import f1, transfer_task

        task = (
            probing_task(name, classifier=self.classifier, root=root)
            if name in PROBING
            else transfer_task(_CLASSIFICATION[name], classifier=self.classifier, root=root)
        )
        self._prepare(task.texts())
        outcome, _ = task.outcome(self._vectors)
        parts = task.data.parts
        whole = next(iter(parts.values()))
        ndev, ntest = len(parts.get("dev", whole)), len(parts.get("test", whole))
        result: dict[str, Any] = {"devacc": outcome.dev, "acc": outcome.test, "ndev": ndev, "ntest": ntest}
        if name == "MRPC" and outcome.predicted is not None:
            result["f1"] = f1(parts["test"].labels, outcome.predicted)
        return result

    def _regression(self, name: str, root: Path | None) -> dict[str, Any]:
        from harness.tasks.senteval.regression import regressor_task
        from harness.tasks.sts import pearson, spearman

        task = regressor_task(name, root=root)
        task.seed = self.params.seed
        self._prepare(task.texts())
        fit, _ = task.outcome(self._vectors)
        parts = task.data.parts
        gold = parts["test"].labels
        return {
            "devpearson": fit.dev_pearson,
            "pearson": pearson(fit.predicted, gold),
            "spearman": spearman(fit.predicted, gold),
            "mse": float(((fit.predicted - gold) ** 2).mean()),
            "yhat": fit.predicted,
            "ndev": len(parts["dev"]),
            "ntest": len(parts["test"]),
        }

    def _retrieval(self, root: Path | None) -> dict[str, Any]:
        from harness.tasks.senteval.caption_retrieval import CaptionRetrievalTask

        task = CaptionRetrievalTask(root, seed=self.params.seed)
        self._prepare(task.texts())
        dev, test, _ = task.outcome(self._vectors)
        return {
            "devacc": dev.total,
            "acc": [test.image_to_text, test.text_to_image],
            "ndev": len(task.data.captions["dev"]),
            "ntest": len(task.data.captions["test"]),
        }

    def _sts(self, name: str, root: Path | None) -> dict[str, Any]:
        from scipy import stats

        from harness.sources.senteval.labelled import downstream_folder
        from harness.sources.senteval.similarity import read_year
        from harness.tasks.sts import aggregate, cosine, pearson, spearman

        subsets = dict(read_year(downstream_folder(root), name))
        self._prepare([text for first, second, _ in subsets.values() for text in (*first, *second)])
        similarity = self.params.get("similarity")
        result: dict[str, Any] = {}
        scores, golds = [], []
        for subset, (first, second, gold) in subsets.items():
            u, v = finite(self._vectors(first))[0], finite(self._vectors(second))[0]
            values: Array = cosine(u, v)
            if similarity is not None:
                values = np.array([similarity(a, b) for a, b in zip(u, v, strict=True)], dtype=np.float64)
            constant = np.ptp(values) == 0
            result[subset] = {
                "pearson": (0.0, 1.0) if constant else tuple(map(float, stats.pearsonr(values, gold))),
                "spearman": (0.0, 1.0) if constant else tuple(map(float, stats.spearmanr(values, gold))),
                "nsamples": len(gold),
            }
            scores.append(values)
            golds.append(np.asarray(gold))
        result["all"] = {
            kind: {how: aggregate(correlation, scores, golds, how) for how in ("all", "mean", "wmean")}
            for kind, correlation in (("pearson", pearson), ("spearman", spearman))
        }
        return result


engine = SimpleNamespace(SE=SE)
