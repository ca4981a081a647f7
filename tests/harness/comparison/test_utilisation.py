"""The share of a device that training used; its peak is measured once, and never a reason to lose a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.comparison import utilisation as module
from harness.comparison.utilisation import FILE, utilisation

COST = {"train_flops": 4e9, "train_seconds": 2.0}


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    asked: list[str] = []
    monkeypatch.setattr(module, "peak_flops", lambda device, precision: asked.append(precision) or 1e10)
    return asked


def test_a_peak_is_measured_once_for_each_precision(tmp_path: Path, measured: list[str]) -> None:
    for precision in ("fp32", "fp32", "bf16", "fp32"):
        assert utilisation(COST, tmp_path, "cpu", precision) == {"mfu": 0.2, "peak_flops": 1e10}
    assert measured == ["fp32", "bf16"]
    assert utilisation(COST, tmp_path, "cpu", "fp32", 4)["mfu"] == 0.05  # of four devices


def test_a_known_gpu_is_held_against_its_data_sheet(
    tmp_path: Path, measured: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "device_name", lambda device: "NVIDIA A100-SXM4-80GB")
    assert utilisation(COST, tmp_path, "cuda:0", "bf16")["peak_flops"] == 312e12
    assert (measured, (tmp_path / FILE).exists()) == ([], False)


def test_what_was_not_counted_has_none_and_what_is_damaged_is_measured_again(
    tmp_path: Path, measured: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert utilisation({"train_seconds": 2.0}, tmp_path, "cpu", "fp32") == {}
    (tmp_path / FILE).write_text("{")
    assert utilisation(COST, tmp_path, "cpu", "fp32")["mfu"] == 0.2
    monkeypatch.setattr(module, "peak_flops", lambda device, precision: 1 / 0)
    assert utilisation(COST, tmp_path, "cpu", "bf16") == {}
