"""`harness doctor`: what this machine offers, and what would go wrong in a run."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.commands.plugins import installed
from harness.commands.terminal import plain
from harness.errors import HarnessError
from harness.files.printable import tell_json
from harness.files.redaction import redacted
from harness.machine import environment

HUB_SECONDS = 4.0
TOOLS = ("safetensors", "pyarrow", "pydantic", "optuna", "mlflow", "matplotlib", "accelerate")


def run(json: bool = False) -> int:
    """Look, and print what was found. Exit code 0, or 1 when an installed plugin cannot be loaded."""
    report = examine()
    if json:
        tell_json(report)
    else:
        _print(report)
    return 1 if report["broken_plugins"] else 0


def examine() -> dict[str, Any]:
    """Devices with their measured precision, hub, caches, disk, versions and plugins; a few seconds."""
    devices, plugins = _devices(), installed()
    return {
        "machine": environment.describe("cpu", devices[0]["precision"]["choice"]),
        "tools": environment.versions(TOOLS),
        "devices": devices,
        "hub": _hub(),
        "caches": _caches(),
        "disk": _disk(),
        "wordnet": _wordnet(),
        "plugins": [asdict(plugin) for plugin in plugins],
        "broken_plugins": list(dict.fromkeys(plugin.fault for plugin in plugins if plugin.fault)),
    }


def _devices() -> list[dict[str, Any]]:
    import torch

    from harness.encoder.precision import choose_precision

    names = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
    if torch.backends.mps.is_available():
        names.append("mps")
    devices = []
    for name in names:
        chosen = choose_precision(name)
        device: dict[str, Any] = {"device": name, "name": environment.device_name(name)}
        if name.startswith("cuda"):
            device["memory_bytes"] = torch.cuda.get_device_properties(name).total_memory
        devices.append({**device, "precision": {"choice": chosen.name, **chosen.measurement}})
    return devices


def _hub() -> dict[str, Any]:
    """Whether the hub answers (any HTTP status is an answer); without it everything embedded still works."""
    endpoint = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    hub: dict[str, Any] = {"endpoint": redacted(endpoint), "reachable": False, "offline": _is_set("HF_HUB_OFFLINE")}
    start = time.monotonic()
    try:
        request = urllib.request.Request(endpoint, method="HEAD")  # noqa: S310 - the user's own setting
        with suppress(urllib.error.HTTPError), urllib.request.urlopen(request, timeout=HUB_SECONDS):  # noqa: S310
            pass
        hub |= {"reachable": True, "seconds": round(time.monotonic() - start, 3)}
    except (OSError, ValueError) as error:
        hub["reason"] = str(getattr(error, "reason", "") or error)
    return hub


def _is_set(name: str) -> bool:
    return os.environ.get(name, "").upper() in ("1", "ON", "YES", "TRUE")


def _caches() -> list[dict[str, Any]]:
    from harness.sources.remote.cache_folder import cache_root

    home = Path(os.environ.get("HF_HOME") or "~/.cache/huggingface").expanduser()
    folders = {
        "hub downloads": Path(os.environ.get("HF_HUB_CACHE") or home / "hub").expanduser(),
        "datasets": Path(os.environ.get("HF_DATASETS_CACHE") or home / "datasets").expanduser(),
        "harness": cache_root(),
    }
    return [{"what": what, "path": str(path), "bytes": _size(path)} for what, path in folders.items()]


def _size(folder: Path) -> int:
    """Bytes of the files below a folder, 0 where it does not exist; links (the hub cache is full of them) add none."""

    def sizes(path: Path) -> Iterator[int]:
        with suppress(OSError), os.scandir(path) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        yield from sizes(Path(entry.path))
                    elif entry.is_file(follow_symlinks=False):
                        yield entry.stat(follow_symlinks=False).st_size

    return sum(sizes(folder))


def _disk() -> list[dict[str, Any]]:
    places = {"current folder": Path.cwd(), "temporary files": Path(tempfile.gettempdir())}
    return [
        {"what": what, "path": str(path), "free_bytes": shutil.disk_usage(path).free} for what, path in places.items()
    ]


def _wordnet() -> dict[str, str]:
    """Where EDA views find WordNet, or how to get it."""
    from harness.views import wordnet

    try:
        return {"path": wordnet.find()[0]}
    except HarnessError as error:
        return {"missing": str(error)}


def _by_group(plugins: list[dict[str, Any]]) -> dict[str, dict[str, list[str]]]:
    """Group -> package with version -> names."""
    groups: dict[str, dict[str, list[str]]] = {}
    for plugin in plugins:
        package = f"{plugin['package']} {plugin['version']}"
        groups.setdefault(plugin["group"], {}).setdefault(package, []).append(plugin["name"])
    return groups


def _print(report: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.filesize import decimal
    from rich.table import Table

    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")

    def row(what: str, value: str, style: str | None = None) -> None:
        table.add_row(plain(what), plain(value), style=style)

    machine = report["machine"]
    memory = f", {decimal(machine['memory_bytes'])} memory" if machine["memory_bytes"] else ""
    row("python", f"{machine['python']} on {machine['platform']}")
    row("processor", f"{machine['cpu']}, {machine['cores']} cores, {machine['threads']} threads{memory}")
    for device in report["devices"]:
        precision = device["precision"]
        gain = precision.get("bf16_gain")
        why = f"bf16 trains {gain} times as fast as fp32" if gain else precision.get("reason", "")
        room = f", {decimal(device['memory_bytes'])}" if "memory_bytes" in device else ""
        row(device["device"], f"{device['name']}{room}: {precision['choice']} ({why})")
    hub = report["hub"]
    state = f"reachable in {hub['seconds']:.2f} s" if hub["reachable"] else f"not reachable: {hub['reason']}"
    row("hub", f"{hub['endpoint']} {state}{'; HF_HUB_OFFLINE is set' if hub['offline'] else ''}")
    for cache in report["caches"]:
        row(f"cache: {cache['what']}", f"{cache['path']} ({decimal(cache['bytes'])})")
    for disk in report["disk"]:
        row(f"free: {disk['what']}", f"{decimal(disk['free_bytes'])} at {disk['path']}")
    row("WordNet", report["wordnet"].get("path") or report["wordnet"]["missing"])
    versions = {**machine["versions"], **report["tools"]}
    row("versions", ", ".join(f"{name} {version}" for name, version in versions.items()))
    git = machine["git"]
    if git:
        row("code", f"commit {git['commit'][:12]}{', modified' if git['modified'] else ''}")
    for group, packages in _by_group(report["plugins"]).items():
        brought = (f"{package}: {', '.join(names)}" for package, names in packages.items())
        row(group, "; ".join(brought))
    for line in report["broken_plugins"]:
        row("broken plugin", line, style="red")
    Console().print(table, highlight=False)
