"""How much the scores of a model move with what should not matter: the numbers that it computes in,
the size of batches, the side of the padding and the kernel of the attention.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import torch

from harness.config import nearest
from harness.encoder import Encoder
from harness.encoder.foreign import ForeignEncoder
from harness.encoder.precision import check_dtype
from harness.encoder.quiet import evaluation
from harness.errors import InputError
from harness.evaluation.any_model import OpenedModel
from harness.evaluation.scoring import evaluate
from harness.tasks.base import Task
from harness.tasks.prompts import Prompts

if TYPE_CHECKING:
    import pandas as pd

KEYS = ("dtype", "batch_size", "padding", "attention")
REFERENCE = "reference"
_COLUMNS = ("setting", "value", "task", "metric", "score", "difference", "seconds")


@dataclass(frozen=True)
class Moved:
    """The score of one task with one setting changed.

    Attributes:
        setting, value: what was changed, and to what; "reference" and its values where nothing was.
        difference: to the score of the reference.
        seconds: of the encoding of all tasks.
    """

    setting: str
    value: str
    task: str
    metric: str
    score: float
    difference: float
    seconds: float


@dataclass(frozen=True)
class Sensitivity:
    """The scores of a model under several settings. `print` and a notebook show them as a table.

    Attributes:
        rows: the reference, then each setting: a row a task.
        notes: settings that were not changed, and why; tasks without scores, and what is unusual
            about the vectors.
    """

    model: str
    rows: tuple[Moved, ...]
    notes: tuple[str, ...] = ()

    def scores(self) -> pd.DataFrame:
        """One row a setting and task: setting, value, task, metric, score, difference, seconds."""
        import pandas as pd

        rows = [vars(row) for row in self.rows]
        return pd.DataFrame(rows, columns=list(_COLUMNS))

    def largest(self) -> float:
        """The largest difference of a score to the reference, without its sign."""
        return max(abs(row.difference) for row in self.rows)

    def as_dict(self) -> dict[str, Any]:
        """Return the rows and notes as plain values."""
        rows = [vars(row) for row in self.rows]
        return {"model": self.model, "rows": rows, "notes": list(self.notes)}

    def __str__(self) -> str:
        table = self.scores().to_string(index=False, float_format="{:.5f}".format)
        return "\n".join([self.model, table, *self.notes])

    def _repr_html_(self) -> str:
        table: str = self.scores().to_html(index=False, float_format="{:.5f}".format)
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"<p>{escape(self.model)}</p>{table}{notes}"


def choose_settings(
    given: Sequence[str] | Mapping[str, Sequence[Any]], device: str
) -> dict[str, list[Any]]:
    """Return the values of each setting that is to be varied.

    Args:
        given: names of settings, each with its values by default, or the values of each.

    Raises:
        InputError: an unknown setting, or a value that it cannot have.
    """
    usual = _usual_values(device)
    chosen = {}
    for key in given:
        if key not in usual:
            message = f'no setting "{key}"{nearest(key, list(KEYS))}; known: {", ".join(KEYS)}'
            raise InputError(message, key="vary")
        if isinstance(given, Mapping):
            chosen[key] = [_read_value(key, value) for value in given[key]]
        else:
            chosen[key] = usual[key]
    return chosen


def _usual_values(device: str) -> dict[str, list[Any]]:
    """Return the values that are tried; a processor computes fp16 too slowly to try it unasked."""
    on_cpu = device.startswith("cpu")
    return {
        "dtype": ["bf16"] if on_cpu else ["bf16", "fp16"],
        "batch_size": [1, 256],
        "padding": ["left"],
        "attention": ["eager"] if on_cpu else ["eager", "sdpa"],
    }


def _read_value(key: str, value: Any) -> Any:
    """Raises:
    InputError: a setting cannot have the value.
    """
    if key == "dtype":
        check_dtype(str(value))
        return value
    if key == "padding" and value not in ("left", "right"):
        raise InputError(f'padding is left or right, not "{value}"', key="vary")
    if key != "batch_size":
        return value
    if not str(value).isdecimal() or int(value) < 1:
        raise InputError(f'a batch size is a number from 1, not "{value}"', key="vary")
    return int(value)


@dataclass
class SensitivityRun:
    """The evaluations of one model.

    Attributes:
        open_model: opens the model, computing in a dtype; anew for each setting, since a model that
            was converted to fewer digits has lost the others.
        dtype, batch_size: of the reference.
    """

    open_model: Callable[[str], OpenedModel]
    tasks: Sequence[Task]
    device: str
    prompts: Prompts | None = None
    dtype: str = "fp32"
    batch_size: int = 64

    def measure(self, name: str, settings: Mapping[str, Sequence[Any]]) -> Sensitivity:
        """Score the model as it is, and with each setting changed, one at a time.

        Raises:
            InputError: as `evaluate` of one model.
        """
        opened = self.open_model(self.dtype)
        notes = []
        kept = {}
        for key, values in settings.items():
            if why := _cannot_change(opened.model, key):
                notes.append(f"{key}: not varied: {why}")
            else:
                kept[key] = values
        started = f"{self.dtype}, batches of {self.batch_size}"
        rows, remarks = self._score(opened, REFERENCE, started, {}, self.batch_size)
        notes += remarks
        before = {row.task: row.score for row in rows}
        for key, values in kept.items():
            for value in values:
                dtype = value if key == "dtype" else self.dtype
                size = value if key == "batch_size" else self.batch_size
                opened = self.open_model(dtype)
                _change(opened.model, key, value)
                more, remarks = self._score(opened, key, str(value), before, size)
                rows += more
                notes += [f"{key} {value}: {text}" for text in remarks if text not in notes]
        return Sensitivity(name, tuple(rows), tuple(notes))

    def _score(
        self,
        opened: OpenedModel,
        setting: str,
        value: str,
        before: Mapping[str, float],
        batch_size: int,
    ) -> tuple[list[Moved], list[str]]:
        """Return the first score of each task, and what a reader should know of them.

        Args:
            before: the score of the reference by task; a task that it lacks has no row.
        """
        seconds = 0.0

        def encode(texts: list[str]) -> Any:
            nonlocal seconds
            start = time.perf_counter()
            vectors = opened.model.encode(texts, batch_size=batch_size, device=self.device)
            seconds += time.perf_counter() - start
            return vectors

        result = evaluate(
            encode,
            self.tasks,
            pooling=opened.pooling,
            model=opened.model,
            device=self.device,
            prompts=self.prompts,
        )
        first: dict[str, Any] = {}
        for score in result.scores:
            first.setdefault(score.task, score)
        rows = []
        notes = list(result.notes)
        for task, score in first.items():
            if setting != REFERENCE and task not in before:
                notes.append(f"{task}: the reference has no score of it")
                continue
            difference = score.value - before.get(task, score.value)
            rows.append(Moved(setting, value, task, score.metric, score.value, difference, seconds))
        return rows, notes


def _cannot_change(model: Any, key: str) -> str:
    """Return why a setting of a model cannot be changed; empty where it can."""
    if key == "batch_size":
        return ""
    weights = getattr(model, "encoding_model", model)
    if not isinstance(weights, Encoder | ForeignEncoder):
        return "its weights are not loaded here"
    if key == "dtype":
        return ""
    if not isinstance(weights, Encoder) or not hasattr(weights, "transformer"):
        return "sentence-transformers or a method of its own runs the model"
    if key == "padding":
        return _cannot_pad_left(weights)
    return ""


def _cannot_pad_left(encoder: Encoder) -> str:
    """Return why the padding cannot be put before texts; empty where it can."""
    pooling = encoder.pooling
    if pooling.mode != "mean" or pooling.echo is not None or encoder.left_out:
        return f"pooling {pooling.name} counts tokens from the left"
    if not is_causal(encoder):
        return "the model is not causal: its positions count from the left"
    return ""


def is_causal(encoder: Encoder) -> bool:
    """True if the state of a token does not depend on the tokens after it.

    >>> is_causal(harness.load_model("embedded:mini-bert"))
    False
    """
    texts = ["a dog runs home", "a dog runs away from the rain"]
    whole = encoder.tokenize(texts)
    same = min(map(len, whole)) - 1
    rows = [list(row[: same + 1]) for row in whole]
    rows[1][:same] = rows[0][:same]
    if rows[0] == rows[1]:  # of one special token at the end
        rows[1][-1] = whole[1][same - 1]
    with evaluation(encoder), torch.inference_mode():
        states = encoder.token_states(encoder.collate(rows))
    difference = states[0, :same] - states[1, :same]
    apart = difference.abs().max()
    largest = states.abs().max()
    return bool(apart <= 1e-3 * largest)


def _change(model: Any, key: str, value: Any) -> None:
    """Change the padding or the attention of an encoder."""
    weights = getattr(model, "encoding_model", model)
    if key == "padding":
        weights.padding_side = value
    if key == "attention":
        weights.set_attention(value)
