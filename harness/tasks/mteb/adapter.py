"""The one place that talks to the mteb library, which is used as it comes.

mteb calls `encode` and `similarity` of an object that it takes for a model; ours answers from the shared table of
vectors. Its own cache knows unnamed models by one name and would give one the scores of another: ours are named after
the method and the hash of its content, and their results lie in a folder of the work directory, or nowhere.
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partialmethod
from typing import TYPE_CHECKING, Any

import datasets
import mteb
import numpy as np
from mteb.models.abs_encoder import AbsEncoder
from mteb.models.model_meta import ModelMeta, ScoringFunction
from tqdm import std  # type: ignore[import-untyped]

from harness.config import nearest
from harness.errors import HarnessError, InputError
from harness.files.faults import storage_fault
from harness.results.facts import Facts
from harness.sources.remote.hub import first_line, hub_reachable, remedy
from harness.tasks.base import Array, Vectors, finite
from harness.tasks.mteb.benchmarks import EMBEDDED, ENGLISH, PAIRS_METRIC_V1, PREFIX, SPLITS
from harness.tasks.mteb.examples import kind_of
from harness.tasks.mteb.kept_results import KeptResults
from harness.tasks.mteb.predictions import caught, clustering
from harness.tasks.mteb.task_facts import task_facts
from harness.tasks.prompts import PromptedVectors
from harness.tasks.vectors import Origin

if TYPE_CHECKING:
    import pandas as pd
    from torch.utils.data import DataLoader

BATCH = 1024  # rows that mteb hands over at a time; they are joined again, sorted by length and cut anew when encoded


class HarnessEncoder(AbsEncoder):
    """What mteb takes for a model: `encode` looks texts up in `vectors`, similarity is the cosine.

    Attributes:
        damaged: how many vectors held NaN or infinity (replaced by 0, as SentEval does).
        fault: the error that the encoder raised, if it did.
    """

    mteb_model_meta: ModelMeta

    def __init__(self, vectors: Vectors, origin: Origin) -> None:
        self.vectors = vectors
        self.damaged = 0
        self.fault: Exception | None = None
        self.mteb_model_meta = ModelMeta.create_empty(
            {
                "name": origin.name,
                "revision": origin.revision,
                "similarity_fn_name": ScoringFunction.COSINE,
                "modalities": ["text"],
            }
        )

    def encode(
        self,
        inputs: DataLoader[Any],
        *,
        task_metadata: Any,
        hf_split: str,
        hf_subset: str,
        prompt_type: Any = None,
        **kwargs: Any,
    ) -> Array:
        """(n, d) float32 for the n texts of `inputs`, behind the prompt of their side, where there are prompts."""
        texts = [text for batch in inputs for text in batch["text"]]
        vectors = self.vectors
        if isinstance(vectors, PromptedVectors):
            vectors = vectors.of_mteb(task_metadata.name, task_metadata.type, getattr(prompt_type, "value", ""))
        try:
            rows, damaged = finite(vectors(texts))
        except Exception as error:
            self.fault = error
            raise
        self.damaged += damaged
        return rows


@dataclass(frozen=True)
class BenchmarkScores:
    """What mteb says of one task.

    `data` is each data set's revision, `conditions` is all else that defines its numbers besides metric and split.
    """

    data: dict[str, str]
    conditions: dict[str, Any]
    splits: Sequence[str]
    subsets: int
    metrics: tuple[str, ...]  # the main score first
    n: int  # pairs, sentences or queries and documents, as mteb counts them; 0 where it does not say
    scores: Mapping[str, Sequence[Mapping[str, Any]]]
    json: str
    damaged: int
    examples: pd.DataFrame | None = None  # `harness.tasks.mteb.examples`; None where there are none
    facts: Facts | None = None
    fault: str = ""  # why there are no examples where there should be

    def value(self, metric: str) -> float:
        """The mean over splits and subsets.

        Raises:
            InputError: mteb gave no such number.
        """
        values: list[Any] = [subset.get(metric) for split in self.splits for subset in self.scores[split]]
        if not values or not all(isinstance(x, int | float) and np.isfinite(x) for x in values):
            raise InputError(f"mteb gave no {metric}")
        return float(np.mean([round(x, 6) for x in values]))  # as many digits as mteb's files keep


def open_task(name: str, subset: str = "") -> Any:
    """An mteb task with the splits and the part of a multilingual set that the English benchmarks take, `subset`
    instead if it is given, or all parts if that is "all". Reads no data.

    Raises:
        InputError: mteb knows no such task or subset, or it is not about text.
    """
    task = _known(name)
    parts = list(task.metadata.hf_subsets)
    if subset and subset != "all" and subset not in parts:
        raise InputError(f'{PREFIX}{name}: no subset "{subset}"{nearest(subset, parts)}; known: {", ".join(parts)}')
    if "text" not in task.metadata.modalities or len(task.metadata.modalities) > 1:
        raise InputError(f"{PREFIX}{name}: needs {', '.join(task.metadata.modalities)}; sentences are encoded here")
    wanted = subset or ENGLISH.get(name, "")
    if wanted and wanted != "all":
        task.filter_languages(None, hf_subsets=[wanted])
    elif not wanted and task.metadata.is_multilingual and not name.startswith(EMBEDDED):
        english = [part for part, codes in task.metadata.eval_langs.items() if {*codes} == {"eng-Latn"}]
        task.filter_languages(None, hf_subsets=english or parts)
    split = SPLITS.get(name, "test")
    if split in task.metadata.eval_splits:
        task.filter_eval_splits([split])
    return task


def texts_at_least(task: Any) -> int:
    """How many texts the splits of an opened task have, as far as mteb's own counts say; reads no data."""
    parts = list(getattr(task.metadata, "tasks", None) or [])  # of a task that joins others
    if parts:
        return sum(texts_at_least(open_task(getattr(part, "metadata", part).name)) for part in parts)
    counts = task.metadata.descriptive_stats or {}
    splits = [counts.get(split) or {} for split in task.eval_splits]
    per_part = [split.get("hf_subset_descriptive_stats") or {} for split in splits]
    wanted = set(task.hf_subsets)
    return sum(
        sum(int(one.get("num_samples", 0)) for name, one in parts.items() if name in wanted)
        if parts and len(wanted) < len(parts)
        else int(split.get("num_samples", 0))
        for split, parts in zip(splits, per_part, strict=True)
    )


