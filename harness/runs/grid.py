"""The runs of a comparison: every row, base model and seed, and further seeds where `--until` adds
them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.files.printable import join_some
from harness.results.comparison import ComparisonFile, DevSchedule, ListedBlock, ListedRun, Tuning
from harness.results.record import Record
from harness.results.store import write_comparison_file
from harness.runs.against import OtherRows
from harness.runs.differences import rate_origin
from harness.runs.own_data import describe_files, write_experiment, write_splits
from harness.runs.plan import Job, Plan
from harness.runs.progress import Progress, RunState
from harness.runs.until import MoreSeeds
from harness.seeds import seed_fields, seed_text
from harness.tasks.mteb.benchmark_suites import benchmarks_of
from harness.tracking import Tracker

log = logging.getLogger(__name__)


@dataclass
class Grid:
    """The proposer of a comparison: all its jobs, then more seeds as long as `more_seeds` wants
    them.

    Args:
        plan: what is compared.
        progress: gets a line for each run.
        command_of: the command that makes the run of a job again.
        tracker: gets every record.
        tuned: how rows were tuned, where they were.
        only: which part of an experiment the plan is.
        more_seeds: the course of `--until`, of which the plan is that of the first analysis.
        others: rows made elsewhere, whose runs are in `workdir`; their records follow those of the
            plan.
        said: notes that were printed.
    """

    plan: Plan
    workdir: Path
    progress: Progress
    command_of: Callable[[Job], str] = lambda job: ""
    tracker: Tracker | None = None
    tuned: Tuning | None = None
    only: Sequence[str] = ()
    more_seeds: MoreSeeds | None = None
    others: OtherRows | None = None
    said: set[str] = field(default_factory=set)
    records: dict[tuple[str, str, int], Record] = field(default_factory=dict, init=False)
    _proposed: bool = field(default=False, init=False)

    def propose(self, room: int) -> list[Job]:
        """All jobs at once; then those of the next analysis, when all have ended."""
        if self._proposed:
            if self.more_seeds is None or self._open():
                return []
            if not self._analyse():
                return []
        self._proposed = True
        write_splits(self.plan, self.workdir)
        write_experiment(self.plan, self.workdir)
        self.write()
        jobs = self._open()
        states = []
        for job in jobs:
            state = RunState(
                job.label,
                job.row,
                job.spec.base_model,
                seed_text(job.spec.random_seed),
                job.id,
                steps=job.steps,
            )
            states.append(state)
        self.progress.expect(states)
        return [replace(job, command=self.command_of(job)) for job in jobs]

    def _open(self) -> list[Job]:
        return [job for job in self.plan.jobs if job.place not in self.records]

    def _analyse(self) -> bool:
        """Make an interim analysis; are there further runs?"""
        assert self.more_seeds is not None
        if self.more_seeds.ended:
            return False
        self.more_seeds.open_analysis()
        self.write()
        plan = self.more_seeds.close_analysis(self.plan, self.workdir)
        self.plan = plan or self.plan
        self.write()
        self.progress.reporter.say(self.more_seeds.summary())
        return plan is not None

    def prune(self, job: Job, step: int, score: float) -> str:
        """As `Proposer.prune`: no run of a comparison is pruned."""
        return ""

    def finish(self, job: Job, record: Record, *, reused: bool) -> None:
        """As `Proposer.finish`."""
        limited = record.limit_to(job.tasks)
        shown = limited.as_row(job.row, job.comparison)
        self.records[job.place] = shown
        if record.unavailable:
            state = "n/a"
        elif reused and record.status == "finished":
            state = "reused"
        else:
            state = record.status
        line = describe_record(shown) + (" (reused)" if reused else "")
        self.progress.finish(
            job.label,
            state,
            line,
            reason=record.reason,
            seconds=record.seconds,
        )
        for note in record.training.get("notes", []):
            if note not in self.said:  # the same data in every run
                self.said.add(note)
                self.progress.reporter.say(f"note: {note}")
        if self.tracker is not None:
            self.tracker.log(shown)

    def all_records(self) -> list[Record]:
        """The records in the order of the table, those of other work directories last."""
        own = [self.records[job.place] for job in self.plan.jobs]
        if not self.others:
            return own
        return own + self.others.records(self.plan.experiment.name)

    def write(self) -> None:
        """Write the file of the comparison."""
        plan = self.plan
        experiment = plan.experiment
        blocks = []
        for name, block in experiment.blocks.items():
            listed = ListedBlock(
                name=name,
                title=block.title or name,
                description=block.description,
                tasks=plan.keys_of([name]),
            )
            blocks.append(listed)
        schedule = None
        if plan.schedule.every:
            changed = plan.schedule.instead_of
            schedule = DevSchedule(every=plan.schedule.every, instead_of=changed)
        runs = [self._describe_run(job) for job in plan.jobs]
        if self.others is not None:
            runs += self.others.list_runs(tuple(experiment.blocks))
        file = ComparisonFile(
            name=experiment.name,
            title=experiment.title,
            description=experiment.description,
            experiment=experiment.model_dump(mode="json"),
            tasks=plan.keys_of(plan.block_tasks),
            runs=tuple(runs),
            blocks=tuple(blocks),
            only=tuple(self.only),
            schedule=schedule,
            tuned=self.tuned,
            until=self.more_seeds.describe() if self.more_seeds else None,
            left_out=tuple(self.others.left_out) if self.others else (),
            files=describe_files(plan),
            benchmarks=benchmarks_of(
                names for suites in experiment.suites_by_block().values() for names in suites
            ),
        )
        write_comparison_file(self.workdir, file)

    def _describe_run(self, job: Job) -> ListedRun:
        """Return a run as the file of the comparison lists it."""
        row = self.plan.row_of(job)
        return ListedRun(
            id=job.id,
            row=job.row,
            base_model=job.spec.base_model,
            **seed_fields(job.spec.random_seed),
            blocks=job.blocks if self.plan.experiment.blocks else (),
            rate_from=rate_origin(self.plan, row, self.tuned) or "",
            added=row.added,
            start=self.plan.starts.get(job.id, ""),
            analysis=self.more_seeds.since[job.place] if self.more_seeds else 0,
        )


def describe_record(record: Record) -> str:
    """One line about a record: its main scores, or why it has none."""
    if record.status != "finished":
        why = "n/a" if record.unavailable else record.status
        return f"{why}: {record.reason}"
    main = []
    for s in record.scores:
        place = (s.metric, s.aggregation, s.split)
        if place == ("spearman", "all", "test"):
            main.append(f"{s.task} {100 * s.value:.2f}")
    parts = [", ".join(main[:7]) or "finished"]
    if record.missing:
        missing = join_some(list(record.missing), 7)
        parts.append(f"no scores of {missing}")
    best = record.training.get("best_dev")
    initial = record.training.get("initial_dev")
    if best is not None and initial is not None and best <= initial:
        if record.training.get("best_step"):
            weights = "trained"
        else:
            weights = "untrained"
        parts.append(
            f"the dev score never exceeded the untrained model's ({100 * initial:.2f}), {weights} "
            "weights were scored"
        )
    seconds = record.cost.get("train_seconds", 0)
    return f"{'; '.join(parts)} ({seconds:.0f} s training)"
