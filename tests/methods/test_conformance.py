"""Every installed method keeps the promises of the interface.

Two promises train four more models: equal seeds give equal models, and a killed run resumes. Five
unlike methods are held to them here, and all others by `make test-all`. Methods with state of their
own from step to step are among the five, or have a test of resuming beside that of their loss.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from harness import registry
from harness.conformance import CHECKS, Subject, run_check
from harness.method import DEFAULT_BASE_MODEL
from harness.recipes import preset_names
from harness.testing import assert_method
from harness.training import TrainedMethod
from methods.pooling import PoolingMethod
from tests.support.bases import narrow_bert

SEVERAL_FITS = ("seeds", "resumes after a kill")
# Of sentences and of pairs, one without training steps, and two with state: a queue, and a schedule
# that follows the dev scores.
UNLIKE = ("simcse", "sbert", "whitening", "cert", "infersent")


def settings(name: str, word_vectors: Path) -> dict[str, Any]:
    """Return the configuration and the base model with which a method is tested."""
    # The gradient paradigm has no objective of its own: its loss need not fall where the vectors
    # are random. WK pooling takes more layers than the narrow model has.
    whole = ("gradient_paradigm", "wk_pooling")
    base_model = DEFAULT_BASE_MODEL if name in whole else narrow_bert()
    config = {"vectors": str(word_vectors)} if name in ("static", "infersent") else {}
    return {"config": config, "base_model": base_model}


def assert_with_one_fit(name: str, folder: Path, config: dict[str, Any], base_model: str) -> None:
    """Hold a method to all promises but `SEVERAL_FITS`, as `assert_method` does to all."""
    kind = registry.load(registry.METHODS, name)
    preset = "mini" if "mini" in preset_names(kind.presets) else None
    with torch.random.fork_rng(devices=[]):
        subject = Subject(kind, config, preset, base_model, folder, entry=name)
        checked = [run_check(check, subject) for check in CHECKS if check not in SEVERAL_FITS]
    assert [check for check in checked if not check.passed] == []


def test_the_checks_that_fit_several_times_have_these_names() -> None:
    assert set(SEVERAL_FITS) < set(CHECKS)


@pytest.mark.parametrize("name", [n for n in registry.names(registry.METHODS) if n not in UNLIKE])
def test_conformance_of_one_fit(name: str, word_vectors: Path, tmp_path: Path) -> None:
    assert_with_one_fit(name, tmp_path, **settings(name, word_vectors))


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "name",
    [
        name if name in UNLIKE else pytest.param(name, marks=pytest.mark.campaign)
        for name in registry.names(registry.METHODS)
    ],
)
def test_conformance(name: str, word_vectors: Path) -> None:
    assert_method(name, **settings(name, word_vectors))


UNLIKE_POOLINGS = ("first_last_avg", "prompt")
POOLINGS = [
    pytest.param(
        "pooling", values, marks=() if name in UNLIKE_POOLINGS else pytest.mark.campaign, id=name
    )
    for name, values in PoolingMethod.presets.items()
    if name != "cls_pooler"  # the base model has no pooler of its own
]
VARIANTS: list[Any] = [
    *POOLINGS,
    ("scd", {"terms": "self_contrast"}),
    ("scd", {"terms": "decorrelation", "projector": (32, 32, 32)}),
    ("barlow_twins", {"projector": (32, 32, 32), "view": "shuffle", "shuffle": 0.5}),
]


@pytest.mark.parametrize(("name", "config"), VARIANTS)
def test_conformance_of_other_configurations(
    name: str, config: dict[str, Any], tmp_path: Path
) -> None:
    assert_with_one_fit(name, tmp_path, config, narrow_bert())


@pytest.mark.parametrize("name", ["pooling", "simcse"])
def test_conformance_where_every_text_is_read_twice(name: str, tmp_path: Path) -> None:
    assert_with_one_fit(name, tmp_path, {"pooling": "echo"}, narrow_bert())


@pytest.mark.parametrize("name", sorted(registry.names(registry.METHODS)))
def test_every_schedule_begins_with_the_warm_up_that_is_set(name: str) -> None:
    kind = registry.load(registry.METHODS, name)
    if not issubclass(kind, TrainedMethod) or name == "declutr":  # which refuses warmup_steps
        return
    values = {"decay": 1.0} if name == "infersent" else {}
    method = kind(kind.configure({"warmup_steps": 4, **values}))
    shares = [method.schedule(step, 40) for step in range(5)]
    assert shares[4] > 0
    assert [share / shares[4] for share in shares] == pytest.approx([0, 0.25, 0.5, 0.75, 1])
