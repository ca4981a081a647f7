"""`harness report`: build a report from records; list what can be built."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.errors import InputError
from harness.files.printable import tell


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `report` with its actions. Imports nothing slow: the work is imported when it runs."""
    parser = subparsers.add_parser(
        "report",
        help="build the report of a paper, a comparison or a study, or list them",
        epilog="example: harness report build demo --from work/demo",
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    build = actions.add_parser(
        "build",
        help="write a report from records (no run is repeated)",
        epilog="example: harness report build demo --from work/demo --format html,pdf",
    )
    build.add_argument(
        "name", metavar="NAME|FILE", help="a paper, comparison or study (see `harness report list`), or a definition"
    )
    build.add_argument(
        "--format",
        default="html,md,latex,csv",
        metavar="LIST",
        help="comma-separated: html, md, latex, csv, pdf (default: the first four)",
    )
    build.add_argument("--out", type=Path, metavar="DIR", help="folder to write to (default: WORKDIR/reports/NAME)")
    build.add_argument("--without-overlap", action="store_true", help="of a comparison: leave out test examples that "
                       "occur in the training data of a row")  # fmt: skip
    build.add_argument("--with-texts", action="store_true", help="of a comparison: show texts of all data sets; their "
                       "licences may forbid passing the report on")  # fmt: skip
    build.set_defaults(run=run_build)

    listing = actions.add_parser(
        "list",
        help="list the papers' reports, and what a work directory holds",
        epilog="example: harness report list --from work",
    )
    for action in (build, listing):
        action.add_argument("--from", dest="workdir", type=Path, required=action is build, metavar="WORKDIR",
                            help="work directory that holds the runs")  # fmt: skip
    listing.set_defaults(run=run_list)


def _checked(workdir: Path) -> Path:
    """The work directory that `--from` names.

    Raises:
        InputError: no such folder.
    """
    if not workdir.is_dir():
        raise InputError(f"--from {workdir}: no such folder; give the work directory of `harness compare`")
    return workdir


def run_build(args: argparse.Namespace) -> int:
    """Build and print where the report lies."""
    from reports.build import build_report

    formats = tuple(dict.fromkeys(part.strip() for part in args.format.split(",") if part.strip()))
    if not formats:
        raise InputError("--format: name at least one of html, md, latex, csv, pdf")
    ways = {"without_overlap": args.without_overlap, "with_texts": args.with_texts}
    built = build_report(args.name, _checked(args.workdir), out=args.out, formats=formats, **ways)
    for kind, path in built.items():
        tell(f"{kind:6} {path}")
    return 0


def run_list(args: argparse.Namespace) -> int:
    """Print the definitions, then every comparison and study with its number of runs, and reports that were built."""
    from reports.document.blocks import slug
    from reports.papers import definition
    from reports.read.comparison_runs import comparisons

    tell("papers:")
    for name in definition.names():
        defined = definition.load(name)
        assert defined is not None
        tell(f"  {name}  {defined.title}")
    if args.workdir is None:
        tell("comparisons and studies: name a work directory with --from")
        return 0
    workdir = _checked(args.workdir)
    counts = comparisons(workdir)
    studies = {path.name for path in (workdir / "studies").glob("*") if path.is_dir()}
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
