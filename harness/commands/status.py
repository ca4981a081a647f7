"""`harness status`: how far the comparisons and studies of a work directory are, from any machine that sees it."""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.files.printable import one_line, tell, tell_json

if TYPE_CHECKING:
    from harness.live.state import Cell, InWork, State

SHOWN = 20  # runs in work, and failures, that are named
CODES = "exit codes: 0 nothing is wrong, 1 a run has failed or a coordinator is dead, 2 no such work directory or name"


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `harness status` to the command line."""
    parser = subparsers.add_parser(
        "status",
        help="how far the comparisons and studies of a work directory are",
        description="What runs in a work directory, who runs it, what has failed, and when it will end: from any "
        "machine that sees the directory, whether its coordinator lives or not. WORKDIR/live/index.html says the same "
        "with curves.",
        epilog=CODES,
    )
    add_names(parser)
    parser.add_argument("--json", action="store_true", help="machine-readable: every run with its state")
    parser.set_defaults(run=run)


def add_names(parser: argparse.ArgumentParser) -> None:
    """The arguments by which a command knows what it is about."""
    parser.add_argument("workdir", type=Path, metavar="WORKDIR", help="a work directory")
    parser.add_argument("name", nargs="?", metavar="NAME", help="of a comparison or study (default: all of them)")


def named(workdir: Path, name: str | None) -> list[State]:
    """The states that are meant.

    Raises:
        InputError: no such work directory, or nothing of that name in it.
    """
    from harness.config import nearest
    from harness.errors import InputError
    from harness.live.before import all_states

    found = all_states(workdir)
    if name is None:
        return found
    known = [state.name for state in found]
    if name not in known:
        there = ", ".join(known) or "nothing"
        raise InputError(f'{workdir}: nothing is called "{name}"{nearest(name, known)}; there is: {there}')
    return [state for state in found if state.name == name]


def run(args: argparse.Namespace) -> int:
    """Print the states; exit code 1 where a run has failed or a coordinator is dead."""
    now = time.time()
    found = named(args.workdir, args.name)
    if args.json:
        tell_json({"workdir": str(args.workdir), "time": now, "told": [_tree(state) for state in found]})
    else:
        for number, state in enumerate(found):
            _print(state, now, blank=number > 0)
        if (page := args.workdir / "live" / "index.html").is_file():
            tell(f"page: {page}")
        if not found:
            tell(f"{args.workdir}: nothing has been run here")
    wrong = any(state.phase in ("dead", "failed") or "failed" in state.counts for state in found)
    return 1 if wrong else 0


def _tree(state: State) -> dict[str, Any]:
    """A state as JSON has it: no numbers that are none."""
    tree = asdict(state)
    tree["counts"] = state.counts
    clean: dict[str, Any] = _finite(tree)
    return clean


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _print(state: State, now: float, *, blank: bool) -> None:
    from harness.live.remaining import clock, duration
    from harness.live.state import groups

    if blank:
        tell()
    noun = "trials" if state.kind == "study" else "runs"
    line = f"{state.kind} {one_line(state.name)}: {state.phase}, {state.ended} of {len(state.cells)} {noun} have ended"
    if state.phase == "running":
        line += f"; {state.left.told(now)}" if state.left is not None else "; how long it takes is not known yet"
    tell(line)
    if state.reason:
        tell(f"  {one_line(state.reason)}")
    if state.host:
        told = f", told {duration(max(0.0, now - state.time))} ago" if state.phase == "running" else ""
        by = f"{one_line(state.host)}, process {state.pid} ({one_line(state.executor)})"
        tell(f"  by {by}, since {clock(state.begun, now)}{told}")
    for (row, base), cells in groups(state.cells).items():
        tell(
            f"  {one_line(row)} · {one_line(base)}: {_seeds(cells)}" if base else f"  {one_line(row)}: {_seeds(cells)}"
        )
    for one in state.in_work[:SHOWN]:
        tell(f"  in work: {_worker(one, now)}")
    if len(state.in_work) > SHOWN:
        tell(f"  in work: {len(state.in_work) - SHOWN} more (--json has them all)")
    trouble = [c for c in state.cells if c.state in ("failed", "collapsed", "diverged", "n/a")]
    lost = [c for c in state.cells if c.state == "waiting" and c.reason]
    for cell in (*trouble, *lost)[:SHOWN]:
        tell(f"  {'waits again' if cell.state == 'waiting' else cell.state}: {one_line(cell.label)}: "
             f"{one_line(cell.reason)}")  # fmt: skip
    if len(trouble) + len(lost) > SHOWN:
        tell(f"  and {len(trouble) + len(lost) - SHOWN} more without a score (--json has them all)")
    for score in state.scores:
        within = f" [{score.low:.2f}, {score.high:.2f}]" if score.low is not None and score.high is not None else ""
        spread = f" ± {score.deviation:.2f}" if not within and score.deviation is not None else ""
        tell(f"  so far: {one_line(score.row)} · {one_line(score.base_model)}: {one_line(score.column)} "
             f"{score.mean:.2f}{within or spread} (n = {score.n})")  # fmt: skip
    if state.phase not in ("running", "ended") and state.ended < len(state.cells):
        tell("  nothing is lost, the same command goes on" + (f": {one_line(state.command)}" if state.command else ""))


def _seeds(cells: list[Cell]) -> str:
    """ "1, 2 finished; 3 running"."""
    by_state: dict[str, list[str]] = {}
    for cell in cells:
        by_state.setdefault(cell.state, []).append(cell.seed or cell.label)
    return "; ".join(
        f"{', '.join(map(one_line, seeds)) if len(seeds) < 9 else len(seeds)} {state}"
        for state, seeds in by_state.items()
    )


def _worker(one: InWork, now: float) -> str:
    from harness.live.remaining import duration

    seen = one.seen
    at = f"{seen.step}/{seen.steps} updates" if seen.steps else one_line(seen.text)
    speed = f", {seen.speed:.3g} updates/s" if seen.speed and seen.steps else ""
    left = f", {duration(one.left)} of training left" if one.left is not None else ""
    age = duration(max(0.0, now - seen.time))
    return f"{one_line(one.label)}: {at}{speed}{left}; {one_line(seen.host)}, process {seen.pid}, told {age} ago"
