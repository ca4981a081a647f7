"""What all trials of a study have in common: the data, read once, and the plan of any configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harness.comparison.plan import LoadedData, Plan, PlannedCell, make_plan
from harness.comparison.rescoring import due
from harness.errors import InputError
from harness.results.record import Record
from harness.results.run_folder import RunFolder
from studies.definition.study import DEV, Study


class Desk:
    """The data of a study, loaded once; makes the plan of any configuration."""

    def __init__(self, study: Study, workdir: Path) -> None:
        from harness.tasks.catalogue import resolve_tasks

        self.study, self.workdir = study, workdir
        self.tasks = resolve_tasks(study.suites, source=study.source) if study.suites else []
        self._data = LoadedData()

    def plan(self, values: Mapping[str, Any]) -> Plan:
        """The plan of a trial.

        Raises:
            InputError: a configuration, corpus, dev set or model that cannot work.
        """
        study, where = self.study, f'study "{self.study.name}"'
        plan = make_plan(
            study.experiment(values, label(values)), where, self.workdir, data=self._data, tasks=self.tasks
        )
        if DEV in study.objectives and plan.dev is None:
            raise InputError(
                f'{where}: objectives: method "{study.method}" is not scored on a dev set; '
                "name a task and its suite instead"
            )
        for objective in study.objectives:
            if objective != DEV and not split_objective(objective, [task.name for task in self.tasks]):
                raise InputError(
                    f'{where}: objectives: no task of "{objective}" in suites; '
                    f"there are: {', '.join(task.name for task in self.tasks)}"
                )
        return plan

    def known(self, cell: PlannedCell, plan: Plan) -> Record | None:
        """The record that answers a cell without any training, or None."""
        record = RunFolder(self.workdir, cell.id).read()
        if record is None or record.status == "failed":
            return None
        if record.status == "pruned":
            own = record.comparison == self.study.name  # another study's reasons to give it up are not this one's
            return record if own and self.study.pruner != "none" else None
        if record.status != "finished" or not self.tasks:
            return record  # a comparison may have evaluated it on more: all the better
        return record if not due(record, cell, plan) else None


def label(values: Mapping[str, Any]) -> str:
    """A configuration as the name of a row."""
    return ", ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in values.items()) or "default"


def split_objective(objective: str, tasks: Iterable[str]) -> tuple[str, str, str] | None:
    """Task (whose name may hold ":"), metric and aggregation of an objective; None where it names none of the tasks."""
    named = [task for task in tasks if f"{objective}:".startswith(f"{task}:")]
    if not named:
        return None
    task = max(named, key=len)
    given = objective.removeprefix(task).split(":")[1:]
    metric, aggregation = [*given, *("spearman", "all")[len(given) :]][:2]
    return task, metric, aggregation
