"""`harness reproduce`: the runs behind a number of a report, and the commands that repeat them."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from pathlib import Path
from typing import Any

from harness.config import nearest
from harness.errors import InputError
from harness.files.printable import one_line, tell, visible

_DAMAGED = "not the data of a report, or damaged; build the report again with `harness report build`"


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `harness reproduce`. Imports nothing slow."""
    parser = subparsers.add_parser(
        "reproduce",
        help="print the runs and commands behind a number of a report",
        description="Without a cell, list the cells of a report that have runs behind them. With a cell, print its "
        "runs and the commands that repeat them.",
        epilog="example: harness reproduce 'work/demo/reports/demo#scores-embedded:SimCSE:Embedded-STS-natural'",
    )
    parser.add_argument("cell", metavar="REPORT[#TABLE:ROW:COLUMN]", help="folder of a report, its data.json or page")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the cells of a report, or what is behind one."""
    report, name = split_name(args.cell)
    data = read_report(report)
    cells = find_cells(data)
    if name is None:
        for known, cell in cells.items():
            tell(f"{one_line(known):60}  {one_line(_shown(cell)):>15}  {', '.join(cell['records'])}")
        return 0
    if name not in cells:
        hint = nearest(name, list(cells)) or f"; list the cells with: harness reproduce {shlex.quote(str(report))}"
        raise InputError(f'{report}: no cell "{one_line(name)}" with runs behind it{visible(hint)}')
    cell = cells[name]
    tell(f"{one_line(name)} = {one_line(_shown(cell))}  ({cell.get('value')!r})")
    runs = {record: data["runs"][record] for record in cell["records"]}
    for record, entry in runs.items():
        tell(f"run {record}: {one_line(str(entry['row']))}, seed {entry.get('seed')}, {entry['status']}")
    for command in dict.fromkeys(str(entry.get("command", "")) for entry in runs.values()):
        tell(f"  {one_line(command) or 'no command recorded'}")
    return 0


def split_name(text: str) -> tuple[Path, str | None]:
    """(report, cell) of "REPORT#CELL"; a path may contain "#" too.

    Raises:
        InputError: no part before a "#" is an existing path.
    """
    for end in [len(text), *(mark.start() for mark in re.finditer("#", text))]:
        if Path(text[:end]).exists():
            return Path(text[:end]), text[end + 1 :] or None
    raise InputError(f"{one_line(text)}: no such report; give REPORT or REPORT#CELL, where REPORT is its folder, "
                     "data.json or index.html")  # fmt: skip


def read_report(path: Path) -> dict[str, Any]:
    """The data of a report: its folder, data.json or page.

    Raises:
        InputError: not a report, or damaged.
    """
    names = ("data.json", "index.html")
    file = next((path / name for name in names if (path / name).is_file()), path) if path.is_dir() else path
    try:
        text = file.read_text(encoding="utf-8")
        inside = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
        data = json.loads(inside[1] if inside and file.suffix != ".json" else text)
        if not isinstance(data["tables"], dict) or not data["runs"]:
            raise TypeError
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{file}: {_DAMAGED}") from None
    return dict(data)


def find_cells(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """ "TABLE:ROW:COLUMN" -> cell, of every cell with runs behind it; heads of rows are left out."""
    try:
        return {
            f"{key}:{row['name']}:{column['key']}": cell
            for key, table in data["tables"].items()
            for row in table["rows"]
            for column in table["columns"][1:]
            if (cell := row["cells"][column["key"]]).get("records") and data["runs"].keys() >= set(cell["records"])
        }
    except (KeyError, TypeError, AttributeError):
        raise InputError(_DAMAGED) from None


def _shown(cell: dict[str, Any]) -> str:
    return f"{cell['text']} {cell.get('spread', '')}".strip()
