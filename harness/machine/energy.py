"""Energy in joules, where the machine counts it: of processors by RAPL, of a GPU by NVML. Nothing
is estimated.

Counters are those of a whole processor package or GPU: what other processes use at that time is in
them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Self

POWERCAP = Path("/sys/class/powercap")
_EVERY = (
    60.0  # seconds between two readings: a RAPL counter begins again after some 40 minutes at 100 W
)
Counter = tuple[
    str, Callable[[], float], float
]  # "cpu" or "gpu", joules since some time, the joules that it begins at


def processor_counters(powercap: Path) -> Iterator[Counter]:
    """Those of every package that may be read; cores and memory are parts of one, other domains
    repeat one.
    """
    for domain in sorted(powercap.glob("intel-rapl:*")):  # so called on AMD too
        with suppress(OSError, ValueError):
            if (domain / "name").read_text().startswith("package"):
                read = partial(_joules, domain / "energy_uj")
                read()  # often for the administrator alone
                yield "cpu", read, _joules(domain / "max_energy_range_uj")


def _joules(file: Path) -> float:
    return int(file.read_text()) / 1e6


def gpu_counters(device: str) -> Iterator[Counter]:
    """That of a CUDA device, where the package nvidia-ml-py is installed."""
    if not device.startswith("cuda"):
        return
    with suppress(Exception):  # no package, no driver, or a GPU without a counter
        import torch

        nvml = import_module("pynvml")
        nvml.nvmlInit()
        handle = nvml.nvmlDeviceGetHandleByUUID(
            f"GPU-{torch.cuda.get_device_properties(device).uuid}"
        )

        def read() -> float:
            return float(nvml.nvmlDeviceGetTotalEnergyConsumption(handle)) / 1e3

        read()
        yield "gpu", read, 0.0


class EnergyMeter:
    """Adds up what is used inside its `with` blocks.

        >>> with EnergyMeter(powercap=Path("no such folder")) as meter:
        ...     pass
        >>> meter.costs("train")
        {}

    Attributes:
        joules: "cpu" and "gpu" -> joules, those that are counted here.
    """

    def __init__(self, device: str = "cpu", powercap: Path = POWERCAP) -> None:
        self._counters = [*processor_counters(powercap), *gpu_counters(device)]
        kinds = [kind for kind, *_ in self._counters]
        self.joules: dict[str, float] = dict.fromkeys(kinds, 0.0)

    def __enter__(self) -> Self:
        self._last: list[float] = []
        self._end = threading.Event()
        self._add()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        if self._counters:
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()
        self._add()

    def costs(self, phase: str) -> dict[str, float]:
        """For a record: "train_cpu_joules" and the like."""
        costs = {}
        for kind, joules in self.joules.items():
            if joules:
                costs[f"{phase}_{kind}_joules"] = joules
        return costs

    def _watch(self) -> None:
        while not self._end.wait(_EVERY):
            self._add()

    def _add(self) -> None:
        """Read all counters, and add what they have moved since the last time."""
        try:
            now = [read() for _, read, _ in self._counters]
        except Exception:  # a counter that is gone: what is known is not the whole
            self._counters = []
            self.joules = {}
            now = []
        readings = zip(self._counters, self._last, now, strict=False)
        for (kind, _, whole), before, after in readings:
            if after >= before:
                self.joules[kind] += after - before
            else:
                self.joules[kind] += after - before + whole
        self._last = now
