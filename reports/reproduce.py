"""`harness reproduce`: which runs made a cell of a report, with what, and making it again."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.config import nearest
from harness.errors import InputError
from harness.files.printable import one_line, visible


@dataclass(frozen=True)
class Reference:
    """A cell of a report as its data has it, and where it stands."""

    name: str  # "TABLE:ROW:COLUMN"
    table: str
    row: str  # the row's label
    block: str
    column: str
    cell: dict[str, Any]

    @property
    def shown(self) -> str:
        return f"{self.cell['text']} {self.cell.get('spread', '')}".strip()

    @property
    def runs(self) -> list[str]:
        return list(self.cell["records"])


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
    found = references(data)
    if name is None:
        if args.again:
            raise InputError(f"--run: name one cell, as {args.cell}#TABLE:ROW:COLUMN (without --run they are listed)")
        list_cells(found)
        return 0
    if name not in found:
        hint = nearest(name, list(found)) or f"; list the cells with: harness reproduce {shlex.quote(str(report))}"
        raise InputError(f'{report}: no cell "{one_line(name)}" with runs behind it{visible(hint)}')
    reference = found[name]
    explain(reference, data)
    if not args.again:
        print(f"\nto make it again: harness reproduce {one_line(shlex.quote(args.cell))} --run")
        return 0
    from reports.rerun import rerun

    print()
    return 0 if rerun(reference, data, args.workdir) else 1


def split(text: str) -> tuple[Path, str | None]:
    """(report, cell) of "REPORT#CELL"; a path may hold "#" too.

    Raises:
        InputError: no part before a "#" is a path that exists.
    """
    if Path(text).exists():
        return Path(text), None
    for found in re.finditer("#", text):
        if Path(text[: found.start()]).exists():
            return Path(text[: found.start()]), text[found.end() :]
    raise InputError(f"{one_line(text)}: no such report; give REPORT or REPORT#CELL, where REPORT is its folder, "
                     "data.json or index.html")  # fmt: skip


def read_report(path: Path) -> dict[str, Any]:
    """The data that a report carries.

    Raises:
        InputError: not a report, damaged, or one without runs (written before reports carried them).
    """
    file = path
    if path.is_dir():
        file = next((path / name for name in ("data.json", "index.html") if (path / name).is_file()), path)
        if file == path:
            raise InputError(f"{path}: holds neither data.json nor index.html; give the folder of a report")
    try:
        text = file.read_text(encoding="utf-8")
        if file.suffix.lower() in (".html", ".htm"):
            inside = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
            text = inside[1] if inside else ""
        data = json.loads(text)
        if not isinstance(data["tables"], dict):
            raise TypeError
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{file}: not the data of a report, or damaged; build the report again") from None
    if not data.get("runs"):
        raise InputError(f"{file}: does not say which runs made it; build it again with `harness report build`")
    return dict(data)


def references(data: dict[str, Any]) -> dict[str, Reference]:
    """Name -> cell of every cell with runs behind it, in the order of the tables; the rows' heads are left out."""
    found: dict[str, Reference] = {}
    try:
        for key, table in data["tables"].items():
            columns = [column["key"] for column in table["columns"]]
            for row in table["rows"]:
                head = row["cells"][columns[0]]["text"]
                for column in columns[1:]:
                    cell = row["cells"][column]
                    if cell.get("records"):
                        name = f"{key}:{row['name']}:{column}"
                        found[name] = Reference(name, key, head, row["block"], column, cell)
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"the report's data is damaged ({error}); build the report again") from None
    return found


def list_cells(found: dict[str, Reference]) -> None:
    width = min(72, max((len(one_line(name)) for name in found), default=0))
    for reference in found.values():
        runs = ", ".join(reference.runs)
        print(f"{one_line(reference.name):{width}}  {one_line(reference.shown):>15}  {runs}")


def explain(reference: Reference, data: dict[str, Any]) -> None:
    """Print all that a cell rests on; what its runs share is printed once."""
    exact = reference.cell.get("value")
    print(f"{one_line(reference.name)} = {one_line(reference.shown)}" + (f"  ({exact!r})" if exact is not None else ""))
    for note in reference.cell.get("notes", []):
        print(f"  note: {one_line(note)}")
    try:
        runs = {run: data["runs"][run] for run in reference.runs}
        setups = [data["setups"][i] for i in dict.fromkeys(entry["setup"] for entry in runs.values())]
        machines = [data["environments"][i] for i in dict.fromkeys(entry["environment"] for entry in runs.values())]
    except (KeyError, IndexError, TypeError) as error:
        raise InputError(f"the report's data is damaged ({error}); build the report again") from None
    print("\nruns")
    for run, entry in runs.items():
        ended = entry["status"] + (f": {one_line(entry['reason'])}" if entry.get("reason") else "")
        logged = f"  MLflow run {entry['mlflow']}" if entry.get("mlflow") else ""
        print(f"  {run}  {one_line(entry['row'])}, seed {entry['seed']}, {ended}{logged}")
    for setup in setups:
        print()
        for key, value in setup.items():
            if key == "config":
                print("config")
                for name, setting in value.items():
                    print(f"  {name} = {_text(setting)}")
            elif isinstance(value, dict):
                print(f"{key}: " + ", ".join(f"{name} {_text(part)}" for name, part in value.items()))
            else:
                print(f"{key.replace('_', ' ')}: {_text(value)}")
    for name in dict.fromkeys(entry["comparison"] for entry in runs.values()):
        conditions = data.get("experiments", {}).get(name, {})
        print(f"comparison: {one_line(name)}, " + ", ".join(f"{k} {_text(v)}" for k, v in conditions.items()))
    for machine in machines:
        versions = ", ".join(f"{name} {version}" for name, version in machine.get("versions", {}).items())
        place = ", ".join(str(machine[k]) for k in ("device_name", "device", "platform") if machine.get(k))
        print(f"environment: python {machine.get('python', '?')}, {one_line(place)}, {one_line(versions)}")
    print("\ncommands")
    for command in dict.fromkeys(entry.get("command", "") for entry in runs.values()):
        print(f"  {one_line(command) or 'not recorded'}")


def _text(value: Any) -> str:
    return one_line(value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False))
