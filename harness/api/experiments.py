"""`harness.compare`: run an experiment file."""

from __future__ import annotations

import json
import logging
import shlex
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from harness import registry
from harness.api import keywords
from harness.api.adoption import conclude
from harness.api.methods import register_given
from harness.api.result import Comparison
from harness.config import as_list
from harness.contamination.check import CheckedText, find_overlaps, selection_text, training_text
from harness.errors import InputError, naming
from harness.evaluation.given_models import make_model_method, makes_vectors
from harness.executors.executor import (
    ExecutorSettings,
    check_known,
    executor_settings,
    open_executor,
)
from harness.files.exits import refuse_exits
from harness.files.links import real_path
from harness.files.locks import comparison_lock
from harness.files.reading import inline
from harness.machine.progress import Reporter
from harness.method import DEFAULT_BASE_MODEL, Method, locating
from harness.results.comparison import Tuning
from harness.results.spec import RunSpec
from harness.results.store import checked_workdir, read_comparison_file
from harness.runs.against import find_other_rows
from harness.runs.code_changes import describe_code_changes
from harness.runs.conditions import EMBEDDED_DEV
from harness.runs.costs import CostEstimate
from harness.runs.differences import summarise_differences
from harness.runs.experiment import Experiment, ExperimentSource, read_experiment
from harness.runs.frozen_plan import describe_changes
from harness.runs.grid import Grid
from harness.runs.inputs import forget_loaded, load_text
from harness.runs.own_data import remarks_on_files
from harness.runs.padding import describe_padding
from harness.runs.placement import place_runs
from harness.runs.plan import Job, Plan, make_plan
from harness.runs.progress import Progress
from harness.runs.runner import Runner
from harness.runs.selection import Budget, check_budget, rehearse, select, with_winners
from harness.runs.sizes import resolve_sizes
from harness.runs.until import MoreSeeds, Until, check_until
from harness.seeds import preserve_random_state
from harness.sources import TrainingText
from harness.tracking import Tracker, open_tracker
from reports import build
from reports.decide.sequential import RULE, analyse
from reports.live import page
from reports.papers.beside import open_definition
from reports.write.report_folder import FORMATS, check_formats
from studies import SHIPPED

logger = logging.getLogger(__name__)

MethodLike = str | type[Method] | Method
Source = ExperimentSource | type[Method] | Method | Sequence[MethodLike | Mapping[str, Any]]


@dataclass(frozen=True)
class Choices:
    """How an experiment is to be run; the fields are arguments of `compare`."""

    overrides: Sequence[str] = ()
    only: Sequence[str] = ()
    rehearse: bool = False
    tune: Budget | None = None
    until: Until | None = None
    against: Sequence[str | Path] = ()
    executor: str | Mapping[str, Any] | ExecutorSettings | None = None


@dataclass
class Planned:
    """A comparison before it runs: everything that can be wrong with its input was checked.

    Attributes:
        source: file or preset, or the experiment itself, before overrides; `where` names it in
            messages.
        budget: of the searches of `--tune`, and `tuned` what they found.
    """

    source: str | Experiment
    where: str
    choices: Choices
    plan: Plan
    budget: Budget | None
    tuned: Tuning | None = None


def _check_choices(choices: Choices) -> None:
    """Raises:
    InputError: two choices exclude each other.
    """
    if choices.until and choices.rehearse:
        raise InputError(
            "--until: a rehearsal decides nothing; leave one of them out", key="--until"
        )
    if choices.until and choices.against:
        raise InputError(
            "--until: rows made elsewhere get no further seeds; decide first, then use --against",
            key="--until",
        )
    if choices.against and choices.rehearse:
        raise InputError(
            "--against: a rehearsal is comparable with nothing; leave one of them out",
            key="--against",
        )


