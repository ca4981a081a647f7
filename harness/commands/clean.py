"""`harness clean`: the disk space of a work directory and of the caches, and how to free it."""

from __future__ import annotations

import argparse

from harness.commands.options import WORKDIR, Commands, add_command
from harness.errors import InputError
from harness.files.printable import tell

KINDS = {
    "models": "weights of finished runs; scores stay, and further tasks train the run again",
    "checkpoints": "of trainings that have not ended; these begin again",
    "cache": "vectors of the work directory; sentences are encoded again when they are needed",
    "shared-cache": "data and vectors of all work directories; they are prepared again",
}
"""What each kind is, and what removing it costs."""
_GIB = 2**30


def register(commands: Commands) -> None:
    """Add the command to the command line."""
    clean = add_command(
        commands,
        "clean",
        run_clean,
        WORKDIR,
        help="list the models, checkpoints and caches of a work directory, or remove them",
        description="List what the models, checkpoints and caches of a work directory take on the disk, or remove "
        "those kinds that are named. Scores, examples and curves stay.",
        example="harness clean models --workdir work/demo --dry-run",
    )
    clean.add_argument(
        "kinds",
        nargs="*",
        metavar="KIND",
        type=_parse_kind,
        help=f"what to remove: {', '.join(KINDS)} (default: nothing; all kinds are listed)",
    )
    clean.add_argument(
        "--dry-run", action="store_true", help="list the folders that would go, and remove nothing"
    )


def _parse_kind(text: str) -> str:
    if text not in KINDS:
        known = ", ".join(KINDS)
        raise argparse.ArgumentTypeError(f'unknown "{text}"; known: {known}')
    return text


def run_clean(args: argparse.Namespace) -> int:
    """List or remove; exit code 1 when something in use stayed."""
    from harness.results.clean import find_removable
    from harness.results.store import checked_workdir

    workdir = checked_workdir(args.workdir, create=False)
    if not workdir.is_dir():
        raise InputError(
            f"--workdir {args.workdir}: there is no such folder",
            key="--workdir",
            file=workdir,
        )
    if not args.kinds:
        _list_kinds(args)
        return 0
    if not args.dry_run:
        _refuse_while_running(args)
    stayed = 0
    freed = 0
    for kind in args.kinds:
        for item in find_removable(workdir, kind):
            if args.dry_run:
                tell(f"{_gib(item.bytes)}  {item.folder}")
                freed += item.bytes
            elif item.remove():
                freed += item.bytes
            else:
                stayed += 1
                tell(f"in use, so it stays: {item.folder}")
    done = "would free" if args.dry_run else "freed"
    tell(f"{done} {_gib(freed).strip()}")
    return 1 if stayed else 0


def _list_kinds(args: argparse.Namespace) -> None:
    from harness.results.clean import find_removable

    for kind, about in KINDS.items():
        items = find_removable(args.workdir, kind)
        total = sum(item.bytes for item in items)
        count = f"{len(items):>6,} folders"
        tell(f"{kind:<12}  {count}  {_gib(total)}  {about}")
    tell(f"remove one kind with: harness clean KIND --workdir {args.workdir} (--dry-run lists it)")


def _refuse_while_running(args: argparse.Namespace) -> None:
    """Check that nothing runs in the work directory: it would miss what is removed.

    Raises:
        InputError: a comparison or study runs there, or may run on another machine.
    """
    from harness.runs.progress import read_progress

    for state in read_progress(args.workdir):
        if state["phase"] in ("running", "unknown"):
            running = f"{state['kind']} {state['name']} runs there"
            message = f"--workdir {args.workdir}: {running}"
            remedy = f"harness stop --workdir {args.workdir}, then again"
            raise InputError(message, key="--workdir", remedy=remedy)


def _gib(size: int) -> str:
    return f"{size / _GIB:8.3f} GiB"
