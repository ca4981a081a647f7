"""`harness reproduce`: which runs made a cell of a report, with what, and making it again."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

from harness.config import nearest
from harness.errors import InputError
from harness.files.printable import one_line, tell, visible
from reports.reproduce.report_cells import ReportCell, one_line_of, read_report, references, split


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `harness reproduce`. Imports nothing slow."""
    parser = subparsers.add_parser(
        "reproduce",
        help="say which runs made a cell of a report, or make it again",
        description="A report carries what made each of its numbers. Without a cell, list the cells; with one, print "
        "its runs, their configuration, data and command; with --run, do those runs again and compare.",
        epilog="example: harness reproduce 'work/demo/reports/demo#scores-embedded:SimCSE:Embedded-STS-natural' --run",
    )
    parser.add_argument("cell", metavar="REPORT[#TABLE:ROW:COLUMN]", help="folder of a report, its data.json or page")
    parser.add_argument("--run", action="store_true", dest="again", help="run it again (exit code 1 if it differs)")
    parser.add_argument("--workdir", type=Path, metavar="NEW", help="keep the new runs here; with --run")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit code 0; with `--run`, 1 where the new number is another one as shown."""
    report, name = split(args.cell)
    if args.workdir is not None and not args.again:
        raise InputError("--workdir NEW is for runs that are made again: add --run")
    data = read_report(report)
    cells = references(data)
    if name is None:
        if args.again:
            raise InputError(f"--run: name one cell, as {args.cell}#TABLE:ROW:COLUMN (without --run they are listed)")
        list_cells(cells)
        return 0
    if name not in cells:
        hint = nearest(name, list(cells)) or f"; list the cells with: harness reproduce {shlex.quote(str(report))}"
        raise InputError(f'{report}: no cell "{one_line(name)}" with runs behind it{visible(hint)}')
    reference = cells[name]
    explain(reference, data)
    if not args.again:
        tell()
        tell(f"to make it again: harness reproduce {one_line(shlex.quote(args.cell))} --run")
        return 0
    from reports.reproduce.rerun import rerun

    tell()
    return 0 if rerun(reference, data, args.workdir) else 1


def list_cells(cells: dict[str, ReportCell]) -> None:
    width = min(72, max((len(one_line(name)) for name in cells), default=0))
    for reference in cells.values():
        runs = ", ".join(reference.runs)
        tell(f"{one_line(reference.name):{width}}  {one_line(reference.shown):>15}  {runs}")


def explain(reference: ReportCell, data: dict[str, Any]) -> None:
    """Print all that a cell rests on; what its runs share is printed once."""
    exact = reference.cell.get("value")
    tell(f"{one_line(reference.name)} = {one_line(reference.shown)}" + (f"  ({exact!r})" if exact is not None else ""))
    for note in reference.cell.get("notes", []):
        tell(f"  note: {one_line(note)}")
    try:
        runs = {run: data["runs"][run] for run in reference.runs}
        setups = [data["setups"][i] for i in dict.fromkeys(entry["setup"] for entry in runs.values())]
        machines = [data["environments"][i] for i in dict.fromkeys(entry["environment"] for entry in runs.values())]
    except (KeyError, IndexError, TypeError) as error:
        raise InputError(f"the report's data is damaged ({error}); build the report again") from None
    tell()
    tell("runs")
    for run, entry in runs.items():
        ended = entry["status"] + (f": {one_line(entry['reason'])}" if entry.get("reason") else "")
        logged = f"  MLflow run {entry['mlflow']}" if entry.get("mlflow") else ""
        bound = f", at most {entry['max_steps']} updates" if entry.get("max_steps") else ""
        tell(f"  {run}  {one_line(entry['row'])}, seed {entry['seed']}{bound}, {ended}{logged}")
    for setup in setups:
        tell()
        for key, value in setup.items():
            if key == "config":
                tell("config")
                for name, setting in value.items():
                    tell(f"  {name} = {one_line_of(setting)}")
            elif isinstance(value, dict):
                tell(f"{key}: " + ", ".join(f"{name} {one_line_of(part)}" for name, part in value.items()))
            else:
                tell(f"{key.replace('_', ' ')}: {one_line_of(value)}")
    for name in dict.fromkeys(entry["comparison"] for entry in runs.values()):
        conditions = data.get("experiments", {}).get(name, {})
        tell(f"comparison: {one_line(name)}, " + ", ".join(f"{k} {one_line_of(v)}" for k, v in conditions.items()))
    for machine in machines:
        versions = ", ".join(f"{name} {version}" for name, version in machine.get("versions", {}).items())
        place = ", ".join(str(machine[k]) for k in ("device_name", "device", "platform") if machine.get(k))
        tell(f"environment: python {machine.get('python', '?')}, {one_line(place)}, {one_line(versions)}")
    tell()
    tell("commands")
    for command in dict.fromkeys(entry.get("command", "") for entry in runs.values()):
        tell(f"  {one_line(command) or 'not recorded'}")
