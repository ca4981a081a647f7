"""Rows that need more memory than there is, and how long a row takes that makes no updates."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch

from harness import registry
from harness.comparison import larger_than_memory, two_updates
from harness.comparison.experiment import CorpusSettings
from harness.comparison.larger_than_memory import measured_or_extrapolated
from harness.comparison.two_updates import Measured, Probe

FREE = 5_000_000_000


def probe(method: str, **config: Any) -> Probe:
    plugin = registry.load(registry.METHODS, method)
    made = plugin.configure(config)
    corpus = CorpusSettings(uri="embedded:sentences")
    return Probe(plugin, made, "embedded:mini-bert", corpus, 1, "cpu", "fp32", ("A sentence.",))


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """A machine of 5 GB where a model takes 1 GB, a sentence 20 MB and 0.1 s (a quarter and twice that where it is
    computed twice); what was tried on it."""
    tried: list[dict[str, Any]] = []

    def measured(wanted: Probe) -> Measured:
        config: Any = wanted.config
        tried.append({"batch": config.batch_size, "micro": config.micro_batch, "again": config.gradient_checkpointing})
        at_once = min(config.batch_size, config.micro_batch or config.batch_size)
        memory = 1_000_000_000 + at_once * (5_000_000 if config.gradient_checkpointing else 20_000_000)
        update = 0.1 * config.batch_size * (2 if config.micro_batch or config.gradient_checkpointing else 1)
        if memory > FREE:
            return Measured(free=FREE, fault="MemoryError: ", out_of_memory=True)
        return Measured(update=update, memory=memory, free=FREE)

    monkeypatch.setattr(larger_than_memory, "measured", measured)
    return tried


def test_a_batch_that_fits_is_measured_as_it_is(machine: list[dict[str, Any]]) -> None:
    assert measured_or_extrapolated(probe("simcse", batch_size=128)) == Measured(
        update=pytest.approx(12.8), memory=3_560_000_000, free=FREE
    )
    assert len(machine) == 1


def test_a_batch_that_does_not_fit_is_extrapolated_and_the_option_that_helps_is_tried(
    machine: list[dict[str, Any]],
) -> None:
    seen = measured_or_extrapolated(probe("simcse", batch_size=512))
    assert seen.batches == (64, 128)  # a quarter, and half of that
    assert seen.memory == 1_000_000_000 + 512 * 20_000_000
    assert seen.update == pytest.approx(51.2)
    assert seen.fault == ""
    assert seen.hint == "micro_batch = 128 makes it fit: 3.6 GB, 102.40 s an update"
    assert machine[-1] == {"batch": 512, "micro": 128, "again": False}


def test_methods_without_parts_are_told_of_checkpointing(machine: list[dict[str, Any]]) -> None:
    seen = measured_or_extrapolated(probe("tsdae", batch_size=512))
    assert seen.hint == "gradient_checkpointing = true makes it fit: 3.6 GB, 102.40 s an update"
    seen = measured_or_extrapolated(probe("tsdae", batch_size=1024))
    assert seen.hint == "gradient_checkpointing = true does not suffice: a smaller batch_size, or more memory"
    seen = measured_or_extrapolated(probe("tsdae", batch_size=1024, gradient_checkpointing=True))
    assert seen.hint == "a smaller batch_size, or more memory"
    assert seen.memory == 1_000_000_000 + 1024 * 5_000_000


def test_a_row_that_fits_with_no_batch_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    short = Measured(fault="MemoryError: ", out_of_memory=True)
    monkeypatch.setattr(larger_than_memory, "measured", lambda probe: short)
    seen = measured_or_extrapolated(probe("simcse", batch_size=16))
    assert seen.fault == "out of memory with a batch of 16; with one of 4: MemoryError:"
    assert seen.out_of_memory


@pytest.mark.parametrize(
    ("error", "short"),
    [
        (MemoryError(), True),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
    ],
)
def test_want_of_memory_is_told_from_other_faults(
    error: Exception, short: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def speeds(probe: Probe) -> Measured:
        raise error

    monkeypatch.setattr(two_updates, "_speeds", speeds)
    seen = two_updates._measured(probe("simcse"))
    assert seen.out_of_memory is short
    assert type(error).__name__ in seen.fault


def test_text_of_a_method_without_updates_has_its_price(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow:
        transductive = False

        def __init__(self, *args: object, **kwargs: object) -> None: ...

        def fit(self, corpus: Any, context: object) -> None:
            time.sleep(0.2 + 0.01 * len(corpus))

        def encode(self, texts: list[str], device: str) -> None:
            time.sleep(0.02 * len(texts))

    monkeypatch.setattr(two_updates, "_ENOUGH", 0.3)
    wanted = probe("whitening")
    seen = two_updates._speeds(Probe(Slow, wanted.config, "", wanted.corpus, 1, "cpu", "fp32", ("a",) * 256))  # type: ignore[arg-type]
    assert seen.item == pytest.approx(0.01, rel=0.3)
    assert seen.setup == pytest.approx(0.2, rel=0.5)
    assert seen.text == pytest.approx(0.02, rel=0.3)
    assert seen.update == 0
