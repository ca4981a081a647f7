"""One trial: a configuration becomes the cells of a one-row comparison, and their dev scores its value."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING

from harness.comparison.plan import Plan, PlannedCell
from harness.errors import InputError
from harness.results.record import Record
from studies.definition.space import Space
from studies.definition.study import DEV
from studies.run.attributes import FINAL, SLOT
from studies.run.desk import Desk, label
from studies.run.outcome import dev_scores, in_contention, outcome
from studies.run.trial_result import TrialResult, TrialSeconds

if TYPE_CHECKING:
    import optuna
    from optuna.trial import TrialState


@dataclass
class Clock:
    """Wall seconds of a trial by what they went into."""

    optuna: float = 0.0
    started: float = field(default_factory=time.perf_counter)

    @contextmanager
    def asking_optuna(self) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.optuna += time.perf_counter() - start


class OpenTrial:
    """A trial on its way: its cells are asked for one after the other, and Optuna is told how it ended.

    Attributes:
        plan: that of its cells; None where its configuration cannot work.
        made: runs that were made for it, and not found.
    """

    def __init__(self, trial: optuna.Trial, stored: optuna.Study, space: Space, desk: Desk) -> None:
        self.trial, self.stored, self.desk, self.study = trial, stored, desk, desk.study
        self.clock = Clock()
        self.plan: Plan | None = None
        self.made: list[Record] = []
        self._records: list[Record] = []
        self._outcomes: list[list[float]] = []
        self._reported = set(stored.get_trials(deepcopy=False)[trial.number].intermediate_values)
        self._ended = False
        with self.clock.asking_optuna():
            self.values = space.suggest(trial, first=trial.user_attrs.get(SLOT) == 0)
        try:
            self.plan = desk.plan(self.values)
        except InputError as error:  # a combination that the method refuses
            self._fail(str(error))

    @property
    def name(self) -> str:
        """As a reader knows it."""
        return f"trial {self.trial.number}"

    def next_cell(self) -> PlannedCell | None:
        """The cell to be made next; None where the trial has ended. Those that have their record are passed over."""
        while not self._ended:
            assert self.plan is not None
            cell = self.plan.cells[len(self._records)]
            record = self.desk.known(cell, self.plan)
            if record is None:
                return cell
            self.took(record, made=False)
        return None

    def took(self, record: Record, *, made: bool) -> None:
        """The next cell's record; `made` for this trial, or for another one."""
        from optuna.trial import TrialState

        assert self.plan is not None
        first = not self._records
        self._records.append(record)
        if made:
            self.made.append(record)
            for step, score in dev_scores(record, self.desk.workdir) if first and self._by_dev else ():
                self._report(step, score)
        if record.status == "pruned":
            self._end(TrialState.PRUNED, record.reason)
        elif record.status == "failed":
            self._fail(record.reason)
        else:
            try:
                self._outcomes.append(outcome(record, self.study, self.desk.workdir))
            except InputError as error:
                self._fail(str(error))
                return
            if len(self._records) == len(self.plan.cells):
                self._end(TrialState.COMPLETE)
            elif not in_contention(self.stored, self.study, self._outcomes):
                self._end(TrialState.COMPLETE, "out of contention: no further seed")

    def why_stop(self, step: int, score: float) -> str:
        """Tell Optuna of a dev score of the running cell; the reason to give the run up, or nothing."""
        if self._records or not self._by_dev or not self._report(step, score):
            return ""
        with self.clock.asking_optuna():
            stop = self.trial.should_prune()
        return f"dev {100 * score:.2f} at step {step} ({self.study.pruner} pruner)" if stop else ""

    @property
    def _by_dev(self) -> bool:
        return self.study.objectives == [DEV]

    def _report(self, step: int, score: float) -> bool:
        """Is that news to Optuna?"""
        if step == 0 or not math.isfinite(score) or step in self._reported:
            return False
        self._reported.add(step)
        with self.clock.asking_optuna():
            self.trial.report(score, step)
        return True

    def _fail(self, reason: str) -> None:
        from optuna.trial import TrialState

        self.trial.set_user_attr(FINAL, "failed")
        self._end(TrialState.FAIL, reason)

    def _end(self, state: TrialState, reason: str = "") -> None:
        from optuna.trial import TrialState

        records = self._records
        result = TrialResult(
            runs=[record.id for record in records],
            seeds=[record.seed for record in records],
            seed_values=self._outcomes,
            status=records[-1].status if records else "failed",
            reason=reason or (records[-1].reason if records else ""),
            answered=bool(records) and not self.made,
            label=label(self.values),
            seconds=self._seconds(),
        )
        told = [fmean(column) for column in zip(*self._outcomes, strict=True)] if state == TrialState.COMPLETE else None
        with self.clock.asking_optuna():
            result.write(self.trial)
            self.stored.tell(self.trial, told, state=state)
        self._ended = True

    def _seconds(self) -> TrialSeconds:
        """Training, evaluation and Optuna, and the whole; what is left over is loading, saving and waiting."""
        cost = [record.cost for record in self.made]
        evaluation = ("dev_seconds", "encode_seconds", "evaluate_seconds")
        return TrialSeconds(
            training=sum(c.get("train_seconds", 0.0) for c in cost),
            evaluation=sum(c.get(key, 0.0) for c in cost for key in evaluation),
            optuna=self.clock.optuna,
            whole=time.perf_counter() - self.clock.started,
        )
