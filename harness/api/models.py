"""`harness.evaluate` and `load_model`: a model, whatever kind it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from harness.api.keywords import check_options
from harness.api.methods import register_given
from harness.config import drop_unset
from harness.errors import InputError
from harness.evaluation.model_scores import Scores
from harness.files.hashing import content_id
from harness.files.model_names import ENDPOINTS
from harness.machine.progress import Reporter
from harness.method import Method
from harness.results.store import comparison_files
from harness.saved_method import METHOD_FILE
from harness.seeds import preserve_random_state

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from harness.encoder import Encoder
    from harness.encoder.foreign import ForeignEncoder
    from harness.evaluation.outside_models import OutsideModel
    from harness.evaluation.sensitivity import Sensitivity
    from harness.tasks.base import TaskResult


@preserve_random_state()
def evaluate(
    model: str | Path | type[Method] | Method | SentenceTransformer | Callable[[list[str]], Any],
    suites: Any = ("sts",),
    *,
    source: str = "senteval",
    pooling: str | None = None,
    max_length: int | None = None,
    batch_size: int = 64,
    dtype: Literal["fp32", "bf16", "fp16"] = "fp32",
    device: str = "auto",
    cached: bool = True,
    progress: Reporter | None = None,
    prompts: Mapping[str, str] | str | Path | None = None,
    version: str = "",
    trust_remote_code: bool = False,
    backend: Literal["torch", "onnx", "openvino"] = "torch",
    mteb_results: str | Path | None = None,
    model_name: str | None = None,
    revision: str | None = None,
    **options: Any,
) -> Scores:
    """Score a model on suites or tasks.

        >>> found = harness.evaluate("embedded:mini-bert", "Embedded-STS-contrast", cached=False)
        >>> found.scores()[["task", "metric", "n"]].values.tolist()[0]
        ['Embedded-STS-contrast', 'spearman', 300]

    Args:
        model: a hub id, a SentenceTransformer folder, a saved method or embedded:NAME; vectors in a
            file (.parquet, .npz), "module:function", an endpoint (http://HOST/v1#NAME) or a model
            of mteb (mteb:NAME); a fitted `Method`, or the class of one that learns nothing; a
            `SentenceTransformer`, another object with `encode`, or a function from n texts to
            vectors (n, d).
        suites: names of suites or tasks, files (.csv, .tsv, .jsonl, .parquet, a BEIR folder),
            tables as {"task": "pairs.csv", "columns": {"score": "gold"}} or frames (pandas, polars,
            Arrow, `datasets`), or one of them.
        source: which copy of the STS sets, "senteval" or "mteb".
        pooling: for a plain transformer; what the model says, else mean, when left out.
        max_length: tokens of a sentence; as many as the model takes, when left out.
        dtype: what sentences are encoded in; half precision takes half the memory, and moves scores
            (`harness.sensitivity` measures by how much).
        device: "auto", "cpu", "cuda", "cuda:N" or "mps"; several with commas, as "cuda:0,cuda:1",
            share the texts.
        cached: store the vectors for the next evaluation of the same model, and use those of
            earlier ones; only of a model that is given by name or folder.
        progress: as in `compare`.
        prompts: the prompts before the texts, by kind of task (`harness.tasks.prompts`), a JSON
            file of them, or "own": what the model's configuration has. By default a method's own,
            or the prompt that the configuration names as its default.
        version: of what is behind an endpoint; its vectors are stored under it.
        trust_remote_code: a model of mteb may run the code of its repository.
        backend: what sentence-transformers runs the model with.
        mteb_results: a folder that gets the scores of mteb's tasks in mteb's own layout, under
            `model_name` (ORG/NAME; the hub id, when left out) and `revision` (of the hub's model
            the commit, else a hash of its content). What was set here (pooling, length, prompts)
            makes an experiment of its own there.
        options: of a method that learns nothing and is given as a class: `first_layer=0`.

    Returns:
        Scores: `scores()`, `pairs()` and `costs()` are pandas frames; `result.missing` has the
            tasks without data.

    Raises:
        InputError: no such model, suite or task, or a setting that the model cannot have.
    """
    from harness.encoder.several_devices import encode_texts
    from harness.evaluation.any_model import choose_prompts, open_any, public_name, stored_vectors
    from harness.evaluation.named_models import open_outside
    from harness.evaluation.scoring import evaluate as score_all
    from harness.machine.environment import pick_devices
    from harness.tasks.prompts import read_prompts
    from harness.tasks.vectors import Origin

    _check_count("batch_size", batch_size)
    _check_count("max_length", max_length)
    _refuse_names(model, version, mteb_results, model_name=model_name, revision=revision)
    if isinstance(model, type) and issubclass(model, Method):
        given = drop_unset({"pooling": pooling, "max_length": max_length})
        model = _fit_untrained(model, given | options)
        pooling = None
        max_length = None
    else:
        check_options(evaluate, options, [])
    if isinstance(model, str):
        outside: Any = open_outside(model, version=version, trust_remote_code=trust_remote_code)
        if outside is not None:
            outside.stores = cached
            model = outside
    tasks = resolve_suites(suites, source)
    devices = pick_devices(device)
    where = devices[0]
    named = isinstance(model, str | Path)
    bars = (progress or Reporter.of_caller()).draws
    if not named and mteb_results is not None:
        raise InputError(
            "mteb_results goes with the name or folder of a model; this one is made already",
            key="mteb_results",
        )
    name = _name_of(model)
    public = None
    if mteb_results is not None:
        public = public_name(name, model_name, revision)
    # The caller's own object is not changed.
    opened = open_any(model, pooling, max_length, backend, dtype, copied=prompts is not None)
    before, remark = choose_prompts(model, opened, read_prompts(prompts))

    def encode(texts: list[str]) -> Any:
        options = {"batch_size": batch_size, "show_progress_bar": bars}
        return encode_texts(opened.model, texts, devices, **options)

    stored = None
    if cached and named:
        stored = stored_vectors(name, opened, max_length, where, prompted=before is not None)
    weights = stored.name if stored else "unknown"
    origin = Origin(f"harness/{Path(name).name}", weights)
    result = score_all(
        encode,
        tasks,
        pooling=opened.pooling,
        cache=stored,
        origin=origin,
        model=opened.model,
        device=where,
        prompts=before,
    )
    _remove_speed(result, opened.model)
    if public is not None and mteb_results is not None:
        from harness.tasks.mteb.adapter import write_results

        prompts_id = content_id(before, 8) if prompts else None
        write_results(
            Path(mteb_results),
            *public,
            _mteb_files(result),
            experiment_kwargs=_list_stated(pooling, max_length, prompts_id, dtype) or None,
            loader_kwargs={
                "batch_size": batch_size,
                "device": where,
                "pooling": opened.pooling,
                "prompts": before,
            },
        )
    remarks = "; ".join(filter(None, (opened.remark, remark)))
    return Scores(name, opened.pooling, where, result, remarks, dtype)


def _remove_speed(result: TaskResult, model: Any) -> None:
    """Remove the speed of a model whose seconds are those of a file or a network."""
    if not getattr(model, "timed", True):
        result.cost.pop("sentences_per_second", None)


def _mteb_files(result: TaskResult) -> list[str]:
    """Return the texts of the result files of mteb."""
    texts = []
    for file, text in result.artifacts.items():
        if file.startswith("mteb/"):
            texts.append(text)
    return texts


@preserve_random_state()
def sensitivity(
    model: str | Path | Method | SentenceTransformer | Callable[[list[str]], Any],
    suites: Any = ("sts",),
    *,
    vary: str | Sequence[str] | Mapping[str, Sequence[Any]] = (
        "dtype",
        "batch_size",
        "padding",
        "attention",
    ),
    source: str = "senteval",
    pooling: str | None = None,
    max_length: int | None = None,
    batch_size: int = 64,
    dtype: Literal["fp32", "bf16", "fp16"] = "fp32",
    device: str = "auto",
    prompts: Mapping[str, str] | str | Path | None = None,
) -> Sensitivity:
    """Measure how much the scores of a model move with what should not matter.

        >>> found = harness.sensitivity(
        ...     "embedded:mini-bert", "Embedded-STS-contrast", vary={"batch_size": [8]})
        >>> found.scores()[["setting", "value"]].values.tolist()
        [['reference', 'fp32, batches of 64'], ['batch_size', '8']]
        >>> found.largest() < 1e-4
        True

    Args:
        model: as of `evaluate`, but no class.
        suites: as of `evaluate`.
        vary: "dtype", "batch_size", "padding" (of causal models) and "attention" (the kernel), each
            alone; or the values of each, as {"batch_size": [1, 8], "attention": ["eager"]}.
        dtype, batch_size: of the reference.

    Returns:
        Sensitivity: `scores()` is a frame with a row a setting and task.

    Raises:
        InputError: as `evaluate`; an unknown setting, or a value that it cannot have.
    """
    from harness.evaluation.any_model import choose_prompts, open_any
    from harness.evaluation.named_models import open_outside
    from harness.evaluation.sensitivity import SensitivityRun, choose_settings
    from harness.machine.environment import pick_device
    from harness.tasks.prompts import read_prompts

    _check_count("batch_size", batch_size)
    _check_count("max_length", max_length)
    opens: Any = model
    if isinstance(model, str):
        opens = open_outside(model) or model
    where = pick_device(device)
    settings = choose_settings([vary] if isinstance(vary, str) else vary, where)
    asked = read_prompts(prompts)
    reference = open_any(opens, pooling, max_length, copied=asked is not None)
    before, _ = choose_prompts(opens, reference, asked)

    def open_model(dtype: str) -> Any:
        opened = open_any(opens, pooling, max_length, dtype=dtype, copied=True)
        choose_prompts(opens, opened, asked)  # a foreign model's own are turned off
        return opened

    tasks = resolve_suites(suites, source)
    run = SensitivityRun(open_model, tasks, where, before, dtype, batch_size)
    return run.measure(_name_of(model), settings)


def _name_of(model: Any) -> str:
    """Return how a model was given, or what an object calls itself."""
    if isinstance(model, str | Path):
        return str(model)
    name: str = getattr(model, "name", type(model).__name__)
    return name


def _list_stated(
    pooling: str | None,
    max_length: int | None,
    prompts: str | None,
    dtype: str,
) -> dict[str, Any]:
    """Return the settings of an evaluation that differ from what the model has by itself."""
    settings = {
        "pooling": pooling,
        "max_length": max_length,
        "prompts": prompts,
        "dtype": dtype if dtype != "fp32" else None,
    }
    return drop_unset(settings)


def resolve_suites(suites: Any, source: str) -> list[Any]:
    """Return the tasks of suites, or of one.

    Raises:
        InputError: no such suite or task.
    """
    from harness.tasks.catalogue import resolve_tasks

    several = isinstance(suites, Sequence) and not isinstance(suites, str)
    return resolve_tasks(suites if several else [suites], source=source)


def _refuse_names(
    model: Any,
    version: str,
    mteb_results: str | Path | None,
    **names: str | None,
) -> None:
    """Raises:
    InputError: the version is of no endpoint, or one of `names` is for files that are not written.
    """
    if version and not str(model).startswith(ENDPOINTS):
        raise InputError("is that of an endpoint", key="version", remedy="leave it out")
    for key, name in names.items():
        if name and mteb_results is None:
            message = "names the model in the files of mteb_results, and chooses none"
            remedy = "leave it out; another revision is evaluated from its folder"
            raise InputError(message, key=key, remedy=remedy)


def _check_count(key: str, count: int | None) -> None:
    """Raises:
    InputError: a number of sentences or tokens is none.
    """
    if count is not None and count < 1:
        raise InputError(f"{count}: expected a whole number of 1 or more", key=key)


def _fit_untrained(model: type[Method], options: Mapping[str, Any]) -> Method:
    """Return an instance of a method that learns nothing.

    Raises:
        InputError: it learns, or has no such option.
    """
    kind = register_given(model)
    check_options(evaluate, options, [kind.name])
    method = kind(kind.configure(options))
    if method.text != "none":
        raise InputError(
            f"{method.name}: not trained yet",
            key="method",
            remedy="evaluate what harness.train returns",
        )
    return method.fit()


def load_model(model: str | Path) -> Method | Encoder | ForeignEncoder | OutsideModel:
    """A saved method as it was fitted; any other folder, hub id or embedded:NAME as an encoder, and
    what else `evaluate` takes by name. All have `encode`.

        >>> harness.load_model("embedded:mini-bert").encode(["A dog runs.", "It rains."]).shape
        (2, 256)

    Returns:
        Something whose `encode` gives vectors (n, d) in float32 for n texts, (d,) for a single one.

    Raises:
        InputError: no such model, a damaged one, or one of a method that is not installed.
    """
    from harness.encoder.foreign import open_model
    from harness.evaluation.any_model import saved_method
    from harness.evaluation.named_models import open_outside
    from harness.sources import resolve_model

    if comparison_files(Path(model)):
        raise InputError(
            "a work directory",
            file=model,
            remedy="open it with harness.load, or name runs/ID/model in it",
        )
    if (outside := open_outside(str(model))) is not None:
        return outside
    folder = Path(resolve_model(str(model)))
    if (folder / METHOD_FILE).is_file():
        return saved_method(folder)
    return open_model(str(model))
