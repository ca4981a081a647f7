"""The plugin interface: a `Method` is configured, `fit` on text, and then has `encode` turn
sentences into vectors.
"""

from __future__ import annotations

import inspect
import linecache
import re
import textwrap
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

from pydantic import field_validator

from harness.config import Config, option
from harness.errors import HarnessError, InputError, NotFitted
from harness.files.printable import first_line
from harness.recipes import Presets, Recipe, RecipeFile, recipe_of
from harness.saved_method import METHOD_FILE, check_weights, write_settings

if TYPE_CHECKING:
    import numpy as np
    import torch

    from harness.encoder import Encoder
    from harness.sources import Corpus, TrainingText
    from harness.tasks.prompts import Prompts
    from harness.tasks.sts import DevSet

DEFAULT_BASE_MODEL = "embedded:mini-bert"
UNTRAINED = "pooling"  # the entry point of `harness.methods` whose rows are base models as they are
PRETRAINED = "pretrained"  # the one whose rows are models that are not trained here
POOLING_HELP = (
    "cls, cls_pooler, mean, max, first_last_avg, last2_avg, last, layer:K:cls|mean|max, prompt:TEMPLATE, "
    "echo(:TEMPLATE) or echo_last(:TEMPLATE)"
)

_POOLINGS = r"none|cls|cls_pooler|mean|max|first_last_avg|last2_avg|last|layer:\d+:(cls|mean|max)|echo|echo_last"

_LONGEST_CODE = 200  # characters of code in a message

Text = Literal["none", "sentences", "pairs", "documents"]
Supervision = Literal["untrained", "unsupervised", "transductive", "supervised"]


@dataclass(frozen=True)
class MethodCard:
    """What a reader should know about a method before believing its row in a table.

    >>> card = MethodCard(title="Mean pooling", paper="none")
    >>> card.supervision, card.text
    ('untrained', 'none')
    """

    title: str
    paper: str  # authors, venue, year
    equations: str = ""  # where the objective stands in the paper
    reference: str = ""  # the authors' implementation
    text: Text = "none"  # the kind of corpus that fit asks for
    supervision: Supervision = "untrained"
    deterministic: bool = False  # one run says it all: no seed enters
    cost: str = "none"  # one phrase: what training costs
    precision: str = ""  # in which the originals were trained
    published: tuple[
        str, ...
    ] = ()  # "FILE:MODEL": its rows in the published tables that reports carry
    kept: str = ""  # what is trained beside the base model and stays when encoding: a layer on top, a convolution
    notes: str = ""  # disagreements between paper and code, known defects
    when_it_collapses: str = ""  # the options that usually help when its vectors become all alike


class MethodConfig(Config):
    """Fields that every method has. Subclasses add their own with `harness.config.option`.

    >>> from harness.config import option
    >>> class Config(MethodConfig):
    ...     share: float = option(1.0, "how much of the mean is taken away", ge=0, le=1)
    >>> Config.parse({"share": 0.5, "pooling": "cls"}, "my.toml").model_dump()
    {'pooling': 'cls', 'first_layer': 1, 'max_length': None, 'share': 0.5}
    """

    pooling: str = option("mean", POOLING_HELP)
    first_layer: int = option(
        1, "first layer of first_last_avg: 1, or 0 for the embedding block", ge=0, le=1
    )
    max_length: int | None = option(
        None, "maximum number of tokens when encoding; empty: as many as the model takes", ge=4
    )
    dtype: Literal["fp32", "bf16", "fp16"] = option(
        "fp32", "floating-point numbers that sentences are encoded in for scores", later=True
    )

    @field_validator("pooling")
    @classmethod
    def _check_pooling(cls, value: str) -> str:
        if value.startswith("prompt:"):
            from harness.encoder.prompts import Prompt

            Prompt.parse(value.removeprefix("prompt:"))
        elif value.startswith(("echo:", "echo_last:")):
            from harness.encoder.prompts import Echo

            Echo.parse(value.partition(":")[2])
        elif not re.fullmatch(_POOLINGS, value):
            raise ValueError(f"must be one of {POOLING_HELP}")
        return value


