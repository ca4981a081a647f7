"""A study from Python: `harness.study`, and the result that it shares with the commands of
`harness study`.

Nothing here prints but the progress, and nothing ends the process: errors are raised
(`harness.errors`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import InputError, naming
from harness.executors.executor import ExecutorSettings, check_known, executor_settings
from harness.machine.progress import Reporter
from harness.results.store import RunFolder, checked_workdir
from harness.runs.plan import forget_loaded
from harness.seeds import preserve_random_state
from reports.live import page
from reports.with_report import WithReport
from studies.definition.space import Space, make_space, plan_trials
from studies.definition.study import DEV, Study, read_study

if TYPE_CHECKING:
    import optuna
    import pandas as pd


@preserve_random_state()
def study(
    source: str | Path | Mapping[str, Any] | Study,
    workdir: str | Path = "work",
    *,
    overrides: Sequence[str] = (),
    quick: bool = False,
    name: str | None = None,
    executor: str | Mapping[str, Any] | ExecutorSettings | None = None,
    tracked: bool = True,
    tracking_uri: str | None = None,
    progress: Reporter | None = None,
) -> StudyResult:
    """Search a method's hyperparameters under an equal budget for every trial; the same call
    resumes where it stopped.

        >>> found = harness.study(
        ...     {"name": "share", "method": "whitening", "sampler": "grid", "space": {"k": [16, 32]},
        ...      "corpus": {"uri": "embedded:sentences", "limit": 64},
        ...      "suites": ["Embedded-STS-natural"], "objective": "Embedded-STS-natural"},
        ...     workdir=work / "study", tracked=False,
        ... )
        >>> sorted(found.trials()["k"])
        [16, 32]

    Args:
        source: a TOML file, a preset's name (`harness list studies`), or the keys of such a file.
        workdir: the work directory.
        overrides: as `--set`: "trials=20", "space.temperature=[0.05, 0.1]".
        quick: the file's small size.
        name: of the study; by default the file's own.
        executor: where runs are executed: "processes", or keys of the table [executor], as
            {"workers": 2}.
        tracked, tracking_uri: whether runs go to MLflow, and to which store.
        progress: as in `compare`; of a reporter of your own only whether it is quiet counts.

    Raises:
        InputError: a key, a space, a sampler, or data that cannot work; another study of this name.
        RunError: a stop was requested; the message says what was saved.
    """
    from studies.proposer import plan_trial, run_trials
    from studies.samplers import check

    reporter = progress or Reporter.of_caller()
    if isinstance(source, Study):
        definition = source
    else:
        definition = read_study(source, overrides, quick=quick, name=name)
    if warning := warn_of_test_parts(definition):
        reporter.say(warning)
    if isinstance(source, str | Path):
        where = str(source)
    else:
        where = f'study "{definition.name}"'
    forget_loaded()
    with naming(where):
        space = make_space(definition, where)
        check(definition, space, where)
        plan_trial(
            definition, {**space.first_point(), **plan_trials(definition, space)[0]}
        )  # is all data here?
    folder = checked_workdir(workdir)
    settings = executor_settings(executor, definition.executor)
    check_known(settings, [definition.method])
    more: dict[str, Any] = {
        "quiet": reporter.quiet,
        "tracked": tracked,
        "tracking_uri": tracking_uri,
        "page": page,
    }
    stored = run_trials(definition, space, folder, settings, where=where, **more)
    result = StudyResult(stored, definition, space, folder)
    result.write_report()
    return result


def warn_of_test_parts(study: Study) -> str:
    """A line on an objective that is a test score; empty where trials are chosen by the dev set."""
    if study.objective == DEV:
        return ""
    return (
        f"note: trials are chosen by test scores ({study.objective}), so the score of the best one is too high; "
        'objective = "dev" chooses by the dev set'
    )


def study_names(workdir: Path) -> list[str]:
    """The studies that a work directory's own storage has."""
    if not (workdir / "studies.journal").exists():  # nothing slow is imported then
        return []
    from studies.storage import studies_in

    return list(studies_in(workdir))


def open_study(name: str, workdir: Path) -> StudyResult:
    """A study that was run, or that another process runs.

    Raises:
        InputError: no such study.
    """
    from studies.storage import definition_of, studies_in

    stored = studies_in(workdir).get(name)
    if stored is None:
        raise InputError(
            f'{workdir}: no study "{name}"; harness status lists the studies of a work directory'
        )
    definition = definition_of(stored)
    return StudyResult(stored, definition, make_space(definition, name), workdir)


class StudyResult(WithReport):
    """A study with the trials that have ended so far. In a notebook it shows the best ones.

    Attributes:
        stored: Optuna's study.
        study: its definition.
        space: what it searches.
        ended: Optuna's trials that have ended, in the order of the plan.
        workdir: where the records of its runs are.
        records: these records, in the order of the trials.
        files: the folder of its report, once it is written.
    """

    def __init__(self, stored: optuna.Study, study: Study, space: Space, workdir: Path) -> None:
        from studies.trials import ended_trials, result_of

        self.stored = stored
        self.study = study
        self.space = space
        self.workdir = workdir
        self.name = study.name
        self.ended = ended_trials(stored)
        self.files: Path | None = None
        runs = dict.fromkeys(run for trial in self.ended for run in result_of(trial).runs)
        self.records = list(filter(None, (RunFolder(workdir, run).read_if_sound() for run in runs)))

    def __repr__(self) -> str:
        return (
            f"StudyResult({self.name!r}, {len(self.ended)} trials, workdir={str(self.workdir)!r})"
        )

    @property
    def best(self) -> dict[str, Any]:
        """The config of the best trial.

        Raises:
            InputError: no trial has a value yet.
        """
        from reports.studies.findings import best_config

        return best_config(self.stored, self.study)

    @property
    def failed(self) -> dict[int, str]:
        """Number -> reason of the trials without a result; another run of the study tries them
        again.
        """
        from studies.trials import result_of

        return {t.number: result_of(t).reason for t in self.ended if t.state.name == "FAIL"}

    def trials(self) -> pd.DataFrame:
        """One row a trial: configuration, values, state, seeds, seconds, ids of its runs."""
        from reports.studies.findings import trials_frame

        return trials_frame(self.study, self.space, self.ended)

    def experiment(self, *, held_out: bool = False, default: bool = False) -> dict[str, Any]:
        """The keys of an experiment for `harness.compare` with the best configuration.

        Args:
            held_out: with the held-out seeds in place of those that chose.
            default: with a second row, the study's own config.
        """
        from reports.studies.findings import experiment_file

        seeds = self.study.held_out_seeds if held_out else self.study.seeds
        keys = tomllib.loads(experiment_file(self.stored, self.study, seeds))
        if default:
            row = self.study.model_dump(include={"method", "config", "preset"}, exclude_none=True)
            keys["methods"].append({"name": f"{self.study.method} (default)", **row})
        return keys

    def write_report(self) -> Path:
        """Write the report of the study, with the experiment files of its best configuration;
        returns its folder.

        Raises:
            RunError: the folder cannot be written.
        """
        from reports.build import build_report

        self.files = build_report(self.name, self.workdir)["json"].parent
        return self.files

    def _repr_html_(self) -> str:
        value = self.study.objective_name
        best = (
            self.trials()
            .sort_values(value, ascending=False)
            .head(5)[["trial", *self.space.names, value]]
        )
        return f"<p>{escape(repr(self))}</p>{best.to_html(index=False)}"
