"""`harness report`: build a report from records; list what can be built."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.commands.options import FORMATS, WORKDIR, Commands, add_command, add_group
from harness.errors import InputError
from harness.files.printable import tell, tell_lines


def register(commands: Commands) -> None:
    """Add `harness report` to the command line. Imports nothing slow: the work is imported when it runs."""
    example = "harness report {} --workdir work/demo"
    actions = add_group(
        commands, "report",
        help="build the report of a paper, a comparison or a study, or list them",
        example=example.format("build demo"),
    )  # fmt: skip
    build = add_command(
        actions, "build", run_build, WORKDIR, FORMATS,
        help="write a report from records (no run is repeated)",
        example=example.format("build demo") + " --format html --format pdf",
    )  # fmt: skip
    build.add_argument(
        "name", metavar="NAME|FILE", help="a paper, comparison or study (see `harness report list`), or a definition"
    )
    build.add_argument("--out", type=Path, metavar="FOLDER", help="folder to write to (default: DIR/reports/NAME)")
    build.add_argument("--without-overlap", action="store_true", help="of a comparison: leave out test examples that "
                       "occur in the training data of a row")  # fmt: skip
    build.add_argument("--with-texts", action="store_true", help="of a comparison: show texts of all data sets; their "
                       "licences may forbid passing the report on")  # fmt: skip
    add_command(
        actions, "checklist", run_checklist, WORKDIR,
        help="answer the reproducibility questions of NeurIPS and ACL from records, as Markdown",
        example=example.format("checklist demo"),
    ).add_argument("name", metavar="NAME", help="a comparison")  # fmt: skip
    add_command(
        actions, "list", run_list, WORKDIR,
        help="list the papers' reports, and what a work directory holds",
        example=example.format("list"),
    )  # fmt: skip


def run_build(args: argparse.Namespace) -> int:
    """Build and print where the report lies."""
    from reports.build import build_report
    from reports.write import report_folder

    if not args.workdir.is_dir() and not Path(args.name).exists():
        raise InputError(f"--workdir {args.workdir}: no such folder; name a work directory of `harness compare`")
    ways = {"without_overlap": args.without_overlap, "with_texts": args.with_texts}
    formats = args.format or report_folder.FORMATS
    for kind, path in build_report(args.name, args.workdir, out=args.out, formats=formats, **ways).items():
        tell(f"{kind:6} {path}")
    return 0


def run_checklist(args: argparse.Namespace) -> int:
    """Print the checklist."""
    from reports.comparison.checklist import checklist

    tell_lines(checklist(args.name, args.workdir))
    return 0


def run_list(args: argparse.Namespace) -> int:
    """Print the definitions, then every comparison and study with its number of runs, and reports that were built."""
    from reports.document.blocks import slug
    from reports.papers import definition
    from reports.read.comparison_runs import comparisons
    from studies.study_api import study_names

    tell("papers:")
    for name in definition.names():
        defined = definition.load(name)
        assert defined is not None
        tell(f"  {name}  {defined.title}")
    workdir = args.workdir
    counts = comparisons(workdir)
    studies = set(study_names(workdir))
    tell(f"{workdir}:")
    if not counts and not studies:
        tell("  no runs yet")
    for name in [*counts, *sorted(studies - set(counts))]:
        number = counts.get(name, 0)
        built = workdir / "reports" / slug(name) / "index.html"
        kind = "study" if name in studies else "comparison"
        runs = f"{number} run{'' if number == 1 else 's'}"
        tell(f"  {name}  {kind}, {runs}  {built if built.exists() else '(no report built)'}")
    return 0
