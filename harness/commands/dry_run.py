"""`harness plan`: what a comparison would run, how its rows differ, and about how long it would take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.commands.terminal import print_table
from harness.errors import HarnessError
from harness.files.printable import join_some, one_line, tell
from harness.runs.progress import describe_duration

if TYPE_CHECKING:
    from harness.api.experiments import Planned
    from harness.results.record import Record
    from harness.runs.experiment import Experiment
    from harness.runs.plan import Job, Plan
    from harness.runs.tuning import Budget

_SCORING = 5.0  # seconds to score a run, where nothing is known


def show(experiment: str, workdir: str, *, measure: bool = False, freeze: bool = False, **options: Any) -> int:
    """Print the plan; `measure`: two training steps of each row are timed for the estimate; `freeze`: write it."""
    from harness.api.experiments import more_seeds_of, notices, plan_comparison
    from harness.results.store import checked_workdir
    from harness.runs.against import find_other_rows

    folder = checked_workdir(workdir, create=False)
    planned = plan_comparison(experiment, **options)
    plan = planned.plan
    if planned.budget is not None:
        _show_searches(planned.experiment, planned.budget, folder)
    if planned.until is not None:
        more = more_seeds_of(planned.until, planned.experiment)
        plan = more.begin(plan)
        tell(f"{more.first} seeds per row up to the first interim analysis; then one more where a decision is open,"
             f" at most {planned.until.most} per row")  # fmt: skip
    _show_runs(plan, folder, measure)
    _show_differences(plan)
    amount, unit = planned.experiment.budget.describe()
    lines = [f"budget: {amount} {unit}"] if amount else []
    if planned.others:
        lines += find_other_rows(plan, planned.others, None).summary()
    for line in [*lines, *notices(plan)]:
        tell(line)
    if freeze:
        _freeze(planned, plan, folder)
    return 0


def _freeze(planned: Planned, plan: Plan, folder: Path) -> None:
    """Write the plan, and print its hash: what is published before the results."""
    from harness.runs.frozen_plan import freeze_plan

    e, until = planned.experiment, planned.until
    analysis = {
        "baseline": e.baseline, "contrasts": [one.model_dump() for one in e.contrasts],
        "most_seeds": until.most if until else len(e.seeds), "equivalence": until.equivalence if until else 0.5,
    }  # fmt: skip
    jobs = [job for job in plan.jobs if not plan.row_of(job).added]
    file, digest = freeze_plan(folder, e.name, jobs, plan.keys_of(plan.block_tasks), analysis)
    tell(f"plan {digest} written to {file}: publish the hash before the first result")


def _show_searches(experiment: Experiment, budget: Budget, folder: Path) -> None:
    """A line on the searches of `--tune`."""
    from studies.tune import plan_searches

    searches = zip(experiment.methods, plan_searches(experiment, budget, folder), strict=True)
    searched = [one_line(entry.label) for entry, study in searches if not isinstance(study, str)]
    tell(f"first a search of {len(searched)} rows: {budget.trials} trials of up to {budget.steps:,} training steps "
         f"each ({join_some(searched)}); each adds a tuned row")  # fmt: skip


def _show_runs(plan: Plan, folder: Path, measure: bool) -> None:
    """A line for each row and base model: number of runs, training steps, what is reused, and the time."""
    from harness.machine.environment import device_name
    from harness.runs.execute import find_finished

    rows: dict[tuple[str, str], list[Job]] = {}
    for job in plan.jobs:
        rows.setdefault((job.row, job.spec.base_model), []).append(job)
    lines, total, unknown, all_states = [], 0.0, [], Counter[str]()
    for (label, base), jobs in rows.items():
        records = [find_finished(job, folder) for job in jobs]
        states = Counter(_state(job, record, folder) for job, record in zip(jobs, records, strict=True))
        all_states += states
        left = states["to train"] + states["to score"]
        each = _estimate(plan, jobs[0], records, folder, measure) if left else 0.0
        unknown += [one_line(label)] if each is None else []
        total += (each or 0.0) * left
        time = "" if not left else "unknown" if each is None else describe_duration(each * left)
        steps = f"{jobs[0].steps:,}" if jobs[0].steps else "–"
        lines.append((label, base, str(len(jobs)), steps, _counts(states), time))
    heads = ("row", "base model", "runs", "training steps", "state", "time")
    print_table(f"{plan.experiment.name}: {len(plan.jobs)} runs of {len(rows)} rows", heads, lines, wrap=True)
    for (label, _), jobs in rows.items():
        if jobs[0].spec.missing:
            tell(f"n/a: {one_line(label)}: {one_line(jobs[0].spec.missing)}")
    if added := dict.fromkeys(one_line(row.label) for row in plan.rows if row.added):
        tell(f"added as untrained starts of rows: {join_some(list(added), 8)}")
    rest = f"; not estimated: {join_some(unknown)} (--measure times two training steps of each)" if unknown else ""
    tell(f"{_counts(all_states)}; about {describe_duration(total)} on {device_name(plan.device)}{rest}")


def _state(job: Job, record: Record | None, folder: Path) -> str:
    from harness.runs.execute import needs_training

    if job.spec.missing:
        return "n/a"
    if record is not None:
        return "reused"
    return "to train" if needs_training(job, folder) else "to score"


def _counts(states: Counter[str]) -> str:
    return ", ".join(f"{count} {state}" for state, count in states.items())


def _estimate(plan: Plan, job: Job, records: Sequence[Record | None], folder: Path, measure: bool) -> float | None:
    """Seconds of a run: the mean of its row's runs on this device, else from the time of a training step, which is
    measured on request; None if unknown."""
    from harness.machine.environment import device_name
    from harness.runs.measure import time_steps

    device = device_name(plan.device)
    here = [r.seconds for r in records if r is not None and r.environment.get("device_name") == device]
    if here:
        return sum(here) / len(here)
    if not job.steps:
        return _SCORING
    row = plan.row_of(job)
    corpus = plan.corpus(row)
    if not measure or corpus is None:
        return None
    try:
        return _SCORING + job.steps * time_steps(row, corpus, plan.device, plan.experiment.precision)
    except HarnessError as error:
        tell(f"{one_line(row.label)}: {one_line(str(error))}")
        return None


def _show_differences(plan: Plan) -> None:
    """The settings in which rows differ, a line per row; columns that usually matter are marked with a star."""
    from harness.runs.differences import planned_differences

    found = planned_differences(plan)
    if not 1 < len(found.rows) <= 60 or not found.columns:
        return
    heads = [column.title + ("*" if column in found.marked else "") for column in found.columns]
    texts = [found.texts[column.key] for column in found.columns]
    lines = [(label, *(text[number] or "–" for text in texts)) for number, (label, _) in enumerate(found.rows)]
    legend = [f"* {column.title}: {column.why}" for column in found.marked]
    print_table("Settings in which rows differ", ("row", *heads), lines, legend, wrap=True)
