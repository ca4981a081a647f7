"""The method under test: how it is made, fitted and fed, on small embedded data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import InputError
from harness.method import FitContext, Method, MethodConfig, Text

if TYPE_CHECKING:
    import numpy as np

    from harness.sources import Corpus

TEXTS = [
    "A dog runs across the field.",
    "Two children are playing chess in the park, and their grandmother watches them from a bench in the shade.",
    "rain",
    "The bank raised its rates again.",
    "Nobody had expected that the old theatre would open its doors again after eleven years of repairs.",
    "Why not?",
]
STEPS = 3  # training steps of a fit
ITEMS = {"sentences": 48, "pairs": 48, "documents": 16}


@dataclass(frozen=True)
class Check:
    """One promise: whether it holds, and what was measured.

    >>> Check("round trip", passed=True, detail="12 options").passed
    True
    """

    name: str
    passed: bool
    detail: str


class BrokenPromiseError(Exception):
    """A check failed; the message says what was seen and what was expected."""


class NotRunError(Exception):
    """A check needs a fitted method, and fitting failed."""


@dataclass
class Subject:
    """One method class under one configuration.

    Attributes:
        values: what the caller set; preset: None for the defaults alone.
        folder: a temporary folder for saved models and checkpoints.
        entry: the name by which it was requested, where it was a name.
    """

    method: type[Method]
    values: dict[str, Any]
    preset: str | None
    base_model: str
    folder: Path
    entry: str | None = None

    @cached_property
    def config(self) -> MethodConfig:
        """The configuration under test.

        Raises:
            InputError: the caller's values or the preset are not valid.
        """
        plain = self.method.configure(
            self.values,
            preset=self.preset,
            base_model=self.base_model,
        )
        small: dict[str, Any] = {"batch_size": 8, "epochs": 3, "log_every": 1}
        lowered = {}
        for key, value in small.items():
            if hasattr(plain, key) and key not in self.values:
                lowered[key] = value
        if "batch_size" in lowered:
            lowered["batch_size"] = min(8, getattr(plain, "batch_size"))  # noqa: B009 - no method must have it
        try:
            return self.method.configure(
                {**self.values, **lowered},
                preset=self.preset,
                base_model=self.base_model,
            )
        except InputError:  # the method asks for more than that
            return plain

    @cached_property
    def text(self) -> Text:
        """The kind of corpus that the configuration asks for."""
        return self.method(self.config).text

    @cached_property
    def corpus(self) -> Corpus | None:
        """A small embedded corpus of that kind."""
        if self.text == "none":
            return None
        from harness.sources import load_corpus

        corpus: Corpus = load_corpus(
            f"embedded:{self.text}",
            kind=self.text,
            limit=ITEMS[self.text],
        )
        return corpus

    @property
    def trained(self) -> bool:
        """Is it trained by the shared loop?"""
        from harness.training import TrainedMethod

        return issubclass(self.method, TrainedMethod)

    def new(self) -> Any:
        """An unfitted method."""
        return self.method(self.config, base_model=self.base_model)

    def fit(self, method: Any, *, seed: int = 1, folder: Path | None = None) -> Any:
        """`method` fitted for a few steps on a CPU in float32."""
        context = FitContext(
            seed=seed,
            device="cpu",
            precision="fp32",
            folder=folder,
            max_steps=STEPS,
            checkpoint_seconds=0.0,
        )
        return method.fit(self.corpus, context)

    @cached_property
    def first_fit(self) -> tuple[Any, Any]:
        """The first method that was fitted, and what its `fit` returned.

        Raises:
            Exception: whatever `fit` raised.
        """
        method = self.new()
        return method, self.fit(method)

    @property
    def fitted(self) -> Any:
        """The first fitted method.

        Raises:
            NotRunError: it could not be fitted.
        """
        try:
            return self.first_fit[0]
        except Exception:
            raise NotRunError("not run: fit failed") from None


def vectors(method: Any, texts: Sequence[str] = TEXTS, **options: Any) -> np.ndarray:
    """What `encode` gives; a method that adapts to each task's texts is adapted to these first."""
    import numpy as np

    if method.transductive:
        method = method.for_task(TEXTS)
    return np.asarray(method.encode(list(texts), **options))


def gap(a: Any, b: Any) -> float:
    """The largest difference of two arrays, as a share of the largest value; infinite where their
    shapes differ.
    """
    import numpy as np

    a = np.asarray(a, dtype=np.float64)
    b = np.asarray(b, dtype=np.float64)
    if a.shape != b.shape:
        return float("inf")
    if a.size:
        largest = max(np.abs(a).max(), 1e-12)
        return float(np.abs(a - b).max() / largest)
    return 0.0


def expect(condition: bool, message: str) -> None:
    """Raise `BrokenPromiseError` with `message` unless `condition` holds."""
    if not condition:
        raise BrokenPromiseError(message)
