"""Several devices encode shares of the texts: the vectors are those of one device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import harness
from harness.encoder import Encoder, several_devices
from harness.encoder.several_devices import encode_on_devices
from harness.errors import RunError
from harness.machine.environment import pick_device, pick_devices
from harness.machine.progress import watch_encoding
from tests.support.bases import narrow_bert
from tests.support.encoder_models import TEXTS, base_model
from tests.support.errors import raises_input_error
from tests.support.failing_models import RunsOutOfMemory, end_at_once
from tests.support.short_runs import few_pairs

MANY = [*TEXTS, *TEXTS[::-1], *("the cat " * k for k in range(1, 20))]


def test_two_processes_give_the_vectors_of_one(tmp_path: Path) -> None:
    encoder = Encoder.from_pretrained(base_model(tmp_path)).eval()
    alone = encoder.encode(MANY)
    seen: list[tuple[int, int]] = []
    with watch_encoding(lambda done, total: seen.append((done, total))):
        together = encoder.encode(MANY, device="cpu,cpu")
    np.testing.assert_allclose(together, alone, atol=1e-6)
    count = len(set(MANY))
    assert seen[-1] == (count, count)


@pytest.mark.campaign
def test_scores_of_two_processes_are_those_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shorter: test_two_processes_give_the_vectors_of_one has what is scored."""
    few_pairs(monkeypatch)
    rows = [{"name": "mean", "method": "pooling", "config": {"pooling": "mean"}}]
    keys: dict[str, Any] = {"suites": ["Embedded-STS-natural"], "dev": None}
    keys |= {"seeds": 1, "max_steps": 1, "tracking_uri": "none", "formats": []}
    keys["base_models"] = [narrow_bert()]
    one, two = (
        harness.compare(rows, device=device, workdir=tmp_path / device, **keys).scores()
        for device in ("cpu", "cpu,cpu")
    )
    assert (one["run"] == two["run"]).all()
    np.testing.assert_allclose(two["value"], one["value"], atol=1e-6)


def test_a_process_that_ends_is_an_error_that_says_what_helps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # It ends before it has imported torch, which takes seconds.
    monkeypatch.setattr(several_devices, "_encode_share", end_at_once)
    with pytest.raises(RunError, match="memory"):
        encode_on_devices(RunsOutOfMemory(), TEXTS, ["cpu"])


def test_a_process_that_fails_is_an_error_with_its_reason() -> None:
    with pytest.raises(RunError, match="memory"):
        encode_on_devices(RunsOutOfMemory(), TEXTS, ["cpu"])


def test_a_model_that_no_other_process_can_have_is_refused() -> None:
    with raises_input_error(key="device"):
        harness.evaluate(
            lambda texts: np.ones((len(texts), 2)), "Embedded-STS-contrast", device="cpu,cpu"
        )


def test_several_devices_are_checked_one_by_one() -> None:
    assert pick_devices("cpu, cpu") == ["cpu", "cpu"]
    assert pick_device("cpu,cpu") == "cpu"
    with raises_input_error(key="device"):
        pick_devices("cpu,cuda:99")