def _known(name: str) -> Any:
    if name.startswith(EMBEDDED):
        from harness.tasks.mteb.embedded_tasks import TASKS

        if name not in TASKS:
            raise InputError(f'"{name}": no such embedded task{nearest(name, list(TASKS))}; known: {", ".join(TASKS)}')
        return TASKS[name]()
    try:
        with _quiet(hub=False):
            return mteb.get_task(name)
    except KeyError:
        known = [task.metadata.name for task in mteb.get_tasks(languages=["eng"], modalities=["text"])]
        raise InputError(f'"{PREFIX}{name}": mteb has no such task{nearest(name, known)}') from None


def run_task(name: str, subset: str, vectors: Vectors, origin: Origin) -> BenchmarkScores:
    """Run one task of mteb with `vectors`, or read its result from the folder of `origin`.

    Raises:
        InputError: the data cannot be had or cannot be scored.
        RunError: whatever the encoder raised.
    """
    task = open_task(name, subset)
    encoder = HarnessEncoder(vectors, origin)
    cache = mteb.ResultCache(origin.results / subset if subset else origin.results) if origin.results else None
    kept = KeptResults(cache, encoder.mteb_model_meta, task)
    examples = kept.mended(with_examples=kind_of(task).rows is not None)
    try:
        with _quiet(hub=not name.startswith(EMBEDDED)), caught(task) as predictions:
            evaluated = mteb.evaluate(
                encoder,
                task,
                cache=cache,
                co2_tracker=False,
                encode_kwargs={"batch_size": BATCH, "show_progress_bar": False},
                prediction_folder=predictions.folder,
                show_progress_bar=False,
                public_only=False,
            )
            result = evaluated.task_results[0]
    except Exception as error:
        if encoder.fault is not None:
            raise encoder.fault from None
        if isinstance(error, HarnessError | MemoryError) or storage_fault(error) is not None:
            raise
        raise InputError(_reason(error, pinned_data(task))) from error
    splits = list(result.scores)
    main = task.metadata.main_score
    first = next(iter(result.scores.values()))[0]
    metrics = (main, PAIRS_METRIC_V1) if PAIRS_METRIC_V1 in first and main != PAIRS_METRIC_V1 else (main,)
    if predictions.folder is None:
        examples = clustering(name, result.scores)
    elif predictions.examples is not None:
        examples = predictions.examples
        kept.keep(examples)
    return BenchmarkScores(
        data=pinned_data(task),
        conditions={
            "mteb_task": name,
            "subsets": list(task.hf_subsets),
            "similarity": "cosine",
            "version": f"mteb {result.mteb_version}",
        },
        splits=splits,
        subsets=len(next(iter(result.scores.values()))),
        metrics=metrics,
        n=_size(task, splits),
        scores=result.scores,
        json=json.dumps(result.model_dump(mode="json"), indent=1) + "\n",
        damaged=encoder.damaged,
        examples=examples,
        facts=task_facts(task, splits, examples),
        fault=predictions.fault,
    )


