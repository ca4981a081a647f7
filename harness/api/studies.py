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

from harness import registry
from harness.api.keywords import as_overrides, check_options, storing, table_overrides
from harness.api.methods import register_given
from harness.config import as_list
from harness.errors import InputError, naming
from harness.executors.executor import ExecutorSettings, check_known, executor_settings
from harness.files.reading import is_there
from harness.machine.progress import Reporter
from harness.method import Method
from harness.results.store import RunFolder, checked_workdir, comparison_files
from harness.runs.conditions import EMBEDDED_DEV
from harness.runs.inputs import forget_loaded
from harness.seeds import preserve_random_state
from harness.sources import TrainingText
from reports.live import page
from reports.with_report import WithReport
from studies.definition.space import Space, make_space
from studies.definition.study import DEV, Study, presets, read_study

if TYPE_CHECKING:
    import optuna
    import pandas as pd

    from reports.document.blocks import Document


@preserve_random_state()
def study(
    source: str | Path | Mapping[str, Any] | Study | type[Method] | Method,
    workdir: str | Path = "work",
    *,
    name: str | None = None,
    space: Mapping[str, Any] | None = None,
    trials: int | None = None,
    sampler: str | None = None,
    seeds: int | Sequence[int] | None = None,
    suites: Any = None,
    base_model: str | None = None,
    corpus: TrainingText | Mapping[str, Any] | None = None,
    columns: Mapping[str, str] | None = None,
    limit: int | None = None,
    dev: Any = None,
    max_steps: int | None = None,
    preset: str | None = None,
    config: Mapping[str, Any] | None = None,
    device: str | None = None,
    precision: str | None = None,
    overrides: str | Sequence[str] = (),
    quick: bool = False,
    executor: str | Mapping[str, Any] | ExecutorSettings | None = None,
    tracking_uri: str | None = None,
    progress: Reporter | None = None,
    **options: Any,
) -> StudyResult:
    """Search a method's hyperparameters under an equal budget for every trial; the same call
    resumes where it stopped.

        >>> found = harness.study(
        ...     {"name": "share", "method": "whitening", "sampler": "grid", "space": {"k": [16, 32]},
        ...      "corpus": {"uri": "embedded:sentences", "limit": 64},
        ...      "suites": ["Embedded-STS-contrast"], "objective": "Embedded-STS-contrast"},
        ...     workdir=work / "study", tracking_uri="none",
        ... )
        >>> sorted(found.trials()["k"])
        [16, 32]

    Args:
        source: a TOML file, a preset's name (`harness list studies`), the keys of such a file, or
            a method: its name, class or an instance.
        workdir: the work directory.
        name, space, trials, sampler, seeds, suites, base_model, dev, preset, device, precision:
            override the keys of the same names, and `max_steps` the key `steps`, the budget of a
            trial. A study that is in no file and names no `dev` set uses the embedded one.
        corpus, columns, limit: the training text, as in `compare`.
        config, options: values that all trials share: `config={"pooling": "cls"}`, or just
            `pooling="cls"`.
        overrides: as `--set`: "trials=20", "space.temperature=[0.05, 0.1]".
        quick: the file's small size.
        executor: where runs are executed: "processes", or keys of the table [executor], as
            {"workers": 2}.
        tracking_uri: as in `compare`.
        progress: as in `compare`; of a reporter of your own only whether it is quiet counts.

    Raises:
        InputError: a key, a space, a sampler, or data that cannot work; another study of this name.
        RunError: a stop was requested; the message says what was saved.
    """
    reporter = progress or Reporter.of_caller()
    source = _source(source)
    given: dict[str, Any] = {
        "space": space,
        "trials": trials,
        "sampler": sampler,
        "seeds": seeds,
        "base_model": base_model,
        "steps": max_steps,
        "preset": preset,
        "device": device,
        "precision": precision,
    }
    forget_loaded()
    with storing(workdir) as store:
        given["suites"] = store.frames("suites", suites)
        given["dev"] = store.frames("dev", dev)
        given["corpus"] = store.corpus(corpus, columns, limit)
        shared = [*table_overrides("config", config), *table_overrides("config", options)]
        changes = [*as_list(overrides), *as_overrides(**given), *shared]
        definition = read_study(source, changes, quick=quick, name=name)
        check_options(study, options, [definition.method])
        if isinstance(source, str | Path):
            where = str(source)
        else:
            where = f'study "{definition.name}"'
        searched = read_space(definition, where)
        settings, content = _check_run(definition, searched, executor, where)
    more = {"content": content, "where": where, "tracking_uri": tracking_uri}
    return _run(definition, searched, settings, workdir, reporter, **more)


def read_space(definition: Study, where: str) -> Space:
    """Return what a study searches.

    Raises:
        InputError: a space or a sampler that cannot work.
    """
    from studies.samplers import check

    with naming(where):
        searched = make_space(definition, where)
        check(definition, searched, where)
    return searched


