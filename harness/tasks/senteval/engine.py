"""A drop-in for scripts written for SentEval or for SimCSE's copy of it: `from harness import senteval`.

The same params keys (task_path, seed, kfold, usepytorch, batch_size, nhid, classifier), the same calls of the script's
`prepare` and `batcher`, the same result keys; the work is done by `harness.tasks`. STSBenchmark and SICKRelatedness
have the keys of both: those of SentEval's regressor, and "train", "dev", "test" and "all" with the plain cosine's
correlations, as in SimCSE's copy; with "-finetune" after the name, the regressor alone. Three things are added: exact
fits by the classifier's "solver": "lbfgs"; a fault in one task of a list (its files, or an exception of the script's
functions) leaves the other tasks their results, and such a task gets {"error": one line}; what a task has to remark
(vectors with NaN, files of another size than the published ones) is logged as a warning and stands under the key
"notes", which a result without remarks does not have.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from harness.config import nearest
from harness.errors import HarnessError, InputError, RunError
from harness.tasks.base import Array, Vectors, as_array, finite
from harness.tasks.senteval.fits.problem import Classifier, whole_number
from harness.tasks.senteval.probing import PROBING

_DOWNSTREAM = {name: name for name in ("MR", "CR", "SUBJ", "MPQA", "SST2", "SST5", "TREC", "MRPC", "SNLI")}
_CLASSIFICATION = {**_DOWNSTREAM, "SICKEntailment": "SICK-E"}
_REGRESSION = {"SICKRelatedness": "SICK-R", "STSBenchmark": "STS-B"}
_FINETUNE = "-finetune"
_YEARS = ("STS12", "STS13", "STS14", "STS15", "STS16")
_RETRIEVAL = "ImageCaptionRetrieval"
_REGRESSORS = tuple(name + _FINETUNE for name in _REGRESSION)
TASKS = (*_CLASSIFICATION, *_REGRESSION, *_REGRESSORS, _RETRIEVAL, *_YEARS, *PROBING)
_LOG = logging.getLogger(__name__)
_CLASSIFIER_KEYS = ("nhid", "optim", "batch_size", "tenacity", "epoch_size", "max_epoch", "dropout", "solver")

Batcher = Callable[[Any, list[list[str]]], Any]
Prepare = Callable[[Any, list[list[str]]], Any]


class Params(dict[str, Any]):
    """A dict whose keys are attributes too, as SentEval hands it to `prepare` and `batcher`.

    >>> params = Params(task_path="data", seed=7)
    >>> params.seed, params.task_path
    (7, 'data')
    """

    def __getattr__(self, name: str) -> Any:
        return self.get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class Correlation(NamedTuple):
    """As scipy gives it: to be unpacked, or read by name."""

    correlation: float
    pvalue: float


class SE:
    """SentEval's engine. `list_tasks` has the names that `eval` takes.

        >>> engine = SE(Params(task_path="no/folder"), lambda params, batch: np.ones((len(batch), 4)))
        >>> "STSBenchmark" in engine.list_tasks
        True

    `params["task_path"]`: SentEval's data folder (with downstream and probing); without it the hub's copy is used.
    """

    def __init__(self, params: dict[str, Any], batcher: Batcher, prepare: Prepare | None = None) -> None:
        """Raises:
        InputError: a setting that SentEval has no place for or that is out of its range.
        """
        self.params = Params(params)
        for key, value in (("usepytorch", True), ("seed", 1111), ("batch_size", 128), ("nhid", 0), ("kfold", 5)):
            self.params.setdefault(key, value)
        if not self.params.get("classifier"):
            self.params.classifier = {"nhid": 0}
        if not whole_number(self.params.batch_size, 1):
            raise InputError(f'params["batch_size"] = {self.params.batch_size!r}: expected a whole number from 1')
        given = self.params.classifier
        if not isinstance(given, dict):
            raise InputError(f'params["classifier"] = {given!r}: expected a dict such as {{"nhid": 0}}')
        if "nhid" not in given:
            raise InputError('params["classifier"]: "nhid" is missing; 0 means logistic regression')
        for key in given:
            if key not in _CLASSIFIER_KEYS:
                known = list(_CLASSIFIER_KEYS)
                raise InputError(f'params["classifier"]: unknown key "{key}"{nearest(str(key), known)}; known: {known}')
        self.classifier = Classifier(**given, kfold=self.params.kfold, seed=self.params.seed)
        if not self.params.usepytorch:
            self.classifier = Classifier(solver="sklearn", kfold=self.params.kfold, seed=self.params.seed)
        self.list_tasks = list(TASKS)
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
                raise InputError(f'unknown task "{one}"{nearest(str(one), list(TASKS))}; known: {", ".join(TASKS)}')
        if isinstance(name, str):
            self.results = self._eval(name)
            return self.results
        self.results = {}  # filled as the tasks end: an interrupt leaves what is finished
        for one in names:
            try:
                self.results[one] = self._eval(one)
            except HarnessError as error:
                self.results[one] = {"error": str(error)}
                _LOG.warning("%s: %s", one, error)
            except Exception as error:  # of the script's own functions: its author needs the traceback
                self.results[one] = {"error": f"{type(error).__name__}: {' '.join(str(error).split())}"}
                _LOG.exception("%s: no result", one)
        return self.results

    def _eval(self, name: str) -> dict[str, Any]:
        root = Path(self.params.task_path) if self.params.get("task_path") else None
        self.params.current_task = name
        if name in _YEARS:
            return self._sts(name, root)
        if name in (*_REGRESSION, *_REGRESSORS):
            return self._pair_scores(name, root)
        if name == _RETRIEVAL:
            return self._retrieval(root)
        return self._classification(name, root)

    def _vectors(self, texts: Sequence[str]) -> Array:
        """Vectors of the script's batcher, which gets lists of words in batches of `batch_size`."""
        size = self.params.batch_size
        parts: list[Array] = []
        for begin in range(0, len(texts), size):
            batch = [text.split() for text in texts[begin : begin + size]]
            part = as_array(self.batcher(self.params, batch))
            if part.ndim != 2 or len(part) != len(batch) or not part.shape[1]:
                raise RunError(f"batcher returned shape {part.shape} for {len(batch)} sentences; expected one row each")
            if part.dtype.kind not in "fiub":
                raise RunError(f"batcher returned {part.dtype} vectors; expected numbers")
            if parts and part.shape[1] != parts[0].shape[1]:
                widths = f"{parts[0].shape[1]} and then {part.shape[1]}"
                raise RunError(f"batcher returned vectors of {widths} dimensions; expected the same for all sentences")
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
        outcome, damaged = task.outcome(self._vectors)
        parts = task.data.parts
        whole = next(iter(parts.values()))
        ndev, ntest = len(parts.get("dev", whole)), len(parts.get("test", whole))
        result: dict[str, Any] = {"devacc": outcome.dev, "acc": outcome.test, "ndev": ndev, "ntest": ntest}
        if name == "MRPC" and outcome.predicted is not None:
            result["f1"] = f1(parts["test"].labels, outcome.predicted)
        return _noted(result, task.remarks(damaged))

    def _pair_scores(self, name: str, root: Path | None) -> dict[str, Any]:
        from harness.tasks.senteval.regression import regressor_task
        from harness.tasks.sts import pearson, spearman

        task = regressor_task(_REGRESSION[name.removesuffix(_FINETUNE)], root=root)
        task.seed = self.params.seed
        self._prepare(task.texts())
        parts = task.data.parts
        made: dict[int, Array] = {}

        def vectors(texts: Sequence[str]) -> Array:
            """Of one side of a part, which the regressor and the cosine both read."""
            if id(texts) not in made:
                made[id(texts)] = self._vectors(texts)
            return made[id(texts)]

        fit, damaged = task.outcome(vectors)
        gold = parts["test"].labels
        result: dict[str, Any] = {
            "devpearson": fit.dev_pearson,
            "pearson": pearson(fit.predicted, gold),
            "spearman": spearman(fit.predicted, gold),
            "mse": float(((fit.predicted - gold) ** 2).mean()),
            "yhat": fit.predicted,
            "ndev": len(parts["dev"]),
            "ntest": len(parts["test"]),
        }
        notes = task.remarks(damaged)
        if name in _REGRESSION:
            subsets = {part: (pairs.first, pairs.second, pairs.labels) for part, pairs in parts.items()}
            correlations, said = self._correlations(name, subsets, vectors)
            result |= correlations
            notes += [note for note in said if "replaced by 0" not in note]  # which the regressor has told
        return _noted(result, notes)

    def _retrieval(self, root: Path | None) -> dict[str, Any]:
        from harness.tasks.senteval.caption_retrieval import CaptionRetrievalTask

        task = CaptionRetrievalTask(root, seed=self.params.seed)
        self._prepare(task.texts())
        dev, test, damaged = task.outcome(self._vectors)
        result = {
            "devacc": dev.total,
            "acc": [test.image_to_text, test.text_to_image],
            "ndev": len(task.data.captions["dev"]),
            "ntest": len(task.data.captions["test"]),
        }
        return _noted(result, task.remarks(damaged))

    def _sts(self, name: str, root: Path | None) -> dict[str, Any]:
        from harness.sources.senteval.labelled import downstream_folder
        from harness.sources.senteval.similarity import read_year
        from harness.sources.senteval.sizes import unusual_sizes

        subsets = dict(read_year(downstream_folder(root), name))
        self._prepare([text for first, second, _ in subsets.values() for text in (*first, *second)])
        sizes = {subset: len(gold) for subset, (_, _, gold) in subsets.items()}
        notes = [f"{name}: {text}" for text in unusual_sizes(name, sizes)]
        result, said = self._correlations(name, subsets, self._vectors)
        return _noted(result, [*notes, *said])

    def _correlations(
        self, name: str, subsets: Mapping[str, tuple[Sequence[str], Sequence[str], Any]], vectors: Vectors
    ) -> tuple[dict[str, Any], list[str]]:
        """Of the similarities of each subset's pairs with their gold scores, and of all; and what is to be remarked."""
        from scipy import stats

        from harness.tasks.sts import aggregate, cosine, pearson, spearman

        similarity = self.params.get("similarity")
        result: dict[str, Any] = {}
        notes, scores, golds = [], [], []
        for subset, (first, second, gold) in subsets.items():
            (u, bad_u), (v, bad_v) = finite(vectors(first)), finite(vectors(second))
            if bad_u + bad_v:
                notes.append(f"{name} {subset}: vectors with NaN or infinity, replaced by 0: {bad_u + bad_v}")
            values: Array = cosine(u, v)
            if similarity is not None:
                values = np.array([similarity(a, b) for a, b in zip(u, v, strict=True)], dtype=np.float64)
            constant = np.ptp(values) == 0
            if constant:
                notes.append(f"{name} {subset}: all pairs have the same similarity; their correlation counts as 0")
            result[subset] = {
                kind: Correlation(0.0, 1.0) if constant else Correlation(*map(float, correlation(values, gold)))
                for kind, correlation in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr))
            }
            result[subset]["nsamples"] = len(gold)
            scores.append(values)
            golds.append(np.asarray(gold))
        result["all"] = {
            kind: {how: aggregate(correlation, scores, golds, how) for how in ("all", "mean", "wmean")}
            for kind, correlation in (("pearson", pearson), ("spearman", spearman))
        }
        return result, notes


def _noted(result: dict[str, Any], notes: Iterable[str]) -> dict[str, Any]:
    """`result` with what is to be remarked about it, if anything is."""
    said = list(notes)
    for note in said:
        _LOG.warning("%s", note)
    return {**result, "notes": said} if said else result


engine = SimpleNamespace(SE=SE)
