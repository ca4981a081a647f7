"""The harness from Python: what a notebook calls, and what stands behind the commands of the same names.

    import harness

    found = harness.compare("demo", workdir="work/demo", progress=harness.Reporter())
    found.table("sts"), found.plot("alignment-uniformity"), found.verdict("SimCSE", "SCD"), found.scores()
    harness.evaluate("sentence-transformers/all-MiniLM-L6-v2", "sts", source="mteb").scores()
    method = harness.train("simcse", preset="mini", out="models/simcse")
    vectors = harness.load_model("models/simcse").encode(["A sentence."])

Nothing here prints: progress goes to the `Reporter` that is given, or into the output of a notebook's cell. Errors are
raised (`harness.errors`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from harness import registry
from harness.comparison import keeping, lacking_outcomes, other_code, row_differences
from harness.comparison.beside import set_beside
from harness.comparison.cell import take_part
from harness.comparison.comparison_result import Comparison
from harness.comparison.experiment import DevSettings, Experiment, read_experiment
from harness.comparison.part import asked_of
from harness.comparison.plan import LoadedData, Plan, PlannedCell, make_plan
from harness.comparison.rehearsal import StandIns, rehearsed
from harness.comparison.repeat import repeated
from harness.comparison.run import run_comparison
from harness.comparison.tuning import Budget, asked_budget, checked_budget, tune_rows
from harness.comparison.until import Looks, Until, checked_until
from harness.errors import InputError, StopAsked, TrainingStopped
from harness.evaluation.model_scores import Scores
from harness.executors.executor import Executor, ExecutorSettings
from harness.files.locks import comparison_lock, work_lock
from harness.files.printable import markdown_text
from harness.identity.typed import TYPED, typed_version
from harness.machine.distributed import ALONE, join
from harness.machine.progress import Reporter
from harness.machine.progress_views import in_notebook
from harness.method import DEFAULT_BASE_MODEL, METHOD_FILE, FitContext, Method
from harness.reading import load, load_model, power, report, verdict
from harness.results.answer import Answer
from harness.results.manifest import read_manifest
from harness.results.report_builder import FORMATS, report_builder
from harness.results.run_folder import checked_workdir
from harness.results.study_result import StudyResult

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from harness.sources import TrainingText
    from harness.tasks.base import Array

__all__ = [
    "Answer", "Budget", "Comparison", "Experiment", "Reporter", "Scores", "StudyResult", "Until",
    "compare", "encode", "evaluate", "load", "load_model", "power", "register", "report", "study", "train", "verdict",
]  # fmt: skip

M = TypeVar("M", bound=Method)

SELECTION = DevSettings(task="Embedded-STS-natural")  # needs no download


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
        experiment = {"name": "comparison", "dev": SELECTION.model_dump(), "methods": rows}
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


def _kept(workdir: Path, name: str) -> dict[str, Any] | None:
    """The manifest that an earlier call left; None where it is damaged, and written anew."""
    try:
        return read_manifest(workdir, name)
    except InputError:
        return None


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


def _alone(cell: PlannedCell, plan: Plan, rehearse: bool) -> dict[str, Any]:
    """What has `compare` make the run of one cell of a file with parts; an added start comes with a row of the file."""
    trained = [other for other in plan.cells if plan.starts.get(other.id) == cell.id]
    row = trained[0].row if cell.row.counterpart and trained else cell.row
    return {
        **({"only": [row.label]} if cell.blocks != ("",) else {}),
        **({"rehearse": True} if rehearse else {}),
    }


def evaluate(
    model: str | Path | Method | SentenceTransformer | Callable[[list[str]], Any],
    suites: str | Sequence[str] = ("sts",),
    *,
    source: str = "senteval",
    pooling: str | None = None,
    max_length: int | None = None,
    batch_size: int = 64,
    device: str = "auto",
    cached: bool = True,
    progress: bool = False,
    prompts: Mapping[str, str] | Literal["own"] | None = None,
    mteb_results: str | Path | None = None,
    model_name: str | None = None,
    revision: str | None = None,
) -> Scores:
    """Score a model on suites or tasks.

        >>> found = harness.evaluate("embedded:mini-bert", "Embedded-STS-natural", cached=False)
        >>> found.scores()[["task", "metric", "n"]].values.tolist()[0]
        ['Embedded-STS-natural', 'spearman', 240]

    Args:
        model: a hub id, a SentenceTransformer folder, a saved method or embedded:NAME; a fitted `Method`, a
            `SentenceTransformer`, or anything that makes vectors (n, d) of a list of n texts.
        suites: names of suites or tasks, or one of them.
        source: which copy of the STS sets, "senteval" or "mteb".
        pooling: for a plain transformer; what the model says, else mean, when left out.
        max_length: word pieces kept; as many as the model takes, when left out.
        cached: keep the vectors for the next evaluation of the same model, and use those of the last one; not of what
            is no name or folder.
        progress: show a bar while encoding.
        prompts: what stands before the texts, by kind of task (`harness.tasks.prompts`), or "own": what the model's
            configuration has. Without it a method's own, or the one prompt that the configuration names as its default,
            if any.
        mteb_results: a folder that gets the scores of mteb's tasks in mteb's own layout, under `model_name` (ORG/NAME;
            the hub id, when left out) and `revision` (of the hub's model the commit, else a hash of its content).

    Raises:
        InputError: no such model, suite or task, or a setting that the model cannot have.
    """
    from harness.evaluation.any_model import asked_prompts, in_hand, open_for_evaluation, public_name, stored_vectors
    from harness.evaluation.scoring import evaluate as score_all
    from harness.machine.devices import pick_device
    from harness.tasks.catalogue import resolve_tasks
    from harness.tasks.vectors import Origin

    tasks = resolve_tasks([suites] if isinstance(suites, str) else suites, source=source)
    where = pick_device(device)
    named = isinstance(model, str | Path)
    if not named and mteb_results is not None:
        raise InputError("mteb_results goes with the name or folder of a model; this one is made already")
    name = str(model) if named else getattr(model, "name", type(model).__name__)
    public = public_name(name, model_name, revision) if mteb_results is not None else None
    opened = open_for_evaluation(name, pooling, max_length) if named else in_hand(model, pooling, max_length)
    before, remark = asked_prompts(model, opened, prompts)

    def encode(texts: list[str]) -> Any:
        return opened.model.encode(texts, batch_size=batch_size, device=where, show_progress_bar=progress)

    stored = stored_vectors(name, opened, max_length, where, prompted=before is not None) if cached and named else None
    origin = Origin(f"harness/{Path(name).name}", stored.name if stored else "unknown")
    result = score_all(
        encode, tasks, pooling=opened.pooling, cache=stored, origin=origin, model=opened.model, device=where,
        prompts=before,
    )  # fmt: skip
    if public is not None and mteb_results is not None:
        from harness.tasks.mteb.results_folder import write_results

        kept = [text for file, text in result.artifacts.items() if file.startswith("mteb/")]
        write_results(Path(mteb_results), *public, kept)
    return Scores(name, opened.pooling, where, result, "; ".join(filter(None, (opened.remark, remark))))


def encode(
    model: str | Path | Method | SentenceTransformer | Callable[[list[str]], Any],
    texts: str | Path | Iterable[str],
    *,
    out: str | Path,
    limit: int | None = None,
    pooling: str | None = None,
    max_length: int | None = None,
    batch_size: int = 64,
    normalize: bool = False,
    device: str = "auto",
    progress: bool = False,
) -> Array:
    """Write the vectors of texts to a file of numpy's, `out`; however many they are, memory holds some of them.

        >>> rows = harness.encode("embedded:mini-bert", ["A dog runs.", "It rains."], out=work / "two.npy")
        >>> rows.shape, type(rows).__name__
        ((2, 256), 'memmap')

    Args:
        model, pooling, max_length: as in `evaluate`.
        texts: a text URI or path, or whatever gives strings: a list, a generator, a column of a data set, a `Corpus`.
        out: ends with .npy; it appears when all vectors are made, in the place of what was there.
        limit: the first so many texts.
        normalize: vectors of unit length.
        progress: show a bar.

    Returns:
        The rows (n, d) in float32, in the order of the texts, as numpy maps them from the file (read-only).

    Raises:
        InputError: no such model or text, something that is not a string, or a file that cannot be written.
    """
    from itertools import islice

    from harness.evaluation.any_model import in_hand, open_for_evaluation
    from harness.evaluation.vector_file import write_vectors
    from harness.machine.devices import pick_device
    from harness.sources import load_corpus

    where = pick_device(device)
    if isinstance(texts, str | Path):
        texts = load_corpus(str(texts), limit=limit)
    named = isinstance(model, str | Path)
    opened = open_for_evaluation(str(model), pooling, max_length) if named else in_hand(model, pooling, max_length)

    def vectors(some: list[str]) -> Any:
        return opened.model.encode(some, batch_size=batch_size, device=where, normalize_embeddings=normalize)

    return write_vectors(vectors, texts if limit is None else islice(texts, limit), out, progress=progress)


def train(
    method: str,
    *,
    out: str | Path | None = None,
    config: Mapping[str, Any] | None = None,
    preset: str | None = None,
    family: str | None = None,
    base_model: str = DEFAULT_BASE_MODEL,
    corpus: TrainingText = "embedded:sentences",
    limit: int | None = None,
    dev: DevSettings | None = SELECTION,
    seed: int = 1,
    device: str = "auto",
    precision: str = "auto",
    progress: Reporter | None = None,
) -> Method:
    """Fit one method on a corpus; the fitted method, saved to `out` in the SentenceTransformer layout.

        >>> texts = ["A dog runs.", "Two children play chess.", "It rains in the hills.", "She sells old maps."]
        >>> method = harness.train("simcse", config={"batch_size": 2, "max_steps": 1}, corpus=texts, dev=None)
        >>> method.encode(["A cat sleeps."]).shape
        (1, 256)

    Args:
        method: an installed method's name.
        out: folder of the saved model; checkpoints and curves lie beside it, and a call that was interrupted goes on.
            Without it nothing is written.
        config, preset: values of the method's config, above those of a preset of it.
        family: whose values of the preset; those of the base model's own family when left out.
        corpus, limit: a text URI, a path, a list of texts or pairs, a `datasets.Dataset` or a `Corpus`, and how many
            items of it at most (of a corpus that is one already: all).
        dev: the set that selects the checkpoint; None: the last weights are kept.
        seed: the one source of randomness.
        progress: as in `compare`.

    Raises:
        InputError: unknown method, preset or key, data that cannot be had, `out` holds a model already.
        TrainingStopped: the training collapsed or diverged.
    """
    from harness.machine.devices import pick_device
    from harness.sources import corpus_of, load_sts
    from harness.tasks.sts import DevSet
    from harness.training import TrainedMethod

    kind: type[Method] = registry.load(registry.METHODS, method)
    settled = kind.configure(
        dict(config or {}), preset=preset, family=family, base_model=base_model, where=f'method "{method}"'
    )
    target = Path(out) if out is not None else None
    team = join(device)
    with team.main_first():
        if target is not None and (target / METHOD_FILE).exists():
            raise InputError(f"--out {target}: holds a saved model already; name another folder or delete it")
        text = kind.text_for(settled)
        items = None if text == "none" else corpus_of(corpus, text, limit=limit)
        selects = dev is not None and hasattr(settled, "learning_rate")
        dev_set = DevSet(load_sts(dev.task, source=dev.where, split="dev")) if dev is not None and selects else None
    fitted = kind(settled, base_model=base_model)
    leads = team.main
    if not issubclass(kind, TrainedMethod):  # learns without the loop: the main process does it by itself
        if not leads:
            return fitted
        team = ALONE
    folder = target.with_name(target.name + ".training") if target is not None else None
    with (
        work_lock(folder) if folder is not None and leads else nullcontext(),
        progress or Reporter.of_caller() as shown,
    ):
        shown.start(method)
        context = FitContext(seed=seed, dev=dev_set, device=team.device or pick_device(device), precision=precision,
                             folder=folder, progress=shown.step, team=team)  # fmt: skip
        try:
            fitted.fit(items, context)
        except TrainingStopped as stop:
            curves = f" (curves: {folder / 'curves.jsonl'})" if folder is not None else ""
            shown.done(f"{stop.status}: {stop.reason}{curves}")
            raise
        if leads:
            if target is not None:
                text_of = items.uri if items is not None else "no text"
                where = f"from {markdown_text(base_model)} on {markdown_text(text_of)}"
                fitted.save(target, card=f"Trained by `{method}` {where}, seed {seed}.\n")
            best = fitted.fit_report.training.get("best_dev")
            kept = f"saved to {target}" if target is not None else "fitted"
            shown.done(kept + (f", best dev {100 * best:.2f}" if best is not None else ""))
    return fitted


def register(kind: type[M]) -> type[M]:
    """Have a method that was written in a notebook or script be known by its name, in this process; a decorator.

        >>> from harness.method import Method, MethodCard
        >>> from harness.registry import METHODS, load
        >>> @harness.register
        ... class Mean(Method):
        ...     name = "my_mean"
        ...     card = MethodCard("Mean pooling", "none")
        ...     version = 1
        ...     def fit(self, corpus=None, context=None):
        ...         self._encoder = self.load_base()
        ...         return self
        >>> load(METHODS, "my_mean").card.title
        'Mean pooling'

    Runs are known by the text of the class and of what it calls in the same notebook: a change of it makes them anew.
    A class with a `version` counts by that alone. Other processes know nothing of it: for commands, and for executors
    that start processes, a package of its own has to bring it (`harness new method`).

    Raises:
        InputError: no method, one of this name is installed, or its text is not known and it has no `version`.
    """
    name = getattr(kind, "name", None)
    if not isinstance(name, str):
        raise InputError(f"{getattr(kind, '__name__', kind)}: a method has a `name`, by which rows ask for it")
    registry.add(registry.METHODS, name, kind)
    if kind.version is None and kind.__module__ == TYPED:
        kind.version = typed_version(kind)
    return kind


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