@dataclass
class FitContext:
    """The conditions of one fit. The defaults suit a call by hand; comparisons set every field.

        >>> FitContext(seed=3, max_steps=10).precision
        'fp32'

    Attributes:
        seed: the one source of randomness (data order, initialisation, dropout and views are
            derived from it).
        dev: the selection set; without one the last weights are used.
        device: where to train; auto: on a GPU if there is one.
        precision: of training: "fp32", "bf16" or "fp16" (on a GPU).
        folder: where checkpoints and curves go; without one nothing is written and nothing can be
            resumed.
        max_steps: an upper bound on training steps, on top of the method's own number of epochs.
        checkpoint_seconds: training time between two checkpoints.
        progress: called as `progress(step, steps, text)`.
        on_dev: called as `on_dev(step, score)` after each evaluation on the dev set; it ends the
            run by raising `TrainingStopped("pruned", reason)`.
        stop: called after each training step; if it returns True, a checkpoint is written and
            `StopRequested` raised.
    """

    seed: int = 0
    dev: DevSet | None = None
    device: str = "auto"
    precision: str = "fp32"
    folder: Path | None = None
    max_steps: int | None = None
    checkpoint_seconds: float = 30.0
    progress: Callable[[int, int, str], None] | None = None
    on_dev: Callable[[int, float], None] | None = None
    stop: Callable[[], bool] | None = None

    def __post_init__(self) -> None:
        if self.device == "auto":
            from harness.machine.environment import pick_device

            self.device = pick_device("auto")


@dataclass
class FitReport:
    """The report of a fit: `training` and `cost` enter the record unchanged.

    >>> FitReport(training={"steps": 10}, cost={"train_seconds": 1.5}).training["steps"]
    10
    """

    training: dict[str, Any] = field(default_factory=dict)
    cost: dict[str, float] = field(default_factory=dict)


