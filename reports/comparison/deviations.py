"""How what was done in a comparison differs from the plan that was written before it
(`harness plan --freeze`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.files.printable import join_some
from harness.results.record import Record
from harness.results.store import read_comparison_file
from harness.runs.frozen_plan import plan_file, read_plan, settings_of


def deviations(
    workdir: Path, name: str, records: Iterable[Record]
) -> tuple[str, str, list[str]] | None:
    """Date and hash of a comparison's plan, and how what was done differs from it; None without a
    plan.

    Raises:
        InputError: the plan is damaged, or was changed since it was written.
    """
    file = plan_file(workdir, name)
    if not file.exists():
        return None
    plan, done = (
        read_plan(file),
        read_comparison_file(workdir, name) or {"runs": [], "tasks": [], "experiment": {}},
    )
    known = {record.id: record for record in records}
    found = list(
        _run_deviations(plan, [run for run in done["runs"] if not run.get("added")], known)
    )
    changes = {
        "left out": (plan["tasks"], done["tasks"]),
        "not planned": (done["tasks"], plan["tasks"]),
    }
    for what, (here, there) in changes.items():
        if some := [task for task in here if task not in there]:
            found.append(f"tasks {what}: {join_some(some, 5)}")
    for key in ("baseline", "contrasts"):
        planned, now = plan["analysis"].get(key) or "none", done["experiment"].get(key) or "none"
        found += [f"{key}: planned {planned}, now {now}"] if planned != now else []
    early = [
        record
        for record in known.values()
        if record.started and record.started[:19] < plan["date"][:19]
    ]
    found += (
        [f"{len(early)} of {len(known)} runs had begun before the plan was written"]
        if early
        else []
    )
    return plan["date"], plan["sha256"], found


def _run_deviations(
    plan: Mapping[str, Any], runs: Iterable[Any], known: Mapping[str, Record]
) -> Iterator[str]:
    planned, made = _by_row(plan["runs"]), _by_row(runs)
    for row in {**planned, **made}:
        before, now = planned.get(row, {}), made.get(row, {})
        if not (before and now):
            yield f"{row}: {'not planned' if now else 'not run'}"
            continue
        records = {seed: known[run] for seed, run in now.items() if run in known}
        seeds = {
            "not run": before.keys() - now.keys(),
            "not planned": now.keys() - before.keys()
            if len(now) > plan["analysis"]["most_seeds"]
            else (),
            "have no result": (
                seed for seed, record in records.items() if record.status != "finished"
            ),
        }
        for what, some in seeds.items():
            if numbers := list(map(str, sorted(some))):
                yield f"{row}: seeds {join_some(numbers)} {what}"
        if other := next(
            (
                record
                for seed, record in records.items()
                if record.id != before.get(seed, record.id)
            ),
            None,
        ):
            old, new = plan["rows"][row], settings_of(other.spec.model_dump(mode="json"))
            keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
            texts = [
                f"{key.removeprefix('config.')} {new.get(key)} in place of {old.get(key)}"
                for key in keys
            ]
            yield f"{row}: {join_some(texts, 5) or 'another configuration'}"


def _by_row(runs: Iterable[Mapping[str, Any]]) -> dict[str, dict[int, str]]:
    """Row and base model -> seed -> id of the run."""
    found: dict[str, dict[int, str]] = {}
    for run in runs:
        found.setdefault(f"{run['row']} · {run['base_model']}", {})[int(run["seed"])] = run["id"]
    return found
