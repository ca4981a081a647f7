"""`harness status`, `harness stop` and `harness track sync`: progress, a clean stop and MLflow of a
work directory.
"""

from __future__ import annotations

import argparse
import shlex
import time
from collections import Counter
from typing import Any

from harness.commands.options import JSON, WORKDIR, Commands, add_command, add_group
from harness.errors import InputError
from harness.files.printable import redacted, tell, tell_json
from harness.files.reading import is_there


def register(commands: Commands) -> None:
    """Add the commands to the command line."""
    add_command(
        commands,
        "status",
        show_status,
        WORKDIR,
        JSON,
        help="show how far the comparisons and studies of a work directory are, and what failed",
        example="harness status --workdir work/demo",
    )
    stop = add_command(
        commands,
        "stop",
        stop_runs,
        WORKDIR,
        help="stop a comparison or study at its next checkpoint",
        description="Stop what runs in a work directory, at its next checkpoint. The command that started it "
        "resumes it.",
        example="harness stop --workdir work/demo",
    )
    stop.add_argument(
        "name", nargs="?", help="name of the comparison or study (default: all that run)"
    )
    example = "harness track sync --workdir work/demo"
    track = add_group(
        commands, "track", help="send runs to MLflow or another tracker: sync", example=example
    )
    sync = add_command(
        track,
        "sync",
        sync_runs,
        WORKDIR,
        help="send to a tracker the runs of a work directory that it lacks or has in an older state",
        example=example,
    )
    sync.add_argument(
        "--tracking-uri",
        metavar="URI",
        help="MLflow server or database, or another tracker (default: DIR/mlflow.db)",
    )


def show_status(args: argparse.Namespace) -> int:
    """Exit code 0, or 1 when a run failed."""
    from harness.runs.progress import read_progress

    states = read_progress(args.workdir)
    if not states:
        file = args.workdir / "progress.json"
        if is_there(file):
            raise InputError(
                "holds no comparison or study, or is damaged",
                file=str(file),
                remedy="it may be deleted: the next one writes it",
            )
        raise InputError(
            f"--workdir {args.workdir}: no progress.json of a comparison or study there",
            key="--workdir",
        )
    if args.json:
        tell_json(states)
    else:
        for state in states:
            _show(state)
    for state in states:
        if any(run["state"] == "failed" for run in state["runs"]):
            return 1
    return 0


def stop_runs(args: argparse.Namespace) -> int:
    """Request a stop; exit code 1 when nothing runs."""
    from harness.runs.progress import read_progress, request_stop

    running = []
    for state in read_progress(args.workdir):
        if state["phase"] in ("running", "unknown"):
            running.append(state["name"])
    names = [args.name] if args.name else running
    for name in names:
        tell(request_stop(args.workdir, name))
    if not names:
        tell(f"{args.workdir}: nothing is running")
    return 0 if names else 1


def sync_runs(args: argparse.Namespace) -> int:
    """Send the runs, and print how to open a local store."""
    from harness.tracking import default_uri, sync

    uri = args.tracking_uri or default_uri(args.workdir)
    sent = sync(args.workdir, args.tracking_uri)
    tell(
        f"sent {sent} runs to {redacted(uri)}" if sent else f"{redacted(uri)} has every run already"
    )
    if uri.startswith("sqlite:"):
        tell(f"show them with: mlflow ui --backend-store-uri {shlex.quote(uri)}")
    return 0


def _show(state: dict[str, Any]) -> None:
    from harness.machine.progress import describe_duration, describe_remaining

    counts = Counter(run["state"] for run in state["runs"])
    counted = [f"{count} {name}" for name, count in counts.most_common()]
    summary = ", ".join(counted)
    phase = state["phase"]
    if phase == "running" and state.get("stop_requested"):
        asked = time.localtime(state["stop_requested"])
        at = time.strftime("%H:%M:%S", asked)
        phase = f"stopping, as requested at {at}"
    seconds = max(0.0, time.time() - state["updated"])
    ago = f"updated {describe_duration(seconds)} ago"
    remaining = ""
    if phase == "running":  # not where it stops, has ended or is silent
        remaining = describe_remaining(state["remaining_seconds"])
    about = ", ".join(filter(None, (phase, ago, remaining, state["reason"])))
    tell(f"{state['kind']} {state['name']}: {about}: {summary}")
    for run in state["runs"]:
        if run["state"] in ("running", "failed", "collapsed", "diverged", "n/a"):
            steps = ""
            if run["state"] == "running" and run["steps"]:
                steps = f"step {run['step']:,} of {run['steps']:,}"
            text = ", ".join(filter(None, (steps, run["text"])))
            tell(f"  {run['state']}: {run['label']}: {text}")
