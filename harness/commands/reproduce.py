"""`harness reproduce`: the runs and commands behind a number of a report, and running them again."""

from __future__ import annotations

import argparse
import io
import re
import shlex
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

from harness.commands import compare, study
from harness.commands.options import Commands, Parser
from harness.config import nearest
from harness.errors import InputError, RunError, naming
from harness.files.printable import join_some, one_line, tell, visible
from harness.files.reading import is_ordinary, is_there, parse_json, read_text
from harness.results.comparison import ComparisonFile

# a report may come from anyone: nothing else is run
_COMMANDS = (
    ["harness", "compare"],
    ["harness", "study", "run"],
)
_MOST = 10  # differences that are printed
_DAMAGED = (
    "not the data of a report, or damaged; build the report again with `harness report build`, "
    "or name an archive of `harness pack`"
)


def register(subparsers: Commands) -> None:
    """Add `harness reproduce`. Imports nothing slow."""
    parser = subparsers.add_parser(
        "reproduce",
        help="print the runs and commands behind a number of a report or an archive, or run them again",
        description="Without a cell, list the cells of a report that have runs behind them. With a cell, print its "
        "runs and the commands that repeat them. With --run, run these commands in a new work directory and compare. "
        "Of an archive of `harness pack`, print what is in it; with --run, run its experiment again and answer "
        '"equal", or which digit differs and why.',
        epilog="example: harness reproduce 'work/demo/reports/demo#scores-embedded:SimCSE:Embedded-STS-natural'",
    )
    parser.add_argument(
        "cell",
        metavar="REPORT[#TABLE:ROW:COLUMN]|FILE.zip",
        help="folder of a report, and one of its cells; or an archive of `harness pack`",
    )
    parser.add_argument(
        "--run",
        type=Path,
        dest="workdir",
        metavar="NEW",
        help="run the commands in this new folder",
    )
    parser.add_argument(
        "--allow-code",
        action="store_true",
        help="of an archive: run the code, commands and functions that it names; read them first",
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        help="of an archive without data: the folder that has its files",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="overrides",
        help="of an archive: override a value of its experiment; may be repeated",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit code 0; with `--run`, 1 if the new number differs as shown."""
    if is_ordinary(Path(args.cell)) and zipfile.is_zipfile(args.cell):
        if args.workdir is None:
            return _show_archive(args)
        return _repeat_archive(args)
    if args.allow_code or args.data or args.overrides:
        raise InputError(
            "--allow-code, --data and --set go with an archive of `harness pack`",
            key="--allow-code",
        )
    report, name = split_name(args.cell)
    data = read_report(report)
    with naming(str(report)):
        cells = find_cells(data)
    if name is None:
        if args.workdir is not None:
            raise InputError(
                f"--run: name one cell, as {args.cell}#TABLE:ROW:COLUMN (without --run they are listed)",
                key="--run",
            )
        _list_cells(cells)
        return 0
    if name not in cells:
        hint = (
            nearest(name, list(cells))
            or f"; list the cells with: harness reproduce {shlex.quote(str(report))}"
        )
        raise InputError(
            f'no cell "{one_line(name)}" with runs behind it{visible(hint)}', file=report
        )
    cell = cells[name]
    runs = {record: data["runs"][record] for record in cell["records"]}
    every = [str(entry.get("command", "")) for entry in runs.values()]
    commands = list(dict.fromkeys(every))
    _show_cell(name, cell, runs, commands)
    if args.workdir is None:
        return 0
    return int(not _repeat(name, cell, data, commands, args.workdir))


def _list_cells(cells: Mapping[str, dict[str, Any]]) -> None:
    """Print each cell with its number and the ids of its runs."""
    for name, cell in cells.items():
        number = one_line(_format_cell(cell))
        runs = ", ".join(cell["records"])
        tell(f"{one_line(name):60}  {number:>15}  {runs}")


def _show_cell(
    name: str,
    cell: dict[str, Any],
    runs: Mapping[str, dict[str, Any]],
    commands: Sequence[str],
) -> None:
    """Print the number of a cell, its runs and the commands that make them."""
    number = one_line(_format_cell(cell))
    value = cell.get("value")
    tell(f"{one_line(name)} = {number}  ({value!r})")
    for record, entry in runs.items():
        row = one_line(str(entry["row"]))
        seed = entry.get("seed")
        tell(f"run {record}: {row}, seed {seed}, {entry['status']}")
    for command in commands:
        tell(f"  {one_line(command) or 'no command recorded'}")


def _show_archive(args: argparse.Namespace) -> int:
    """Print what is in an archive."""
    from tempfile import TemporaryDirectory

    from harness.api.repeat import unpack
    from harness.results.store import read_comparison_file

    with TemporaryDirectory(prefix="harness-archive-") as place:
        folder, manifest = unpack(Path(args.cell), Path(place))
        file = read_comparison_file(folder, manifest.comparison)
    runs = () if file is None else file.runs
    rows = list(dict.fromkeys(run.row for run in runs))
    count = f"{len(runs)} runs of {len(rows)} rows"
    tell(one_line(f"{manifest.comparison}: {count}: {join_some(rows, 8)}"))
    for entry in manifest.data:
        state = "included" if entry.included else "not included"
        tell(one_line(f"data: {entry.file} ({entry.used_as}), {state}"))
    for name in manifest.code:
        tell(one_line(f"code: {name}, which runs with --allow-code alone"))
    tell(f"run it again with: harness reproduce {shlex.quote(args.cell)} --run NEW")
    return 0


def _repeat_archive(args: argparse.Namespace) -> int:
    """Run an archive again; the answer is the last line."""
    from harness.api.repeat import repeat

    found = repeat(
        Path(args.cell),
        args.workdir,
        allow_code=args.allow_code,
        data=args.data,
        overrides=args.overrides,
    )
    for line in found.differences[:_MOST]:
        tell(one_line(line))
    if len(found.differences) > _MOST:
        tell(f"and {len(found.differences) - _MOST} further scores")
    for reason in found.reasons:
        tell(one_line(reason))
    if found.equal:
        tell(f"equal: {found.scores} scores of {found.runs} runs, to the last digit")
        return 0
    tell(f"not equal: {len(found.differences)} of {found.scores} scores of {found.runs} runs")
    return 1


def split_name(text: str) -> tuple[Path, str | None]:
    """(report, cell) of "REPORT#CELL"; a path may contain "#" too.

    Raises:
        InputError: no part before a "#" is an existing path.
    """
    ends = [mark.start() for mark in re.finditer("#", text)]
    for end in [len(text), *ends]:
        report = Path(text[:end])
        if is_there(report):
            return report, text[end + 1 :] or None
    raise InputError(
        f"{one_line(text)}: no such report",
        file=one_line(text),
        remedy="give REPORT or REPORT#CELL, where REPORT is its folder, data.json or index.html",
    )


def read_report(path: Path) -> dict[str, Any]:
    """The data of a report: its folder, data.json or page.

    Raises:
        InputError: not a report, or damaged.
    """
    file = _file_of_report(path)
    try:
        text = read_text(file)
        inside = re.search(
            r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL
        )
        if inside and file.suffix != ".json":
            text = inside[1]
        data = parse_json(text)
        if not isinstance(data["tables"], dict) or not data["runs"]:
            raise TypeError
    except (InputError, ValueError, KeyError, TypeError, RecursionError):
        raise InputError(_DAMAGED, file=file) from None
    return dict(data)


def _file_of_report(path: Path) -> Path:
    """Return the file of a report's folder that has its data; a file is returned unchanged."""
    for name in ("data.json", "index.html"):
        file = path / name
        if file.is_file():
            return file
    return path


def find_cells(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """ "TABLE:ROW:COLUMN" -> cell, of every cell with runs behind it; heads of rows are left out."""
    try:
        cells = {}
        for key, table in data["tables"].items():
            for row in table["rows"]:
                for column in table["columns"][1:]:
                    cell = row["cells"][column["key"]]
                    records = cell.get("records")
                    if records and data["runs"].keys() >= set(records):
                        name = f"{key}:{row['name']}:{column['key']}"
                        cells[name] = cell
        return cells
    except (KeyError, TypeError, AttributeError):
        raise InputError(_DAMAGED) from None


def _format_cell(cell: dict[str, Any]) -> str:
    spread = cell.get("spread", "")
    return f"{cell['text']} {spread}".strip()


def _repeat(
    name: str,
    cell: dict[str, Any],
    data: dict[str, Any],
    commands: list[str],
    workdir: Path,
) -> bool:
    """Run the commands in a new work directory; is the cell of the new report the same as shown?"""
    from harness.results.store import comparison_files, read_comparison_file

    merged: ComparisonFile | None = None  # each command leaves one of its own part and seed
    if workdir.exists() and (not workdir.is_dir() or any(workdir.iterdir())):
        raise InputError(f"--run {workdir}: not empty", key="--run", remedy="name a new folder")
    for words in map(shlex.split, commands):
        command = one_line(shlex.join(words))
        if not any(words[: len(known)] == known for known in _COMMANDS):
            shown = command or "no command recorded"
            message = f"{shown}: no command of `harness` that can be repeated here"
            raise InputError(message, key=shown)
        tell(f"running: {command}")
        if run_command(words[1:], workdir) not in (0, 1):
            raise RunError(f"{command}: failed")
        for known in comparison_files(workdir):
            file = read_comparison_file(workdir, known)
            if file is not None:
                merged = _join_runs(merged, file)
    new = find_cells(_new_report(data, merged, workdir)).get(name)
    if new is None:
        tell("the report of the new runs has no such cell")
        return False
    old_value = cell.get("value")
    value = new.get("value")
    if old_value == value:
        difference = "equal"
    elif old_value and value:
        difference = f"they differ by {value - old_value:+.3g}"
    else:
        difference = ""
    tell(
        one_line(
            f"in the report: {_format_cell(cell)} ({old_value!r}); now: {_format_cell(new)} ({value!r}) {difference}"
        )
    )
    return bool(cell["text"] == new["text"])


def _join_runs(earlier: ComparisonFile | None, file: ComparisonFile) -> ComparisonFile:
    """Return the second comparison with the runs of both."""
    runs = earlier.runs if earlier is not None else ()
    known_ids = {run.id for run in runs}
    further = tuple(run for run in file.runs if run.id not in known_ids)
    return file.model_copy(update={"runs": runs + further})


def run_command(words: list[str], workdir: Path) -> int:
    """Run a recorded `compare` or `study run` in another work directory; returns its exit code.

    The report may come from anyone, so only what defines the runs is taken from the command: they
    are executed in this process, and tracked nowhere. Otherwise a report could start commands
    through options of an executor, or have a tracking token sent to a server that it names.

    Raises:
        InputError: the words are no such command.
    """
    parser = Parser(prog="harness", exit_on_error=False)
    commands: Any = parser.add_subparsers(required=True)
    compare.register(commands)
    study.register(commands)
    refused = io.StringIO()  # the parser's own line, which is not about a file
    try:
        with redirect_stderr(refused):
            args = parser.parse_args(words)
    except (SystemExit, argparse.ArgumentError):
        command = one_line(shlex.join(words))
        message = f"{command}: not a command of this version"
        raise InputError(message, key=command) from None
    args.workdir = workdir
    args.tracking_uri = "none"
    args.executor = "serial"
    args.workers = None
    args.overrides = [text for text in args.overrides if not _is_executor_option(text)]
    code: int = args.run(args)
    return code


def _is_executor_option(override: str) -> bool:
    key = override.partition("=")[0].strip()
    return re.split(r"[.\s]", key)[0].strip("\"'") == "executor"


def _new_report(
    data: dict[str, Any],
    merged: ComparisonFile | None,
    workdir: Path,
) -> dict[str, Any]:
    """The same report, of all runs of the new work directory."""
    from harness.results.store import write_comparison_file
    from reports.build import build_report

    name = str(data.get("comparison") or data.get("report"))
    if "comparison" in data and merged is not None:
        write_comparison_file(workdir, merged.model_copy(update={"name": name}))
    return read_report(build_report(name, workdir, formats=["csv"])["json"])
