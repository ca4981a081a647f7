"""An object that makes vectors, of a notebook or script, as a row of a comparison."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from harness.config import option
from harness.errors import HarnessError, InputError
from harness.evaluation.outside_models import OutsideModel
from harness.files.model_names import OBJECT, UNKNOWN
from harness.files.printable import first_line
from harness.method import FitContext, FitReport, Method, MethodCard, MethodConfig, Supervision
from harness.sources import embedded_rows

if TYPE_CHECKING:
    from harness.sources import TrainingText

# of the embedded sentences, whose vectors identify an object
_TEXTS = 32
# of them that are one text: some 1,500 tokens, more than most models take, so that models which cut
# texts at unlike lengths are not one
_LONG = 80


class GivenObject(OutsideModel):
    """What `harness.evaluate` takes as a model: an object with `encode`, or a function of texts.

    Raises:
        InputError: it is none of these.
    """

    def __init__(self, model: Any) -> None:
        from harness.evaluation.any_model import in_hand  # with it torch

        self.name = name_of(model)
        self.opened = in_hand(model)

    @property
    def identity(self) -> str:
        """A hash of its vectors of a fixed set of texts, of which one is long."""
        rows = embedded_rows("sentences", ("a",))
        texts = [row["text"] for row in rows]
        content = _bytes_of(self.encode(texts[:_TEXTS]))
        with suppress(
            Exception
        ):  # of an object that takes no long texts: it is known by the others
            content += _bytes_of(self.encode([" ".join(texts[:_LONG])]))
        return hashlib.sha256(content).hexdigest()[:16]

    def vectors_of(self, texts: list[str], device: str | None) -> Any:
        """Return what the object gives."""
        if device is None:
            options = {}
        else:
            options = {"device": device}
        return self.opened.model.encode(texts, show_progress_bar=False, **options)


def _bytes_of(vectors: Any) -> bytes:
    array = np.ascontiguousarray(vectors, dtype="<f4")
    return repr(array.shape).encode() + array.tobytes()


class GivenConfig(MethodConfig):
    """Nothing of an object can be set; its name and supervision are written down."""

    pooling: str = option("own", "as the object does it")
    model: str = option("", "name of the object")
    supervision: Supervision = option("supervised", "what it was trained with")

    @classmethod
    def _check_pooling(cls, value: str) -> str:
        return value


class GivenModel(Method):
    """A row of vectors that an object of this process makes. `make_model_method` makes subclasses."""

    card = MethodCard(
        "A model in memory",
        "none",
        supervision="supervised",
        deterministic=True,
        cost="none: trained elsewhere",
        notes="Own vectors: what it was trained on, how it pools and cuts texts is not known.",
    )
    Config = GivenConfig
    given: ClassVar[GivenObject]

    @property
    def start_model(self) -> str:
        """Name of the object: no base model enters."""
        return self.given.name

    @property
    def supervision(self) -> Supervision:
        """What the row states."""
        stated: Supervision = self.config.supervision
        return stated

    @property
    def untrained_start(self) -> None:
        """None: nothing is trained here."""

    @property
    def has_weights(self) -> bool:
        """False: what is in the object is not known."""
        return False

    def fit(self, corpus: TrainingText | None = None, context: FitContext | None = None) -> Self:
        """Return the method; there is nothing to learn."""
        self.fit_report = FitReport(training={"encoder": "object of Python", "pooling": UNKNOWN})
        return self

    def encode(self, sentences: str | Sequence[str], **options: Any) -> Any:
        """Encode as `Method.encode` does: vectors (n, d) in float32."""
        return self.given.encode(sentences, **options)

    def num_parameters(self) -> int:
        """Return 0: they are not known."""
        return 0

    def save(self, path: str | Path, *, card: str = "") -> None:
        """Refuse: an object has no weights that could be saved.

        Raises:
            InputError: always.
        """
        raise InputError(f"{self.given.name} has no weights here", key="model")


def makes_vectors(model: Any) -> bool:
    """Return True for what `make_model_method` takes; methods and classes are none.

    >>> makes_vectors(len), makes_vectors(dict)
    (True, False)
    """
    if isinstance(model, Method | type):
        return False
    return callable(model) or callable(getattr(model, "encode", None))


def make_model_method(model: Any) -> type[GivenModel]:
    """Return the method of an object that makes vectors, known by them.

        >>> def lengths(texts):
        ...     return [[float(len(text)), 1.0] for text in texts]
        >>> method = make_model_method(lengths)
        >>> method.name == make_model_method(lengths).name, method().fit().encode("ab").tolist()
        (True, [2.0, 1.0])

    Raises:
        InputError: it makes no vectors.
    """
    given = GivenObject(model)
    try:
        identity = given.identity
    except HarnessError:
        raise
    except Exception as error:  # of the user's own code
        raise InputError(
            f'"{given.name}" makes no vectors of texts ({type(error).__name__}: '
            f"{first_line(error):.150})",
            key="methods",
            remedy="give a loss as harness.loss(...)",
        ) from error
    stated = option(f"{OBJECT}{given.name}", "name of the object")
    config = type(
        "GivenConfig",
        (GivenConfig,),
        {"__annotations__": {"model": str}, "model": stated, "__module__": __name__},
    )
    parts = {
        "name": OBJECT + identity,
        "version": identity,
        "Config": config,
        "given": given,
    }
    return type("GivenModelOf", (GivenModel,), {**parts, "__module__": __name__})


def name_of(model: Any) -> str:
    """Return what a row of an object is called.

    >>> name_of(len), name_of({}.get)
    ('len', 'get')
    """
    stated = getattr(model, "name", None) or getattr(model, "__name__", None)
    if isinstance(stated, str):
        return stated
    return type(model).__name__
