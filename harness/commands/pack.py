"""`harness pack`: a comparison as one archive to publish or pass on."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.commands.options import WORKDIR, Commands, add_command
from harness.files.printable import tell_lines


def register(commands: Commands) -> None:
    """Add `harness pack` to the command line. Imports nothing slow."""
    pack = add_command(
        commands,
        "pack",
        run,
        WORKDIR,
        help="pack a comparison into one archive: experiment, records, data, code, versions",
        description="Write a comparison as one zip file: the experiment as it was resolved, a frozen plan, records "
        "and scores of examples, your own data or its hashes, the code of plugins and scripts, versions and "
        "licences. `harness reproduce FILE.zip --run NEW` runs it again; `--against FILE.zip` and `harness "
        "report build NAME --workdir FILE.zip` read it. It has no paths of your home and no credentials.",
        example="harness pack mine --workdir work/mine --out mine.zip",
    )
    pack.add_argument(
        "name",
        nargs="?",
        default="",
        metavar="NAME",
        help="a comparison of the work directory (default: the only one)",
    )
    pack.add_argument(
        "--out", type=Path, metavar="FILE.zip", help="the archive (default: NAME.zip)"
    )
    pack.add_argument(
        "--no-data",
        action="store_true",
        help="leave out your own files: their hashes are listed; to run it again, others need "
        "the files",
    )
    pack.add_argument("--weights", action="store_true", help="with the models of all runs")
    pack.add_argument("--submitter", default="", metavar="NAME", help="who sends the archive")
    pack.add_argument(
        "--link", default="", metavar="URL", help="a page with more on it, https://..."
    )
    pack.add_argument(
        "--with-paths",
        action="store_true",
        help="allow paths of your home that options of rows hold, on which ids of runs depend",
    )


def run(args: argparse.Namespace) -> int:
    """Exit code 0 once the archive is written."""
    from harness import api

    answer = api.pack(
        args.workdir,
        args.out,
        comparison=args.name,
        data=not args.no_data,
        weights=args.weights,
        with_paths=args.with_paths,
        submitter=args.submitter,
        link=args.link,
    )
    tell_lines(answer.text)
    return 0
