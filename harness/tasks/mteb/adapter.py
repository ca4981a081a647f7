"""The one place that calls the mteb library, which is used as it comes.

mteb calls `encode` and `similarity` of an object that it takes for a model; ours answers from the
shared table of vectors. Its own cache knows unnamed models by one name and would give one the
scores of another: ours are named after the method and the hash of its content, and their results
are in a folder of the work directory, or nowhere.
"""

from __future__ import annotations

import io
import json
import logging
import tempfile
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import datasets
import mteb
import numpy as np
import pandas as pd
from mteb.models.abs_encoder import AbsEncoder
from mteb.models.model_meta import ModelMeta, ScoringFunction
from mteb.results import TaskResult

from harness.config import nearest
from harness.errors import HarnessError, InputError
from harness.files.atomic import storage_fault, write_atomic
from harness.files.hashing import content_id
from harness.files.printable import describe_error
from harness.files.reading import read_lines, read_text, require_ordinary
from harness.results.facts import Facts
from harness.results.store import remove
from harness.sources.remote.hub import check_cached, hub_reachable, quiet_datasets, remedy
from harness.tasks.base import Array, Vectors, finite
from harness.tasks.mteb.benchmarks import EMBEDDED, ENGLISH, PAIRS_METRIC_V1, PREFIX, SPLITS
from harness.tasks.mteb.examples import clustering, kind_of, parts_of, read_examples, task_facts
from harness.tasks.prompts import PromptedVectors
from harness.tasks.vectors import Origin

if TYPE_CHECKING:
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
        self.mteb_model_meta = _model_meta(origin.name, origin.revision)

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
        """(n, d) float32 for the n texts of `inputs`, behind the prompt of their side, where there
        are prompts.
        """
        texts = []
        for batch in inputs:
            texts.extend(batch["text"])
        vectors = self.vectors
        if isinstance(vectors, PromptedVectors):
            vectors = vectors.of_mteb(
                task_metadata.name,
                task_metadata.type,
                getattr(prompt_type, "value", ""),
            )
        try:
            rows, damaged = finite(vectors(texts))
        except Exception as error:
            self.fault = error
            raise
        self.damaged += damaged
        return rows


def _model_meta(name: str, revision: str, **about: Any) -> ModelMeta:
    known = {
        "name": name,
        "revision": revision,
        "similarity_fn_name": ScoringFunction.COSINE,
        "modalities": ["text"],
    }
    return ModelMeta.create_empty({**known, **about})


