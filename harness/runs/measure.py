"""Time the training steps and the encoding of a row on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice

from harness.errors import InputError, RunError
from harness.files.printable import first_line
from harness.method import FitContext, Method, own_line
from harness.runs.rows import Row
from harness.sources import Corpus, corpus_of

_STEPS = 3  # the first one pays for setting up
_SENTENCES = 256  # encoded, and read by rows that take no steps
_SAMPLE = (
    "A man is playing a guitar on a small stage in front of a few friends.",
    "The committee will publish its report on the new rules before the end of March.",
    "Two dogs run over the wet grass.",
)


@dataclass(frozen=True)
class Rates:
    """Seconds of a training step and of the encoding of a sentence, and the parameters."""

    step: float
    sentence: float
    parameters: float


def time_row(
    row: Row,
    corpus: Corpus | None,
    steps: int,
    device: str,
    *,
    precision: str,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Return the fields of `Rates` of a row; no weights are stored.

    Args:
        corpus: what it learns from; None where it learns from no text.
        steps: that a run takes; 0 where it takes none.
        clock: whose seconds they are.

    Raises:
        RunError: the row cannot be trained or encode, for want of memory for example.
    """
    try:
        if steps:
            step, method = _time_steps(row, corpus, device, precision, clock)
        else:
            step = 0.0
            method = _fit(row, corpus, device, precision)
        texts = sample_texts(corpus)
        method.encode(texts[:8], device=device)
        started = clock()
        method.encode(texts, device=device)
        sentence = (clock() - started) / len(texts)
    except (InputError, RunError):
        raise
    except Exception as error:  # of any library; out of memory above all
        why = f"{first_line(error)}{own_line(error, row.method)}"
        raise RunError(f'row "{row.label}" cannot be timed: {why}') from None
    return asdict(Rates(step, sentence, float(method.num_parameters())))


def _time_steps(
    row: Row,
    corpus: Corpus | None,
    device: str,
    precision: str,
    clock: Callable[[], float],
) -> tuple[float, Method]:
    """Return the mean seconds of two training steps, after a first one, and the method after them."""
    from harness.runs.rows import with_steps

    if "log_every" in type(row.config).model_fields:
        values = {"log_every": 1}
    else:
        values = {}
    config = with_steps(row.config, _STEPS, 10**9)
    config = config.model_copy(update=values)
    stamps: list[float] = []

    def stamp_step(step: int, steps: int, text: str) -> None:
        if step == len(stamps) + 1:  # else a message from before the first step
            _wait_for(device)
            stamps.append(clock())

    context = FitContext(device=device, precision=precision, max_steps=_STEPS, progress=stamp_step)
    method = row.method(config, base_model=row.base_model)
    method = method.fit(corpus, context)
    if len(stamps) < 2:
        raise RunError(f'row "{row.label}" cannot be timed: the method reports no training steps')
    between = stamps[-1] - stamps[0]
    return between / (len(stamps) - 1), method


def _fit(row: Row, corpus: Corpus | None, device: str, precision: str) -> Method:
    """Fit a method that takes no steps, to a few sentences."""
    if corpus is not None:
        corpus = corpus_of(corpus[:_SENTENCES], corpus.kind)
    context = FitContext(device=device, precision=precision)
    method = row.method(row.config, base_model=row.base_model)
    return method.fit(corpus, context)


def sample_texts(corpus: Corpus | None) -> Sequence[str]:
    """Return texts to encode: of the corpus, else a few sentences again and again."""
    if corpus is None:
        texts: list[str] = []
        for number in range(_SENTENCES // 3):
            texts.extend(f"{text} {number}" for text in _SAMPLE)
        return texts
    found = []
    for item in islice(corpus, _SENTENCES):
        found.append(item if isinstance(item, str) else item.anchor)
    return found


def _wait_for(device: str) -> None:
    """Wait until the device has done all its work."""
    import torch

    if not device.startswith("cpu"):
        torch.accelerator.synchronize(device)