class Method(ABC):
    """A sentence-embedding method. Subclasses set `name`, `card`, `Config`, `presets` and write
    `fit`.

    A `sheet`, which is a TOML file, has both card and presets.

    `fit` must set `self._encoder` (or the subclass overrides `encode` and `save`) and return self.
    """

    name: ClassVar[str]
    card: ClassVar[MethodCard]
    Config: ClassVar[type[MethodConfig]] = MethodConfig
    presets: ClassVar[Presets] = {}
    sheet: ClassVar[RecipeFile | None] = None
    version: ClassVar[str | int | None] = None
    """Raise it when the numbers of the method change, so that its runs are trained again. A class
    that declares none is identified by the source of its module, of the modules that it imports of
    its own package or folder, of its parents, and by `data_files`: any change of them does so.
    """
    data_files: ClassVar[str | tuple[str, ...]] = ()
    """Files and folders that the method reads, relative to its module: part of its version."""
    prompts: Prompts | None = None
    """The prompt before the texts of each kind of task when the method is evaluated; `encode`
    itself adds none.
    """

    dtype: str = "fp32"
    """What the fitted method encodes in; see `set_dtype`."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if (sheet := cls.__dict__.get("sheet")) is not None:
            cls.card = MethodCard(**sheet.card)
            cls.presets = sheet

    def __init__(
        self,
        config: MethodConfig | None = None,
        *,
        base_model: str = DEFAULT_BASE_MODEL,
    ) -> None:
        if config is not None:
            self.config: Any = config
        else:
            self.config = self.Config()
        self.base_model = base_model
        self.fit_report = FitReport()
        self._encoder: Encoder | None = None

    @classmethod
    def configure(
        cls,
        values: Mapping[str, Any],
        *,
        preset: str | None = None,
        family: str | None = None,
        base_model: str | None = None,
        where: str = "",
    ) -> MethodConfig:
        """The validated config: defaults, then the preset, then `values`.

        Args:
            family: the family of base models that the preset's values are for, where they differ by
                family.
            base_model: what has a family, where `family` names none; it is read only where the
                preset depends on it.
            where: the place, for an error message.

        Raises:
            InputError: unknown preset or none for this base model, unknown key or a value out of
                range.
        """
        where = where or f'method "{cls.name}"'
        base = (
            {}
            if preset is None
            else cls.recipe(preset, family, base_model=base_model, where=where).values
        )
        settled = cls.values_for({**base, **values}, family, base_model)
        return cls.Config.parse(settled, where)

    @classmethod
    def values_for(
        cls,
        values: Mapping[str, Any],
        family: str | None,
        base_model: str | None,
    ) -> Mapping[str, Any]:
        """The values of a config for this base model or family: methods that hold other methods
        tell these of it.
        """
        return values

    @classmethod
    def recipe(
        cls,
        preset: str,
        family: str | None = None,
        *,
        base_model: str | None = None,
        where: str = "",
    ) -> Recipe:
        """The values of a preset for a family of base models, and their source; arguments as in
        `configure`.

        Raises:
            InputError: no such preset, or no values of it for this base model.
        """
        where = where or f'method "{cls.name}"'
        return recipe_of(cls.presets, preset, family=family, base_model=base_model, where=where)

    @property
    def text(self) -> Text:
        """The kind of corpus that `fit` asks for; the card's, unless a setting decides."""
        return self.card.text

    @property
    def deterministic(self) -> bool:
        """Whether no seed enters, so that one run is all; the card's, unless a setting decides."""
        return self.card.deterministic

    @property
    def supervision(self) -> Supervision:
        """What is known about the data that `fit` learns from; the card's, unless a setting
        decides.
        """
        return self.card.supervision

    @property
    def start_model(self) -> str:
        """The base model; methods that do not start from one name here what they start from
        instead.
        """
        return self.base_model

    @property
    def untrained_start(self) -> tuple[str, dict[str, Any]] | None:
        """Method and values of the row that this one starts from: base model, pooling and length as
        here, and nothing learnt. A comparison evaluates it too: the difference is what training
        gained.

        None for what learns nothing, and for what does not start from an encoder whose vectors can
        be pooled.
        """
        c = self.config
        if (
            self.supervision == "untrained"
            or c.pooling == "none"
            or self.start_model != self.base_model
        ):
            return None
        if c.pooling == "first_last_avg":
            layer = {"first_layer": c.first_layer}
        else:
            layer = {}
        if c.max_length is not None:
            length = {"max_length": c.max_length}
        else:
            length = {}
        if c.dtype == "fp32":
            dtype = {}
        else:
            dtype = {"dtype": c.dtype}
        return UNTRAINED, {"pooling": c.pooling, **layer, **length, **dtype}

    @property
    def inputs(self) -> dict[str, str]:
        """Name -> content hash of what the config refers to besides corpus and base model (word
        vectors, a model).
        """
        return {}

    @property
    def by_content(self) -> tuple[str, ...]:
        """The keys of the config whose values are names of what `inputs` has the content of: another
        name for the same content gives the same run.
        """
        return ()

    @property
    def uses_dev(self) -> bool:
        """Does `fit` select weights on the dev set? By default: has the config a learning rate?"""
        return hasattr(self.config, "learning_rate")

    @property
    def transductive(self) -> bool:
        """Is the method fitted to the unlabelled text of each task, by `for_task`, before it
        encodes it?
        """
        return False

    @property
    def has_weights(self) -> bool:
        """Are the weights here, so that they can be counted and saved?"""
        return True

    @property
    def timed(self) -> bool:
        """Do the seconds of `encode` say what the method costs?"""
        return True

    def fault_of(self, texts: Sequence[str]) -> InputError | None:
        """Return why the fitted method can have no vectors of some texts; None where it may."""
        return None

    def for_task(self, texts: Sequence[str]) -> Self:
        """This method adapted to a task's texts; see `transductive`."""
        return self

    def check(self, corpus: Corpus | None) -> None:
        """Refuse a corpus that this config cannot learn from, before anything is trained or
        written.

        Raises:
            InputError: no corpus, one of another kind, or one that lacks what the config needs.
        """
        if self.text != "none":
            require_corpus(self, corpus)

    def set_dtype(self, dtype: str) -> None:
        """Have the fitted encoder compute in `dtype`: "fp32", "bf16" or "fp16".

        Raises:
            InputError: the method has no transformer that could.
        """
        if dtype == self.dtype:
            return
        try:
            encoder = self.encoding_model
        except NotFitted:  # it encodes with something else
            message = f"{self.name} has no transformer to compute in {dtype}"
            raise InputError(message, key="dtype") from None
        encoder.set_dtype(dtype)
        self.dtype = dtype

    @property
    def encoding_model(self) -> Any:
        """The model whose weights make the vectors.

        Raises:
            NotFitted: before `fit`, or there is none.
        """
        return self.encoder

    @abstractmethod
    def fit(self, corpus: TrainingText | None = None, context: FitContext | None = None) -> Self:
        """Learn from `corpus` (of the kind `card.text` names; None for untrained methods) and
        return self.

            >>> from harness import registry
            >>> kind = registry.load(registry.METHODS, "whitening")
            >>> method = kind().fit(["A dog runs.", "Two children play chess.", "It rains in the hills."])
            >>> method.encode(["A cat sleeps."]).shape  # whitened to the rank of three texts
            (1, 2)

        Args:
            corpus: a list of texts or of pairs, a `datasets.Dataset`, a path, a URI or a `Corpus`
                (`harness.sources.TrainingText`). A method of another package takes them by
                `require_corpus`.
            context: the conditions; by default seed 0 without a dev set.

        Raises:
            InputError: no text, text of another kind, or too little of it.
        """

    def load_base(self) -> Encoder:
        """The base model with this config's pooling, not yet trained."""
        from harness.encoder import Encoder

        return Encoder.from_pretrained(
            self.base_model,
            pooling=self.config.pooling,
            max_length=self.config.max_length,
            first_layer=self.config.first_layer,
        )

    @property
    def encoder(self) -> Encoder:
        """The fitted encoder.

        Raises:
            NotFitted: before `fit`.
        """
        if self._encoder is None:
            raise NotFitted(f"{self.name} is not fitted yet: call fit() or load() first")
        return self._encoder

    def encode(
        self,
        sentences: str | Sequence[str],
        *,
        batch_size: int = 64,
        show_progress_bar: bool = False,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        normalize_embeddings: bool = False,
        device: str | None = None,
    ) -> np.ndarray | torch.Tensor:
        """Vectors (n, d) in float32, or (d,) for a single string; arguments as in
        sentence-transformers.

        Raises:
            NotFitted: before `fit`.
        """
        vectors: np.ndarray | torch.Tensor = self.encoding_model.encode(
            sentences,
            batch_size=batch_size,
            show_progress_bar=show_progress_bar,
            convert_to_numpy=convert_to_numpy,
            convert_to_tensor=convert_to_tensor,
            normalize_embeddings=normalize_embeddings,
            device=device,
        )
        return vectors

    def num_parameters(self) -> int:
        """Return the number of parameters of the model whose weights make the vectors."""
        return sum(p.numel() for p in self.encoding_model.parameters())

    def save(self, path: str | Path, *, card: str = "") -> None:
        """Write the model in the SentenceTransformer layout (safetensors), with its configuration."""
        self.encoding_model.save(path, card=card)
        write_settings(
            Path(path),
            method=self.name,
            base_model=self.base_model,
            config=self.config,
        )

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """A fitted method from a folder that `save` wrote.

        Raises:
            InputError: the folder is not one, or another method's.
        """
        from harness.encoder import Encoder

        method = load_unfitted(cls, path)
        method._encoder = Encoder.load(path)
        return method


