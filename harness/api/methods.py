"""`harness.train` and `harness.register`: one method alone, and one that was written just now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from harness import registry
from harness.api.keywords import check_options, check_table
from harness.errors import InputError, RunError, TrainingStopped
from harness.files.locks import work_lock
from harness.files.printable import markdown_text
from harness.files.reading import is_there
from harness.machine.environment import pick_device
from harness.machine.progress import Reporter
from harness.method import DEFAULT_BASE_MODEL, FitContext, Method, locating
from harness.results.model_card import complete_card, describe_base, describe_text
from harness.results.spec import method_version
from harness.runs.conditions import EMBEDDED_DEV, CorpusSettings, DevSettings
from harness.saved_method import METHOD_FILE
from harness.seeds import preserve_random_state
from harness.sources import Corpus, TrainingText, corpus_of
from harness.sources.corpus.selected_texts import Kind
from harness.tasks.own.data import TaskFile, read_own
from harness.tasks.own.open_file import to_pandas
from harness.tasks.own.similarity import read_scored_pairs
from harness.tasks.sts import DevSet

M = TypeVar("M", bound=Method)


@preserve_random_state()
def train(
    method: str | type[Method] | Method,
    *,
    out: str | Path | None = None,
    config: Mapping[str, Any] | None = None,
    preset: str | None = None,
    family: str | None = None,
    base_model: str = DEFAULT_BASE_MODEL,
    corpus: TrainingText | Mapping[str, Any] = "embedded:sentences",
    limit: int | None = None,
    columns: Mapping[str, str] | None = None,
    dev: Any = EMBEDDED_DEV,
    seed: int = 1,
    device: str = "auto",
    precision: str = "fp32",
    progress: Reporter | None = None,
    **options: Any,
) -> Method:
    """Fit one method on a corpus, and save it to `out` in the SentenceTransformer layout.

        >>> texts = ["A dog runs.", "Two children play chess.", "It rains in the hills.", "She sells old maps."]
        >>> method = harness.train("simcse", batch_size=2, max_steps=1, corpus=texts, dev=None)
        >>> method.encode(["A cat sleeps."]).shape
        (1, 256)

    Args:
        method: an installed method's name, a class, or an instance, whose config and base model are
            used.
        out: folder of the saved model; checkpoints and curves lie next to it, and an interrupted
            call resumes. Without it nothing is written.
        config, preset: values of the method's options, above those of a preset of it.
        options: further options by their names, above both: `max_steps=100, batch_size=64`.
        family: whose values of the preset; those of the base model's own family when left out.
        corpus, limit: a text URI, a path, a list of texts or pairs, a data frame, a
            `datasets.Dataset` or a `Corpus`, and how many items of it at most; or a table of
            `[corpus]` as {"uri": "text.csv", "limit": 1000}.
        columns: role -> name of the column, of a file or frame: {"text": "body"}.
        dev: what selects the checkpoint: a task with a dev split, a file or frame of scored pairs,
            or a table of `[dev]`; "none" or None: the last weights are used.
        seed: the only source of randomness.
        progress: as in `compare`.

    Returns:
        The fitted method; `encode` gives vectors, `save` saves it.

    Raises:
        InputError: unknown method, preset or key, data that cannot be had, `out` holds a model
            already.
        TrainingStopped: the training collapsed or diverged.
        RunError: an error in the method's own code, with its line.
    """
    if isinstance(method, Method):
        if config or preset or family or options:
            message = "this method is an instance, which has its options"
            raise InputError(
                message, key="config, preset, family, options", remedy="leave them out"
            )
        kind = register_given(method)
        settled = method.config
        base_model = method.base_model
    else:
        if isinstance(method, str):
            kind = registry.load(registry.METHODS, method)
        else:
            kind = register_given(method)
        check_options(train, options, [kind.name])
        check_table("config", config, '{"pooling": "mean"}')
        values = {**(config or {}), **options}
        settled = kind.configure(values, preset=preset, family=family, base_model=base_model)
    target = None
    folder = None
    if out is not None:
        target = Path(out)
        _check_room(target)
        folder = target.with_name(target.name + ".training")
    fitted = kind(settled, base_model=base_model)
    items = None
    if fitted.text != "none":
        items = _load_text(corpus, fitted.text, limit, columns)
    dev_set = None
    is_none = dev is None or (isinstance(dev, str) and dev == "none")
    if not is_none and hasattr(settled, "learning_rate"):
        dev_set = _load_dev(dev)
    lock = work_lock(folder) if folder is not None else nullcontext()
    reporter = progress or Reporter.of_caller()
    with lock, reporter as shown:
        shown.start(kind.name)
        context = FitContext(
            seed=seed,
            dev=dev_set,
            device=pick_device(device),
            precision=precision,
            folder=folder,
            progress=shown.step,
        )
        _fit(fitted, items, context, shown)
        if target is not None:
            learnt_from = describe_text(items.uri) if items is not None else "no text"
            where = markdown_text(f"on {learnt_from}, from {describe_base(fitted.start_model)}")
            card = (
                f"Trained by `{kind.name}` {where}; seed {seed}.{_describe_dev(fitted, dev_set)}\n"
            )
            fitted.save(target, card=card)
            complete_card(target, kind.name, fitted.start_model)
        shown.finish_run(_describe_end(fitted, target))
    return fitted


def _describe_dev(fitted: Method, dev: DevSet | None) -> str:
    """Return a sentence for the card with the score that selected the weights."""
    best = fitted.fit_report.training.get("best_dev")
    if best is None or dev is None:
        return ""
    pairs = markdown_text(dev.name)
    return f" Spearman on the pairs that selected its weights ({pairs}): {100 * best:.2f}."


def _fit(method: Method, items: Corpus | None, context: FitContext, shown: Reporter) -> None:
    """Fit a method, and show why a training stopped and where its curves are."""
    try:
        with locating(RunError, [type(method)]):
            method.fit(items, context)
    except TrainingStopped as stop:
        curves = ""
        if context.folder is not None:
            curves = f" (curves: {context.folder / 'curves.jsonl'})"
        shown.finish_run(f"{stop.status}: {stop.reason}{curves}")
        raise


def _load_text(
    given: TrainingText | Mapping[str, Any],
    kind: Kind,
    limit: int | None,
    columns: Mapping[str, str] | None,
) -> Corpus:
    """Return the training text; see `train`."""
    check_table("columns", columns, '{"text": "body"}')
    if isinstance(given, Mapping) and "uri" in given:
        settings = CorpusSettings.parse({"kind": kind, **given}, "corpus")
        given, kind = settings.uri, settings.kind
        limit = limit or settings.limit
        columns = columns or settings.columns
    return corpus_of(given, kind, limit=limit, columns=columns)


def _load_dev(given: Any) -> DevSet:
    """Return the set that selects the checkpoint; see `train`."""
    if isinstance(given, DevSettings):
        return given.load()
    if isinstance(given, str | Path):
        return DevSettings(task=str(given)).load()
    if isinstance(given, Mapping):
        return DevSettings.parse(given, "dev").load()
    try:
        frame = to_pandas(given)
    except InputError as error:
        error.rename_key("dev")
        raise
    own = read_own(frame, TaskFile(task="frame", name="frame", kind="similarity"))
    return DevSet(read_scored_pairs(own, "dev"))


def _check_room(target: Path) -> None:
    """Check before anything is trained that a model can be saved.

    Raises:
        InputError: a saved model or something else is there, or the folder has no name.
    """
    if (target / METHOD_FILE).exists():
        raise InputError(
            f"--out {target}: holds a saved model already",
            key="--out",
            remedy="name another folder or delete it",
        )
    if not target.name:
        message = "--out: expected the name of a new folder"
        raise InputError(message, file=target, key="--out")
    if is_there(target) and not (target.is_dir() and not any(target.iterdir())):
        message = f"--out {target}: is no empty folder"
        raise InputError(message, key="--out", remedy="name another folder")


def _describe_end(fitted: Method, target: Path | None) -> str:
    done = f"saved to {target}" if target is not None else "fitted"
    best = fitted.fit_report.training.get("best_dev")
    if best is not None:
        done += f", best dev {100 * best:.2f}"
    return done


def loss(
    function: Callable[..., Any] | None = None,
    *,
    build: Callable[..., Any] | None = None,
    name: str | None = None,
    view: str | None = None,
    miner: Callable[..., Any] | None = None,
    space: Mapping[str, Any] | None = None,
    version: int | str | None = None,
    **options: Any,
) -> Any:
    """Make a method of a loss: of a function of two views, or of a class of another library.

        >>> @harness.loss
        ... def attract(a, b):
        ...     return (a - b).square().sum(dim=1).mean()
        >>> attract.name
        'attract'
        >>> texts = ["A dog runs.", "Two children play chess.", "It rains in the hills.", "She sells old maps."]
        >>> method = harness.train(attract, batch_size=2, max_steps=1, corpus=texts, dev=None)
        >>> method.fit_report.training["steps"]
        1

    Losses of sentence-transformers, pytorch-metric-learning and lightly are called by their
    signatures: `harness.loss(build=losses.MultipleNegativesRankingLoss, scale=20.0)`.

    Args:
        function: `f(a, b)` of vectors (n, d), which returns a scalar tensor or a dict of them; or
            a module, of which each run gets a copy.
        build: a class or a factory, called once a run. It gets the model where it asks for one
            (`model` or `encoder`, or the one argument of a lambda).
        name: of the row; by default that of the function or class.
        view: how the two views differ ("dropout", "crop", "paraphrase", ...).
        miner: makes a miner of pytorch-metric-learning.
        space: ranges of options that a study may search: `{"scale": (1.0, 100.0)}`.
        version: identifies the loss in place of its source and the values in it; raise it when its
            numbers change.
        options: other defaults of options (`batch_size=128`), and arguments of `build`.

    Returns:
        A method for `compare`, `train` and `study`; without a function, a decorator.

    Raises:
        InputError: unknown options, or a value in the loss that cannot be hashed.
    """
    from harness.training.own_loss import make_loss_method  # slow: torch

    chosen = options if view is None else {"view": view, **options}
    given: dict[str, Any] = {
        "name": name,
        "miner": miner,
        "space": space,
        "version": version,
        "options": chosen,
    }
    if function is None and build is None:
        return partial(make_loss_method, **given)
    return make_loss_method(function, build=build, **given)


def register_given(method: Any) -> type[Method]:
    """The class of a method that is given as a class or an instance, known by its name in this
    process.

    Raises:
        InputError: it is neither; or `register` refuses it.
    """
    kind = method if isinstance(method, type) else type(method)
    if not issubclass(kind, Method):
        raise InputError(
            f"method: expected a name, a subclass of Method or an instance of one, not {kind.__name__}",
            key="method",
        )
    name = getattr(kind, "name", "")
    known = (
        name in registry.names(registry.METHODS) and registry.load(registry.METHODS, name) is kind
    )
    return kind if known else register(kind)


def register(kind: type[M]) -> type[M]:
    """Make a method that is written in a notebook or script known by its name in this process; a
    decorator.

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

    `compare` and `train` register a class or instance that they are given. Runs are identified by
    the source of the class and what it uses of yours, or by its `version` if it has one: a change
    trains them again. Other
    processes do not know the class: commands, and executors that start processes, need it in a
    package (CONTRIBUTING.md has one).

    Raises:
        InputError: no method, one of this name is installed, or its text is not known and it has no
            `version`.
    """
    name = getattr(kind, "name", None)
    if not isinstance(name, str):
        raise InputError(
            f'{getattr(kind, "__name__", kind)}: a method needs the attribute `name`, such as "my_loss"',
            key="name",
        )
    if missing := getattr(kind, "__abstractmethods__", ()):
        raise InputError(
            f"{kind.__name__}: a method needs {', '.join(sorted(missing))}()",
            key=", ".join(sorted(missing)),
        )
    registry.add(registry.METHODS, name, kind)
    method_version(kind)
    return kind
