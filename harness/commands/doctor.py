"""`harness doctor`: what this machine offers and which plugins are broken, or which files of a work directory are."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sqlite3
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.commands.list import installed
from harness.commands.options import Commands, add_command, add_json
from harness.commands.terminal import print_columns, print_table
from harness.errors import HarnessError, InputError
from harness.files.printable import tell, tell_json
from harness.machine import environment

if TYPE_CHECKING:
    from harness.results.store import RunFolder

HUB_SECONDS = 4.0
TOOLS = ("safetensors", "pyarrow", "pydantic", "optuna", "mlflow", "matplotlib", "accelerate")
SCORES = "the next comparison that contains it scores it again from its saved weights"
AGAIN = "the next comparison that contains it runs it again"
TRAINING = "the next comparison that scores it on further tasks trains it again"


def register(commands: Commands) -> None:
    """Add `harness doctor` to the command line."""
    parser = add_command(
        commands, "doctor", run,
        help="show devices, precision, hub, caches, versions and broken plugins of this machine",
        example="harness doctor --workdir work",
    )  # fmt: skip
    parser.add_argument("--workdir", type=Path, metavar="W", help="verify every file of a work directory instead, and "
                        "say what would be trained or scored again")  # fmt: skip
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Exit code 0, or 1 when an installed plugin cannot be loaded or a file of the work directory is damaged."""
    if args.workdir is not None:
        return _show_faults(args.workdir, args.json)
    report = examine()
    if args.json:
        tell_json(report)
    else:
        print_columns(list(_describe(report)))
    return 1 if report["broken_plugins"] else 0


def examine() -> dict[str, Any]:
    """Devices with their measured precision, hub, folders, versions and plugins; takes a few seconds."""
    devices, plugins = _devices(), installed()
    return {
        "machine": environment.describe("cpu", devices[0]["precision"]["choice"]),
        "tools": environment.versions(TOOLS),
        "devices": devices,
        "hub": _hub(),
        "folders": _folders(),
        "wordnet": _wordnet(),
        "plugins": [plugin._asdict() for plugin in plugins],
        "broken_plugins": list(dict.fromkeys(plugin.fault for plugin in plugins if plugin.fault)),
    }


def _devices() -> list[dict[str, Any]]:
    import torch

    from harness.encoder.precision import choose_precision

    devices = []
    mps = ["mps"] if torch.backends.mps.is_available() else []
    for name in ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count())), *mps]:
        chosen = choose_precision(name)
        device: dict[str, Any] = {"device": name, "name": environment.device_name(name)}
        if name.startswith("cuda"):
            device["memory_bytes"] = torch.cuda.get_device_properties(name).total_memory
        devices.append({**device, "precision": {"choice": chosen.name, **chosen.measurement}})
    return devices


def _hub() -> dict[str, Any]:
    """Whether the hub answers (any HTTP status is an answer); what is embedded works without it."""
    from harness.files.redaction import redacted

    endpoint = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    offline = os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")
    hub: dict[str, Any] = {"endpoint": redacted(endpoint), "reachable": False, "offline": offline}
    start = time.monotonic()
    try:
        request = urllib.request.Request(endpoint, method="HEAD")  # noqa: S310 - the user's own setting
        with suppress(urllib.error.HTTPError), urllib.request.urlopen(request, timeout=HUB_SECONDS):  # noqa: S310
            pass
        return hub | {"reachable": True, "seconds": round(time.monotonic() - start, 3)}
    except (OSError, ValueError) as error:
        return hub | {"reason": str(getattr(error, "reason", "") or error)}


def _folders() -> list[dict[str, Any]]:
    """Caches and other folders that are written to, and the free bytes of their disks."""
    from harness.sources.remote.cache_folder import cache_root

    home = Path(os.environ.get("HF_HOME") or "~/.cache/huggingface").expanduser()
    folders = {
        "hub cache": Path(os.environ.get("HF_HUB_CACHE") or home / "hub").expanduser(),
        "datasets cache": Path(os.environ.get("HF_DATASETS_CACHE") or home / "datasets").expanduser(),
        "harness cache": cache_root(),
        "current folder": Path.cwd(),
        "temporary files": Path(tempfile.gettempdir()),
    }
    existing = {what: next(p for p in (path, *path.parents) if p.is_dir()) for what, path in folders.items()}
    return [
        {"what": what, "path": str(path), "free_bytes": shutil.disk_usage(existing[what]).free}
        for what, path in folders.items()
    ]


def _wordnet() -> dict[str, str]:
    """Where EDA views find WordNet, or how to get it."""
    from harness.views import wordnet

    try:
        return {"path": wordnet.find()[0]}
    except HarnessError as error:
        return {"missing": str(error)}


