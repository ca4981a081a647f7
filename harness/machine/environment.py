"""Where a run took place: machine, device, library versions, code version and memory. Recorded with
every run.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from harness.errors import InputError

# A change of any of these can change a number.
LIBRARIES = (
    "sentence-harness",
    "torch",
    "transformers",
    "tokenizers",
    "sentence-transformers",
    "datasets",
    "huggingface_hub",
    "mteb",
    "numpy",
    "scipy",
    "scikit-learn",
    "pandas",
    "peft",
)


def now() -> str:
    """The time as records have it, such as 2026-11-24T12:30:00+00:00."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def describe(device: str, precision: str) -> dict[str, Any]:
    """Return what a record says about its surroundings.

    Args:
        device: as torch names it ("cpu", "cuda:0").
        precision: of training, as "fp32".

    Returns:
        python, platform, cpu, cores, memory_bytes, device, device_name, precision, threads,
        versions, and git (`{"commit", "modified"}`, or None for an installed copy).
    """
    import torch

    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": cpu_model(),
        "cores": usable_cores(),
        "memory_bytes": memory_bytes(),
        "device": device,
        "device_name": device_name(device),
        "precision": precision,
        "threads": torch.get_num_threads(),
        "versions": versions(),
        "git": git_state(),
    }


TELEMETRY = ("HF_HUB_DISABLE_TELEMETRY", "MLFLOW_DISABLE_TELEMETRY", "DO_NOT_TRACK")


def disable_telemetry() -> None:
    """Turn off the telemetry of the libraries; what the user has set in the environment stays.

    Costs nothing and imports nothing; takes effect for libraries imported later.
    """
    for name in TELEMETRY:
        os.environ.setdefault(name, "1")


def versions(libraries: tuple[str, ...] = LIBRARIES) -> dict[str, str]:
    """Installed versions, read from package metadata (nothing is imported); libraries that are
    absent are left out.
    """
    found = {library: _version(library) for library in libraries}
    return {library: number for library, number in found.items() if number}


@cache
def _version(library: str) -> str:
    """Return the installed version, "" where the library is absent."""
    try:
        return version(library)
    except PackageNotFoundError:
        return ""


def device_name(device: str) -> str:
    """The marketing name of a device: the CPU's model, or the GPU's."""
    kind, _, index = device.partition(":")
    if kind != "cuda":
        return cpu_model() if kind == "cpu" else device
    import torch

    return torch.cuda.get_device_name(int(index or 0))


@cache
def cpu_model() -> str:
    """The CPU's model as the operating system names it."""
    try:
        model = re.search(
            r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE
        )
    except OSError:
        model = None
    if model:
        return model[1].strip()
    return platform.processor() or platform.machine()


def usable_cores() -> int:
    """Cores that this process may use (not all the machine has, in a container or under taskset)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_bytes() -> int:
    """Physical memory, or the control group's limit where that is less."""
    import psutil

    physical = int(psutil.virtual_memory().total)
    try:
        return min(
            physical, int(Path("/sys/fs/cgroup/memory.max").read_text())
        )  # psutil knows no control groups
    except (OSError, ValueError):  # no control group, or "max"
        return physical


@cache
def git_state() -> dict[str, Any] | None:
    """Commit of the harness' code and whether files differ from it; None when it does not lie in a
    git checkout.

    A copy installed into a virtual environment inside somebody's repository is not that
    repository's code, so git is called to see whether it tracks this very file.
    """
    here = Path(__file__)

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(here.parent), *arguments],
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        ).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", here.name)
        changed = git("status", "--porcelain", "--untracked-files=no")
        return {"commit": git("rev-parse", "HEAD"), "modified": bool(changed)}
    except (OSError, subprocess.SubprocessError):
        return None


def peak_memory_bytes(device: str = "cpu") -> int:
    """Most memory held at one time: of the GPU for a CUDA device, else resident memory of this
    process, in bytes.

    Since the last `reset_peak_memory`, or since the start of the process where the system cannot
    reset it.
    """
    if device.startswith("cuda"):
        import torch

        return int(torch.cuda.max_memory_allocated(device))
    try:  # by hand: psutil has no peaks but on Windows, and `getrusage` has the process's, which nothing resets
        high_water = re.search(
            r"^VmHWM:\s*(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE
        )
    except OSError:
        high_water = None
    if high_water:
        return int(high_water[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # macOS counts bytes, the others kilobytes
    if sys.platform == "darwin":
        return peak
    return peak * 1024


def reset_peak_memory(device: str = "cpu") -> None:
    """Start a new measurement, so that one run's peak is not the peak of an earlier run in the same
    process.
    """
    import gc

    import psutil

    if device.startswith("cuda"):
        import torch

        torch.cuda.reset_peak_memory_stats(device)
    gc.collect()
    with suppress(
        AttributeError, OSError
    ):  # memory that the allocator has not returned, often more than a run needs
        psutil.heap_trim()  # missing where psutil was built for a C library without it (musl)
    with suppress(OSError):  # not Linux: the peak stays that of the process
        Path("/proc/self/clear_refs").write_text("5")  # proc(5): resets VmHWM to the current value


def pick_devices(name: str) -> list[str]:
    """The devices that a name stands for: "cuda:0,cuda:1" for two, on which texts are encoded at
    the same time.

        >>> pick_devices("cpu,cpu")
        ['cpu', 'cpu']

    Raises:
        InputError: as `pick_device`.
    """
    return [pick_device(part.strip()) for part in name.split(",")]


def pick_device(name: str) -> str:
    """ "auto" -> the best device there is; any other name is checked; of several the first.

    Raises:
        InputError: the device is not there.
    """
    import torch

    if "," in name:
        return pick_devices(name)[0]

    if name == "auto":
        if torch.cuda.is_available():
            return "cuda"
        if torch.backends.mps.is_available():
            return "mps"
        return "cpu"
    try:
        torch.zeros(1, device=name).cpu()  # which "meta" cannot
    except (RuntimeError, AssertionError) as error:
        raise InputError(
            f'device "{name}" is not available: {str(error).splitlines()[0]}', key="device"
        ) from None
    return name
