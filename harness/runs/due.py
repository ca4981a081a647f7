"""What a job still needs: training, scores of some tasks, or nothing."""

from __future__ import annotations

from pathlib import Path

from harness.results.record import Record
from harness.results.spec import scoring_version
from harness.results.store import RunFolder
from harness.runs.inputs import find_task, is_readable, task_code_of
from harness.runs.plan import Job
from harness.tasks.base import Task, task_key


def find_finished(job: Job, workdir: Path) -> Record | None:
    """The record of a job that needs no more work, or None.

    Failed runs run again, and pruned ones unless the same study requests them; finished ones that
    lack scores are scored on what they lack, and damaged ones on everything, as long as their
    weights are saved.
    """
    folder = RunFolder(workdir, job.id)
    record = folder.read_if_sound()
    if record is None or record.status in ("trained", "failed"):
        return None
    if record.status == "pruned":
        is_own = job.trial is not None and record.comparison == job.comparison
        if not is_own:
            return None
    if record.status != "finished":
        return record
    repairable = not record.spec.trained or folder.has_weights(record)
    if find_due(record, job) or (folder.is_damaged(record) and repairable):
        return None
    return record


def find_due(record: Record | None, job: Job) -> list[Task]:
    """The tasks that a run has to be scored on: never scored, scored by an older version, or whose
    data has become available.
    """
    tasks = [find_task(key) for key in job.tasks]
    if record is None or record.status != "finished":
        return tasks
    due = []
    unscored = record.unscored
    for task in tasks:
        key = task_key(task)
        why = record.missing.get(task.name) if key in unscored else None
        version = scoring_version(task, task_code_of(key))
        scored = record.evaluation.get(key) == version
        again = (
            why is not None and why.kind != "unfit" and is_readable(key, job.spec.most_sentences)
        )
        if again or not scored:
            due += [task]
    return due


def needs_training(job: Job, workdir: Path) -> bool:
    """Does a job that is not finished have to be trained?"""
    folder = RunFolder(workdir, job.id)
    return job.spec.trained and not folder.has_weights(folder.read_if_sound())
