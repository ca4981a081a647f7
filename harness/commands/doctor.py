"""`harness doctor`: what this machine offers and which plugins are broken, or which files of a work
directory are.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from harness.commands.list import Plugin, find_plugins
from harness.commands.options import JSON, Commands, add_command
from harness.commands.terminal import print_columns, print_table
from harness.errors import InputError
from harness.files.printable import join_some, tell, tell_json
from harness.machine import environment

if TYPE_CHECKING:
    from harness.results.store import RunFolder

_TOOLS = ("safetensors", "pyarrow", "pydantic", "optuna", "mlflow", "matplotlib")
_SCORED_AGAIN = "the next comparison that contains it scores it again from its saved weights"
_RUN_AGAIN = "the next comparison that contains it runs it again"
_TRAINED_AGAIN = "the next comparison that scores it on further tasks trains it again"


def register(commands: Commands) -> None:
    """Add `harness doctor` to the command line."""
    parser = add_command(
        commands,
        "doctor",
        run,
        JSON,
        help="show devices, precision, versions and broken plugins of this machine",
        example="harness doctor --workdir work",
    )
    parser.add_argument(
        "--workdir",
        type=Path,
        metavar="DIR",
        help="verify every file of a work directory instead, "
        "and say what would be trained or scored again",
    )


def run(args: argparse.Namespace) -> int:
    """Exit code 0, or 1 when an installed plugin cannot be loaded or a file of the work directory
    is damaged.
    """
    if args.workdir is not None:
        return _show_faults(args.workdir, args.json)
    plugins = find_plugins()
    report = {**dict(examine()), **dict(_describe_plugins(plugins))}
    if args.json:
        tell_json(report)
    else:
        print_columns(list(report.items()))
    if any(plugin.fault for plugin in plugins):
        return 1
    return 0


def examine() -> Iterator[tuple[str, str]]:
    """Yield a name and a description of each device, with the speed of bf16, and of versions."""
    import torch

    from harness.encoder.precision import describe_bf16

    machine = environment.describe("cpu", "fp32")
    yield "python", f"{machine['python']} on {machine['platform']}"
    cores = f"{machine['cores']} cores, {machine['threads']} threads"
    yield "processor", f"{machine['cpu']}, {cores}"
    if torch.backends.mps.is_available():
        mps = ["mps"]
    else:
        mps = []
    gpus = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    for device in ["cpu", *gpus, *mps]:
        name = environment.device_name(device)
        yield device, f"{name}: {describe_bf16(device)}"
    versions = {**machine["versions"], **environment.versions(_TOOLS)}
    shown = [f"{name} {version}" for name, version in versions.items()]
    yield "versions", ", ".join(shown)


def _describe_plugins(plugins: list[Plugin]) -> Iterator[tuple[str, str]]:
    """How many plugins there are, and why some cannot be used."""
    named = [f"{plugin.package} {plugin.version}" for plugin in plugins]
    packages = dict.fromkeys(named)
    yield (
        "plugins",
        f"{len(plugins)} of {', '.join(packages) or 'no package'} (see: harness list plugins)",
    )
    for plugin in plugins:
        if plugin.fault:
            yield f"broken {plugin.name}", plugin.fault


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
        raise InputError(
            f"--workdir {workdir}: no runs/ there",
            key="--workdir",
            remedy="name a work directory of `harness compare`",
        )
    folders = [folder for folder in (workdir / "runs").iterdir() if folder.is_dir()]
    runs = sorted(folder.name for folder in folders)
    faults = [
        *_check_shared_files(workdir),
        *(fault for run in runs for fault in check_run(RunFolder(workdir, run))),
    ]
    if as_json:
        found = [fault._asdict() for fault in faults]
        tell_json({"runs": len(runs), "faults": found})
    else:
        if faults:
            print_table(
                f"Damage in {workdir}",
                ["file", "what", "what it costs"],
                faults,
                texts=True,
            )
        count = len(faults) or "no"
        tell(f"{len(runs)} runs checked, {count} files damaged")
        removed = [run for run in runs if has_removed_weights(RunFolder(workdir, run))]
        if removed:
            tell(
                f"the weights of {len(removed)} runs were removed: their scores hold, and further "
                f"tasks train them again ({join_some(removed, 3)})"
            )
        for name in _find_files_without_hash(workdir):
            tell(
                f"comparisons/{name}.json has no hash, so its labels cannot be checked: an earlier "
                "version wrote it; the same comparison writes it again"
            )
    return 1 if faults else 0


def _find_files_without_hash(workdir: Path) -> list[str]:
    """Return the comparisons whose file an earlier version wrote."""
    from harness.results.store import read_sound_comparison_files

    files = read_sound_comparison_files(workdir)
    return [name for name, file in files.items() if not file.sha256]


def has_removed_weights(folder: RunFolder) -> bool:
    """True if the weights of a finished run are gone as a whole, as by `rm -r runs/*/model`."""
    from harness.results.store import MODEL

    try:
        record = folder.read()
    except InputError:
        return False
    if record is None or record.status != "finished":
        return False
    if os.path.lexists(folder.model):
        return False
    return any(name.startswith(MODEL) for name in record.files)


def check_run(folder: RunFolder) -> list[Fault]:
    """What is wrong with a run; one that is not finished, or whose weights were removed, is sound."""
    from harness.results.store import MODEL

    name = f"runs/{folder.path.name}"
    try:
        record = folder.read()
    except InputError as error:
        return [
            Fault(
                f"{name}/record.json",
                str(error).partition(": ")[2].partition(";")[0],
                _RUN_AGAIN,
            )
        ]
    if record is None and (folder.examples_file.exists() or folder.details_file.exists()):
        return [Fault(f"{name}/record.json", "missing", _RUN_AGAIN)]
    if record is None or record.status not in ("finished", "trained"):
        return []
    files = record.files
    if record.status == "finished" and has_removed_weights(folder):
        files = {name: digest for name, digest in files.items() if not name.startswith(MODEL)}
    wrong = folder.find_damage(files).items()
    scorable = not record.spec.trained or folder.has_weights(record)
    costs = {
        folder.curves_file.name: "reports show what is left of the training curve",
        folder.examples_file.name: _SCORED_AGAIN
        if scorable
        else "reports leave out what is computed from examples",
        folder.details_file.name: _SCORED_AGAIN if scorable else "reports leave out its figures",
    }
    found = []
    for file, what in wrong:
        if file.startswith(MODEL):
            cost = _TRAINED_AGAIN
        else:
            cost = costs[file]
        found.append(Fault(f"{name}/{file}", what, cost))
    return found


def _check_shared_files(workdir: Path) -> Iterator[Fault]:
    """What is wrong with files that several runs share: comparisons, the journal of studies."""
    from harness.results.store import comparison_files, read_comparison_file
    from studies.storage import JOURNAL, MEND, find_damage

    journal = workdir / JOURNAL
    for name, comparison in comparison_files(workdir).items():
        try:
            read_comparison_file(workdir, name)
        except InputError:
            yield Fault(
                f"comparisons/{comparison.name}", "damaged", "the same comparison writes it again"
            )
    if damage := find_damage(journal):
        yield Fault(journal.name, damage, f"no run: {MEND}")