@preserve_random_state()
def run_study(
    definition: Study,
    searched: Space,
    workdir: str | Path,
    *,
    executor: str | Mapping[str, Any] | ExecutorSettings | None,
    tracking_uri: str | None,
    progress: Reporter,
) -> StudyResult:
    """Run a study that was read, and write its report; the other arguments and errors are those of
    `study`.
    """
    where = f'study "{definition.name}"'
    forget_loaded()
    settings, content = _check_run(definition, searched, executor, where)
    more = {"content": content, "where": where, "tracking_uri": tracking_uri}
    return _run(definition, searched, settings, workdir, progress, **more)


def _check_run(
    definition: Study,
    searched: Space,
    executor: str | Mapping[str, Any] | ExecutorSettings | None,
    where: str,
) -> tuple[ExecutorSettings, dict[str, Any]]:
    """Return where the runs of a study are executed, and the content of what its definition names
    (`content_of`).

    Raises:
        InputError: its data is not here, or no executor can execute it.
    """
    from studies.proposer import content_of, plan_first_trial

    with naming(where):
        content = content_of(plan_first_trial(definition, searched))
    settings = executor_settings(executor, definition.executor)
    check_known(settings, [definition.method])
    return settings, content


def _run(
    definition: Study,
    searched: Space,
    settings: ExecutorSettings,
    workdir: str | Path,
    reporter: Reporter,
    **more: Any,
) -> StudyResult:
    """Run the trials of a study, and write its report. `more`: of `run_trials`."""
    from studies.proposer import run_trials

    if warning := warn_of_test_parts(definition):
        reporter.say(warning)
    folder = checked_workdir(workdir)
    if definition.name in comparison_files(folder):
        message = f'a comparison in {folder} has the name "{definition.name}"'
        raise InputError(message, key="name", remedy="choose another name for the study")
    more |= {"quiet": reporter.quiet, "page": page}
    stored = run_trials(definition, searched, folder, settings, **more)
    result = StudyResult(stored, definition, searched, folder)
    result.write_report()
    return result


def _source(given: Any) -> str | Path | Mapping[str, Any]:
    """Return a file or preset by name, or the keys of a study; what is in no file selects on the
    embedded dev set.
    """
    if isinstance(given, Study):
        return given.model_dump(mode="json", exclude_unset=True)
    if isinstance(given, Path):
        return given
    if isinstance(given, str):
        is_file = is_there(Path(given)) or given in presets()
        if is_file or given not in registry.names(registry.METHODS):
            return given
        keys: dict[str, Any] = {"method": given, "name": given}
    elif isinstance(given, Mapping):
        keys = dict(given)
    else:
        keys = {"method": given, "name": register_given(given).name}
    method = keys.get("method", "")
    if not isinstance(method, str):
        keys["method"] = register_given(method).name
    if isinstance(method, Method):  # its options, below those that the keys state
        own = method.config.model_dump(exclude_unset=True)
        stated = keys.get("config", {})
        if isinstance(stated, Mapping):
            keys["config"] = {**own, **stated}
        keys.setdefault("base_model", method.base_model)
    return {"dev": EMBEDDED_DEV.model_dump(exclude_unset=True), **keys}


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
            f'no study "{name}"; harness status lists the studies of a work directory', file=workdir
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
        runs: dict[str, None] = {}
        for trial in self.ended:
            runs |= dict.fromkeys(result_of(trial).runs)
        records = [RunFolder(workdir, run).read_if_sound() for run in runs]
        self.records = [record for record in records if record is not None]

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

        failed = [trial for trial in self.ended if trial.state.name == "FAIL"]
        return {trial.number: result_of(trial).reason for trial in failed}

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

        if held_out:
            seeds = self.study.held_out_seeds
        else:
            seeds = self.study.seeds
        keys = tomllib.loads(experiment_file(self.stored, self.study, seeds))
        if default:
            stated = {"method", "config", "preset"}
            row = self.study.model_dump(include=stated, exclude_none=True)
            name = f"{self.study.method} (default)"
            keys["methods"].append({"name": name, **row})
        return keys

    def write_report(self) -> Path:
        """Write the report of the study, with the experiment files of its best configuration;
        returns its folder.

        Raises:
            RunError: the folder cannot be written.
        """
        from reports.build import build_study

        self.files = build_study(self.workdir, self.name)["json"].parent
        return self.files

    def _describe(self) -> Document:
        from reports.build import describe_study

        return describe_study(self.workdir, self.name).document

    def _repr_html_(self) -> str:
        value = self.study.objective_name
        best = (
            self.trials()
            .sort_values(value, ascending=False)
            .head(5)[["trial", *self.space.names, value]]
        )
        shown = escape(repr(self))
        return f"<p>{shown}</p>{best.to_html(index=False)}"