def _check_search_seeds(budget: Budget | None, more_seeds: MoreSeeds) -> None:
    """Raises:
    InputError: a seed of a search is one that `--until` may add.
    """
    searched = budget.seeds if budget is not None else ()
    both = sorted(set(searched).intersection(more_seeds.seeds))
    if both:
        raise InputError(
            f"--until: seed {both[0]} is that of the search of --tune, and may be added to rows",
            key="--max-seeds",
            remedy="choose fewer seeds (--max-seeds), or others (--set seeds)",
        )


def plan_comparison(experiment: Source, *, to_run: bool = True, **choices: Any) -> Planned:
    """The plan of a comparison, with `Choices` by name; `to_run` as in `make_plan`.

    Raises:
        InputError: anything in the input that cannot work.
    """
    c = Choices(**choices)
    forget_loaded()
    source = _source(experiment)
    if isinstance(source, str):
        where = source
    else:
        where = f'experiment "{source.name}"'
    read = resolve_sizes(read_experiment(source, c.overrides), load_text)
    selected = select(read, c.only, where, tuned=c.tune is not None)
    budget = check_budget(c.tune, selected)
    selected = selected.model_copy(
        update={"executor": executor_settings(c.executor, selected.executor)}
    )
    check_known(selected.executor, (entry.method for entry in selected.methods))
    if c.until is not None:
        check_until(c.until, selected)
        _check_search_seeds(budget, more_seeds_of(c.until, selected))
    _check_choices(c)
    with naming(where):
        for paper in selected.published:
            open_definition(paper)
    rehearsal = selected.rehearsal if c.rehearse else None
    if c.rehearse:
        selected = rehearse(selected, where)
    methods = (registry.load(registry.METHODS, entry.method) for entry in selected.methods)
    with locating(InputError, methods), naming(where):
        plan = make_plan(selected, where, rehearsal=rehearsal, to_run=to_run)
    if not all(plan.block_tasks.values()):
        raise InputError(
            "suites: expected a suite or task", file=where, remedy="see: harness list suites"
        )
    return Planned(source, where, c, plan, budget)


