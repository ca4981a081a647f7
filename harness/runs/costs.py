"""What the runs of a plan will cost: from runs of the same row, else from what `--measure` timed in
this work directory, else from the arithmetic of the model and the speed of this processor
(`harness.runs.typical_costs`), corrected by what this work directory knows of other rows.

A run without any of them, as on a GPU or of a model that is not here, has no estimate, and then
there is no total.

Other work on a machine can make one run last twenty times as long. The processor seconds next to
those of the clock show it, and runs are summed up by their medians.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import accumulate
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from harness.errors import HarnessError
from harness.executors.executor import open_executor
from harness.files.hashing import content_id
from harness.files.model_names import kind_of_model
from harness.files.printable import join_some
from harness.machine.environment import cpu_model, device_name
from harness.machine.progress import describe_duration
from harness.results.measurements import measure_once, read_measurements
from harness.results.record import Record
from harness.results.spec import RunSpec
from harness.results.store import RunFolder, run_ids
from harness.runs.due import find_finished, needs_training
from harness.runs.plan import Job, Plan
from harness.runs.typical_costs import (
    overhead,
    read_shape,
)
from harness.runs.typical_runs import TypicalCosts, count_texts

if TYPE_CHECKING:
    from harness.runs.measure import Rates

REUSED = "reused"
TO_TRAIN = "to train"
TO_SCORE = "to score"
IMPOSSIBLE = "n/a"
_RATES = "rates"  # tables of measurements.json
_TEXTS = "texts"
_NEWEST = 3  # runs of a row that say what its next ones take
_READ = 300  # records of other seeds and plans that are read, the newest
_STARVED = 3.0  # times what is to be expected: more is the work of others
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


@dataclass(frozen=True)
class Part:
    """A part of a run: the names of its seconds in `Record.cost`.

    Attributes:
        clocks: of the wall clock; they are added.
        cpu: of the processor.
    """

    clocks: tuple[str, ...]
    cpu: str

    def clock(self, record: Record) -> float:
        """Seconds of the wall clock."""
        return sum(record.cost.get(name, 0.0) for name in self.clocks)

    def processor(self, record: Record) -> float:
        """Seconds of the processor; 0 where they are not known, or of another process's work."""
        if record.spec.method == "command":
            return 0.0
        return record.cost.get(self.cpu, 0.0)

    def is_sure(self, record: Record) -> bool:
        """True if its seconds of the processor are known, or it took no time."""
        return bool(self.processor(record)) or not self.clock(record)

    def seconds(self, record: Record, load: float | None) -> float:
        """Seconds of the wall clock, without those in which the processor did much more other work
        than it usually does. `load` is the usual ratio of both; None on a GPU, for which the
        processor waits.
        """
        clock = self.clock(record)
        processor = self.processor(record)
        if load is None or not processor or kind_of_model(record.base_model):
            return clock
        return min(clock, load * processor)