def pinned_data(task: Any) -> dict[str, str]:
    """Data set -> revision, of an mteb task or of those that it is the average of."""
    parts = getattr(task.metadata, "tasks", None) or [task]
    return {part.metadata.dataset["path"]: part.metadata.dataset["revision"] for part in parts}


def _size(task: Any, splits: Sequence[str]) -> int:
    if hasattr(task, "sizes"):
        return sum(task.sizes().values())
    total = 0
    for split in splits:
        about = (task.metadata.descriptive_stats or {}).get(split, {})
        by_subset = about.get("hf_subset_descriptive_stats")
        if by_subset:
            total += sum(by_subset.get(part, {}).get("num_samples", 0) for part in task.hf_subsets)
        else:
            total += about.get("num_samples", 0)
    return total


def _reason(error: Exception, repositories: Iterable[str]) -> str:
    """One line on why mteb could not load or score its data."""
    said = f"{type(error).__name__}: {first_line(error):.200}"
    if isinstance(error, datasets.exceptions.DatasetNotFoundError):
        return f"no data: not on the hub, or gated ({said})"
    if isinstance(error, ConnectionError | TimeoutError) or "offline" in said.lower():
        return f"no data: the hub cannot be reached ({said})"
    return f"mteb failed on it: {said}{''.join(map(remedy, repositories))}"


@contextmanager
def _quiet(*, hub: bool = True) -> Iterator[None]:
    """Without mteb's notices (superseded versions, missing prompts) and the bars that nobody asked for.

    Where no hub answers, or none is needed, `datasets` is told to be offline: else it tries for long before it turns to
    its cache.
    """
    logger = logging.getLogger("mteb")
    level, bars, offline = logger.level, datasets.are_progress_bars_disabled(), datasets.config.HF_HUB_OFFLINE
    started = std.tqdm.__init__
    logger.setLevel(logging.ERROR)
    datasets.disable_progress_bars()
    std.tqdm.__init__ = partialmethod(started, disable=True)  # a bar that is asked for by `disable=False` still shows
    datasets.config.HF_HUB_OFFLINE = not (hub and hub_reachable())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
        std.tqdm.__init__ = started
        datasets.config.HF_HUB_OFFLINE = offline
        if not bars:
            datasets.enable_progress_bars()