@preserve_random_state()
def compare(
    experiment: Source,
    *,
    workdir: str | Path = "work",
    name: str | None = None,
    seeds: int | Sequence[int] | None = None,
    suites: Any = None,
    base_models: str | Sequence[str] | None = None,
    base_model: str | None = None,
    corpus: TrainingText | Mapping[str, Any] | None = None,
    columns: Mapping[str, str] | None = None,
    limit: int | None = None,
    dev: Any = None,
    max_steps: int | None = None,
    preset: str | None = None,
    shared: Mapping[str, Any] | None = None,
    device: str | None = None,
    precision: str | None = None,
    overrides: str | Sequence[str] = (),
    only: str | Sequence[str] = (),
    rehearse: bool = False,
    tune: int | Budget | None = None,
    until: Until | Literal["decided"] | None = None,
    tracking_uri: str | None = None,
    formats: str | Sequence[str] = FORMATS,
    executor: str | Mapping[str, Any] | ExecutorSettings | None = None,
    progress: Reporter | None = None,
    against: str | Path | Sequence[str | Path] = (),
    **options: Any,
) -> Comparison:
    """Train every row of an experiment under the same conditions, evaluate, track and report;
    finished runs are reused.

        >>> found = harness.compare(
        ...     [{"name": pooling, "method": "pooling", "config": {"pooling": pooling}} for pooling in ("cls", "mean")],
        ...     name="poolings", suites="Embedded-STS-natural", workdir=work, tracking_uri="none", formats=[],
        ... )
        >>> found.scores().query("metric == 'spearman' and aggregation == 'all'")[["row", "n"]].values.tolist()
        [['cls', 1035], ['mean', 1035]]

    Args:
        experiment: a TOML file, a preset's name, the keys of such a file, an `Experiment`, a method
            as a class or instance, or a list of rows: methods (names, classes or instances), models
            (objects with `encode` or functions of texts) or tables as under [[methods]].
        workdir: the work directory. The same call resumes where it stopped.
        name, seeds, suites, base_models, dev, max_steps, preset, device, precision: override the
            keys of the same names; `base_model` is the only one of `base_models`. `seeds` is their
            number or a list: `3` and `[1, 2, 3]` are three runs a row. `suites` and `dev` may be
            files (`{"task": "pairs.csv", "columns": {...}}` names columns) and frames. An
            experiment that is in no file and names no `dev` set selects checkpoints on the embedded
            one; with `dev="none"` the last weights are used.
        corpus, columns, limit: the training text as `train` takes it: a URI, a path, a list of texts
            or pairs, a frame, a `datasets.Dataset`, or a table as under [corpus]; what is no file
            is stored in `workdir`/data.
        shared, options: values of every method that has such an option, above presets and below a
            row's own: `shared={"pooling": "mean"}`, or just `pooling="mean"`.
        overrides: other values, as `--set` takes them: "methods.simcse.temperature=0.1". One of
            these, as of `only`, `formats` and `against`, needs no list.
        only: blocks of the file, or patterns of rows ("SCD*"), to run as a comparison of its own.
        rehearse: the same with the embedded model, the beginning of each text and few training
            steps, as the file's [rehearsal] says; rows and tasks whose data is not available are
            skipped with a note.
        tune: search every row with this many trials first, and add the best configuration as a row
            of its own. A `Budget` also sets the training steps of a trial.
        until: "decided" adds seeds, one at a time, to the rows that are not decided yet. An `Until`
            bounds them.
        tracking_uri: the MLflow server or database that gets the runs, or another tracker, as
            "trackio://" (default: sqlite in `workdir`); "none" tracks nothing.
        formats: of the report: "html", "md", "latex", "csv", "pdf", "ro-crate", "every-eval-ever";
            [] writes none.
        executor: where runs are executed: "processes", or keys of the table [executor]; they
            override the experiment's.
        progress: what shows the progress and one-line notices; by default bars in a notebook and on
            a terminal.
        against: work directories, archives of one, or "shipped"; their rows are compared with these
            where they were made under the same conditions, and are not trained again.

    Returns:
        Records as pandas frames, the tables and figures of the report, verdicts, and where the
        report is.

    Raises:
        InputError: anything in the input that cannot work; nothing is written then.
        RunError: a search or the report failed, or a stop was requested; the message says what was
            saved.
    """
    formats = as_list(formats)
    check_formats(formats)  # now, and not when all runs have ended
    reporter = progress or Reporter.of_caller()
    folder = checked_workdir(workdir, create=False)
    given: dict[str, Any] = {
        "name": name,
        "seeds": seeds,
        "base_models": _one_of(base_model, base_models),
        "max_steps": max_steps,
        "preset": preset,
        "device": device,
        "precision": precision,
    }
    source = _source(experiment)
    unfiled = isinstance(source, Experiment) and source is not experiment
    if unfiled and source.dev == EMBEDDED_DEV and dev is None:  # type: ignore[union-attr]
        reporter.say(
            f"note: checkpoints are selected on {EMBEDDED_DEV.task}; dev= names another set"
        )
    with keywords.storing(workdir) as store:
        given["suites"] = store.frames("suites", suites)
        given["dev"] = store.frames("dev", dev)
        given["corpus"] = store.corpus(corpus, columns, limit)
        changes = as_list(overrides)
        changes += keywords.as_overrides(**given)
        changes += keywords.table_overrides("shared", shared)
        changes += keywords.table_overrides("shared", options)
        if options:
            methods = [row.method for row in read_experiment(source, as_list(overrides)).methods]
            keywords.check_options(compare, options, methods)
        planned = plan_comparison(
            source,
            overrides=changes,
            only=as_list(only),
            rehearse=rehearse,
            tune=_budget_of(tune),
            until=_until_of(until),
            against=as_list(against),
            executor=executor,
        )
    folder = checked_workdir(workdir)
    name = planned.plan.experiment.name
    with comparison_lock(folder, name):
        if planned.budget is not None:
            _tune(planned, planned.budget, folder, reporter, tracking_uri)
        tracker = open_tracker(folder, name, tracking_uri)
        ending = closing(tracker) if tracker is not None else nullcontext()
        with refuse_exits(), reporter, ending:
            grid = _run(planned, folder, reporter, tracker)
        if formats:
            written = build.build_comparison(folder, name, formats=formats)
        else:
            written = {}
        experiment = grid.plan.experiment
        decision = ""
        if experiment.incumbent and not rehearse:
            decision = conclude(folder, experiment, grid.all_records())
    further = {
        paper: build.build_report(paper, folder, formats=formats) for paper in experiment.reports
    }
    return Comparison(name, folder, grid.all_records(), experiment, written, further, decision)