M = TypeVar("M", bound=Method)


def load_unfitted(kind: type[M], path: str | Path) -> M:
    """The method that was saved in `path`, configured as it was, without what it had learnt; its
    weights are checked.

        >>> harness.train("whitening", corpus=["A dog runs.", "It rains."], dev=None, out=work / "white").name
        'whitening'
        >>> from harness import registry
        >>> load_unfitted(registry.load(registry.METHODS, "whitening"), work / "white").base_model
        'embedded:mini-bert'

    Raises:
        InputError: the folder is not one of a saved method, is damaged, or another method's.
    """
    file = Path(path) / METHOD_FILE
    if not file.is_file():
        raise InputError(
            f"no {METHOD_FILE} in it; expected a folder written by Method.save", file=path
        )
    about = check_weights(path)
    if about["method"] != kind.name:
        message = f'holds a "{about["method"]}", not a "{kind.name}"'
        raise InputError(message, file=path)
    config = kind.Config.parse(about["config"], str(file))
    return kind(config, base_model=about["base_model"])


def own_line(error: BaseException, *kinds: type[Method]) -> str:
    """The last place in these methods' own files that an error passed through: " (FILE, line N:
    CODE)", with all lines of what failed there; "" without one. An error whose message is meant for
    the user says all by itself where the method is one that ships.

    >>> own_line(ValueError("no such view"), Method)
    ''
    """
    others = {"harness", "abc", "builtins"}
    if isinstance(error, HarnessError):
        others.add("methods")
    bases = (base for kind in kinds for base in kind.__mro__)
    own = (base for base in bases if base.__module__.partition(".")[0] not in others)
    files = set()
    for base in own:
        for part in vars(base).values():
            if inspect.isfunction(part):
                files.add(part.__code__.co_filename)
    trace = traceback.extract_tb((error.__cause__ or error).__traceback__)
    for frame in reversed(trace):
        if frame.filename in files:
            return f" ({frame.filename}, line {frame.lineno}: {_code_of(frame)})"
    return ""


