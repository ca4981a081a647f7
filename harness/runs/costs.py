"""What the runs of a plan will cost, as far as it is known: from runs of the same row, else from
what `--measure` timed in this work directory.

Nothing is guessed: a run without either has no estimate, and then there is no total.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from harness.errors import HarnessError
from harness.executors.executor import open_executor
from harness.files.hashing import content_id
from harness.machine.environment import device_name
from harness.results.measurements import measure_once, read_measurements
from harness.results.record import Record
from harness.runs.execute import find_finished, needs_training
from harness.runs.plan import Job, Plan, find_task

if TYPE_CHECKING:
    from harness.runs.measure import Rates

REUSED = "reused"
TO_TRAIN = "to train"
TO_SCORE = "to score"
IMPOSSIBLE = "n/a"
_RATES = "rates"  # tables of measurements.json
_TEXTS = "texts"


@dataclass
class RowCost:
    """The runs of a row on one base model.

    Attributes:
        states: how many are reused, to train, to score or n/a.
        training: seconds of a run until it is scored; None where they are not known.
        scoring: seconds of its encoding and scoring; None where they are not known.
        weights: bytes of the saved weights of one run; None where they are not known.
        fault: why it could not be measured.
    """

    jobs: Sequence[Job]
    states: Counter[str] = field(default_factory=Counter)
    training: float | None = None
    scoring: float | None = None
    weights: float | None = None
    fault: str = ""

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
            return self.scoring * self.due
        if self.training is None:
            return None
        return self.training * self.states[TO_TRAIN] + self.scoring * self.due

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

    def weights(self) -> float | None:
        """Return the bytes of the weights that stay; None while one row's are unknown."""
        if "weights" not in self._plan.experiment.keep:
            return 0.0
        total = 0.0
        for cost in self.rows.values():
            if cost.states[TO_TRAIN] and cost.weights is None:
                return None
            total += cost.states[TO_TRAIN] * (cost.weights or 0.0)
        return total

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
        if here:
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
        job = next(job for job in cost.jobs if not job.spec.missing)
        try:
            rates = self._find_rates(job)
            scoring = self._find_scoring(job)
        except HarnessError as error:
            cost.fault = str(error)
            return
        if rates is None or scoring is None:
            return
        sentences, further = scoring
        dev = self._dev_sentences(job)
        cost.training = job.steps * rates.step + dev * rates.sentence
        cost.scoring = sentences * rates.sentence + further
        cost.weights = rates.parameters * 4

    def _dev_sentences(self, job: Job) -> int:
        """Return how many sentences a run encodes to be scored on the dev set."""
        plan = self._plan
        row = plan.row_of(job)
        every = plan.schedule.every or getattr(row.config, "eval_every", 0)
        if plan.dev is None or not row.instance.uses_dev:
            return 0
        if not job.steps or not every:
            return 0
        times = job.steps // every + 1  # the untrained start, too
        return times * plan.dev.num_texts

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

    def _find_scoring(self, job: Job) -> tuple[float, float] | None:
        """Return how many sentences a run encodes for its tasks, and the seconds of their scoring
        beside it.
        """
        if job.tasks in self._scoring:
            return self._scoring[job.tasks]
        key = content_id({"tasks": sorted(job.tasks)})
        known = self._stored.get(_TEXTS, {}).get(key)
        if known is None and self._measure:
            known = measure_once(
                self._workdir,
                _TEXTS,
                key,
                lambda: {"sentences": count_texts(job.tasks)},
            )
        if known is None:
            return None
        return (known["sentences"], 0.0)


def count_texts(tasks: Iterable[str]) -> int:
    """Return the number of distinct texts of tasks ("SOURCE:TASK").

    Raises:
        InputError: the data of none of them can be read.
    """
    from harness.evaluation.scoring import each, texts_of

    readable, _ = each([find_task(key) for key in tasks], texts_of)
    distinct: set[str] = set()
    for _, texts in readable:
        distinct.update(texts)
    return len(distinct)


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