def _one_of(base_model: str | None, base_models: Any) -> Any:
    """Return the base models of a call.

    Raises:
        InputError: both keywords are given.
    """
    if base_model is None:
        return base_models
    if base_models is not None:
        message = "is given in two ways"
        raise InputError(message, key="base_model", remedy="leave out base_model or base_models")
    return base_model


def _budget_of(given: Any) -> Budget | None:
    """Return the budget of a search: of a number of trials, or as it is given.

    Raises:
        InputError: it is neither.
    """
    if given is None or isinstance(given, Budget):
        return given
    if isinstance(given, int) and not isinstance(given, bool):
        return Budget(given)
    raise InputError(f"expected a number of trials or a Budget, not {given!r}", key="tune")


def _until_of(given: Any) -> Until | None:
    """Return when to stop adding seeds.

    Raises:
        InputError: it is neither "decided" nor an `Until`.
    """
    if given is None or isinstance(given, Until):
        return given
    if given == "decided":
        return Until()
    raise InputError(f'expected "decided" or an Until, not {given!r}', key="until")


def _source(experiment: Source) -> str | Experiment:
    """A file or preset by name; anything else as an experiment, whose checkpoints need no download
    to be selected.
    """
    if isinstance(experiment, str | Path):
        return str(experiment)
    if isinstance(experiment, Experiment):
        return experiment
    if isinstance(experiment, Sequence | Mapping):
        rows = experiment
    else:
        rows = [experiment]
    if isinstance(rows, Mapping):
        keys = dict(rows)
    else:
        keys = {"methods": rows}
    if isinstance(keys.get("methods"), Sequence):
        _refuse_equal_names(keys["methods"])
        keys["methods"] = [_row(row) for row in keys["methods"]]
    return read_experiment(
        {"name": "comparison", "dev": EMBEDDED_DEV.model_dump(exclude_unset=True), **keys}
    )


def _refuse_equal_names(rows: Sequence[Any]) -> None:
    """Refuse two classes of one name: rows find their method by its name.

    Raises:
        InputError: there are two.
    """
    seen: dict[str, Any] = {}
    for row in rows:
        if isinstance(row, Mapping):
            given = row.get("method")
        else:
            given = row
        is_class = isinstance(given, type) or given is None
        kind = given if is_class else type(given)
        name = getattr(kind, "name", None)
        if isinstance(name, str) and seen.setdefault(name, kind) is not kind:
            raise InputError(
                f'two different methods are called "{name}"',
                key="methods",
                remedy="give one another name",
            )


def _row(row: Any) -> Any:
    """A row as under [[methods]]; a method as a class or instance is registered and named. Options
    of a row are above those of its instance.
    """
    if isinstance(row, Mapping) and "method" in row:
        others = dict(row)
        made = _row(others.pop("method"))
        if "config" in made and isinstance(others.get("config"), Mapping):
            others["config"] = {**made["config"], **others["config"]}
        return {**made, **others}
    if isinstance(row, Mapping) and not isinstance(row.get("model", ""), str):
        others = dict(row)
        del others["model"]
        return {**_row(row["model"]), **others}
    if isinstance(row, str | Mapping):
        return {"method": row} if isinstance(row, str) else row
    if makes_vectors(row):
        made = make_model_method(row)
        return {"method": register_given(made).name, "name": made.given.name}
    kind = register_given(row)
    if isinstance(row, type):
        return {"method": kind.name}
    if row.base_model == DEFAULT_BASE_MODEL:
        start = {}
    else:
        start = {"base_models": [row.base_model]}
    return {
        "method": kind.name,
        "config": row.config.model_dump(mode="json", exclude_unset=True),
        **start,
    }


