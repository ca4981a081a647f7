"""The cells of a built report, and the runs behind each."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.files.printable import one_line


@dataclass(frozen=True)
class ReportCell:
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


def split(text: str) -> tuple[Path, str | None]:
    """(report, cell) of "REPORT#CELL"; a path may hold "#" too.

    Raises:
        InputError: no part before a "#" is a path that exists.
    """
    if Path(text).exists():
        return Path(text), None
    for mark in re.finditer("#", text):
        if Path(text[: mark.start()]).exists():
            return Path(text[: mark.start()]), text[mark.end() :]
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


def references(data: dict[str, Any]) -> dict[str, ReportCell]:
    """Name -> cell of every cell with runs behind it, in the order of the tables; the rows' heads are left out."""
    cells: dict[str, ReportCell] = {}
    try:
        for key, table in data["tables"].items():
            columns = [column["key"] for column in table["columns"]]
            for row in table["rows"]:
                head = row["cells"][columns[0]]["text"]
                for column in columns[1:]:
                    cell = row["cells"][column]
                    if cell.get("records"):
                        name = f"{key}:{row['name']}:{column}"
                        cells[name] = ReportCell(name, key, head, row["block"], column, cell)
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"the report's data is damaged ({error}); build the report again") from None
    return cells


def one_line_of(value: Any) -> str:
    return one_line(value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False))