_TRAIN = Part(("train_seconds",), "train_cpu_seconds")
_DEV = Part(("dev_seconds",), "dev_cpu_seconds")
_SCORE = Part(("encode_seconds", "evaluate_seconds"), "score_cpu_seconds")


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
        jobs_of = _group_jobs(plan)
        self._begun = run_ids(workdir)
        found = {}
        for key, jobs in jobs_of.items():
            found[key] = [self._find_finished(job) for job in jobs]
        records = _join_known(found.values())
        self.rows = {}
        for key, jobs in jobs_of.items():
            self.rows[key] = RowCost(jobs, self._count_states(jobs, found[key]))
        on_cpu = self._device == cpu_model()
        others = []
        if any(cost.due for cost in self.rows.values()):
            others = read_newest(workdir)
        self._load = find_load([*records, *others]) if on_cpu else None
        self._scoring = _read_scoring(records)
        seeds_of = _group_by_row(others)
        runs: dict[tuple[str, str], list[Record]] = {}
        for key, cost in self.rows.items():
            runs[key] = self._runs_of(cost, found[key], seeds_of)
            if runs[key]:
                self._cost_by_runs(cost, runs[key])
            elif cost.due:
                self._estimate(cost)
        if on_cpu:
            self._correct(runs)

    def _correct(self, runs: Mapping[tuple[str, str], list[Record]]) -> None:
        """Limit what runs took by what is expected of this processor, and expect as much of rows
        that have no runs.
        """
        known = [cost for cost in self.rows.values() if cost.scoring is not None]
        corrections = self._corrections(_keep_newest(known))
        for key, cost in self.rows.items():
            if runs[key] and cost.due:
                self._limit(cost, runs[key], corrections)
        self._add_typical(corrections)

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

    def _find_finished(self, job: Job) -> Record | None:
        if job.id in self._begun:
            return find_finished(job, self._workdir)
        return None

    def _count_states(self, jobs: Sequence[Job], records: Sequence[Record | None]) -> Counter[str]:
        states: Counter[str] = Counter()
        for job, record in zip(jobs, records, strict=True):
            states[self._state(job, record)] += 1
        return states

    def _runs_of(
        self,
        cost: RowCost,
        records: Sequence[Record | None],
        seeds_of: dict[str, list[Record]],
    ) -> list[Record]:
        """Return the newest runs of a row on this device, also of seeds that are not in the plan."""
        found = {record.id: record for record in records if record is not None}
        if seeds_of:
            job = cost.jobs[0]
            for record in seeds_of.get(_row_id(job.spec), []):
                if record.evaluation.keys() >= set(job.tasks):
                    found.setdefault(record.id, record)
        # A run that found vectors of an earlier one does not tell what encoding costs.
        here = [
            record
            for record in found.values()
            if self._is_of_here(record) and "sentences_cached" not in record.cost
        ]
        # Earlier runs may have been made while the machine was busy with other work.
        here = sorted(here, key=lambda record: record.finished)[-_NEWEST:]
        return [one for one in here if _is_of_same_load(one.finished, here[-1].finished)]

    def _cost_by_runs(self, cost: RowCost, runs: Sequence[Record]) -> None:
        """Read what a run costs from runs of the same row."""
        cost.newest = runs[-1].finished
        cost.training = self._median(runs, _TRAIN) + self._median(runs, _DEV)
        cost.scoring = self._median(runs, _SCORE)
        parameters = [record.cost.get("parameters", 0.0) for record in runs]
        cost.weights = fmean(number * 4 for number in parameters)

    def _median(self, runs: Sequence[Record], part: Part) -> float:
        return median(part.seconds(record, self._load) for record in runs)

    def _limit(self, cost: RowCost, runs: Sequence[Record], corrections: dict[str, float]) -> None:
        """Limit the seconds of encoding and scoring where runs do not say how many of them were of
        the processor.
        """
        typical = None
        if not all(_SCORE.is_sure(record) and _DEV.is_sure(record) for record in runs):
            typical = self._typical.find(cost.jobs[0])
        if typical is None or not corrections or cost.scoring is None:
            return
        most = _STARVED * _factor(corrections, cost.jobs[0])
        dev = self._median(runs, _DEV)
        train = self._median(runs, _TRAIN)
        cost.training = train + min(dev, most * typical.dev)
        cost.scoring = min(cost.scoring, most * typical.scoring)

    def _state(self, job: Job, record: Record | None) -> str:
        if job.spec.missing:
            return IMPOSSIBLE
        if record is not None:
            return REUSED
        if job.id in self._begun:
            trains = needs_training(job, self._workdir)
        else:
            trains = job.spec.trained
        return TO_TRAIN if trains else TO_SCORE

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
        about = {
            "row": row.key,
            "text": (job.spec.corpus or {}).get("sha256"),  # how long a step's texts are
            "precision": plan.experiment.precision,
            "device": self._device,
        }
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

    def _add_typical(self, corrections: dict[str, float]) -> None:
        """Estimate the rows of which nothing is known, corrected by the rows of which it is."""
        unknown = []
        for cost in self.rows.values():
            if cost.due and cost.total is None and not cost.fault:
                unknown.append(cost)
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
            factor = _factor(corrections, job)
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
        """Return base model -> the ratio of what runs took here to what was to be expected of them,
        the median over its rows, weighted by what was expected; under "" that over all base models.
        """
        if not any(cost.due for cost in self.rows.values()):
            return {}
        found: dict[str, list[tuple[float, float]]] = {}
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
                    found.setdefault(key, []).append((actual / expected, expected))
        return {key: weighted_median(ratios) for key, ratios in found.items()}

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


