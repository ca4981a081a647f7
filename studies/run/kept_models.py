"""Weights of trials take disk: of a study that keeps the best, all others' are dropped once they are measured."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from harness.results.manifest import manifest_files
from harness.results.run_folder import RunFolder
from studies.run.trial_result import result_of
from studies.run.trials import best_trials

if TYPE_CHECKING:
    import optuna

    from studies.definition.study import Study


def drop_models(stored: optuna.Study, study: Study, workdir: Path) -> None:
    """Delete the weights of trials that are not the best, unless a comparison or another study made or lists them."""
    from optuna.trial import TrialState

    best = best_trials(stored)
    keep = {run for t in (best if len(stored.directions) > 1 else best[:1]) for run in result_of(t).runs}
    running = stored.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    done = stored.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    there = [
        folder
        for run in sorted({run for t in done for run in result_of(t).runs} - keep)
        if (folder := RunFolder(workdir, run)).model.exists()
    ]
    if not there:
        return
    listed = {cell["id"] for file in manifest_files(workdir).values() for cell in json.loads(file.read_text())["cells"]}
    configurations = [t.params for t in running]
    for folder in there:
        record = folder.read()
        if record is None or record.comparison != study.name or record.id in listed:
            continue
        if any(all(record.config.get(k) == v for k, v in params.items()) for params in configurations):
            continue  # another trial is just asking for the same run
        (folder.path / "fitted.json").unlink(missing_ok=True)
        shutil.rmtree(folder.model, ignore_errors=True)