@dataclass(frozen=True)
class BenchmarkScores:
    """What mteb gives for one task.

    `data` is each data set's revision, `conditions` is all else that defines its numbers besides
    metric and split.
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
        values: list[Any] = []
        for split in self.splits:
            for subset in self.scores[split]:
                values.append(subset.get(metric))
        if not values or not all(_is_number(value) for value in values):
            raise InputError(f"mteb gave no {metric}")
        rounded = [round(value, 6) for value in values]  # as many digits as mteb's files keep
        return float(np.mean(rounded))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and bool(np.isfinite(value))


def open_task(name: str, subset: str = "") -> Any:
    """An mteb task with the splits and the part of a multilingual set that the English benchmarks
    take, `subset` instead if it is given, or all parts if that is "all". Reads no data.

    Raises:
        InputError: mteb knows no such task or subset, or it is not about text.
    """
    task = _load_known(name)
    parts = list(task.metadata.hf_subsets)
    if subset and subset not in parts and (taken := _part_of_benchmark(name, subset)) is not None:
        task.filter_languages(None, hf_subsets=list(taken.hf_subsets))
        task.filter_eval_splits(list(taken.eval_splits))
        return task
    if subset and subset != "all" and subset not in parts:
        raise InputError(
            f'{PREFIX}{name}: no subset "{subset}"{nearest(subset, parts)}; known: {", ".join(parts)}',
            key=f"{PREFIX}{name}",
        )
    if "text" not in task.metadata.modalities or len(task.metadata.modalities) > 1:
        raise InputError(
            f"{PREFIX}{name}: needs {', '.join(task.metadata.modalities)}; sentences are encoded here",
            key=f"{PREFIX}{name}",
        )
    wanted = subset or ENGLISH.get(name, "")
    if wanted and wanted != "all":
        task.filter_languages(None, hf_subsets=[wanted])
    elif not wanted and task.metadata.is_multilingual and not name.startswith(EMBEDDED):
        english = [
            part for part, codes in task.metadata.eval_langs.items() if {*codes} == {"eng-Latn"}
        ]
        task.filter_languages(None, hf_subsets=english or parts)
    split = SPLITS.get(name, "test")
    if split in task.metadata.eval_splits:
        task.filter_eval_splits([split])
    return task


def benchmark_tasks(name: str) -> dict[str, str]:
    """The tasks of a benchmark of mteb, in its order, with the type of each.

    A task of which it takes what we take is called NAME, one of which it takes all parts NAME/all,
    any other NAME/BENCHMARK.

    Raises:
        InputError: mteb knows no such benchmark, or it has tasks beyond text.
    """
    benchmark = _find_benchmark(name)
    if benchmark is None:
        with _quiet(hub=False):
            known = [one.name for one in mteb.get_benchmarks()]
        raise InputError(
            f'mteb has no benchmark "{name}"{nearest(name, known)}',
            key="suites",
            remedy=f"known: {', '.join(known)}",
        )
    beyond = _modalities_beyond_text(benchmark)
    if beyond:
        raise InputError(
            f'benchmark "{benchmark.name}" of mteb needs {", ".join(beyond)}; sentences are encoded here',
            key="suites",
        )
    kinds = {}
    for task in benchmark.tasks:
        own = task.metadata.name
        part = benchmark.name
        for usual in ("", "all"):
            if _splits_and_subsets(open_task(own, usual)) == _splits_and_subsets(task):
                part = usual
                break
        if part:
            own = f"{own}/{part}"
        kinds[own] = task.metadata.type
    return kinds


class BenchmarkAbout(NamedTuple):
    """A benchmark of mteb: its name, its tasks, and what it needs beyond text."""

    name: str
    tasks: tuple[str, ...]
    beyond: tuple[str, ...]


def describe_benchmarks() -> list[BenchmarkAbout]:
    """Return every benchmark that the installed mteb knows, in its order."""
    found = []
    with _quiet(hub=False):
        for benchmark in mteb.get_benchmarks():
            tasks = tuple(task.metadata.name for task in benchmark.tasks)
            beyond = tuple(_modalities_beyond_text(benchmark))
            found.append(BenchmarkAbout(benchmark.name, tasks, beyond))
    return found


def _modalities_beyond_text(benchmark: Any) -> list[str]:
    return sorted({m for task in benchmark.tasks for m in task.metadata.modalities} - {"text"})


def _splits_and_subsets(task: Any) -> tuple[list[str], list[str]]:
    return sorted(task.hf_subsets), sorted(task.eval_splits)


@cache
def _find_benchmark(name: str) -> Any:
    """The benchmark of that name or alias; None where mteb has none."""
    with _quiet(hub=False):
        for benchmark in mteb.get_benchmarks():
            if name == benchmark.name or name in (benchmark.aliases or ()):
                return benchmark
    return None


def _part_of_benchmark(task: str, name: str) -> Any:
    """A task as a benchmark takes it; None where `name` is no benchmark that has it."""
    if name == "all":
        return None
    benchmark = _find_benchmark(name)
    tasks = [] if benchmark is None else benchmark.tasks
    for one in tasks:
        if one.metadata.name == task:
            return one
    return None


def texts_at_least(task: Any) -> int:
    """How many texts the splits of an opened task have, as far as mteb's own counts say; reads no
    data.
    """
    parts = parts_of(task)
    if parts == [task]:
        return _size(task, task.eval_splits)
    total = 0
    for part in parts:
        name = getattr(part, "metadata", part).name
        total += texts_at_least(open_task(name))
    return total


def _load_known(name: str) -> Any:
    if name.startswith(EMBEDDED):
        from harness.tasks.mteb.embedded_tasks import TASKS

        if name not in TASKS:
            raise InputError(
                f'"{name}": no such embedded task{nearest(name, list(TASKS))}; known: {", ".join(TASKS)}',
                key=name,
            )
        return TASKS[name]()
    try:
        with _quiet(hub=False):
            return mteb.get_task(name)
    except KeyError:
        known = []
        for task in mteb.get_tasks(languages=["eng"], modalities=["text"]):
            known.append(task.metadata.name)
        raise InputError(
            f'"{PREFIX}{name}": mteb has no such task{nearest(name, known)}', key=f"{PREFIX}{name}"
        ) from None


def load_data(task: Any) -> None:
    """Have mteb load the data of an opened task, and let go of it: the caches have it then.

    Raises:
        InputError: the data cannot be had.
    """
    try:
        with _quiet():
            for part in parts_of(task):
                part.load_data()
                part.unload_data()
    except Exception as error:  # of mteb, datasets or the hub
        if isinstance(error, HarnessError | MemoryError) or storage_fault(error) is not None:
            raise
        raise InputError(_reason(error, find_pinned_data(task))) from error


def run_task(
    task: Any,
    name: str,
    vectors: Vectors,
    origin: Origin,
    local: bool,
) -> BenchmarkScores:
    """Run one opened task of mteb with `vectors`, or read its result from the folder of `origin`.

    Args:
        name: what it is known by.
        local: its data is here, and needs no hub.

    Raises:
        InputError: the data cannot be had or cannot be scored.
        RunError: whatever the encoder raised.
    """
    encoder = HarnessEncoder(vectors, origin)
    if origin.results is None:
        folder = None
    else:  # mteb reads a result of the same task whatever its data was
        folder = origin.results / identify_data(task)
    stored = _StoredResults(folder, encoder.mteb_model_meta, task)
    examples = stored.examples()
    try:
        with _quiet(hub=not local):
            result, found, fault = _evaluate(task, encoder, stored.cache, load=examples is None)
    except Exception as error:
        if encoder.fault is not None:
            raise encoder.fault from None
        if isinstance(error, HarnessError | MemoryError) or storage_fault(error) is not None:
            raise
        raise InputError(_reason(error, find_pinned_data(task))) from error
    if found is not None:
        examples = found
        stored.write(found)
    splits = list(result.scores)
    main = task.metadata.main_score
    first = next(iter(result.scores.values()))[0]
    return BenchmarkScores(
        data=find_pinned_data(task),
        conditions={
            "mteb_task": name,
            "subsets": list(task.hf_subsets),
            "similarity": "cosine",
            "version": f"mteb {result.mteb_version}",
        },
        splits=splits,
        subsets=len(next(iter(result.scores.values()))),
        metrics=(main, PAIRS_METRIC_V1)
        if PAIRS_METRIC_V1 in first and main != PAIRS_METRIC_V1
        else (main,),
        n=_size(task, splits),
        scores=result.scores,
        json=json.dumps(result.model_dump(mode="json"), indent=1) + "\n",
        damaged=encoder.damaged,
        examples=examples,
        facts=task_facts(task, splits, examples),
        fault=fault,
    )


def _evaluate(
    task: Any,
    encoder: HarnessEncoder,
    cache: Any,
    *,
    load: bool,
) -> tuple[Any, pd.DataFrame | None, str]:
    """What mteb gives for a task, the examples of its scores where it predicted them now, and why
    there are none.

    Args:
        load: load the data here: mteb drops what it has loaded itself before the predictions can be
            read.
    """
    predicts = kind_of(task).rows is not None
    if predicts and load:
        parts = parts_of(task)
    else:
        parts = []
    try:
        with tempfile.TemporaryDirectory() as folder:
            for part in parts:
                part.load_data()
            evaluated = mteb.evaluate(
                encoder,
                task,
                cache=cache,
                co2_tracker=False,
                encode_kwargs={"batch_size": BATCH, "show_progress_bar": False},
                prediction_folder=folder if predicts else None,
                show_progress_bar=False,
                public_only=False,
            )
            result = evaluated.task_results[0]
            try:  # whatever goes wrong with the examples must not cost the score
                name = task.metadata.name
                return (
                    result,
                    read_examples(task, Path(folder))
                    if predicts
                    else clustering(name, result.scores),
                    "",
                )
            except Exception as error:
                reason = describe_error(error)
                return result, pd.DataFrame(), reason
    finally:
        for part in parts:
            if part.data_loaded:
                part.unload_data()


class _StoredResults:
    """The result of one model on a task in mteb's own cache, and its examples next to it; without a
    folder nothing.
    """

    def __init__(self, folder: Path | None, model: ModelMeta, task: Any) -> None:
        if folder is None:
            self.cache = None
        else:
            self.cache = mteb.ResultCache(folder)
        self._model = model
        self._task = task
        self._predicts = kind_of(task).rows is not None

    def _file(self, task: Any) -> Path:
        assert self.cache is not None
        return Path(
            self.cache.get_task_result_path(model_name=self._model, task_name=task.metadata.name)
        )

    @property
    def _examples(self) -> Path:
        return self._file(self._task).with_suffix(".examples.parquet")

    def examples(self) -> pd.DataFrame | None:
        """The stored examples, after the removal of results that a crash cut in half: mteb would
        fail on them.

        A result without the examples that its task has is removed, and examples without a result.
        """
        if self.cache is None:
            return None
        for file in self._examples.parent.glob("*.json*"):
            try:
                for part in read_lines(file) if file.suffix == ".jsonl" else [read_text(file)]:
                    if part:
                        json.loads(part)
            except (InputError, ValueError, RecursionError):
                remove(file)
        if not self._file(self._task).exists():
            self._examples.unlink(missing_ok=True)
        try:
            require_ordinary(self._examples)
            return pd.read_parquet(self._examples)
        except (InputError, OSError, ValueError):
            for task in [self._task, *parts_of(self._task)] if self._predicts else []:
                self._file(task).unlink(missing_ok=True)
            return None

    def write(self, examples: pd.DataFrame) -> None:
        """Store the examples of a task that predicts them; those of others follow from the scores."""
        if self.cache is not None and self._predicts:
            buffer = io.BytesIO()
            examples.to_parquet(buffer, index=False, compression="zstd")
            write_atomic(self._examples, buffer.getvalue())


def write_results(
    folder: Path,
    name: str,
    revision: str,
    results: Iterable[str],
    **about: Any,
) -> list[Path]:
    """Write results (JSON of mteb's `TaskResult`) of the model `name` at `revision`; the files, one
    a task.

    They are written as FOLDER/results/ORG__NAME/REVISION/TASK.json next to model_meta.json, where
    `mteb.ResultCache(FOLDER).load_results()` finds them. Parts of a multilingual task that were
    scored one by one are joined. `about`: what else is known of the model, as fields of mteb's
    ModelMeta.
    """
    meta = _model_meta(name, revision, **about)
    tasks: dict[str, TaskResult] = {}
    for text in results:
        result = TaskResult.model_validate_json(text)
        earlier = tasks.setdefault(result.task_name, result)
        if earlier is not result:
            for split, parts in result.scores.items():
                earlier.scores.setdefault(split, []).extend(parts)
            earlier.evaluation_time = (earlier.evaluation_time or 0) + (result.evaluation_time or 0)
    cache = mteb.ResultCache(folder)
    for result in tasks.values():
        cache.save_to_cache(result, meta)
    return [cache.get_task_result_path(task, meta) for task in tasks]


def find_pinned_data(task: Any) -> dict[str, str]:
    """Data set -> revision, of an mteb task or of those that it is the average of."""
    return {
        part.metadata.dataset["path"]: part.metadata.dataset["revision"] for part in parts_of(task)
    }


def identify_data(task: Any) -> str:
    """Return a hash of the revisions of an opened task's data sets, and of what is taken of them."""
    parts = [find_pinned_data(task), list(task.hf_subsets), list(task.eval_splits)]
    return content_id(parts)


def _size(task: Any, splits: Sequence[str]) -> int:
    """Examples of these splits, as far as mteb counts them."""
    if hasattr(task, "sizes"):
        return sum(task.sizes().values())
    total = 0
    for split in splits:
        about = (task.metadata.descriptive_stats or {}).get(split) or {}
        by_subset = about.get("hf_subset_descriptive_stats")
        if by_subset:
            counted = [by_subset.get(part, {}) for part in task.hf_subsets]
        else:
            counted = [about]
        for one in counted:
            total += int(one.get("num_samples", 0))
    return total


def _reason(error: Exception, repositories: Collection[str]) -> str:
    """One line on why mteb could not load or score its data.

    Raises:
        RunError: files of it were garbled on their way from the hub.
    """
    for repository in repositories:
        check_cached(repository)
    said = describe_error(error)
    if isinstance(error, datasets.exceptions.DatasetNotFoundError):
        return f"no data: not on the hub, or gated ({said})"
    if isinstance(error, ConnectionError | TimeoutError) or "offline" in said.lower():
        return f"no data: the hub cannot be reached ({said})"
    return f"mteb failed on it: {said}{''.join(map(remedy, repositories))}"


@contextmanager
def _quiet(*, hub: bool = True) -> Iterator[None]:
    """Without mteb's notices (superseded versions, missing prompts) and progress bars.

    Where no hub answers, or none is needed, `datasets` is set to offline: else it tries for long
    before it uses its cache.
    """
    logger = logging.getLogger("mteb")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with quiet_datasets(offline=not (hub and hub_reachable())), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
