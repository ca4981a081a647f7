"""The site: every report as a page of its own, an index that is searched and sorted, and two runs side by side.

Reports are those of the work directory; one that is older than its runs, or not there, is built first.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.errors import HarnessError, InputError, RunError
from harness.files.printable import one_line
from harness.results.manifest import manifest_files, read_records
from harness.results.record import Record
from reports.build import build_report
from reports.document.blocks import Block, Document, Section, Text, Widget, slug
from reports.document.table import Cell, Column, Table, TableRow
from reports.read.comparison_runs import comparisons
from reports.site.run_facts import GROUPS, read_curve, run_facts
from reports.write.html import page

MOST_RUNS = 300  # whose facts the index holds


def build_site(workdir: Path, out: Path, *, say: Callable[[str], None] = lambda line: None) -> Path:
    """Write `index.html` and a page for each comparison and study of a work directory; each is one file.

    Args:
        say: told of each page, and of a report that cannot be built: it has a line in the index, and no page.

    Raises:
        InputError: the work directory holds no runs.
        RunError: the folder cannot be written.
    """
    records = read_records(workdir, damaged={})
    if not records:
        raise InputError(f"{workdir}: it holds no runs: run `harness compare` first")
    studies = sorted(path.name for path in (workdir / "studies").glob("*") if path.is_dir())
    names = list(dict.fromkeys([*manifest_files(workdir), *comparisons(workdir), *studies]))
    rows = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name in names:
            own = [record for record in records if record.comparison == name]
            rows.append(_page(workdir, out, name, own, "study" if name in studies else "comparison", say))
        index = out / "index.html"
        index.write_text(_index(workdir, rows, records), encoding="utf-8")
    except OSError as error:
        raise RunError(f"{out}: cannot write the site ({error.strerror}); the runs are untouched") from None
    return index


def _page(
    workdir: Path, out: Path, name: str, records: list[Record], kind: str, say: Callable[[str], None]
) -> TableRow:
    """Copy or build the page of a report; its line of the index."""
    file, runs = f"{slug(name)}.html", len(records)
    last = max((record.finished for record in records), default="")[:10]
    end = (Cell(kind), Cell(str(runs), value=runs, state="value"), Cell(last))
    try:
        folder = _report(workdir, name, records)
        said = json.loads((folder / "data.json").read_text(encoding="utf-8"))
        (out / file).write_bytes((folder / "index.html").read_bytes())
    except HarnessError as error:
        say(f"{name}: no page: {one_line(str(error))}")
        return TableRow((Cell(name), Cell(""), Cell(one_line(str(error))), *end))
    say(str(out / file))
    return TableRow((Cell(name, href=file), Cell(str(said["title"])), Cell(str(said["headline"])), *end))


def _report(workdir: Path, name: str, records: list[Record]) -> Path:
    """The folder of a report that is newer than its runs."""
    folder = workdir / "reports" / slug(name)
    places = [workdir / "runs" / record.id / "record.json" for record in records]
    if name in (manifests := manifest_files(workdir)):
        places.append(manifests[name])
    built = folder / "index.html"
    if not built.exists() or any(place.stat().st_mtime > built.stat().st_mtime for place in places if place.exists()):
        build_report(name, workdir)
    return folder


def _index(workdir: Path, rows: list[TableRow], records: list[Record]) -> str:
    columns = (
        Column("name", "Name", numeric=False),
        Column("title", "Title", numeric=False),
        Column("found", "What was found", numeric=False),
        Column("kind", "Kind", numeric=False),
        Column("runs", "Runs"),
        Column("last", "Last run", numeric=False),
    )
    table = Table(
        "comparisons",
        "Reports",
        "A click on a head sorts; “Rows” searches where there are several.",
        columns,
        tuple(rows),
    )
    newest = sorted(records, key=lambda record: record.finished, reverse=True)[:MOST_RUNS]
    blocks: list[Block] = [_runs(workdir, newest)]
    if len(newest) < len(records):
        blocks.append(Text((f"The newest {len(newest)} of {len(records)} runs.",)))
    sections = [Section("reports", "Reports", [table]), Section("runs", "Two runs side by side", blocks)]
    facts = [(str(len(rows)), "report" if len(rows) == 1 else "reports"), (str(len(records)), "runs")]
    headline = "Each page is one file, and can be handed on alone."
    document = Document(f"Reports of {workdir.resolve().name}", headline, facts, sections)
    data: dict[str, Any] = {"title": document.title, "tables": {table.key: table.as_dict()}}
    return page(document, data)


def _runs(workdir: Path, records: list[Record]) -> Widget:
    runs = [run_facts(record, read_curve(workdir, record)) for record in records]
    runs.sort(key=lambda run: str(run["name"]))
    return Widget(
        "runs",
        "What differs between two runs",
        "Configuration, data, versions, machine, training and scores of two runs, and the first logged step at which "
        "their trainings part, by every digit that was logged.",
        "runs",
        {"runs": runs, "groups": list(GROUPS)},
    )
