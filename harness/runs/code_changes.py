"""Which files of code changed since earlier runs of the same rows, and how many runs are due for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness.results.code import Code, describe_change
from harness.results.record import Record
from harness.results.spec import RunSpec, scoring_version
from harness.results.store import RunFolder, read_records, run_ids
from harness.runs.due import find_finished
from harness.runs.inputs import find_task, task_code_of
from harness.runs.plan import Job, Plan


def describe_code_changes(plan: Plan, workdir: Path) -> list[str]:
    """Return a sentence for each change of code, as "mine.py has changed since 2026-11-27 18:00: 3
    runs of "mine" are due"; none where no run is due or none differs by its code alone.
    """
    begun = run_ids(workdir)
    if not begun:
        return []
    due = []
    for job in plan.jobs:
        is_finished = job.id in begun and find_finished(job, workdir) is not None
        if not job.spec.missing and not is_finished:
            due.append(job)
    if not due:
        return []
    earlier = _group_finished_runs(workdir)
    runs: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for job in due:
        for what, change, since in _changes_of(job, workdir, earlier):
            what_changed = (what, change)
            runs.setdefault(what_changed, []).append((since, job.id))
    lines = []
    for (what, change), found in runs.items():
        count = len({run for _, run in found})
        last = max(since for since, _ in found)
        since = last[:16].replace("T", " ")
        if count == 1:
            noun = "1 run is"
        else:
            noun = f"{count:,} runs are"
        lines.append(f"{what}: {change} since {since} UTC: {noun} due")
    return lines


def _group_finished_runs(workdir: Path) -> Mapping[str, list[Record]]:
    """Return the finished records of each specification, whatever the version of its code."""
    found: dict[str, list[Record]] = {}
    for record in read_records(workdir, damaged={}):
        if record.status == "finished":
            found.setdefault(_without_version(record.spec), []).append(record)
    return found


def _nearest(spec: RunSpec, records: Sequence[Record]) -> Record:
    """Return the record with the fewest other files, and the newest of several."""

    def others(record: Record) -> int:
        different = record.spec.code.items() ^ spec.code.items()
        return len(different)

    newest = sorted(records, key=lambda record: record.finished, reverse=True)
    return min(newest, key=others)


def _without_version(spec: RunSpec) -> str:
    return spec.model_copy(update={"version": 0}).id


def _changes_of(
    job: Job,
    workdir: Path,
    earlier: Mapping[str, list[Record]],
) -> Iterator[tuple[str, str, str]]:
    """Yield (plugin, what changed, when the earlier run ended) for each reason of code for which a
    job is due.
    """
    spec = job.spec
    records = earlier.get(_without_version(spec))
    if not records:
        return
    record = _nearest(spec, records)
    if record.spec.version != spec.version:
        before = Code(record.spec.version, record.spec.code)
        change = describe_change(before, Code(spec.version, spec.code))
        yield f'method "{spec.method}"', change, record.finished
        return
    own = RunFolder(workdir, job.id).read_if_sound()
    for key in job.tasks:
        code = task_code_of(key)
        if own is not None:
            known = own.evaluation.get(key)
        else:
            known = None
        if own is None or known is None:
            continue
        task = find_task(key)
        if known == scoring_version(task, code):
            continue
        _, _, version = known.partition(".")
        if getattr(task, "content", ""):  # behind it is the hash of what the file held
            version, _, _ = version.rpartition(".")
        if version == str(code.version):
            change = f"{task.name} has changed"
        else:
            before = Code(version, own.task_code.get(key, {}))
            change = describe_change(before, code)
        yield f'task "{key}"', change, own.finished