def _describe(report: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """A name and a description for each thing that was examined."""
    from rich.filesize import decimal

    machine, hub = report["machine"], report["hub"]
    memory = f", {decimal(machine['memory_bytes'])} memory" if machine["memory_bytes"] else ""
    yield "python", f"{machine['python']} on {machine['platform']}"
    yield "processor", f"{machine['cpu']}, {machine['cores']} cores, {machine['threads']} threads{memory}"
    for device in report["devices"]:
        precision = device["precision"]
        gain = precision.get("bf16_gain")
        why = f"bf16 trains {gain} times as fast as fp32" if gain else precision.get("reason", "")
        room = f", {decimal(device['memory_bytes'])}" if "memory_bytes" in device else ""
        yield device["device"], f"{device['name']}{room}: {precision['choice']} ({why})"
    state = f"reachable in {hub['seconds']:.2f} s" if hub["reachable"] else f"not reachable: {hub['reason']}"
    yield "hub", f"{hub['endpoint']} {state}{'; HF_HUB_OFFLINE is set' if hub['offline'] else ''}"
    for folder in report["folders"]:
        yield folder["what"], f"{folder['path']} ({decimal(folder['free_bytes'])} free)"
    yield "WordNet", report["wordnet"].get("path") or report["wordnet"]["missing"]
    versions = {**machine["versions"], **report["tools"]}
    yield "versions", ", ".join(f"{name} {version}" for name, version in versions.items())
    if git := machine["git"]:
        yield "code", f"commit {git['commit'][:12]}{', modified' if git['modified'] else ''}"
    packages = dict.fromkeys(f"{plugin['package']} {plugin['version']}" for plugin in report["plugins"])
    yield "plugins", f"{len(report['plugins'])} of {', '.join(packages) or 'no package'} (see: harness list plugins)"
    for line in report["broken_plugins"]:
        yield "broken plugin", line


class Fault(NamedTuple):
    """A file that is damaged or missing, and the consequence."""

    file: str
    what: str
    costs: str


def _show_faults(workdir: Path, as_json: bool) -> int:
    """Verify every file of a work directory and print what is wrong.

    Raises:
        InputError: no work directory.
    """
    from harness.results.store import RunFolder

    if not (workdir / "runs").is_dir():
        raise InputError(f"--workdir {workdir}: no runs/ there; name a work directory of `harness compare`")
    runs = sorted(folder.name for folder in (workdir / "runs").iterdir() if folder.is_dir())
    faults = [*_check_shared_files(workdir), *(fault for run in runs for fault in check_run(RunFolder(workdir, run)))]
    if as_json:
        tell_json({"runs": len(runs), "faults": [fault._asdict() for fault in faults]})
    else:
        if faults:
            print_table(f"Damage in {workdir}", ["file", "what", "what it costs"], faults, wrap=True)
        tell(f"{len(runs)} runs checked, {len(faults) or 'no'} files damaged")
    return 1 if faults else 0


def check_run(folder: RunFolder) -> list[Fault]:
    """What is wrong with a run; one that is not finished, or whose weights were removed, is sound."""
    from harness.results.store import MODEL

    name = f"runs/{folder.path.name}"
    try:
        record = folder.read()
    except InputError as error:
        return [Fault(f"{name}/record.json", str(error).partition(": ")[2].partition(";")[0], AGAIN)]
    if record is None or record.status not in ("finished", "trained"):
        return []
    wrong = folder.find_damage(record.files).items()
    scorable = not record.spec.trained or folder.has_weights(record)
    costs = {
        folder.curves_file.name: "reports show what is left of the training curve",
        folder.examples_file.name: SCORES if scorable else "reports leave out what is computed from examples",
        folder.details_file.name: SCORES if scorable else "reports leave out its figures",
    }
    return [Fault(f"{name}/{file}", what, TRAINING if file.startswith(MODEL) else costs[file]) for file, what in wrong]


def _check_shared_files(workdir: Path) -> Iterator[Fault]:
    """What is wrong with files that several runs share: measurements, comparisons, MLflow's database, journals."""
    from harness.results.store import comparison_files, read_comparison_file

    measurements, database = workdir / "measurements.json", workdir / "mlflow.db"
    if measurements.exists() and not _is_table(measurements):
        yield Fault(measurements.name, "damaged", "everything is measured again")
    for name, comparison in comparison_files(workdir).items():
        try:
            read_comparison_file(workdir, name)
        except InputError:
            yield Fault(f"comparisons/{comparison.name}", "damaged", "the same comparison writes it again")
    if database.is_file() and (what := _check_database(database)):
        yield Fault(database.name, what, "no run: delete it; harness track sync writes it again")
    for journal in sorted(workdir.glob("*.journal")):
        with journal.open("rb") as lines:
            number = next((number for number, line in enumerate(lines, 1) if not _is_table(line)), None)
        if number is not None:
            yield Fault(journal.name, f"line {number} is damaged", "no run: remove that line; its trial is run again")


def _is_table(content: Path | bytes) -> bool:
    """Whether a file or a line is a JSON object."""
    try:
        return isinstance(json.loads(content if isinstance(content, bytes) else content.read_bytes()), dict)
    except (OSError, ValueError, RecursionError):
        return False


def _check_database(file: Path) -> str:
    """What sqlite finds wrong with a database, which is only read; empty where it is sound."""
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True, timeout=10)) as store:
            found = str(store.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.DatabaseError as error:
        found = str(error)
    return "" if found == "ok" else found.splitlines()[-1]