def _tune(
    planned: Planned,
    budget: Budget,
    folder: Path,
    reporter: Reporter,
    tracking_uri: str | None,
) -> None:
    """Search every row, and plan the best configurations as rows of their own."""
    from studies.tune import tune_rows

    untuned = planned.plan.experiment
    planned.tuned = tune_rows(
        untuned,
        budget,
        folder,
        tracking_uri=tracking_uri,
        quiet=reporter.quiet,
        page=page,
    )
    winners = with_winners(untuned, planned.tuned)
    planned.plan = make_plan(winners, planned.where, rehearsal=planned.plan.rehearsal)


def _run(planned: Planned, folder: Path, reporter: Reporter, tracker: Tracker | None) -> Grid:
    """Run a plan; the lock of the comparison is held."""
    plan = planned.plan
    e = plan.experiment
    more_seeds = None
    if planned.choices.until is not None:
        more_seeds = more_seeds_of(planned.choices.until, e)
        earlier = None
        with suppress(InputError):  # a damaged file is written again
            earlier = read_comparison_file(folder, e.name)
        more_seeds.check_earlier(e.name, earlier)
        plan = more_seeds.begin(plan)
    sources = sources_of(planned.choices.against)
    others = find_other_rows(plan, sources, folder) if sources else None
    if planned.choices.rehearse:
        reporter.say(CostEstimate(plan, folder).describe())
    for line in [*notices(plan), *describe_code_changes(plan, folder)]:
        reporter.say(line)
    if changes := describe_changes(folder, plan, planned.choices.until):
        reporter.say(changes)
    placement = place_runs(plan, folder)
    if placement.line:
        reporter.say(placement.line)
    executor = open_executor(placement.executor, folder)
    progress = Progress(folder, e.name, "comparison", e.title, executor, reporter, page)
    grid = Grid(
        plan,
        folder,
        progress,
        command_of=lambda job: reproduce_command(planned, plan, job),
        tracker=tracker,
        tuned=planned.tuned,
        only=planned.choices.only,
        more_seeds=more_seeds,
        others=others,
        said=set(remarks_on_files(plan)),
    )
    Runner(folder, executor, progress).run(grid)
    if others is not None:
        own = [grid.records[job.place] for job in grid.plan.jobs]
        others.limit_to_protocols(own)
        grid.write()
        for line in others.summary():
            reporter.say(line)
    for line in check_overlaps(grid.plan, folder):
        reporter.say(line)
    return grid


def more_seeds_of(until: Until, experiment: Experiment) -> MoreSeeds:
    """The course of `--until`, with the analysis of the reports."""
    return MoreSeeds(until, experiment.seeds, analyse, RULE)


def sources_of(against: Sequence[str | Path]) -> dict[str, Path]:
    """Name -> place of the work directories that `--against` names; "shipped" are the runs of the
    package.

    Two of one name are called by their whole paths.

    >>> list(sources_of(["ann/work", "/data/bob"]))
    ['work', 'bob']
    """
    places = dict[Path, str]()
    for source in map(Path, against):
        if str(source) == "shipped" and not source.exists():
            places[SHIPPED] = "shipped"
        else:
            place = real_path(source)
            places[place] = place.name.removesuffix(".zip").partition(".tar")[0]
    names = list(places.values())
    sources = {}
    for place, name in places.items():
        if names.count(name) > 1:
            name = str(place)
        sources[name] = place
    return sources


