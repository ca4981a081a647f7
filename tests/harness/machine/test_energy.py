"""Energy as the kernel counts it, from a folder laid out as /sys/class/powercap."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.machine import energy
from harness.machine.energy import EnergyMeter


def domain(folder: Path, name: str, microjoules: int) -> Path:
    folder.mkdir(parents=True)
    (folder / "name").write_text(f"{name}\n")
    (folder / "max_energy_range_uj").write_text("262143328850\n")
    (folder / "energy_uj").write_text(f"{microjoules}\n")
    return folder / "energy_uj"


def test_packages_are_added_up_and_a_counter_may_begin_again(tmp_path: Path) -> None:
    first = domain(tmp_path / "intel-rapl:0", "package-0", 5_000_000)
    second = domain(tmp_path / "intel-rapl:1", "package-1", 262_143_000_000)
    others = [
        domain(tmp_path / "intel-rapl:0:0", "core", 1_000_000),  # a part of the package
        domain(tmp_path / "intel-rapl:2", "psys", 1_000_000),  # the whole machine
        domain(tmp_path / "intel-rapl-mmio:0", "package-0", 1_000_000),  # the first package again
    ]
    with EnergyMeter(powercap=tmp_path) as meter:
        first.write_text("7500000\n")
        second.write_text(
            "671150\n"
        )  # 0.328850 J to the end of the counter, and 0.671150 J behind it
        for file in others:
            file.write_text("99000000\n")
    assert meter.costs("train") == pytest.approx({"train_cpu_joules": 2.5 + 1.0})
    first.write_text("100000000\n")  # between two blocks
    with meter:
        first.write_text("101000000\n")
    assert meter.joules == pytest.approx({"cpu": 4.5})


def test_a_counter_that_begins_again_several_times_is_read_often_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = domain(tmp_path / "intel-rapl:0", "package-0", 0)
    monkeypatch.setattr(energy, "_EVERY", 0.001)
    with EnergyMeter(powercap=tmp_path) as meter:
        for microjoules in (200_000_000_000, 100_000_000_000, 0):
            file.with_name("new").write_text(str(microjoules))
            file.with_name("new").replace(file)
            while meter._last != [microjoules / 1e6]:
                pass
    assert meter.joules["cpu"] == pytest.approx(2 * 262_143.32885)


def test_what_is_not_counted_is_absent(tmp_path: Path) -> None:
    with EnergyMeter("cpu", tmp_path) as meter:
        pass
    assert meter.costs("train") == {}
    file = domain(tmp_path / "intel-rapl:0", "package-0", 1)
    with EnergyMeter("cpu", tmp_path) as meter:
        file.write_text("5000000")
        file.unlink()
    assert meter.costs("train") == {}, "a part would be taken for the whole"
