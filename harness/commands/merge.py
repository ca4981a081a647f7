"""`harness merge`: the runs of other work directories come into one; nothing there is overwritten."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.files.printable import one_line, tell


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `harness merge` to the command line."""
    parser = subparsers.add_parser(
        "merge",
        help="bring the runs of other work directories into one",
        description="Bring the runs of other work directories, of archives of them, or the records that ship with the "
        "package into WORKDIR: records with scores, pairs, outcomes, figures and curves, and the comparisons that name "
        "them. Every file is held against the hashes in its record. What is in WORKDIR stays as it is.",
        epilog="example: harness merge work from-the-cluster; exit code 1 where something did not come",
    )
    parser.add_argument("workdir", metavar="WORKDIR", help="gets the runs")
    parser.add_argument("others", metavar="OTHER", nargs="+", help="a work directory, an archive of one, or shipped")
    parser.add_argument("--weights", action="store_true", help="saved models too, of the runs that kept theirs")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print what came, what was there and what did not come; exit code 1 where a run or comparison did not."""
    from harness.files.locks import work_lock
    from harness.results.elsewhere import opened
    from harness.results.merging import merge
    from harness.results.run_folder import checked_workdir

    workdir, whole = checked_workdir(args.workdir), True
    with work_lock(workdir / "locks", "merge", f"harness merge into {workdir}"):
        for source in args.others:
            with opened(source) as other:
                if Path(other).resolve() == workdir.resolve():
                    tell(f"{source}: is WORKDIR itself")
                    continue
                merged = merge(workdir, other, weights=args.weights)
            came = f"{len(merged.taken)} runs came, {len(merged.there)} were here"
            names = f"; comparisons: {', '.join(map(one_line, merged.comparisons))}" if merged.comparisons else ""
            tell(f"{source}: {came}{names}")
            for what, left in (("run", merged.refused), ("comparison", merged.kept)):
                for name, why in left.items():
                    tell(f"{source}: {what} {one_line(name)}: {one_line(why)}")
                    whole = False
    return 0 if whole else 1
