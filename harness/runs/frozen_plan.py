"""A plan that is written before its results, with a date and a hash;
`reports.comparison.deviations` compares.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.files.atomic import write_atomic
from harness.files.hashing import content_id
from harness.files.reading import read_json
from harness.machine import environment
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
            f"{file}: the plan of {read_plan(file)['date'][:10]} exists; a plan is not replaced: give the comparison "
            "another name, or remove the file"
        )
    jobs = [job for job in plan.jobs if not plan.row_of(job).added]
    analysis = {
        "baseline": e.baseline,
        "contrasts": [one.model_dump() for one in e.contrasts],
        "most_seeds": until.most if until else len(e.seeds),
        "equivalence": (until or Until()).equivalence,
    }
    content = {
        "schema": 1,
        "name": e.name,
        "date": environment.now(),
        "analysis": analysis,
        "tasks": list(plan.keys_of(plan.block_tasks)),
        "runs": [
            {"row": j.row, "base_model": j.spec.base_model, "seed": j.spec.seed, "id": j.id}
            for j in jobs
        ],
        "rows": {
            f"{j.row} · {j.spec.base_model}": settings_of(j.spec.model_dump(mode="json"))
            for j in jobs
        },
    }
    digest = content_id(content)
    write_atomic(file, json.dumps({**content, "sha256": digest}, indent=1) + "\n")
    return file, digest


def settings_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A specification without its seed, one level deep."""
    flat: dict[str, Any] = {}
    for key, value in spec.items():
        if key not in _SEED:
            flat |= (
                {f"{key}.{name}": one for name, one in value.items()}
                if isinstance(value, dict)
                else {key: value}
            )
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
            f"{file}: its content does not have its hash; restore the file, or remove it"
        )
    return plan
