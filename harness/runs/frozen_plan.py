"""A plan that was written before its results: what will be compared, with a date and a hash, and what was done else."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.files.atomic import write_atomic
from harness.files.hashing import content_id
from harness.files.printable import join_some
from harness.files.reading import read_json
from harness.results.record import Record
from harness.results.store import read_comparison_file
from harness.runs.plan import Plan
from harness.runs.until import Until

_SEED = ("seed", "vary", "held")  # of a specification: what the runs of a row differ in


def plan_file(workdir: Path, name: str) -> Path:
    """Where the plan of a comparison is."""
    return workdir / "plans" / f"{name}.json"


def freeze_plan(workdir: Path, plan: Plan, until: Until | None) -> tuple[Path, str]:
    """Write the plan of a comparison; returns its file and hash.

    Raises:
        InputError: the comparison has a plan already.
    """
    e = plan.experiment
    file = plan_file(workdir, e.name)
    if file.exists():
        raise InputError(
            f"{file}: the plan of {_read(file)['date'][:10]} exists; a plan is not replaced: give the comparison "
            "another name, or remove the file"
        )
    jobs = [job for job in plan.jobs if not plan.row_of(job).added]
    analysis = {
        "baseline": e.baseline, "contrasts": [one.model_dump() for one in e.contrasts],
        "most_seeds": until.most if until else len(e.seeds), "equivalence": (until or Until()).equivalence,
    }  # fmt: skip
    content = {
        "schema": 1, "name": e.name, "date": _now(), "analysis": analysis,
        "tasks": list(plan.keys_of(plan.block_tasks)),
        "runs": [{"row": j.row, "base_model": j.spec.base_model, "seed": j.spec.seed, "id": j.id} for j in jobs],
        "rows": {f"{j.row} · {j.spec.base_model}": _settings(j.spec.model_dump(mode="json")) for j in jobs},
    }  # fmt: skip
    digest = content_id(content)
    write_atomic(file, json.dumps({**content, "sha256": digest}, indent=1) + "\n")
    return file, digest


def deviations(workdir: Path, name: str, records: Iterable[Record]) -> tuple[str, str, list[str]] | None:
    """Date and hash of a comparison's plan, and how what was done differs from it; None without a plan.

    Raises:
        InputError: the plan is damaged, or was changed since it was written.
    """
    file = plan_file(workdir, name)
    if not file.exists():
        return None
    plan, done = _read(file), read_comparison_file(workdir, name) or {"runs": [], "tasks": [], "experiment": {}}
    known = {record.id: record for record in records}
    found = list(_run_deviations(plan, [run for run in done["runs"] if not run.get("added")], known))
    changes = {"left out": (plan["tasks"], done["tasks"]), "not planned": (done["tasks"], plan["tasks"])}
    for what, (here, there) in changes.items():
        if some := [task for task in here if task not in there]:
            found.append(f"tasks {what}: {join_some(some, 5)}")
    for key in ("baseline", "contrasts"):
        planned, now = plan["analysis"].get(key) or "none", done["experiment"].get(key) or "none"
        found += [f"{key}: planned {planned}, now {now}"] if planned != now else []
    early = [record for record in known.values() if record.started and record.started[:19] < plan["date"][:19]]
    found += [f"{len(early)} of {len(known)} runs had begun before the plan was written"] if early else []
    return plan["date"], plan["sha256"], found


def _run_deviations(plan: Mapping[str, Any], runs: Iterable[Any], known: Mapping[str, Record]) -> Iterator[str]:
    planned, made = _by_row(plan["runs"]), _by_row(runs)
    for row in {**planned, **made}:
        before, now = planned.get(row, {}), made.get(row, {})
        if not (before and now):
            yield f"{row}: {'not planned' if now else 'not run'}"
            continue
        records = {seed: known[run] for seed, run in now.items() if run in known}
        seeds = {
            "not run": before.keys() - now.keys(),
            "not planned": now.keys() - before.keys() if len(now) > plan["analysis"]["most_seeds"] else (),
            "have no result": (seed for seed, record in records.items() if record.status != "finished"),
        }
        for what, some in seeds.items():
            if numbers := list(map(str, sorted(some))):
                yield f"{row}: seeds {join_some(numbers)} {what}"
        if other := next(
            (record for seed, record in records.items() if record.id != before.get(seed, record.id)), None
        ):
            old, new = plan["rows"][row], _settings(other.spec.model_dump(mode="json"))
            keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
            texts = [f"{key.removeprefix('config.')} {new.get(key)} in place of {old.get(key)}" for key in keys]
            yield f"{row}: {join_some(texts, 5) or 'another configuration'}"


def _by_row(runs: Iterable[Mapping[str, Any]]) -> dict[str, dict[int, str]]:
    """Row and base model -> seed -> id of the run."""
    found: dict[str, dict[int, str]] = {}
    for run in runs:
        found.setdefault(f"{run['row']} · {run['base_model']}", {})[int(run["seed"])] = run["id"]
    return found


def _settings(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A specification without its seed, one level deep."""
    flat: dict[str, Any] = {}
    for key, value in spec.items():
        if key not in _SEED:
            flat |= {f"{key}.{name}": one for name, one in value.items()} if isinstance(value, dict) else {key: value}
    return flat


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _read(file: Path) -> dict[str, Any]:
    plan = read_json(file)
    if content_id({key: value for key, value in plan.items() if key != "sha256"}) != plan.get("sha256"):
        raise InputError(f"{file}: its content does not have its hash; restore the file, or remove it")
    return plan
