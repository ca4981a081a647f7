"""`harness.compare` and `harness.study`: what runs the files of comparisons and of searches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Literal

from harness import registry
from harness.comparison import keeping, lacking_outcomes, other_code, row_differences
from harness.comparison.beside import set_beside
from harness.comparison.cell import take_part
from harness.comparison.comparison_result import Comparison
from harness.comparison.experiment import EMBEDDED_DEV, Experiment, read_experiment
from harness.comparison.part import asked_of
from harness.comparison.plan import LoadedData, Plan, PlannedCell, make_plan
from harness.comparison.rehearsal import StandIns, rehearsed
from harness.comparison.repeat import repeated
from harness.comparison.run import run_comparison
from harness.comparison.tuning import Budget, asked_budget, checked_budget, tune_rows
from harness.comparison.until import Looks, Until, checked_until
from harness.errors import InputError, StopAsked
from harness.executors.executor import Executor, ExecutorSettings
from harness.files.locks import comparison_lock
from harness.machine.distributed import join
from harness.machine.progress import Reporter
from harness.machine.progress_views import in_notebook
from harness.results.manifest import read_manifest
from harness.results.report_builder import FORMATS, report_builder
from harness.results.run_folder import checked_workdir
from harness.results.study_result import StudyResult


def compare(
    experiment: str | Path | Mapping[str, Any] | Experiment | Sequence[str | Mapping[str, Any]],
    *,
    workdir: str | Path = "work",
    overrides: Sequence[str] = (),
    only: Sequence[str] = (),
    rehearse: bool = False,
    tune: Budget | None = None,
    until: Until | Literal["decided"] | None = None,
    tracked: bool = True,
    tracking_uri: str | None = None,
    formats: Sequence[str] = FORMATS,
    executor: str | Mapping[str, Any] | ExecutorSettings | None = None,
    progress: Reporter | None = None,
    say: Callable[[str], None] | None = None,
    rescore: bool = False,
    against: Sequence[str | Path] = (),
) -> Comparison:
    """Train every row of an experiment under the same conditions, evaluate, track and report; finished cells are kept.

        >>> found = harness.compare(
        ...     [{"name": pooling, "method": "pooling", "config": {"pooling": pooling}} for pooling in ("cls", "mean")],
        ...     overrides=["name=poolings", "suites=['Embedded-STS-natural']"], workdir=work, tracked=False, formats=[],
        ... )
        >>> found.scores().query("metric == 'spearman' and aggregation == 'all'")[["row", "n"]].values.tolist()
        [['cls', 240], ['mean', 240]]

    Args:
        experiment: a TOML file, a preset's name, the keys of such a file, a whole `Experiment`, or a list of rows:
            names of methods or tables as under [[methods]]; all else is as the defaults and `overrides` have it.
        workdir: everything that is kept. The same call goes on where it stopped.
        overrides: as `--set`: "seeds=[1]", "methods.simcse.temperature=0.1".
        only: blocks of the file, or patterns of rows ("SCD*"): what part of it is made, as a comparison of its own.
        rehearse: the same with the embedded model, the beginning of each text and few updates, as the file's
            [rehearsal] says: a row that cannot be had, or a task without its data, is told and ends nothing.
        tune: search every row under this budget first, and add the best configuration as a row of its own; the
            budget of a file that has one of equal trials, when left out.
        until: "decided": seeds are added, one after the other, to the rows between which a decision is open. An `Until`
            says up to how many, and what all may cost.
        tracked, tracking_uri: whether runs go to MLflow, and to which store (default: sqlite in `workdir`).
        formats: of the report.
        executor: where runs are made: "processes", or keys of the table [executor]; they beat the experiment's.
        progress: what shows how far it is; bars in a notebook, nothing elsewhere, when left out.
        say: called, before any cell is run, with a line on what a reader should know: runs that other code has made
            and that are made again, updates that were timed.
        rescore: score runs again whose scores an earlier version made without the outcomes of their examples.
        against: work directories, archives of one or installed records ("shipped") whose rows are set beside these,
            where they were made under the same conditions; nothing of them is trained.

    Returns:
        Records, and where the report lies. In a process that another one leads (see `harness.machine.distributed`)
        there are none.

    Raises:
        InputError: anything in the input that cannot work; nothing is written then.
        RunError: a search or the report failed, or somebody paused it; the message says what was kept.
    """
    if isinstance(experiment, Sequence) and not isinstance(experiment, str):
        rows = [{"method": row} if isinstance(row, str) else dict(row) for row in experiment]
        experiment = {"name": "comparison", "dev": EMBEDDED_DEV.model_dump(), "methods": rows}
    source = str(experiment) if isinstance(experiment, str | Path) else read_experiment(experiment)
    where = source if isinstance(source, str) else f'experiment "{source.name}"'
    asked = asked_of(experiment, overrides, only, where, searched=tune is not None)
    tune = None if rehearse and tune is None else asked_budget(tune, asked)
    budget = checked_budget(tune, asked) if tune is not None else None
    asked = asked.model_copy(update={"executor": executor_settings(executor, asked.executor)})
    engine: type[Executor] = registry.load(registry.EXECUTORS, asked.executor.name)
    if until is not None:
        until = checked_until(Until() if until == "decided" else until, asked)
        if rehearse:
            raise InputError("--until: a rehearsal decides nothing; leave one of them out")
        if against:
            raise InputError("--until: rows made elsewhere get no further seeds; decide first, then set them beside")
    if against and rehearse:
        raise InputError("--against: the scores of a rehearsal stand beside no others; leave one of them out")
    team = join(asked.device)
    if until is not None and team.size > 1:
        raise InputError("--until: decides in one process; start it without a launcher")
    if budget is not None and team.size > 1:
        raise InputError("--tune: searches in one process; start it without a launcher (the search goes on later)")
    progress = progress or Reporter.of_caller()
    data = LoadedData()
    if rehearse:
        data = StandIns(asked.rehearsal)
        asked = rehearsed(asked, data)
    with team.main_first():
        plan = make_plan(asked, where, Path(workdir), data=data, team=team, say=say, counterparts=True)
        folder = checked_workdir(str(workdir))
    if not team.main:
        with suppress(StopAsked):  # the main process tells of it
            take_part(plan, folder)
        return Comparison(asked.name, folder, [], asked)
    with comparison_lock(folder, asked.name):
        tuning = None
        if budget is not None:
            tuning = tune_rows(asked, budget, folder, tracked=tracked, tracking_uri=tracking_uri, quiet=progress.quiet)
            plan = make_plan(tuning.with_winners(asked), where, folder, data=data, say=say, counterparts=True)
        looks = Looks.of(until, asked, _kept(folder, asked.name)) if until is not None else None
        plan = looks.begun(plan) if looks is not None else plan
        if rescore:
            line = lacking_outcomes.ask_anew(plan, folder)
            if say is not None:
                say(line)
        for told in (row_differences.told, other_code.told, keeping.told):
            if say is not None and (cost := told(plan, folder)):
                say(cost)
        beside = set_beside(plan, [str(source) for source in against], folder) if against else None
        tracker = None
        with ExitStack() as ending:
            if tracked:
                from harness.tracking.tracker import Tracker

                tracker = Tracker(folder, asked.name, tracking_uri)
                ending.callback(tracker.close)
            records = run_comparison(
                plan,
                folder,
                command_of=lambda cell: repeated(
                    source,
                    [*overrides, *plan.schedule.overrides],
                    cell,
                    tuning,
                    budget=asked.budget,
                    options=_alone(cell, plan, rehearse),
                ),
                tracker=tracker,
                reporter=ending.enter_context(progress),
                tuned=tuning,
                only=only,
                executor=engine(asked.executor, folder),
                looks=looks,
                beside=beside,
            )
        builder = report_builder()
        written = builder.build_comparison(folder, asked.name, formats=formats) if builder is not None else {}
        if tracker is not None and "html" in written:
            tracker.attach(written["html"])
        further = {
            name: builder.build_report(name, folder, formats=formats) for name in asked.reports if builder is not None
        }
    return Comparison(asked.name, folder, records, plan.experiment, written, tuning, further)


def study(
    source: str | Path | Mapping[str, Any],
    workdir: str | Path = "work",
    *,
    overrides: Sequence[str] = (),
    quick: bool = False,
    name: str | None = None,
    storage: str | None = None,
    executor: str | Mapping[str, Any] | ExecutorSettings | None = None,
    tracked: bool = True,
    tracking_uri: str | None = None,
    force_new: bool = False,
    quiet: bool | None = None,
) -> StudyResult:
    """Search a method's hyperparameters under an equal budget for every trial; the same call goes on where it stopped.

        >>> found = harness.study(
        ...     {"name": "share", "method": "whitening", "sampler": "grid", "space": {"k": [16, 32]},
        ...      "corpus": {"uri": "embedded:sentences", "limit": 64},
        ...      "suites": ["Embedded-STS-natural"], "objectives": ["Embedded-STS-natural"]},
        ...     workdir=work / "study", tracked=False,
        ... )
        >>> sorted(found.trials()["k"])
        [16, 32]

    Args:
        source: a TOML file, a preset's name (`harness study list`), or the keys of such a file.
        workdir: everything that is kept.
        overrides: as `--set`: "trials=20", "space.temperature=[0.05, 0.1]".
        quick: the file's small size.
        name: of the study; the file's own when left out.
        storage: where the trials are; a journal file in `workdir` when left out.
        executor: where runs are made: "processes", or keys of the table [executor], as {"workers": 2}.
        tracked, tracking_uri: whether runs go to MLflow, and to which store.
        force_new: delete the trials of an earlier study of this name.
        quiet: no progress; shown in a notebook and nowhere else, when left out.

    Raises:
        InputError: a key, a space, a sampler, data or a storage that cannot work; another study of this name.
        RunError: the workers end as soon as they are started.
    """
    if not (known := registry.names(registry.STUDIES)):
        raise InputError(f"nothing is installed that runs studies (entry points {registry.STUDIES.entry_points})")
    found: StudyResult = registry.load(registry.STUDIES, known[0])(
        source, workdir, overrides=overrides, quick=quick, name=name, storage=storage, executor=executor,
        tracked=tracked, tracking_uri=tracking_uri, force_new=force_new,
        quiet=not in_notebook() if quiet is None else quiet,
    )  # fmt: skip
    return found


def executor_settings(
    given: str | Mapping[str, Any] | ExecutorSettings | None, experiment: ExecutorSettings
) -> ExecutorSettings:
    """What the caller says about the executor, above what the experiment says.

    Raises:
        InputError: unknown key, value out of range.
    """
    if given is None or isinstance(given, ExecutorSettings):
        return given or experiment
    keys = {"name": given} if isinstance(given, str) else dict(given)
    return ExecutorSettings.parse({**experiment.model_dump(exclude_unset=True), **keys}, "executor")


def _kept(workdir: Path, name: str) -> dict[str, Any] | None:
    """The manifest that an earlier call left; None where it is damaged, and written anew."""
    try:
        return read_manifest(workdir, name)
    except InputError:
        return None


def _alone(cell: PlannedCell, plan: Plan, rehearse: bool) -> dict[str, Any]:
    """What has `compare` make the run of one cell of a file with parts; an added start comes with a row of the file."""
    trained = [other for other in plan.cells if plan.starts.get(other.id) == cell.id]
    row = trained[0].row if cell.row.counterpart and trained else cell.row
    return {
        **({"only": [row.label]} if cell.blocks != ("",) else {}),
        **({"rehearse": True} if rehearse else {}),
    }