def notices(plan: Plan, *, differences_shown: bool = False) -> list[str]:
    """Return the lines that a reader should know before the first run.

    Args:
        differences_shown: the settings in which rows differ were listed already.
    """
    longest = max((job.steps for job in plan.jobs), default=0)
    lines = [plan.schedule.describe(longest)]
    titles = summarise_differences(plan)
    if titles and not differences_shown:
        lines.append(f"rows differ in {titles} (details: --dry-run, report)")
    lines += [*remarks_on_files(plan), describe_padding(plan)]
    own_text = any(
        row.corpus is not None and not row.corpus.uri.startswith("embedded:") for row in plan.rows
    )
    if own_text and plan.dev is not None and plan.dev.name.startswith("Embedded"):
        lines.append(
            f"checkpoints are selected on {plan.dev.name}, perhaps unlike your text; "
            "to select on another set, which may be a file of pairs: [dev] task = ..."
        )
    return [f"note: {line}" for line in lines if line]


def reproduce_command(planned: Planned, plan: Plan, job: Job) -> str:
    """The command that makes the run of a job again; the call in Python, for an experiment that is
    in no file.
    """
    spec = job.spec
    row = job.row
    changes = _changes_of(planned, plan, spec)
    if plan.row_of(job).added:  # an added start comes with a row of the file
        trained = [other.row for other in plan.jobs if plan.starts.get(other.id) == job.id]
        row = trained[0] if trained else row
    searches = planned.tuned.rows if planned.tuned is not None else ()
    for search in searches:
        if search.label == job.row:
            row = search.row
            whole = read_experiment(planned.source, planned.choices.overrides)  # and not a part
            labels = [entry.label for entry in whole.methods]
            number = labels.index(row) + 1
            for key, value in search.values.items():
                shown = inline(value).as_string()
                changes.append(f"methods.{number}.config.{key}={shown}")
    if len(plan.experiment.methods) > 1:
        only = [row]
    else:
        only = []
    if isinstance(planned.source, Experiment):
        keys = planned.source.model_dump(mode="json", exclude_unset=True)
        options = {
            "workdir": "NEW_FOLDER",
            "overrides": changes,
            "only": only,
            "rehearse": planned.choices.rehearse,
        }
        stated = [f"{key}={value!r}" for key, value in options.items() if value]
        return f"harness.compare({keys!r}, {', '.join(stated)})"
    words = ["harness", "compare", planned.source, "--workdir", "NEW_FOLDER"]
    for pattern in only:
        words += ["--only", pattern]
    if planned.choices.rehearse:
        words.append("--rehearse")
    for change in changes:
        words += ["--set", change]
    return shlex.join(words)


def _changes_of(planned: Planned, plan: Plan, spec: RunSpec) -> list[str]:
    """Return the overrides with which an experiment makes one run alone."""
    changes = []
    for change in planned.choices.overrides:
        if not change.startswith("executor"):  # it affects no result
            changes.append(change)
    changes += plan.schedule.overrides
    changes.append(f"seeds=[{spec.seed}]")
    changes.append(f'base_models=["{spec.base_model}"]')
    if spec.vary:
        changes.append(f"vary={json.dumps(spec.vary)}")
        changes.append(f"held_seed={spec.held}")
    return changes


def check_overlaps(plan: Plan, workdir: Path) -> list[str]:
    """Check every training text and dev set against the tasks and store the overlaps; a line for
    each large one.
    """
    texts: dict[str, CheckedText] = {}
    try:
        for corpus in filter(None, map(plan.corpus, plan.rows)):
            name = f"training text {corpus.uri} ({corpus.kind})"
            texts[name] = training_text(corpus)
        for job in plan.jobs:
            if job.spec.dev is not None and plan.dev is not None:
                name = f"dev set {plan.dev.name}"
                texts[name] = selection_text(plan.dev, job.spec.dev)
        return list(find_overlaps(workdir, texts, plan.tasks))
    except (
        Exception
    ) as error:  # the runs are finished and recorded; whatever is wrong here costs a remark
        logger.warning("texts of the tasks were not looked for in the training text: %s", error)
        return []
