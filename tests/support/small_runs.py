"""One small comparison of two rows, which many tests run, resume or read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness import api
from harness.api.result import Comparison
from harness.results.record import Record
from harness.runs.experiment import read_experiment
from harness.runs.plan import Job, Plan, make_plan
from tests.support import short_runs
from tests.support.bases import narrow_bert

NATURAL = "Embedded-STS-natural"
CONTRAST = "Embedded-STS-contrast"
BASE = narrow_bert()
STEPS = 4
SIMCSE = {
    "name": "SimCSE",
    "method": "simcse",
    "preset": "default",
    "config": {
        "pooling": "cls",
        "learning_rate": 3e-4,
        "batch_size": 8,
        "eval_every": 2,
        "train_length": 12,
    },
}
CLS = {"name": "cls", "method": "pooling", "config": {"pooling": "cls"}}
EXPERIMENT: dict[str, Any] = {
    "name": "small",
    "base_models": [BASE],
    "seeds": [1, 2],
    "suites": [NATURAL],
    "max_steps": STEPS,
    "precision": "fp32",
    "corpus": {"uri": "embedded:sentences", "limit": 64},
    "dev": {"task": NATURAL},
    "methods": [CLS, SIMCSE],
}


def compare(workdir: Path, **more: Any) -> Comparison:
    """Run the comparison, with other keys of the experiment or arguments of `harness.compare`; no
    report is written.
    """
    of_experiment = {*EXPERIMENT, "keep", "budget", "blocks"}
    keys = {key: value for key, value in more.items() if key in of_experiment}
    arguments = {key: value for key, value in more.items() if key not in of_experiment}
    arguments = {"tracking_uri": "none", "formats": [], **arguments}
    with pytest.MonkeyPatch.context() as patch:
        short_runs.no_report(patch)
        return api.compare({**EXPERIMENT, **keys}, workdir=workdir, **arguments)


def plan_of(**more: Any) -> Plan:
    """Make the plan of the comparison with other keys."""
    return make_plan(read_experiment({**EXPERIMENT, **more}), "small")


def job_of(row: str = "SimCSE", **more: Any) -> Job:
    """Return the first job of a row."""
    return next(job for job in plan_of(**more).jobs if job.row == row)


def weights(records: list[Record]) -> dict[str, dict[str, str]]:
    """Return id of a trained run -> hashes of its weights and training curve."""
    _assert_finished(records)
    hashes: dict[str, dict[str, str]] = {}
    for record in records:
        if record.spec.trained:
            files = record.files.items()
            hashes[record.id] = {n: d for n, d in files if n.startswith(("model/", "curves"))}
    return hashes


def numbers(records: list[Record]) -> dict[tuple[str, int], Any]:
    """Return the scores of each run and the hashes of its files, which are the same wherever and
    however often interrupted it was made.
    """
    _assert_finished(records)
    return {(r.row, r.seed): ([s.model_dump() for s in r.scores], r.files) for r in records}


def _assert_finished(records: list[Record]) -> None:
    unfinished = [r for r in records if r.status != "finished"]
    assert records
    assert not unfinished, [(r.row, r.seed, r.status, r.reason) for r in unfinished]
