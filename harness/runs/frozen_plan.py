"""A plan that is written before its results, with a date and a hash;
`reports.read.plan_followed` says what differs from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.files.atomic import write_atomic
from harness.files.hashing import content_id
from harness.files.links import refuse_links
from harness.files.printable import join_some
from harness.files.reading import read_json
from harness.machine import environment
from harness.results.comparison import SeedsAdded
from harness.runs.plan import Plan
from harness.runs.until import Until
from harness.seeds import part_seed, seed_fields, seed_text

_SEED = ("seed", "vary", "held")  # of a specification: what the runs of a row differ in
_DETAILS = ("code",)  # the files behind `version`


def plan_file(workdir: Path, name: str) -> Path:
    """Where the plan of a comparison is."""
    return workdir / "plans" / f"{name}.json"


@dataclass(frozen=True)
class Deviation:
    """How a comparison differs from its frozen plan.

    Attributes:
        text: in words.
        of_choice: True if somebody chose it (another baseline, rows, settings or seeds): the pairs
            are no longer those of the plan. A run that failed is nobody's choice.
    """

    text: str
    of_choice: bool = True


def freeze_plan(workdir: Path, plan: Plan, until: Until | None) -> tuple[Path, str]:
    """Write the plan of a comparison; returns its file and hash.

    Raises:
        InputError: the comparison has a plan already.
    """
    name = plan.experiment.name
    file = plan_file(workdir, name)
    refuse_links(workdir)
    if file.exists():
        date = read_plan(file)["date"][:10]
        raise InputError(
            f"the plan of {date} exists; a plan is not replaced: give the comparison another "
            "name, or remove the file",
            file=file,
        )
    content = {
        "schema": 1,
        "name": name,
        "date": environment.now(),
        **_contents(plan, until),
    }
    digest = content_id(content)
    text = json.dumps({**content, "sha256": digest}, indent=1)
    write_atomic(file, text + "\n")
    return file, digest


def describe_changes(workdir: Path, plan: Plan, until: Until | None) -> str:
    """Return one line on how a plan differs from the frozen one; "" without a frozen plan, or
    where nothing differs.

    Raises:
        InputError: the frozen plan is damaged, or was changed since it was written.
    """
    file = plan_file(workdir, plan.experiment.name)
    if not file.exists():
        return ""
    frozen = read_plan(file)
    now = _contents(plan, until)
    settings = {}
    for job in plan.jobs:
        spec = job.spec.model_dump(mode="json")
        settings[job.id] = settings_of(spec)
    analysis = now["analysis"]
    found = find_deviations(frozen, now["runs"], now["tasks"], analysis, settings, until)
    if not found:
        return ""
    said = join_some([one.text for one in found], 5)
    digest = frozen["sha256"][:12]
    date = frozen["date"][:10]
    return f"differs from plan {digest} of {date}: {said}"


def find_deviations(
    frozen: Mapping[str, Any],
    runs: Iterable[Mapping[str, Any]],
    tasks: Sequence[str],
    analysis: Mapping[str, Any],
    settings: Mapping[str, Mapping[str, Any]],
    until: Until | SeedsAdded | None = None,
) -> list[Deviation]:
    """Compare runs, tasks and analysis with those of a frozen plan.

    Args:
        frozen: the plan, as `read_plan` returns it.
        runs: "row", "base_model", "seed" and "id" of each run that the file has now.
        tasks: "SOURCE:TASK" of each task now.
        analysis: "baseline", "contrasts" and "primary" now.
        settings: id of a run -> its specification (`settings_of`), where it is known.
        until: how seeds are added now; None where they are not.
    """
    found = []
    # a plan of an earlier version has no streams
    streams = any(run.get("vary") for run in frozen["runs"])
    before = _seeds_by_row(frozen["runs"], streams=streams)
    now = _seeds_by_row(runs, streams=streams)
    most_seeds = int(frozen["analysis"]["most_seeds"])
    for row in {**before, **now}:
        if row not in now:
            found.append(Deviation(f"{row}: not run"))
        elif row not in before:
            found.append(Deviation(f"{row}: not planned"))
        else:
            found += _seed_deviations(row, before[row], now[row], most_seeds)
            planned = frozen["rows"][row]
            changed = _name_changed_settings(planned, before[row], now[row], settings)
            if changed:
                found.append(Deviation(f"{row}: {changed}"))
    left_out = [task for task in frozen["tasks"] if task not in tasks]
    if left_out:
        some = join_some(left_out, 5)
        found.append(Deviation(f"tasks left out: {some}"))
    further = [task for task in tasks if task not in frozen["tasks"]]
    if further:
        some = join_some(further, 5)
        found.append(Deviation(f"tasks not planned: {some}", of_choice=False))
    for key in ("baseline", "contrasts", "primary"):
        planned = frozen["analysis"].get(key) or "none"
        chosen = analysis.get(key) or "none"
        if planned != chosen:
            text = f"{key}: planned {_in_words(planned)}, now {_in_words(chosen)}"
            found.append(Deviation(text))
    return found + _rule_deviations(frozen["analysis"], until)


def _rule_deviations(
    planned: Mapping[str, Any], until: Until | SeedsAdded | None
) -> list[Deviation]:
    """How seeds are added otherwise than planned. Plans of earlier versions do not say whether they
    are to be added.
    """
    adds = planned.get("adds_seeds")
    if until is None:
        return [Deviation("no seeds are added, as --until decided would")] if adds else []
    if adds is False:
        return [Deviation("seeds are added until decided, which was not planned")]
    found = []
    most = planned["most_seeds"]
    if until.most != most:
        found.append(Deviation(f"at most {until.most} seeds of a row instead of {most}"))
    equivalence = planned.get("equivalence", until.equivalence)
    if until.equivalence != equivalence:
        text = f"equivalence of {until.equivalence:g} points instead of {equivalence:g}"
        found.append(Deviation(text))
    return found


def _contents(plan: Plan, until: Until | None) -> dict[str, Any]:
    """Return what a plan fixes: how it is analysed, tasks, runs, and the settings of each row."""
    experiment = plan.experiment
    jobs = [job for job in plan.jobs if not plan.row_of(job).added]
    analysis = {
        "baseline": experiment.baseline,
        "contrasts": [one.model_dump() for one in experiment.contrasts],
        "primary": experiment.primary,
        "adds_seeds": until is not None,
        "most_seeds": until.most if until else len(experiment.seeds),
        "equivalence": (until or Until()).equivalence,
    }
    runs = []
    rows = {}
    for job in jobs:
        base_model = job.spec.base_model
        runs.append(
            {
                "row": job.row,
                "base_model": base_model,
                **seed_fields(job.spec.random_seed),
                "id": job.id,
            }
        )
        spec = job.spec.model_dump(mode="json")
        rows[f"{job.row} · {base_model}"] = settings_of(spec)
    tasks = list(plan.keys_of(plan.block_tasks))
    return {
        "analysis": analysis,
        "tasks": tasks,
        "runs": runs,
        "rows": rows,
    }


def _seeds_by_row(runs: Iterable[Mapping[str, Any]], *, streams: bool) -> dict[str, dict[int, str]]:
    """Row and base model -> seed -> id of the run; with `streams`, seeds that only some random
    streams have are others.
    """
    found: dict[str, dict[int, str]] = {}
    for run in runs:
        row = f"{run['row']} · {run['base_model']}"
        ids = found.setdefault(row, {})
        seed = int(run["seed"])
        if streams and run.get("vary"):
            seed = part_seed(seed, run["vary"], run["held"])
        ids[seed] = run["id"]
    return found


def _seed_deviations(
    row: str,
    before: Mapping[int, str],
    now: Mapping[int, str],
    most: int,
) -> list[Deviation]:
    """Planned seeds of a row that are not run, and seeds that are run and were not planned.

    A plan with `--until` allows the numbers after its largest seed, up to `most` seeds.
    """
    largest = max(before)
    further = most - len(before)
    allowed = {*before, *range(largest + 1, largest + 1 + further)}
    dropped = sorted(before.keys() - now.keys())
    added = sorted(now.keys() - allowed)
    found = []
    if dropped:
        seeds = _count_seeds(dropped)
        found.append(Deviation(f"{row}: {seeds} not run"))
    if added:
        seeds = _count_seeds(added)
        found.append(Deviation(f"{row}: {seeds} not planned"))
    return found


def _count_seeds(seeds: Sequence[int]) -> str:
    if len(seeds) == 1:
        noun = "seed"
    else:
        noun = "seeds"
    numbers = [seed_text(seed) for seed in seeds]
    return f"{noun} {join_some(numbers, 5)}"


def _name_changed_settings(
    planned: Mapping[str, Any],
    before: Mapping[int, str],
    now: Mapping[int, str],
    settings: Mapping[str, Mapping[str, Any]],
) -> str:
    """Return which settings of a row differ from the planned ones; "" if none is known to."""
    for seed, run in now.items():
        if run == before.get(seed, run) or run not in settings:
            continue
        current = settings[run]
        texts = []
        for key in {**planned, **current}:
            if planned.get(key) != current.get(key):
                name = key.removeprefix("config.")
                change = f"{current.get(key)} instead of {planned.get(key)}"
                texts.append(f"{name} {change}")
        return join_some(texts, 5) or "another configuration"
    return ""


def _in_words(value: Any) -> str:
    if not isinstance(value, list):
        return str(value)
    contrasts = [f"{pair['row']} against {pair['against']}" for pair in value]
    return ", ".join(contrasts)


def settings_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A specification without its seed, one level deep."""
    flat: dict[str, Any] = {}
    for key, value in spec.items():
        if key not in (*_SEED, *_DETAILS):
            if isinstance(value, dict):
                for name, one in value.items():
                    flat[f"{key}.{name}"] = one
            else:
                flat |= {key: value}
    return flat


def read_plan(file: Path) -> dict[str, Any]:
    """A plan as it was written.

    Raises:
        InputError: it is damaged, or was changed since.
    """
    plan = read_json(file)
    if content_id({key: value for key, value in plan.items() if key != "sha256"}) != plan.get(
        "sha256"
    ):
        raise InputError(
            "its content does not have its hash", file=file, remedy="restore the file, or remove it"
        )
    return plan
