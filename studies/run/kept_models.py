"""Weights of trials take disk: of a study that keeps the best, all others' are dropped once they are measured."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from harness.results.manifest import manifest_file
from harness.results.run_folder import RunFolder

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

    from studies.definition import Study


def best_trials(found: optuna.Study) -> list[FrozenTrial]:
    """The best finished trials, best first: by value among those with the most seeds; all Pareto-optimal ones of
    several objectives, in the order of their numbers."""
    import optuna
    from optuna.trial import TrialState

    if len(found.directions) > 1:
        return found.best_trials
    done = found.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    most = max((len(t.user_attrs["about"]["seeds"]) for t in done), default=0)
    done = [t for t in done if len(t.user_attrs["about"]["seeds"]) == most]
    sign = -1 if found.directions[0] == optuna.study.StudyDirection.MAXIMIZE else 1
    return sorted(done, key=lambda t: (sign * (t.value or 0.0), t.number))


def drop_models(found: optuna.Study, study: Study, workdir: Path) -> None:
    """Delete the weights of trials that are not the best, unless a comparison or another study made or lists them."""
    from optuna.trial import TrialState

    best = best_trials(found)
    keep = {run for t in (best if len(found.directions) > 1 else best[:1]) for run in t.user_attrs["about"]["runs"]}
    running = found.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    done = found.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    there = [
        folder
        for run in sorted({run for t in done for run in t.user_attrs["about"]["runs"]} - keep)
        if (folder := RunFolder(workdir, run)).model.exists()
    ]
    if not there:
        return
    listed = {
        cell["id"]
        for file in manifest_file(workdir, "any").parent.glob("*.json")
        for cell in json.loads(file.read_text())["cells"]
    }
    configurations = [t.params for t in running]
    for folder in there:
        record = folder.read()
        if record is None or record.comparison != study.name or record.id in listed:
            continue
        if any(all(record.config.get(k) == v for k, v in params.items()) for params in configurations):
            continue  # another trial is just asking for the same run
        (folder.path / "fitted.json").unlink(missing_ok=True)
        shutil.rmtree(folder.model, ignore_errors=True)
