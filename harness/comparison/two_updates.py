"""A row at its true size for two updates, in a process of its own: speed, memory, and whether the memory sufficed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from harness.comparison.experiment import CorpusSettings, Rehearsal
from harness.comparison.rehearsal import StandIns
from harness.errors import TrainingStopped
from harness.files.redaction import redacted
from harness.machine.child_process import ChildEnded, in_child
from harness.machine.environment import free_memory_bytes, peak_memory_bytes, reset_peak_memory
from harness.method import FitContext, Method, MethodConfig
from harness.sources import Corpus

UPDATES = 2
_ITEMS, _MOST_ITEMS = 32, 2048  # texts that a method without updates is measured on
_ENOUGH = 5.0  # seconds that tell a speed
_SPARE = 0.95  # of the free memory: the rest of the machine goes on


@dataclass(frozen=True)
class Measured:
    """One row on one base model, at its true size on this machine.

    Attributes:
        update: seconds of an update, the first one among them; 0 for methods that make none.
        setup: seconds of the rest of the fit, loading above all.
        item: seconds for each text of the corpus, of a method that makes no updates.
        text: seconds to encode a sentence of the tasks.
        memory: peak in bytes, of the GPU where there is one.
        free: bytes that could be had when it was measured.
        batches: the sizes that update and memory of the whole batch were extrapolated from, linearly; empty where the
            whole batch was measured.
        hint: what lets a batch fit that does not.
        fault: why it could not be measured. out_of_memory: it is that the memory did not suffice.
    """

    update: float = 0.0
    setup: float = 0.0
    item: float = 0.0
    text: float = 0.0
    memory: int = 0
    free: int = 0
    batches: tuple[int, ...] = ()
    hint: str = ""
    fault: str = ""
    out_of_memory: bool = False


@dataclass(frozen=True)
class Probe:
    """What is measured; another process is handed it.

    Attributes:
        texts: sentences that are encoded for the speed of an evaluation.
    """

    method: type[Method]
    config: MethodConfig
    base_model: str
    corpus: CorpusSettings | None
    seed: int
    device: str
    precision: str
    texts: tuple[str, ...]

    def with_config(self, values: Mapping[str, Any]) -> Self:
        """The same with some options of the config changed.

        Raises:
            ValueError: the method refuses them.
        """
        whole = {**self.config.model_dump(), **values}
        return replace(self, config=type(self.config).model_validate(whole))


def measured(probe: Probe) -> Measured:
    """Two updates and some encoding in another process, which cannot take this one along when memory runs out."""
    bound = None if probe.device.startswith("cuda") else int(_SPARE * free_memory_bytes())
    try:
        return in_child(_measured, probe, data=bound)
    except ChildEnded as ended:
        fault = f"out of memory, as far as can be told: {ended}"
        return Measured(free=free_memory_bytes(probe.device), fault=fault, out_of_memory=True)


def _measured(probe: Probe) -> Measured:
    free = free_memory_bytes(probe.device)
    reset_peak_memory(probe.device)
    try:
        return replace(_speeds(probe), memory=peak_memory_bytes(probe.device), free=free)
    except TrainingStopped as stop:
        fault, short = f"{stop.status}: {stop.reason}", False
    except Exception as error:  # out of memory above all: it is this row's, and the next one is tried
        said = redacted(str(error)).splitlines() or [""]
        fault, short = f"{type(error).__name__}: {said[0]}", _ran_out(error)
    return Measured(memory=peak_memory_bytes(probe.device), free=free, fault=fault, out_of_memory=short)


def _ran_out(error: Exception) -> bool:
    import torch

    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    told = str(error).lower()  # the allocators of CPUs and of Apple's GPUs raise a RuntimeError like any other
    return any(sign in told for sign in ("allocate memory", "enough memory", "out of memory"))


def _speeds(probe: Probe) -> Measured:
    """Seconds; what was fitted is gone afterwards."""
    from harness.training import TrainedMethod

    method = probe.method(probe.config, base_model=probe.base_model)
    context = FitContext(seed=probe.seed, device=probe.device, precision=probe.precision)
    update, item = 0.0, 0.0
    if issubclass(probe.method, TrainedMethod):
        context.max_steps = UPDATES
        text = _beginning(probe.corpus, max(256, (UPDATES + 1) * probe.config.batch_size))  # type: ignore[attr-defined]
        fit = _seconds(lambda: method.fit(text, context))
        training = method.fit_report.cost["train_seconds"]
        update, setup = training / method.fit_report.training["steps"], fit - training
    else:
        setup, item = _by_item(method, probe.corpus, context)
    sentences = list(probe.texts) or ["A sentence."]
    fitted = method.for_task(sentences) if method.transductive else method
    for count in (16, 64, 256):
        sample = sentences[:count]
        seconds = _seconds(lambda sample=sample: fitted.encode(sample, device=probe.device))  # type: ignore[misc]
        if seconds > _ENOUGH:
            break
    return Measured(update, setup, item, seconds / len(sample))


def _by_item(method: Method, corpus: CorpusSettings | None, context: FitContext) -> tuple[float, float]:
    """Seconds of a fit apart from its text, and for each text: from a fit on twice as much text as before."""
    text = _beginning(corpus, _ITEMS)
    before = _seconds(lambda: method.fit(text, context))
    item = 0.0
    while text is not None and len(text) < _MOST_ITEMS:
        more = _beginning(corpus, 2 * len(text))
        if more is None or len(more) <= len(text):
            break
        seconds = _seconds(lambda more=more: method.fit(more, context))  # type: ignore[misc]
        item = max(0.0, seconds - before) / (len(more) - len(text))
        if seconds - before > _ENOUGH:
            break
        text, before = more, seconds
    return max(0.0, before - item * len(text or ())), item


def _seconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _beginning(corpus: CorpusSettings | None, count: int) -> Corpus | None:
    """So much of the text of a row, or of what stands in for it."""
    return StandIns(Rehearsal(limit=count)).corpus(corpus) if corpus is not None else None
