"""A drop-in for scripts written for SentEval or for SimCSE's copy of it:
`from harness import senteval`.

The params keys (task_path, seed, kfold, usepytorch, batch_size, nhid, classifier), the calls of the
script's `prepare` and `batcher`, and the result keys are SentEval's; `harness.tasks` does the work.
STSBenchmark and SICKRelatedness have
the keys of both: those of SentEval's regressor, and "train", "dev", "test" and "all" with the
correlations of the plain cosine, as in SimCSE's copy; with "-finetune" after the name, the
regressor alone.

Two things are added. An error in one task of a list (in its files or
in the script's functions) leaves the other tasks their results; that task gets {"error": one line}.
Remarks (on vectors with NaN, on files of another size than the published ones) are logged as
warnings and listed under the key "notes".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from harness.config import nearest
from harness.errors import HarnessError, InputError, RunError
from harness.sources.pair_sets import PairSet, Subset
from harness.sources.senteval.labelled import PROBING, downstream_folder, read_year
from harness.tasks.base import Array, Vectors, as_array, describe_damaged
from harness.tasks.senteval.caption_retrieval import CaptionRetrievalTask
from harness.tasks.senteval.classifier import Classifier, check_whole_number
from harness.tasks.senteval.suites import probing_task
from harness.tasks.senteval.transfer import f1, transfer_task
from harness.tasks.sts import YEARS, STSTask, pearson, spearman

_CLASSIFICATION = {
    name: name for name in ("MR", "CR", "SUBJ", "MPQA", "SST2", "SST5", "TREC", "MRPC", "SNLI")
}
_CLASSIFICATION["SICKEntailment"] = "SICK-E"
_REGRESSION = {"SICKRelatedness": "SICK-R", "STSBenchmark": "STS-B"}
_FINETUNE = "-finetune"
_RETRIEVAL = "ImageCaptionRetrieval"
TASKS = (
    *_CLASSIFICATION,
    *_REGRESSION,
    *(name + _FINETUNE for name in _REGRESSION),
    _RETRIEVAL,
    *YEARS,
    *PROBING,
)
_CLASSIFIER_KEYS = ["nhid", "optim", "batch_size", "tenacity", "epoch_size", "max_epoch", "dropout"]
_DEFAULTS = {"usepytorch": True, "seed": 1111, "batch_size": 128, "nhid": 0, "kfold": 5}
_LOG = logging.getLogger(__name__)

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
    """A correlation as scipy returns it: to be unpacked, or read by name."""

    correlation: float
    pvalue: float


class SE:
    """SentEval's engine. `list_tasks` has the names that `eval` takes.

        >>> engine = SE(Params(task_path="no/folder"), lambda params, batch: np.ones((len(batch), 4)))
        >>> "STSBenchmark" in engine.list_tasks
        True

    `params["task_path"]`: SentEval's data folder (with downstream and probing); without it the
    hub's copy is used.
    """

    def __init__(
        self,
        params: dict[str, Any],
        batcher: Batcher,
        prepare: Prepare | None = None,
    ) -> None:
        """Raises:
        InputError: a setting that SentEval does not have or that is out of its range.
        """
        self.params = Params(_DEFAULTS | dict(params))
        check_whole_number('params["batch_size"]', self.params.batch_size, 1)
        given = self.params.get("classifier") or {"nhid": 0}
        self.params.classifier = given
        if not isinstance(given, dict) or "nhid" not in given:
            raise InputError(
                f'params["classifier"] = {given!r}: expected a dict with "nhid"; 0: logistic regression',
                key="classifier",
            )
        for key in given:
            if key not in _CLASSIFIER_KEYS:
                hint = f"{nearest(str(key), _CLASSIFIER_KEYS)}; known: {_CLASSIFIER_KEYS}"
                raise InputError(f'params["classifier"]: unknown key "{key}"{hint}', key=key)
        if not self.params.usepytorch:
            raise InputError(
                'params["usepytorch"] = False: no classifier of scikit-learn here',
                key="usepytorch",
                remedy="leave it out",
            )
        self.classifier = Classifier(**given, kfold=self.params.kfold, seed=self.params.seed)
        self.list_tasks = list(TASKS)
        self.batcher = batcher
        self.prepare = prepare or (lambda params, samples: None)
        self.results: dict[str, Any] = {}

    def eval(self, name: str | Sequence[str]) -> dict[str, Any]:
        """The results of one task, or of a list of tasks by name.

        Raises:
            InputError: an unknown task; the files of a single task are missing or damaged.
        """
        if isinstance(name, str):
            names = [name]
        else:
            names = list(name)
        for one in names:
            if one not in TASKS:
                raise InputError(
                    f'unknown task "{one}"{nearest(str(one), list(TASKS))}; known: {", ".join(TASKS)}',
                    key="task",
                )
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
            except (
                Exception
            ) as error:  # of the script's own functions: its author needs the traceback
                self.results[one] = {
                    "error": f"{type(error).__name__}: {' '.join(str(error).split())}"
                }
                _LOG.exception("%s: no result", one)
        return self.results

    def _eval(self, name: str) -> dict[str, Any]:
        if self.params.get("task_path"):
            root = Path(self.params.task_path)
        else:
            root = None
        self.params.current_task = name
        if name in YEARS:
            result, notes = self._sts(name, root)
        elif name.removesuffix(_FINETUNE) in _REGRESSION:
            result, notes = self._pair_scores(name, root)
        elif name == _RETRIEVAL:
            result, notes = self._retrieval(name, root)
        else:
            result, notes = self._classification(name, root)
        for note in notes:
            _LOG.warning("%s", note)
        return {**result, "notes": notes} if notes else result

    def _vectors(self, texts: Sequence[str]) -> Array:
        """Vectors of the script's batcher, which gets lists of words in batches of `batch_size`."""
        size = self.params.batch_size
        parts: list[Array] = []
        for begin in range(0, len(texts), size):
            batch = [text.split() for text in texts[begin : begin + size]]
            part = as_array(self.batcher(self.params, batch))
            if parts:
                width = parts[0].shape[1]
            else:
                width = "d"
            sound = (
                part.ndim == 2
                and len(part) == len(batch)
                and part.shape[1] > 0
                and part.dtype.kind in "fiub"
            )
            if not sound or (parts and part.shape[1] != width):
                expected = f"numbers of shape ({len(batch)}, {width})"
                raise RunError(
                    f"batcher returned {part.dtype} of shape {part.shape}; expected {expected}"
                )
            parts.append(part)
        return np.concatenate(parts).astype(np.float32, copy=False)

    def _prepare(self, texts: Sequence[str]) -> None:
        self.prepare(self.params, [text.split() for text in texts])

    def _classification(self, name: str, root: Path | None) -> tuple[dict[str, Any], list[str]]:
        if name in PROBING:
            make = probing_task
            known = name
        else:
            make = transfer_task
            known = _CLASSIFICATION[name]
        task = make(known, classifier=self.classifier, root=root)
        self._prepare(task.texts())
        outcome, damaged = task.outcome(self._vectors)
        parts = task.data.parts
        first_part = next(iter(parts.values()))
        dev = parts.get("dev", first_part)
        result = {
            "devacc": outcome.dev,
            "acc": outcome.test,
            "ndev": len(dev),
            "ntest": len(task.tested),
        }
        if name == "MRPC":
            result["f1"] = f1(task.tested.labels, outcome.predicted)
        return result, task.remarks(damaged)

    def _pair_scores(self, name: str, root: Path | None) -> tuple[dict[str, Any], list[str]]:
        from harness.tasks.senteval.relatedness import regressor_task

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
            subsets = tuple(
                Subset(part, pairs.first, pairs.second, pairs.labels)
                for part, pairs in parts.items()
            )
            correlations, more = self._correlations(name, subsets, vectors)
            result |= correlations
            notes += [
                note for note in more if "replaced by 0" not in note
            ]  # the regressor's remarks have them
        return result, notes

    def _retrieval(self, name: str, root: Path | None) -> tuple[dict[str, Any], list[str]]:
        task = CaptionRetrievalTask(root, seed=self.params.seed)
        self._prepare(task.texts())
        dev, test, damaged = task.outcome(self._vectors)
        sizes = {}
        for part in ("dev", "test"):
            captions = task.data.captions[part]
            sizes[f"n{part}"] = len(captions)
        result = {
            "devacc": dev.total,
            "acc": [test.image_to_text, test.text_to_image],
            **sizes,
        }
        return result, describe_damaged(task.name, damaged)

    def _sts(self, name: str, root: Path | None) -> tuple[dict[str, Any], list[str]]:
        found = []
        for subset, (first, second, gold) in read_year(downstream_folder(root), name):
            found.append(Subset(subset, first, second, np.array(gold)))
        subsets = tuple(found)
        self._prepare(
            [text for subset in subsets for text in (*subset.sentences1, *subset.sentences2)]
        )
        return self._correlations(name, subsets, self._vectors)

    def _correlations(
        self,
        name: str,
        subsets: tuple[Subset, ...],
        vectors: Vectors,
    ) -> tuple[dict[str, Any], list[str]]:
        """Correlations of the pairs' cosines with their gold scores, by subset and over all; and
        remarks.
        """
        from scipy import stats

        pairs = PairSet(name, "senteval", "test", subsets, sha256="", preparation="")
        measured = STSTask.of(pairs).evaluate(vectors, pooling="")
        assert measured.pairs is not None
        result: dict[str, Any] = {}
        for subset, rows in measured.pairs.groupby("subset", sort=False):
            values = rows["score"].to_numpy()
            gold = rows["gold"].to_numpy()
            if np.ptp(values) == 0:
                found = {"pearson": Correlation(0.0, 1.0), "spearman": Correlation(0.0, 1.0)}
            else:
                found = {
                    "pearson": Correlation(*map(float, stats.pearsonr(values, gold))),
                    "spearman": Correlation(*map(float, stats.spearmanr(values, gold))),
                }
            result[str(subset)] = {**found, "nsamples": len(gold)}
        result["all"] = {kind: {} for kind in ("pearson", "spearman")}
        for score in measured.scores:
            result["all"][score.metric][score.aggregation] = score.value
        return result, measured.notes


engine = SimpleNamespace(SE=SE)
