"""What a run is expected to take before anything was measured: from the sizes of its model and texts,
and the speed of this processor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from harness.errors import HarnessError
from harness.evaluation import inference_cost
from harness.runs.inputs import find_task
from harness.runs.plan import Job, Plan
from harness.runs.typical_costs import (
    MethodCost,
    Shape,
    Texts,
    count_public,
    fitting_work,
    measure_products,
    method_cost,
    read_shape,
    text_seconds,
)
from harness.tasks.base import needs_model

if TYPE_CHECKING:
    from harness.runs.rows import Row
    from harness.sources import Corpus

_CHARACTERS = 100.0  # of a text whose length is not known
_SAMPLE = 256  # items of a corpus whose lengths are read


@dataclass(frozen=True)
class TypicalCost:
    """Seconds and bytes of a run, from the sizes of its model and texts.

    Attributes:
        dev: of the seconds of training those of dev evaluations.
        architecture, inference: of what the seconds of inference are measured, once in a work
            directory.
    """

    training: float
    dev: float
    scoring: float
    weights: float
    vectors: float
    architecture: str
    inference: float


class TypicalCosts:
    """Estimates of the runs of a plan on this processor, of which nobody has measured any."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._tasks: dict[tuple[str, ...], list[Texts] | None] = {}
        self._corpora: dict[str, tuple[Texts, float]] = {}

    def find(self, job: Job) -> TypicalCost | None:
        """Estimate a run; None where the sizes of its model or of its texts are not known."""
        row = self._plan.row_of(job)
        shape = read_shape(row.start_model)
        texts = self._texts_of(job)
        if shape is None or texts is None or job.spec.method == "command":
            return None
        method = method_cost(job.spec.method)
        longest = getattr(row.config, "max_length", None) or shape.positions

        def encode(several: Sequence[Texts]) -> float:
            passes = read_passes(row.config, several)
            seconds = sum(one.count * text_seconds(shape, one, longest) for one in passes)
            return seconds * method.encode

        fitting = sum(one.fitting for one in texts) * shape.width / measure_products()
        training = self._train(row, job, shape, method)
        dev = encode([self._plan.dev_texts(job)])
        inference = encode(
            [Texts(inference_cost.SENTENCES * (inference_cost.PASSES + 1), _CHARACTERS)]
        )
        return TypicalCost(
            training=training + dev,
            dev=dev,
            scoring=encode(texts) + fitting,
            weights=4.0 * shape.parameters,
            vectors=4.0 * shape.width * sum(one.count for one in texts),
            architecture=f"{job.spec.method} {job.spec.base_model}",
            inference=min(inference, inference_cost.LONGEST),
        )

    def _train(self, row: Row, job: Job, shape: Shape, method: MethodCost) -> float:
        """Return the seconds of training steps, or of fitting without steps."""
        corpus = self._plan.corpus(row)
        if corpus is None or row.corpus is None:
            return 0.0
        key = row.corpus.model_dump_json()
        if key not in self._corpora:
            sample = texts_of_corpus(corpus)
            items = min(len(corpus), _SAMPLE)
            self._corpora[key] = Texts.of(sample), len(sample) / items
        texts, of_item = self._corpora[key]
        longest = getattr(row.config, "train_length", None) or shape.positions
        item = of_item * text_seconds(shape, texts, longest)
        batch = getattr(row.config, "batch_size", 0)
        if job.steps and batch:
            return job.steps * min(batch, len(corpus)) * item * method.step
        return len(corpus) * item * method.fit

    def _texts_of(self, job: Job) -> list[Texts] | None:
        if job.tasks not in self._tasks:
            rehearsal = self._plan.rehearsal
            if rehearsal is None:
                self._tasks[job.tasks] = texts_of_tasks(job, None)
            else:
                found = texts_of_tasks(job, rehearsal.sentences)
                self._tasks[job.tasks] = found and cut_texts(found, rehearsal.limit)
        return self._tasks[job.tasks]


def read_passes(config: Any, texts: Sequence[Texts]) -> list[Texts]:
    """Return the texts as a method reads them: in each of its templates, if it has some."""
    templates = getattr(config, "templates", None) or ("",)
    passes = []
    for template in templates:
        for one in texts:
            passes.append(Texts(one.count, one.characters + len(template)))
    return passes


def texts_of_corpus(corpus: Corpus) -> list[str]:
    """Return the texts of the first items of a corpus."""
    texts: list[str] = []
    for item in islice(corpus, _SAMPLE):
        if isinstance(item, str):
            texts.append(item)
        else:
            texts += [text for text in (item.anchor, item.positive, item.negative) if text]
    return texts


def texts_of_tasks(job: Job, most: int | None) -> list[Texts] | None:
    """Return the texts that a run is scored on; None where those of a task are not known.

    Public tasks are in the shipped table or counted by mteb; embedded ones and files are read. Tasks of more than
    `most` texts are left out, as in a rehearsal.
    """
    from harness.evaluation.scoring import each, texts_of

    found = list(count_public(job.tasks).values())
    others = []
    for key in job.tasks:
        task = find_task(key)
        if needs_model(task) or key in count_public([key]):
            continue
        if not hasattr(task, "at_least"):
            counted = 0
        else:
            counted = task.at_least()
        if counted:  # by mteb, which does not say how long they are
            found.append(Texts(counted, _CHARACTERS))
        elif task.source == "embedded" or key in _files_of(job):
            others.append(task)
        else:
            return None
    found = [texts for texts in found if most is None or texts.count <= most]
    try:
        readable, _ = each(others, lambda task: texts_of(task, most))
    except HarnessError:
        return found or None
    distinct: set[str] = set()
    work = 0.0
    for task, texts in readable:
        distinct.update(texts)
        work += fitting_work(task)
    if distinct:
        about = Texts.of(list(distinct))
        found.append(replace(about, fitting=work))
    return found


def cut_texts(several: Sequence[Texts], most: int) -> list[Texts]:
    """Return texts as a rehearsal encodes them: `most` of all, from each task its share; its
    classifiers take no time.

    >>> [texts.count for texts in cut_texts([Texts(300, 40.0), Texts(100, 20.0)], 100)]
    [75, 25]
    """
    total = sum(texts.count for texts in several)
    share = min(1.0, most / max(total, 1))
    return [replace(one, count=round(one.count * share), fitting=0.0) for one in several]


def _files_of(job: Job) -> set[str]:
    return {file.key for file in job.files}


def count_texts(tasks: Iterable[str], most: int | None = None) -> int:
    """Return the number of distinct texts of tasks ("SOURCE:TASK"); those of more than `most` are
    left out.

    Raises:
        InputError: the data of none of them can be read.
    """
    from harness.evaluation.scoring import each, texts_of

    found = [find_task(key) for key in tasks]
    readable, _ = each(found, lambda task: texts_of(task, most))
    distinct: set[str] = set()
    for _, texts in readable:
        distinct.update(texts)
    return len(distinct)
