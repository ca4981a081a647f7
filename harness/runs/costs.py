"""What the runs of a plan will cost: from runs of the same row, else from what `--measure` timed in
this work directory, else from the arithmetic of the model and the speed of this processor
(`harness.runs.typical_costs`), corrected by what this work directory knows of other rows.

A run without any of them, as on a GPU or of a model that is not here, has no estimate, and then
there is no total.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from harness.errors import HarnessError
from harness.evaluation import inference_cost
from harness.executors.executor import open_executor
from harness.files.hashing import content_id
from harness.files.printable import join_some
from harness.machine.environment import cpu_model, device_name
from harness.machine.progress import describe_duration
from harness.results.measurements import measure_once, read_measurements
from harness.results.record import Record
from harness.runs.execute import find_finished, needs_training
from harness.runs.plan import Job, Plan, find_task
from harness.runs.typical_costs import (
    MethodCost,
    Shape,
    Texts,
    count_public,
    fitting_work,
    measure_products,
    method_cost,
    overhead,
    read_shape,
    text_seconds,
)
from harness.tasks.base import needs_model

if TYPE_CHECKING:
    from harness.runs.measure import Rates
    from harness.runs.rows import Row
    from harness.sources import Corpus

REUSED = "reused"
TO_TRAIN = "to train"
TO_SCORE = "to score"
IMPOSSIBLE = "n/a"
_RATES = "rates"  # tables of measurements.json
_TEXTS = "texts"
_CHARACTERS = 100.0  # of a text whose length is not known
_SAMPLE = 256  # items of a corpus whose lengths are read
_NEWEST = 3  # runs of a row that say what its next ones take
_SAME_LOAD = timedelta(hours=6)  # between runs that are likely made beside the same other work


@dataclass
class RowCost:
    """The runs of a row on one base model.

    Attributes:
        states: how many are reused, to train, to score or n/a.
        training: seconds of a run until it is scored; None where they are not known.
        scoring: seconds of its encoding and scoring; None where they are not known.
        weights: bytes of the saved weights of one run; None where they are not known.
        vectors: bytes of the stored vectors of one run; None where they are not known.
        once: seconds of what is done for the first of them alone.
        rough: neither runs of this row nor a measurement of it are known.
        fault: why it could not be measured.
        newest: when the last of the runs ended that the seconds come from, ISO 8601; else empty.
    """

    jobs: Sequence[Job]
    states: Counter[str] = field(default_factory=Counter)
    training: float | None = None
    scoring: float | None = None
    weights: float | None = None
    vectors: float | None = None
    once: float = 0.0
    rough: bool = False
    fault: str = ""
    newest: str = ""

    @property
    def first_job(self) -> Job | None:
        """The first run that can be made here; None where none can."""
        for job in self.jobs:
            if not job.spec.missing:
                return job
        return None

    @property
    def due(self) -> int:
        """Runs that have to be executed."""
        return self.states[TO_TRAIN] + self.states[TO_SCORE]

    @property
    def total(self) -> float | None:
        """Seconds of all of them; None where they are not known."""
        if not self.due:
            return 0.0
        if self.scoring is None:
            return None
        if not self.states[TO_TRAIN]:
            return self.once + self.scoring * self.due
        if self.training is None:
            return None
        return self.once + self.training * self.states[TO_TRAIN] + self.scoring * self.due

    @property
    def seconds(self) -> float | None:
        """Seconds of one run that is due, on the mean; None where they are not known."""
        if self.total is None or not self.due:
            return None
        return self.total / self.due


class CostEstimate:
    """The cost of each row of a plan.

    Args:
        measure: time two training steps and an encoding of each row for which nothing is known, and
            count the sentences of its tasks; both are stored in the work directory.
    """

    def __init__(self, plan: Plan, workdir: Path, *, measure: bool = False) -> None:
        self._plan = plan
        self._workdir = workdir
        self._measure = measure
        self._device = device_name(plan.device)
        self._stored = read_measurements(workdir)
        self._typical = TypicalCosts(plan)
        jobs_of: dict[tuple[str, str], list[Job]] = {}
        for job in plan.jobs:
            jobs_of.setdefault((job.row, job.spec.base_model), []).append(job)
        found = {}
        for key, jobs in jobs_of.items():
            found[key] = [find_finished(job, workdir) for job in jobs]
        records = []
        for some in found.values():
            for record in some:
                if record is not None:
                    records.append(record)
        self._scoring = _read_scoring(records)
        self.rows = {}
        for key, jobs in jobs_of.items():
            self.rows[key] = self._cost_row(jobs, found[key])
        if self._device == cpu_model():
            self._add_typical()

    def unknown(self) -> list[str]:
        """Return the labels of rows whose runs have no estimate."""
        labels = []
        for (label, _), cost in self.rows.items():
            if cost.total is None:
                labels.append(label)
        return labels

    def seconds(self) -> float | None:
        """Return the seconds of all runs, one after the other; None while one is unknown."""
        totals = [cost.total for cost in self.rows.values()]
        known = [total for total in totals if total is not None]
        if len(known) == len(totals):
            return sum(known)
        return None

    def at_a_time(self) -> int:
        """Return how many runs share the time. Workers on one CPU share its cores, so that together
        they take as long as one after the other.
        """
        due = sum(cost.due for cost in self.rows.values())
        try:
            executor = open_executor(self._plan.experiment.executor, self._workdir)
            on_cpu = self._plan.device.startswith("cpu") and executor.local
            if on_cpu or not executor.parallel:
                return 1
            return max(1, min(executor.room(), due))
        except HarnessError:  # a plan may be looked at where it cannot be run
            return 1

    def rough(self) -> list[str]:
        """Return the labels of rows whose estimate comes from shipped figures."""
        return [label for (label, _), cost in self.rows.items() if cost.rough]

    def describe(self) -> str:
        """Say how long all runs take, and on how many GPUs; no total while a part is unknown."""
        total = self.seconds()
        if total is None:
            unknown = self.unknown()
            return (
                f"the time on {self._device} is unknown for {len(unknown)} of {len(self.rows)} "
                f"rows: {join_some(unknown)} (--measure times two training steps and an encoding "
                "of each)"
            )
        if not total:
            return "nothing is left to run"
        at_a_time = self.at_a_time()
        duration = describe_duration(total / at_a_time)
        if self.rough():
            text = f"roughly {duration} on {self._device}, half or twice as long"
        else:
            text = f"about {duration} on {self._device}"
        if at_a_time > 1:
            text += f", {at_a_time} runs at a time"
        gpus = self._plan.experiment.executor.gpus_per_run
        if self._plan.device.startswith("cuda") or gpus:
            gpu_hours = total / 3600 * (gpus or 1)
            text += f" ({gpu_hours:.1f} GPU-hours)"
        return text

    def disk(self) -> dict[str, float]:
        """Return the bytes of what stays on the disk and of the checkpoints of the runs that are
        trained at a time, as far as they are known.
        """
        keep = self._plan.experiment.keep
        weights = vectors = largest = 0.0
        for cost in self.rows.values():
            weights += cost.states[TO_TRAIN] * (cost.weights or 0.0)
            vectors += cost.due * (cost.vectors or 0.0)
            if cost.states[TO_TRAIN]:
                largest = max(largest, cost.weights or 0.0)
        # The weights, the best ones so far, and the two moments of the optimiser.
        found = {"checkpoints": 4 * largest * self.at_a_time()}
        if "weights" in keep:
            found["weights"] = weights
        if "vectors" in keep:
            found["vectors"] = vectors
        return found

    def _cost_row(self, jobs: Sequence[Job], records: Sequence[Record | None]) -> RowCost:
        cost = RowCost(jobs)
        for job, record in zip(jobs, records, strict=True):
            cost.states[self._state(job, record)] += 1
        # A run that found vectors of an earlier one does not tell what encoding costs.
        here = [
            record
            for record in records
            if record is not None
            and self._is_of_here(record)
            and "sentences_cached" not in record.cost
        ]
        # Earlier runs may have been made while the machine was busy with other work.
        here = sorted(here, key=lambda record: record.finished)[-_NEWEST:]
        if here:
            cost.newest = here[-1].finished
            here = [record for record in here if _is_of_same_load(record.finished, cost.newest)]
            cost.training = fmean(map(_training_seconds, here))
            scoring = [record.seconds - _training_seconds(record) for record in here]
            cost.scoring = fmean(scoring)
            parameters = [record.cost.get("parameters", 0.0) for record in here]
            cost.weights = fmean(number * 4 for number in parameters)
        elif cost.due:
            self._estimate(cost)
        return cost

    def _state(self, job: Job, record: Record | None) -> str:
        if job.spec.missing:
            return IMPOSSIBLE
        if record is not None:
            return REUSED
        if needs_training(job, self._workdir):
            return TO_TRAIN
        return TO_SCORE

    def _is_of_here(self, record: Record) -> bool:
        return record.environment.get("device_name") == self._device

    def _estimate(self, cost: RowCost) -> None:
        """Estimate a run from what was timed: its training steps, and the sentences to encode."""
        job = cost.first_job
        assert job is not None
        try:
            rates = self._find_rates(job)
            scoring = self._find_scoring(job)
        except HarnessError as error:
            cost.fault = str(error)
            return
        if rates is None or scoring is None:
            return
        sentences, further = scoring
        dev = self._plan.dev_texts(job).count
        cost.training = job.steps * rates.step + dev * rates.sentence
        cost.scoring = sentences * rates.sentence + further
        cost.weights = rates.parameters * 4
        shape = read_shape(self._plan.row_of(job).start_model)
        if shape is not None:
            cost.vectors = 4.0 * sentences * shape.width

    def _find_rates(self, job: Job) -> Rates | None:
        """Return what a row was timed at on this device; it is timed now where that is wanted."""
        from harness.runs.measure import Rates, time_row

        plan = self._plan
        row = plan.row_of(job)
        about = {"row": row.key, "precision": plan.experiment.precision, "device": self._device}
        key = content_id(about)
        known = self._stored.get(_RATES, {}).get(key)
        if known is None and self._measure:
            corpus = plan.corpus(row)
            precision = plan.experiment.precision
            known = measure_once(
                self._workdir,
                _RATES,
                key,
                lambda: time_row(row, corpus, job.steps, plan.device, precision=precision),
            )
        if known is None:
            return None
        return Rates(**known)

    def _add_typical(self) -> None:
        """Estimate the rows of which nothing is known, corrected by the rows of which it is."""
        known = []
        unknown = []
        for cost in self.rows.values():
            if cost.due and cost.total is None and not cost.fault:
                unknown.append(cost)
            elif cost.scoring is not None:
                known.append(cost)
        if not unknown:
            return
        corrections = self._corrections(_keep_newest(known))
        timed = set[str]()
        first, other = overhead()
        if corrections:  # the runs that correct have all that a run does
            first = other = 0.0
        for cost in unknown:
            job = cost.first_job
            assert job is not None
            typical = self._typical.find(job)
            if typical is None:
                continue
            of_all = corrections.get("", 1.0)
            factor = corrections.get(job.spec.base_model, of_all)
            cost.training = typical.training * factor
            cost.scoring = typical.scoring * factor + other
            cost.weights = typical.weights
            cost.vectors = typical.vectors
            cost.rough = True
            if not timed:
                cost.once = first - other
            if typical.architecture not in timed:
                timed.add(typical.architecture)
                cost.once += typical.inference

    def _corrections(self, known: Iterable[RowCost]) -> dict[str, float]:
        """Return base model -> the ratio of what runs took here to what was to be expected of them;
        under "" the ratio over all base models.
        """
        sums: dict[str, tuple[float, float]] = {}
        for cost in known:
            job = cost.first_job
            if job is None:
                continue
            typical = self._typical.find(job)
            if typical is None:
                continue
            actual = (cost.training or 0.0) + (cost.scoring or 0.0)
            expected = typical.training + typical.scoring
            if actual and expected:
                for key in (job.spec.base_model, ""):
                    took, was_expected = sums.get(key, (0.0, 0.0))
                    sums[key] = (took + actual, was_expected + expected)
        ratios = {}
        for key, (took, was_expected) in sums.items():
            ratios[key] = took / was_expected
        return ratios

    def _find_scoring(self, job: Job) -> tuple[float, float] | None:
        """Return how many sentences a run encodes for its tasks, and the seconds of their scoring
        beside it.
        """
        if job.tasks in self._scoring:
            return self._scoring[job.tasks]
        rehearsal = self._plan.rehearsal
        most = None if rehearsal is None else rehearsal.sentences
        about: dict[str, Any] = {"tasks": sorted(job.tasks)}
        if most is not None:
            about["most"] = most
        key = content_id(about)
        known = self._stored.get(_TEXTS, {}).get(key)
        if known is None and self._measure:
            known = measure_once(
                self._workdir,
                _TEXTS,
                key,
                lambda: {"sentences": count_texts(job.tasks, most)},
            )
        if known is None:
            return None
        if rehearsal is not None:
            return (min(known["sentences"], rehearsal.limit), 0.0)
        return (known["sentences"], 0.0)


@dataclass(frozen=True)
class TypicalCost:
    """Seconds and bytes of a run, from the sizes of its model and texts.

    Attributes:
        architecture, inference: of what the seconds of inference are measured, once in a work
            directory.
    """

    training: float
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
        inference = encode(
            [Texts(inference_cost.SENTENCES * (inference_cost.PASSES + 1), _CHARACTERS)]
        )
        return TypicalCost(
            training=training + encode([self._plan.dev_texts(job)]),
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


def _keep_newest(costs: Sequence[RowCost]) -> list[RowCost]:
    """Return the rows whose runs are hardly older than the newest of all, and those that were
    measured without a run.
    """
    newest = max((cost.newest for cost in costs), default="")
    return [one for one in costs if not one.newest or _is_of_same_load(one.newest, newest)]


def _is_of_same_load(ended: str, newest: str) -> bool:
    """True if a run ended little before another one, both ISO 8601 in UTC."""
    return datetime.fromisoformat(newest) - datetime.fromisoformat(ended) <= _SAME_LOAD


def _training_seconds(record: Record) -> float:
    return record.cost.get("train_seconds", 0.0) + record.cost.get("dev_seconds", 0.0)


def _read_scoring(records: Iterable[Record]) -> dict[tuple[str, ...], tuple[float, float]]:
    """Return tasks -> the sentences that a run encoded for them, and the seconds of their scoring
    beside it.
    """
    found = {}
    for record in records:
        if "sentences" in record.cost:
            keys = [f"{score.source}:{score.task}" for score in record.scores]
            tasks = tuple(dict.fromkeys(keys))
            further = record.cost.get("evaluate_seconds", 0.0)
            found[tasks] = (record.cost["sentences"], further)
    return found
