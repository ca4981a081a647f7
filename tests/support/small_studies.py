"""Two small studies, which many tests run, kill or read: one trains nothing, the other nine steps a
trial.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness import api
from harness.api.studies import StudyResult
from harness.results.store import RunFolder
from tests.support.bases import narrow_bert

NATURAL = "Embedded-STS-natural"
CHEAP: dict[str, Any] = {
    "name": "cheap",
    "method": "random",
    "base_model": narrow_bert(),
    "precision": "fp32",
    "suites": [NATURAL],
    "objective": NATURAL,
    "sampler": "grid",
    "space": {"dimension": [2, 4, 8]},
}
TRAINED: dict[str, Any] = {
    "name": "small",
    "method": "simcse",
    "base_model": narrow_bert(),
    "config": {"learning_rate": 3e-4, "batch_size": 8, "eval_every": 3, "train_length": 12},
    "corpus": {"uri": "embedded:sentences", "limit": 80},
    # `pairs` holds in workers too, which a patch of this process would not reach.
    "dev": {"task": NATURAL, "pairs": 20},
    "steps": 9,
    "precision": "fp32",
    "sampler": "grid",
    "space": {"temperature": [0.05, 0.2, 0.5]},
}


def search(
    workdir: Path,
    keys: dict[str, Any] = CHEAP,
    *,
    arguments: dict[str, Any] | None = None,
    **more: Any,
) -> Any:
    """Run a study with other keys, or with arguments of `harness.study`; MLflow is left out."""
    return api.study({**keys, **more}, workdir, **{"tracking_uri": "none", **(arguments or {})})


def outcomes(result: StudyResult) -> list[tuple[Any, ...]]:
    """Return number, state, configuration, values and dev scores of every trial that Optuna has."""
    trials = result.stored.get_trials(deepcopy=False)
    return [(t.number, t.state.name, t.params, t.values, t.intermediate_values) for t in trials]


def record_times(workdir: Path) -> dict[str, int]:
    """Return run -> when its record was written."""
    files = (workdir / "runs").glob("*/record.json")
    return {file.parent.name: file.stat().st_mtime_ns for file in files}


def dev_steps(workdir: Path, run: str) -> list[int]:
    """Return the training steps after which a run was scored on the dev set."""
    return [line["step"] for line in RunFolder(workdir, run).curves() if line["kind"] == "dev"]
