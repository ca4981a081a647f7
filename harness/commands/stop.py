"""`harness pause` and `harness cancel`: end what runs in a work directory cleanly, from any machine that sees it."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from harness.commands.status import add_names, named
from harness.files.printable import one_line, tell

if TYPE_CHECKING:
    from harness.live.state import State

ABOUT = {
    "pause": "Have what runs in a work directory stop: every run in work writes a checkpoint after its next update. "
    "Nothing is lost, and the command that began it goes on with it.",
    "cancel": "As `harness pause`, for good: runs that have not ended are marked as cancelled. Also of what is paused, "
    "or was killed. Nothing is deleted, and the command that began it still goes on with it.",
}


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `harness pause` and `harness cancel` to the command line."""
    for what, about in ABOUT.items():
        parser = subparsers.add_parser(
            what,
            help=f"{what} what runs in a work directory, from any terminal or machine that sees it",
            description=about,
            epilog="exit codes: 0 it is asked for, 1 there is nothing to stop (with --wait: or it has not stopped), "
            "2 no such work directory or name",
        )
        add_names(parser)
        parser.add_argument("--wait", nargs="?", type=float, const=300.0, metavar="SECONDS",
                            help="until it has stopped, so long at most (default: 300)")  # fmt: skip
        parser.set_defaults(run=run, what=what)


def run(args: argparse.Namespace) -> int:
    """Ask; exit code 1 where there is nothing to stop."""
    from harness.live.requests import CANCEL, ask

    states = named(args.workdir, args.name)
    running = [state for state in states if state.phase == "running"]
    for state in running:
        ask(args.workdir, state.key, args.what)
        where = f"{one_line(state.host)}, process {state.pid}"
        tell(f'asked {state.kind} "{one_line(state.name)}" to {args.what} ({where}); runs in work stop at their next '
             "update, those that are being scored before the next task")  # fmt: skip
    left = [state for state in states if args.what == CANCEL and state.phase not in ("running", "cancelled")]
    marked = [state for state in left if state.ended < len(state.cells)]
    for state in marked:
        _mark(args.workdir, state)
        tell(f'{state.kind} "{one_line(state.name)}": {len(state.cells) - state.ended} runs marked as cancelled')
    if not running and not marked:
        tell(f"{args.workdir}: nothing runs here" + (f' that is called "{args.name}"' if args.name else ""))
        return 1
    return _wait(args, running) if args.wait is not None and running else 0


def _mark(workdir: Path, state: State) -> None:
    """Write that a comparison without a coordinator is cancelled."""
    from harness.live.state import CANCELLED, OPEN, write

    was = f"it was {state.phase} before" if state.phase != "dead" else state.reason
    state.phase, state.reason = "cancelled", was
    for cell in state.cells:
        cell.state = CANCELLED if cell.state in OPEN else cell.state
    state.time = state.time or time.time()
    write(workdir, state)


def _wait(args: argparse.Namespace, asked: list[State]) -> int:
    """Until none of them runs any more."""
    names = {state.key for state in asked}
    until = time.monotonic() + args.wait
    while time.monotonic() < until:
        states = [state for state in named(args.workdir, None) if state.key in names]
        if all(state.phase != "running" for state in states):
            for state in states:
                count = f"{state.ended} of {len(state.cells)} have ended"
                tell(f'{state.kind} "{one_line(state.name)}": {state.phase}, {count}')
            return 0 if all(state.phase in ("paused", "cancelled", "ended") for state in states) else 1
        time.sleep(1)
    tell(f"still running after {args.wait:.0f} s; the request stands")
    return 1
