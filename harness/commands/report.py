"""`harness report build`: build a report from records."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.commands.options import (
    FORMATS,
    WORKDIR,
    Commands,
    add_command,
    add_group,
    reading,
)
from harness.errors import InputError
from harness.files.printable import tell, tell_lines
from harness.files.reading import is_there


def register(commands: Commands) -> None:
    """Add `harness report` to the command line. Imports nothing slow: the work is imported when it
    runs.
    """
    example = "harness report build demo --workdir work/demo"
    actions = add_group(
        commands,
        "report",
        help="build a report, or fill in a checklist, from records: build, checklist",
        example=example,
    )
    build = add_command(
        actions,
        "build",
        run_build,
        WORKDIR,
        FORMATS,
        help="write a report from records (no run is repeated)",
        example=example + " --format html --format pdf",
    )
    build.add_argument(
        "name",
        metavar="NAME|FILE",
        help="a comparison, a study, a paper (as scd), a file that defines "
        "a report, or scores that others made",
    )
    build.add_argument(
        "--out", type=Path, metavar="FOLDER", help="folder to write to (default: DIR/reports/NAME)"
    )
    build.add_argument(
        "--without-overlap",
        action="store_true",
        help="of a comparison: leave out test examples that occur in the training data of a row",
    )
    build.add_argument(
        "--with-texts",
        action="store_true",
        help="of a comparison: show examples of all data sets, not "
        "only of the embedded ones; their licences may forbid passing the report on",
    )
    build.add_argument(
        "--with",
        dest="with_files",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="of a comparison: rank what others sent with its rows: an archive of `harness pack`, "
        "a work directory, or a table of scores of examples; may be repeated",
    )
    add_command(
        actions,
        "checklist",
        run_checklist,
        WORKDIR,
        help="answer the reproducibility checklists of NeurIPS and ACL from records, as Markdown",
        example="harness report checklist demo --workdir work/demo",
    ).add_argument("name", metavar="NAME", help="a comparison")


def run_build(args: argparse.Namespace) -> int:
    """Build and print where the report lies."""
    if is_there(args.workdir) and args.workdir.is_file() and args.out is None:
        message = "is an archive, in which no report can be written"
        raise InputError(message, file=args.workdir, remedy="name a folder with --out")
    return _build(args)


@reading
def _build(args: argparse.Namespace) -> int:
    from reports.build import build_report
    from reports.write import report_folder

    is_named = Path(args.name).exists() or args.with_files  # those that ship need no folder
    if not args.workdir.is_dir() and not is_named:
        raise InputError(
            f"--workdir {args.workdir}: no such folder",
            key="--workdir",
            remedy="name a work directory of `harness compare`",
        )
    ways = {
        "without_overlap": args.without_overlap,
        "with_texts": args.with_texts,
        "with_files": args.with_files,
    }
    formats = args.format or report_folder.FORMATS
    for kind, path in build_report(
        args.name,
        args.workdir,
        out=args.out,
        formats=formats,
        **ways,
    ).items():
        tell(f"{kind:6} {path}")
    return 0


@reading
def run_checklist(args: argparse.Namespace) -> int:
    """Print the checklist."""
    from reports.comparison.checklist import checklist

    tell_lines(checklist(args.name, args.workdir))
    return 0
