"""`harness doctor --workdir W`: is all that was computed as it was written, and what would be made again?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from harness.errors import InputError
from harness.files.printable import tell, tell_json
from harness.results.checksums import MODEL, changed, lost
from harness.results.run_folder import RunFolder
from harness.tracking.database import unsound

SCORES = "its weights are kept; the next comparison that asks for it scores it anew"
TRAINING = "the next comparison that scores it on more trains it again"


class Fault(NamedTuple):
    """A file that is not as it should be, and what that costs."""

    file: str
    what: str
    costs: str


def run(workdir: Path, *, as_json: bool = False) -> int:
    """Check every file, and print what is wrong. Exit code 0, or 1 when something is damaged.

    Raises:
        InputError: no such folder.
    """
    if not (workdir / "runs").is_dir():
        raise InputError(f"--workdir {workdir}: no runs/ there; name a work directory of `harness compare`")
    runs = sorted(folder.name for folder in (workdir / "runs").iterdir() if folder.is_dir())
    faults = [*_of_shared_files(workdir), *_of_stores(workdir)]
    for run_id in runs:
        faults += of_run(RunFolder(workdir, run_id))
    if as_json:
        tell_json({"runs": len(runs), "faults": [fault._asdict() for fault in faults]})
    else:
        _print(workdir, len(runs), faults)
    return 1 if faults else 0


def of_run(folder: RunFolder) -> list[Fault]:
    """What is wrong with a run; one that is not finished yet, or whose model was not kept, is sound."""
    try:
        record = folder.read()
    except InputError as error:
        return [Fault(f"runs/{folder.path.name}/record.json", str(error).partition(": ")[2].partition(";")[0], SCORES)]
    if record is None or record.status != "finished":
        return []
    kept = {n: digest for n, digest in record.files.items() if folder.fitted_file.exists() or not n.startswith(MODEL)}
    wrong = [(name, "not as it was written") for name in changed(folder, kept)]
    wrong += [(name, "missing") for name in lost(folder, kept)]
    untrained = not any(name.startswith(MODEL) for name in record.files)
    weights_kept = folder.fitted_file.exists() and not any(name.startswith(MODEL) for name, _ in wrong)
    return [
        Fault(f"runs/{record.id}/{name}", what, _cost(folder, name, what, weights_kept or untrained))
        for name, what in wrong
    ]


def _cost(folder: RunFolder, name: str, what: str, scorable: bool) -> str:
    if name.startswith(MODEL):
        return f"the scores in the record stay; {TRAINING}"
    if name == folder.curves_file.name:
        return "a curve is made in training alone: reports draw what is there; nothing is made again"
    if what == "missing":
        return "reports leave out what is drawn from it; nothing is made again"
    return SCORES if scorable else "its weights are not kept: reports leave out what is drawn from it"


def _of_shared_files(workdir: Path) -> Iterator[Fault]:
    """Small JSON files that several runs share."""
    timed_again = "updates of a budget of time are timed again; runs of another number of them are made anew"
    files = {
        workdir / "precision.json": "the precision is measured again",
        workdir / "budget.json": timed_again,
        workdir / "inference.json": "the cost of inference is measured again",
        workdir / "peak.json": "the most that the device can do is measured again",
    }
    files |= dict.fromkeys((workdir / "overlap").glob("*.json"), "the same comparison looks for the tasks' texts again")
    files |= dict.fromkeys((workdir / "comparisons").glob("*.json"), "the same comparison writes it anew")
    for file, costs in files.items():
        try:
            if not isinstance(json.loads(file.read_text("utf-8")), dict):
                yield Fault(str(file.relative_to(workdir)), "not a table", costs)
        except FileNotFoundError:
            continue
        except (OSError, ValueError, RecursionError):
            yield Fault(str(file.relative_to(workdir)), "damaged", costs)


def _of_stores(workdir: Path) -> Iterator[Fault]:
    """What runs are kept in beside their folders: MLflow's sqlite file, and journals, which are JSON line by line."""
    store = workdir / "mlflow.db"
    if store.is_file() and (what := unsound(store)):
        yield Fault(store.name, what, "no run: delete it, and harness track sync sends all that have a record")
    for journal in sorted(workdir.glob("*.journal")):
        if number := _damaged_line(journal):
            what = f"line {number} is damaged"
            yield Fault(journal.name, what, "no run: remove that line; the trial that it speaks of is asked for again")


def _damaged_line(journal: Path) -> int:
    """The number of the first line that is no JSON object; 0 where all are."""
    with journal.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                entry = json.loads(line)
            except ValueError:
                return number
            if not isinstance(entry, dict):
                return number
    return 0


def _print(workdir: Path, runs: int, faults: list[Fault]) -> None:
    from harness.commands.terminal import print_table

    if faults:
        print_table(f"Damage in {workdir}", ["File", "What", "What it costs"], [list(fault) for fault in faults])
    tell(f"{runs} runs checked, {len(faults) or 'no'} files damaged")
