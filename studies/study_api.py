"""A study from Python: what `harness.study` and the commands of `harness study` call, and the result that they share.

Nothing here prints but the progress, and nothing ends the process: errors are raised (`harness.errors`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.executors.executor import ExecutorSettings, executor_settings
from harness.results import frames
from harness.results.record import Record
from harness.results.store import RunFolder
from harness.runs.plan import forget_loaded
from reports.with_report import WithReport
from studies import samplers
from studies.definition.planned import planned_trials
from studies.definition.space import Space, make_space
from studies.definition.study import Study, read_study
from studies.proposer import plan_trial, run_trials
from studies.storage import copy_to_workdir, default_url, definition_of, load, open_storage
from studies.trials import finished_trials, result_of

if TYPE_CHECKING:
    import optuna
    import pandas as pd

    from studies.show.findings import Sheet


@dataclass(frozen=True)
class PlannedStudy:
    """A study before its first trial."""

    source: str  # the file or preset
    study: Study
    space: Space
    trials: list[dict[str, Any]]  # the fixed values of each
    remarks: list[str]  # what a user should know of the sampler on this space


def plan_study(
    source: str | Path | Mapping[str, Any],
    overrides: Sequence[str] = (),
    *,
    quick: bool = False,
    name: str | None = None,
) -> PlannedStudy:
    """Read a study's file or preset; nothing is run. Arguments as `harness.study`.

    Raises:
        InputError: a key, a space or a sampler that cannot work.
    """
    source = source if isinstance(source, Mapping) else str(source)
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
) -> StudyResult:
    """Run a study until each planned trial has ended, and write its files. Arguments as `harness.study`.

    Raises:
        InputError: data or a model that is not there, a storage or an executor that cannot be used, another study of
            this name, or another process that runs this one. RunError: a stop was requested.
    """
    study, space = planned.study, planned.space
    forget_loaded()
    plan_trial(study, {**space.first_point(), **planned.trials[0]}, workdir)  # reports missing data and models first
    stored = run_trials(
        study, space, workdir, executor_settings(executor, study.executor), url=storage or default_url(workdir),
        where=planned.source, tracked=tracked, tracking_uri=tracking_uri, force_new=force_new, quiet=quiet,
    )  # fmt: skip
    result = StudyResult(stored, study, space, workdir)
    result.export(storage=storage)
    return result


def open_study(name: str, workdir: Path, storage: str | None = None) -> StudyResult:
    """A study that was run, or that another process runs.

    Raises:
        InputError: no such storage or study.
    """
    url = storage or default_url(workdir)
    stored = load(open_storage(url, create=False), name, url)
    study = definition_of(stored)
    return StudyResult(stored, study, make_space(study, name), workdir)


class StudyResult(WithReport):
    """A study with the trials that have ended so far. In a notebook it shows the best ones.

    Attributes:
        stored: the study in its storage.
        study: its definition.
        space: what it searches.
        ended: Optuna's trials that have ended, in the order of the plan.
        workdir: where the records of its runs are.
        files: the folder of its tables and figures, once they are written.
    """

    def __init__(self, stored: optuna.Study, study: Study, space: Space, workdir: Path) -> None:
        self.stored, self.study, self.space, self.workdir = stored, study, space, workdir
        self.name, self.ended = study.name, finished_trials(stored)
        self.files: Path | None = None

    def __repr__(self) -> str:
        return f"StudyResult({self.name!r}, {len(self.ended)} trials, workdir={str(self.workdir)!r})"

    @property
    def best(self) -> dict[str, Any]:
        """The config of the best trial.

        Raises:
            InputError: no trial has a value yet.
        """
        from studies.show.export import best_config

        return best_config(self.stored, self.study)

    @property
    def failed(self) -> dict[int, str]:
        """Number -> reason of the trials without a result; another run of the study tries them again."""
        return {t.number: result_of(t).reason for t in self.ended if t.state.name == "FAIL"}

    def trials(self) -> pd.DataFrame:
        """One row a trial: configuration, values, state, seeds, seconds, ids of its runs."""
        import pandas as pd

        from studies.show.findings import trials_sheet

        sheet = trials_sheet(self.study, self.space, self.ended)
        return pd.DataFrame(list(sheet.rows), columns=list(sheet.columns))

    def scores(self) -> pd.DataFrame:
        """One row a score of a run, as in `Comparison.scores`."""
        return frames.scores(record for _, record in self._records.values())

    def curves(self) -> pd.DataFrame:
        """One row a number of the training log of a run, as in `Comparison.curves`, with the trial in front."""
        frame = frames.curves(self.workdir, [record for _, record in self._records.values()])
        frame.insert(0, "trial", [self._records[run][0] for run in frame["run"]])
        return frame

    def costs(self) -> pd.DataFrame:
        """One row a run with its costs, as in `Comparison.costs`."""
        return frames.costs(record for _, record in self._records.values())

    def experiment(self, *, held_out: bool = False, default: bool = False) -> dict[str, Any]:
        """The keys of an experiment for `harness.compare` with the best configuration.

        Args:
            held_out: with the held-out seeds in place of those that chose.
            default: with a second row, the study's own config.
        """
        keys = tomllib.loads(self.experiment_file(held_out=held_out))
        if default:
            row: dict[str, Any] = {"name": f"{self.study.method} (default)", "method": self.study.method}
            row["config"] = dict(self.study.config)
            keys["methods"].append(row | ({"preset": self.study.preset} if self.study.preset else {}))
        return keys

    def experiment_file(self, *, held_out: bool = False) -> str:
        """The same as the text of a file."""
        from studies.show.export import experiment_file

        return experiment_file(self.stored, self.study, self.study.held_out_seeds if held_out else self.study.seeds)

    def sheets(self) -> dict[str, Sheet]:
        """Key -> table of plain values."""
        from studies.show.export import sheets

        return {s.key: s for s in sheets(self.stored, self.study, self.space, self.ended, self.workdir)}

    def export(self, out: Path | None = None, *, storage: str | None = None) -> Path:
        """Write tables, figures and experiment files; returns the folder.

        Args:
            out: where to; `WORKDIR/studies/NAME` by default.
            storage: where the study is, if not in its work directory, which then gets a copy for reports.

        Raises:
            RunError: the folder cannot be written.
        """
        from studies.show.export import write

        self.files = write(self.stored, self.study, self.space, self.ended, self.workdir, out)
        if storage is not None:
            copy_to_workdir(storage, self.name, self.workdir)
        return self.files

    @cached_property
    def _records(self) -> dict[str, tuple[int, Record]]:
        """Run -> the first trial that it belongs to, and its record."""
        found: dict[str, tuple[int, Record]] = {}
        for trial in self.ended:
            for run in result_of(trial).runs:
                record = RunFolder(self.workdir, run).read_if_sound()
                if record is not None:
                    found.setdefault(run, (trial.number, record))
        return found

    def _repr_html_(self) -> str:
        frame, value = self.trials(), self.study.objective_names[0]
        frame = frame.sort_values(value, ascending=self.study.signs[0] == "minimize").head(5)
        shown: str = frame[["trial", *self.space.names, value]].to_html(index=False)
        return f"<p>{escape(repr(self))}</p>{shown}"
