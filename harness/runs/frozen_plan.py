"""A plan that was written before its results: what will be compared, with a date and a hash, and what was done else."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import InputError
from harness.files.atomic import write_atomic
from harness.files.hashing import content_id
from harness.files.printable import join_some
from harness.files.reading import read_json
from harness.results.store import read_comparison_file

if TYPE_CHECKING:
    from harness.results.record import Record
    from harness.runs.plan import Job

_SEED = ("seed", "vary", "held")  # of a specification: what the runs of a row differ in


def plan_file(workdir: Path, name: str) -> Path:
    """Where the plan of a comparison is."""
    return workdir / "plans" / f"{name}.json"


def freeze_plan(
    workdir: Path, name: str, jobs: Sequence[Job], tasks: Sequence[str], analysis: Mapping[str, Any]
) -> tuple[Path, str]:
    """Write the plan of a comparison; returns its file and hash.

    Args:
        jobs: every planned run.
        tasks: "SOURCE:TASK" of all.
        analysis: baseline, contrasts, the most seeds of a row ("most_seeds") and the region of equivalence.

    Raises:
        InputError: the comparison has a plan already.
    """
    file = plan_file(workdir, name)
    if file.exists():
        raise InputError(
            f"{file}: the plan of {_read(file)['date'][:10]} exists; a plan is not replaced: give the comparison "
            "another name, or remove the file"
        )
    rows = {f"{job.row} · {job.spec.base_model}": _settings(job.spec.model_dump(mode="json")) for job in jobs}
    runs = [{"row": job.row, "base_model": job.spec.base_model, "seed": job.spec.seed, "id": job.id} for job in jobs]
    content = {
        "schema": 1, "name": name, "date": _now(), "analysis": dict(analysis),
        "tasks": list(tasks), "runs": runs, "rows": rows,
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
    runs = [run for run in done["runs"] if not run.get("added")]
    found = list(_of_runs(plan, runs, known))
    for what, here, there in (
        ("left out", plan["tasks"], done["tasks"]),
        ("not planned", done["tasks"], plan["tasks"]),
    ):
        if some := [task for task in here if task not in there]:
            found.append(f"tasks {what}: {join_some(some, 5)}")
    made = {key: done["experiment"].get(key) or None for key in ("baseline", "contrasts")}
    for key, value in made.items():
        if value != (plan["analysis"].get(key) or None):
            found.append(f"{key}: planned {plan['analysis'].get(key) or 'none'}, now {value or 'none'}")
    early = [record for record in known.values() if record.started and record.started[:19] < plan["date"][:19]]
    if early:
        found.append(f"{len(early)} of {len(known)} runs had begun before the plan was written")
    return plan["date"], plan["sha256"], found


def _of_runs(plan: Mapping[str, Any], runs: Sequence[Mapping[str, Any]], known: Mapping[str, Record]) -> Iterable[str]:
    planned, made = _by_row(plan["runs"]), _by_row(runs)
    for row in dict.fromkeys((*planned, *made)):
        before, now = planned.get(row, {}), made.get(row, {})
        lacking, more = (
            [str(seed) for seed in here if seed not in there] for here, there in ((before, now), (now, before))
        )
        if not (before and now):
            yield f"{row}: {'not planned' if now else 'not run'}"
            continue
        if lacking:
            yield f"{row}: seeds {join_some(lacking)} not run"
        elif more and len(now) > plan["analysis"]["most_seeds"]:
            yield f"{row}: seeds {join_some(more)} not planned"
        others = [run for seed, run in now.items() if run in known and run != before.get(seed, run)]
        if others:
            yield f"{row}: {_changes(plan['rows'][row], _settings(known[others[0]].spec.model_dump(mode='json')))}"
        ended = [str(seed) for seed, run in now.items() if run in known and known[run].status != "finished"]
        if ended:
            yield f"{row}: seeds {join_some(ended)} have no result"


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


def _changes(planned: Mapping[str, Any], made: Mapping[str, Any]) -> str:
    keys = [key for key in {**planned, **made} if planned.get(key) != made.get(key)]
    texts = [f"{key.removeprefix('config.')} {made.get(key)} in place of {planned.get(key)}" for key in keys]
    return join_some(texts, 5) or "another configuration"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _read(file: Path) -> dict[str, Any]:
    plan = read_json(file)
    if content_id({key: value for key, value in plan.items() if key != "sha256"}) != plan.get("sha256"):
        raise InputError(f"{file}: its content does not have its hash; restore the file, or remove it")
    return plan
