"""A study from Python: what stands behind the commands `harness study run`, `list`, `show`, `best`, `export`.

Nothing here prints but the progress, and nothing ends the process: errors are raised (`harness.errors`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.api.on_experiments import executor_settings
from harness.executors.executor import ExecutorSettings
from studies import samplers
from studies.definition.planned import planned_trials
from studies.definition.space import Space, make_space
from studies.definition.study import Study, presets, read_study
from studies.run.conduct import conduct
from studies.run.desk import Desk
from studies.run.engine import executor_for
from studies.run.storage import DEFINITION, bring_home, default_url, definition_of, load, open_storage
from studies.run.tracking import tracker_of
from studies.run.trials import finished_trials

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial


@dataclass(frozen=True)
class PlannedStudy:
    """A study before its first trial."""

    source: str  # the file or preset
    study: Study
    space: Space
    trials: list[dict[str, Any]]  # the fixed values of each
    remarks: list[str]  # what a user should know of the sampler on this space


@dataclass(frozen=True)
class StoredStudy:
    """A study in its storage, with the trials that have ended so far."""

    stored: optuna.Study
    study: Study
    space: Space
    trials: list[FrozenTrial]
    workdir: Path

    @property
    def failed(self) -> list[FrozenTrial]:
        """Trials without a result; another run of the study tries their places again."""
        return [trial for trial in self.trials if trial.state.name == "FAIL"]


def plan_study(
    source: str | Mapping[str, Any], overrides: Sequence[str] = (), *, quick: bool = False, name: str | None = None
) -> PlannedStudy:
    """Read a study's file or preset; nothing is run.

    Args:
        source: file, preset, or the keys of such a file.
        overrides: as `--set`: "trials=20", "space.temperature=[0.05, 0.1]".
        quick: the file's small size.
        name: of the study; the file's own when left out.

    Raises:
        InputError: a key, a space or a sampler that cannot work.
    """
    study = read_study(source, list(overrides), quick=quick, name=name)
    where = source if isinstance(source, str) else f'study "{study.name}"'
    space = make_space(study, where)
    remarks = samplers.check(study, space, where)
    return PlannedStudy(where, study, space, planned_trials(study, space), remarks)


def run_study(
    planned: PlannedStudy,
    workdir: Path,
    *,
    storage: str | None = None,
    executor: str | Mapping[str, Any] | ExecutorSettings | None = None,
    tracked: bool = True,
    tracking_uri: str | None = None,
    force_new: bool = False,
    quiet: bool = True,
) -> StoredStudy:
    """Run a study until each planned trial has ended; a call that was interrupted goes on.

    Args:
        storage: where the trials are; a journal file in `workdir` when left out.
        executor: where runs are made: "processes", or keys of the table [executor]; they beat the study's. Several
            `workers` without a name are processes of this machine.
        tracked, tracking_uri: whether runs go to MLflow, and to which store.
        force_new: delete the trials of an earlier study of this name.

    Raises:
        InputError: data or a model that is not there, a storage or an executor that cannot be used, another study of
            this name, or another process that runs this one.
    """
    study, space = planned.study, planned.space
    desk = Desk(study, workdir)
    # Data and models that are not there are told before anything is made.
    desk.plan({**space.first_point(), **planned.trials[0]})
    tracker = tracker_of(study, space, workdir, tracking_uri) if tracked else None
    url = storage or default_url(workdir)
    engine = executor_for(study, executor_settings(executor, study.executor), workdir, len(planned.trials))
    stored = conduct(study, space, desk, engine, url=url, where=planned.source, tracker=tracker,
                     force_new=force_new, quiet=quiet)  # fmt: skip
    return StoredStudy(stored, study, space, finished_trials(stored), workdir)


def open_study(name: str, workdir: Path, storage: str | None = None) -> StoredStudy:
    """A study that was run, or is being run.

    Raises:
        InputError: no such storage or study.
    """
    url = storage or default_url(workdir)
    stored = load(open_storage(url, create=False), name, url)
    study = definition_of(stored)
    return StoredStudy(stored, study, make_space(study, name), finished_trials(stored), workdir)


def export_study(opened: StoredStudy, out: Path | None = None, *, storage: str | None = None) -> Path:
    """Write tables, figures and experiment files; returns the folder.

    Args:
        out: where to; `WORKDIR/studies/NAME` when left out.
        storage: where the study is, if not in its work directory, which gets a copy for its reports.
    """
    from studies.show.export import write

    folder = write(opened.stored, opened.study, opened.space, opened.trials, opened.workdir, out)
    if storage is not None:
        bring_home(storage, opened.study.name, opened.workdir)
    return folder


def preset_titles() -> dict[str, str]:
    """Name -> title of the studies that come with the package."""
    return {name: tomllib.loads(file.read_text(encoding="utf-8")).get("title", "") for name, file in presets().items()}


def studies_in(url: str) -> dict[str, int]:
    """Name -> number of ended trials of the studies in a storage.

    Raises:
        InputError: no such storage.
    """
    import optuna

    storage = open_storage(url, create=False)
    return {
        summary.study_name: len(finished_trials(optuna.load_study(study_name=summary.study_name, storage=storage)))
        for summary in optuna.study.get_all_study_summaries(storage)
        if DEFINITION in summary.user_attrs
    }
