"""`harness report`: build a report from records, list what can be built."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.errors import InputError


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `report` with its actions. Imports nothing slow: the work is imported when it runs."""
    parser = subparsers.add_parser("report", help="build the report of a comparison from its records, or list them")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    build = actions.add_parser("build", help="write a comparison's report (no run is repeated)")
    build.add_argument("name", metavar="NAME", help="the comparison (see `harness report list`)")
    _add_workdir(build)
    build.add_argument(
        "--format",
        default="html,md,latex,csv",
        metavar="LIST",
        help="comma-separated: html, md, latex, csv (default: all)",
    )
    build.add_argument("--out", type=Path, metavar="DIR", help="folder to write to (default: WORKDIR/reports/NAME)")
    build.set_defaults(run=run_build)

    listing = actions.add_parser("list", help="list the comparisons of a work directory")
    _add_workdir(listing)
    listing.set_defaults(run=run_list)


def _add_workdir(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from", dest="workdir", type=Path, required=True, metavar="WORKDIR", help="work directory that holds the runs"
    )


def _existing(workdir: Path) -> Path:
    if not workdir.is_dir():
        raise InputError(f"--from {workdir}: no such folder; give the work directory of `harness compare`")
    return workdir


def run_build(args: argparse.Namespace) -> int:
    """Build and print where the report lies."""
    from reports.build import build_comparison

    formats = tuple(dict.fromkeys(part.strip() for part in args.format.split(",") if part.strip()))
    if not formats:
        raise InputError("--format: name at least one of html, md, latex, csv")
    for kind, path in build_comparison(_existing(args.workdir), args.name, formats=formats, out=args.out).items():
        print(f"{kind:6} {path}")
    return 0


def run_list(args: argparse.Namespace) -> int:
    """Print every comparison with its number of runs, and its report where one was built."""
    from reports.page import slug
    from reports.records import comparisons

    workdir = _existing(args.workdir)
    found = comparisons(workdir)
    if not found:
        print(f"{workdir}: no runs yet")
    for name, count in found.items():
        built = workdir / "reports" / slug(name) / "index.html"
        print(f"{name}  {count} run{'s' if count != 1 else ''}  {built if built.exists() else '(no report built)'}")
    return 0
