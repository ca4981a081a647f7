"""Tests that a change of code which runs share is noticed and named, and harmless deeds are not."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import activations
from transformers.models.bert import modeling_bert
from transformers.models.roberta import modeling_roberta

from harness import tracking
from harness.machine import shared_code
from harness.results.record import Record
from methods.pooling import PoolingMethod

Patch = pytest.MonkeyPatch


class Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return function(*args, **(kwargs or {}))


def halve(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **more: function(*args, **more) * 0.5


def replace(owner: Any, name: str, value: Any = None) -> Callable[[Patch], None]:
    """Return a deed that replaces a function, by half of what it gives."""
    return lambda patch: patch.setattr(owner, name, value or halve(getattr(owner, name)))


# deed, and what its message names
CHANGES: dict[str, tuple[Callable[[Patch], None], str]] = {
    "linear layers": (
        replace(torch.nn.Linear, "forward"),
        "torch.nn.modules.linear.Linear.forward",
    ),
    "norms of layers": (replace(torch.nn.LayerNorm, "forward"), "LayerNorm.forward"),
    "an attention of BERT": (
        replace(modeling_bert.BertSelfOutput, "forward", lambda self, x, y: y),
        "BertSelfOutput.forward",
    ),
    "one of RoBERTa, which the reference does not run": (
        replace(modeling_roberta.RobertaSelfOutput, "forward", lambda self, x, y: y),
        "RobertaSelfOutput.forward",
    ),
    "a class of RoBERTa": (
        replace(modeling_roberta, "RobertaSelfOutput", type("Other", (torch.nn.Module,), {})),
        "RobertaSelfOutput",
    ),
    "norms of NumPy": (
        replace(np.linalg, "norm", lambda x, *a, **k: np.ones((len(x), 1))),
        "numpy.linalg.norm",
    ),
    "one that fails": (replace(np.linalg, "svd", 5), "numpy.linalg.svd"),
    "a function by another of the library": (
        replace(torch.Tensor, "mean", torch.Tensor.sum),
        "the layers of torch.nn",
    ),
    "an activation by its name": (
        lambda patch: patch.setitem(activations.ACT2FN, "gelu", torch.nn.ReLU),
        "BERT of transformers",
    ),
    "one that the reference does not use": (
        lambda patch: patch.setitem(activations.ACT2FN, "gelu_new", torch.nn.ReLU),
        "the activations of transformers",
    ),
    "steps of an optimiser": (
        replace(torch.optim.AdamW, "step", lambda self, closure=None: None),
        "AdamW",
    ),
    "code of this package": (replace(PoolingMethod, "fit", lambda self, *a: self), "Pooling"),
    "the default type": (lambda patch: torch.set_default_dtype(torch.float64), "torch.Storage"),
}


@pytest.fixture(autouse=True)
def first_run(monkeypatch: Patch) -> None:
    """Let nothing be known of the process."""
    monkeypatch.setattr(shared_code, "_PROCESS", shared_code._Process())


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_named_and_holds_for_the_rest_of_the_process(name: str) -> None:
    deed, words = CHANGES[name]
    shared_code.remember()
    assert shared_code.find_change("before") == ""
    with pytest.MonkeyPatch.context() as patch:
        try:
            deed(patch)
            change = shared_code.find_change("row 1")
        finally:
            torch.set_default_dtype(torch.float32)
    assert change.startswith("row 1 changed ")
    assert words in change
    assert shared_code.is_changed()
    assert shared_code.find_change("row 2") == change


def test_a_global_hook_and_a_mode_of_torch_are_noticed(monkeypatch: Patch) -> None:
    shared_code.remember()
    hook = torch.nn.modules.module.register_module_forward_hook(lambda module, x, y: None)
    change = shared_code.find_change("row")
    hook.remove()
    assert "hooks" in change
    monkeypatch.setattr(shared_code, "_PROCESS", shared_code._Process())
    shared_code.remember()
    with Mode():
        change = shared_code.find_change("row")
    assert "modes of torch" in change


def test_a_thread_that_goes_on_is_noticed(monkeypatch: Patch) -> None:
    ended = threading.Event()

    def reseed() -> None:
        while not ended.wait(0.001):
            torch.manual_seed(0)

    shared_code.remember()
    thread = threading.Thread(target=reseed, name="reseeds")
    thread.start()
    change = shared_code.find_change("row")
    ended.set()
    thread.join()
    assert "reseeds" in change
    monkeypatch.setattr(shared_code, "_PROCESS", shared_code._Process())
    shared_code.remember()
    timer = threading.Timer(60, lambda: torch.manual_seed(0))
    timer.start()
    change = shared_code.find_change("row")
    timer.cancel()
    assert "thread" in change


def test_threads_of_this_package_and_generated_code_of_libraries_are_none(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    """A tracker is slow, and MLflow runs code without a file, as dataclasses generate it."""
    reached = threading.Event()
    ended = threading.Event()

    class Slow:
        def __init__(self, *_: Any) -> None: ...

        def send(self, record: Any) -> None:
            reached.set()
            ended.wait()

        def end_rows(self) -> None: ...

    generated: dict[str, Any] = {}
    exec(compile("def work(ended): ended.wait()", "<string>", "exec"), generated)
    monkeypatch.setattr(tracking, "_open", Slow)
    shared_code.remember()
    tracker = tracking.Tracker(tmp_path, "small", "slow://x")
    tracker.log(Record.model_construct())
    with ThreadPoolExecutor(1) as pool:
        waits = pool.submit(generated["work"], ended)
        try:
            assert reached.wait(20)
            assert shared_code.find_change("row") == ""
        finally:
            ended.set()
        waits.result()
    tracker.close()


def test_code_that_was_replaced_before_its_first_use_is_noticed(monkeypatch: Patch) -> None:
    name = "transformers.models.roberta.modeling_roberta"
    shared_code.remember()
    shared_code._PROCESS.modules.discard(name)  # as if it had not been imported yet
    for owner, part in list(shared_code._PROCESS.functions):
        if getattr(owner, "__module__", owner.__name__) == name:
            del shared_code._PROCESS.functions[owner, part]
    assert shared_code.find_change("before") == ""
    shared_code._PROCESS.modules.discard(name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(modeling_roberta.RobertaOutput, "forward", lambda self, x, y: y)
        assert "RobertaOutput.forward" in shared_code.find_change("row")


def test_harmless_deeds_and_the_generators_are_left_alone() -> None:
    state = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()  # type: ignore[union-attr]
    shared_code.remember()
    type("Own", (torch.nn.Linear,), {"forward": lambda self, x: x})(2, 2)
    torch.nn.Linear(2, 2).register_forward_hook(lambda module, x, y: None)
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    idle = threading.Thread(target=time.sleep, args=(1,), daemon=True)
    idle.start()
    torch.set_rng_state(state[0])
    assert shared_code.find_change("row") == ""
    assert not shared_code.is_changed()
    assert torch.equal(torch.get_rng_state(), state[0])
    assert np.random.get_state()[1].tolist() == state[1]  # type: ignore[union-attr]
    assert random.getstate() == state[2]


def test_torch_compile_is_no_change() -> None:
    shared_code.remember()
    torch.compile(torch.nn.Linear(2, 2))
    assert shared_code.find_change("row") == ""


def test_functions_that_were_replaced_before_are_named_for_rows_that_do_not_mean_it() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.AdamW, "step", lambda self, closure=None: None)
        shared_code.remember()
        assert "AdamW.step" in shared_code.change_at_import()
        assert shared_code.find_change("row") == ""
        assert shared_code.is_changed()


def test_what_a_thread_imports_meanwhile_is_no_fault() -> None:
    ended = threading.Event()
    imported: list[str] = []

    def import_on() -> None:
        while not ended.wait(1e-5):
            name = f"imported_meanwhile_{len(imported)}"
            imported.append(name)
            sys.modules[name] = sys

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    thread = threading.Thread(target=import_on)
    thread.start()
    try:
        for _ in range(20):
            list(shared_code._new_functions())
    finally:
        ended.set()
        thread.join()
        sys.setswitchinterval(usual)
        for name in imported:
            del sys.modules[name]