def _keep_newest(costs: Sequence[RowCost]) -> list[RowCost]:
    """Return the rows whose runs are hardly older than the newest of all, and those that were
    measured without a run.
    """
    newest = max((cost.newest for cost in costs), default="")
    return [one for one in costs if not one.newest or _is_of_same_load(one.newest, newest)]


def _is_of_same_load(ended: str, newest: str) -> bool:
    """True if a run ended little before another one, both ISO 8601 in UTC."""
    return datetime.fromisoformat(newest) - datetime.fromisoformat(ended) <= _SAME_LOAD


def _factor(corrections: dict[str, float], job: Job) -> float:
    """Return the correction of a job's base model, else that of all; 1 without any."""
    return corrections.get(job.spec.base_model, corrections.get("", 1.0))


def read_newest(workdir: Path, most: int = _READ) -> list[Record]:
    """Return the finished ones of the newest records of a work directory.

    >>> read_newest(Path("no-such-folder"))
    []
    """
    written = []
    for run in run_ids(workdir):
        file = RunFolder(workdir, run).record_file
        with suppress(OSError):
            when = file.stat().st_mtime
            written.append((when, run))
    written.sort()
    records = []
    for _, name in written[-most:]:
        record = RunFolder(workdir, name).read_if_sound()
        if record is not None and record.status == "finished":
            records.append(record)
    return records


def _row_id(spec: RunSpec) -> str:
    """Return what the runs of a row have in common, whatever their seed."""
    return spec.model_copy(update={"seed": 0}).id


def _group_jobs(plan: Plan) -> dict[tuple[str, str], list[Job]]:
    """Return the jobs of each (row, base model)."""
    found: dict[tuple[str, str], list[Job]] = {}
    for job in plan.jobs:
        found.setdefault((job.row, job.spec.base_model), []).append(job)
    return found


def _join_known(found: Iterable[Sequence[Record | None]]) -> list[Record]:
    """Return the records of several rows in one list, without the missing ones."""
    known = []
    for records in found:
        for record in records:
            if record is not None:
                known.append(record)
    return known


def _group_by_row(records: Iterable[Record]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(_row_id(record.spec), []).append(record)
    return found


def weighted_median(values: Iterable[tuple[float, float]]) -> float:
    """Return the smallest value up to which half of the weight lies, of pairs (value, weight).

    >>> weighted_median([(50.0, 1.0), (2.0, 3.0), (3.0, 4.0)])
    3.0
    """
    ordered = sorted(values)
    weights = [weight for _, weight in ordered]
    reached = list(accumulate(weights))
    place = bisect_right(reached, reached[-1] / 2)
    last = len(ordered) - 1
    value, _ = ordered[min(place, last)]
    return value


def find_load(records: Sequence[Record]) -> float:
    """Return how many seconds of the clock a second of the processor takes in the newest runs, the
    median of their parts: more than one while other work shares the processor.
    """
    if not records:
        return 1.0
    newest = max(record.finished for record in records)
    loads = []
    for record in records:
        for part in (_TRAIN, _DEV, _SCORE):
            processor = part.processor(record)
            if processor and _is_of_same_load(record.finished, newest):
                loads.append(part.clock(record) / processor)
    if not loads:
        return 1.0
    return max(1.0, median(loads))


def _read_scoring(records: Iterable[Record]) -> dict[tuple[str, ...], tuple[float, float]]:
    """Return tasks -> the sentences that a run encoded for them, and the seconds of their
    scoring beside it, the median of the runs.
    """
    found: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    for record in records:
        if "sentences" in record.cost:
            keys = [f"{score.source}:{score.task}" for score in record.scores]
            tasks = tuple(dict.fromkeys(keys))
            further = record.cost.get("evaluate_seconds", 0.0)
            found.setdefault(tasks, []).append((record.cost["sentences"], further))
    scoring = {}
    for tasks, several in found.items():
        sentences = median(count for count, _ in several)
        scoring[tasks] = (sentences, median(further for _, further in several))
    return scoring