def _code_of(frame: traceback.FrameSummary) -> str:
    """Return the code of a frame in one line: an expression of several lines is joined, a long one
    ends with "...".
    """
    first = frame.lineno or 0
    last = frame.end_lineno or first
    lines = []
    for number in range(first, last + 1):
        lines.append(linecache.getline(frame.filename, number))
    return textwrap.shorten(" ".join(lines), _LONGEST_CODE, placeholder=" ...")


@contextmanager
def locating(kind: type[HarnessError], methods: Iterable[type[Method]]) -> Iterator[None]:
    """Have an error of these methods' own code be one line, an error of that kind, with the line of
    their source.

    >>> with locating(InputError, [Method]):
    ...     errors_of_other_code = "are raised unchanged"
    """
    try:
        yield
    except HarnessError:
        raise
    except Exception as error:
        if line := own_line(error, *methods):
            reason = f"{type(error).__name__}: {first_line(error)}"
            raise kind(f"{reason}{line}") from error
        raise


def require_corpus(method: Method, given: TrainingText | None) -> Corpus:
    """What `fit` was given as a corpus, checked to be of the kind the method asks for.

        >>> from harness import registry
        >>> method = registry.load(registry.METHODS, "simcse")()
        >>> len(require_corpus(method, ["A dog runs.", "It rains."]))
        2

    Raises:
        InputError: none given, of another kind, something that is no text, or fewer than two items.
    """
    from harness.sources import corpus_of

    wanted = method.text
    name = f'method "{method.name}"'
    if given is None:
        raise InputError(f"{name} learns from {wanted}: give it a corpus", file=name)
    corpus = corpus_of(given, "sentences" if wanted == "none" else wanted)
    if corpus.kind != wanted:
        raise InputError(
            f"{name} learns from {wanted}, but {corpus.uri} holds {corpus.kind}", file=name
        )
    if len(corpus) < 2:
        raise InputError(
            f'method "{method.name}" needs at least 2 {wanted}, not {len(corpus)}', file=corpus.uri
        )
    return corpus
