"""`harness status`, `harness stop` and `harness track sync`: progress, a clean stop and MLflow of a work directory."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path
from typing import Any

from harness.commands.options import Commands, add_command, add_group, add_json
from harness.errors import InputError
from harness.files.printable import one_line, tell, tell_json

PAGE = "http://127.0.0.1:5000/#/experiments?workflowType=machine_learning"
"""Where `mlflow ui` shows experiments; its first page is the one for chats."""


def register(commands: Commands) -> None:
    """Add the commands to the command line."""
    status = add_command(
        commands, "status", show_status,
        help="show how far the comparisons and studies of a work directory are, and what failed",
        example="harness status work",
    )  # fmt: skip
    status.add_argument("workdir", type=Path, help="a work directory of `harness compare` or `harness study run`")
    add_json(status)

    stop = add_command(
        commands, "stop", stop_runs,
        help="stop a comparison or study at its next checkpoint",
        description="Stop what runs in a work directory: its runs write checkpoints, and the command that started it "
        "resumes it.",
        example="harness stop work",
    )  # fmt: skip
    stop.add_argument("workdir", type=Path, help="the work directory")
    stop.add_argument("name", nargs="?", help="name of the comparison or study (default: all that run)")

    example = "harness track sync --from work"
    track = add_group(commands, "track", help="runs in MLflow", example=example)
    sync = add_command(
        track, "sync", sync_runs,
        help="send the runs of a work directory that the MLflow store lacks or has in an older state",
        example=example,
    )  # fmt: skip
    sync.add_argument("--from", dest="workdir", type=Path, required=True, metavar="WORKDIR", help="a work directory")
    sync.add_argument("--tracking-uri", metavar="URI", help="an MLflow server or database (default: WORKDIR/mlflow.db)")


def show_status(args: argparse.Namespace) -> int:
    """Exit code 0, or 1 when a run failed."""
    states = _states(args.workdir)
    if args.json:
        tell_json(states)
    else:
        for state in states:
            _show(state)
    return 1 if any(run["state"] == "failed" for state in states for run in state["runs"]) else 0


def stop_runs(args: argparse.Namespace) -> int:
    """Request a stop; exit code 1 when nothing runs."""
    from harness.runs.progress import read_progress, request_stop

    running = [state["name"] for state in read_progress(args.workdir) if state["phase"] == "running"]
    names = [args.name] if args.name else running
    for name in names:
        tell(request_stop(args.workdir, name))
    if not names:
        tell(f"{args.workdir}: nothing is running")
    return 0 if names else 1


def sync_runs(args: argparse.Namespace) -> int:
    """Send the runs, and print how to open a local store."""
    from harness.files.redaction import redacted
    from harness.tracking import default_uri, sync

    sent = sync(args.workdir, args.tracking_uri)
    uri = args.tracking_uri or default_uri(args.workdir)
    tell(f"sent {sent} runs to {redacted(uri)}" if sent else f"{redacted(uri)} has every run already")
    if uri.startswith("sqlite:"):
        tell(f"show them with: mlflow ui --backend-store-uri {uri}")
        tell(f"then open: {PAGE}")
    return 0


def _states(workdir: Path) -> list[dict[str, Any]]:
    """What runs or ran, the latest first; a comparison without progress from its file and its records.

    Raises:
        InputError: no work directory.
    """
    from harness.results.store import comparison_files, read_comparison_file
    from harness.runs.progress import read_progress
    from harness.seeds import seed_of, seed_text

    if not any((workdir / name).exists() for name in ("runs", "comparisons", "progress.json")):
        raise InputError(f"{workdir}: no work directory; name one of `harness compare` or `harness study run`")
    states = read_progress(workdir)
    for name in sorted(comparison_files(workdir).keys() - {state["name"] for state in states}):
        runs = [
            {"label": f"{run['row']} · {run['base_model']} · seed {seed_text(seed_of(run))}"} | _outcome(workdir, run)
            for run in (read_comparison_file(workdir, name) or {"runs": []})["runs"]
        ]
        phase = "interrupted" if any(run["state"] == "waiting" for run in runs) else "ended"
        states.append({"name": name, "kind": "comparison", "phase": phase, "reason": "", "updated": 0.0,
                       "remaining_seconds": None, "runs": runs})  # fmt: skip
    return states


def _outcome(workdir: Path, run: dict[str, Any]) -> dict[str, str]:
    from harness.results.store import RunFolder

    try:
        record = RunFolder(workdir, run["id"]).read()
    except InputError as error:
        return {"state": "failed", "text": str(error)}
    if record is None or record.status == "trained":
        return {"state": "waiting", "text": ""}
    return {"state": "n/a" if record.unavailable else record.status, "text": record.reason}


def _show(state: dict[str, Any]) -> None:
    from harness.runs.progress import describe_duration, describe_remaining

    counts = Counter(run["state"] for run in state["runs"])
    summary = ", ".join(f"{count} {name}" for name, count in counts.most_common())
    ago = f", updated {describe_duration(time.time() - state['updated'])} ago" if state["updated"] else ""
    left = describe_remaining(state["remaining_seconds"])
    tell(f"{state['kind']} {one_line(state['name'])}: {state['phase']}{ago}{f', {left}' if left else ''}: {summary}")
    if state["reason"]:
        tell(f"  {one_line(state['reason'])}")
    for run in state["runs"]:
        steps = f"step {run['step']:,} of {run['steps']:,}, " if run.get("steps") and run["state"] == "running" else ""
        if run["state"] in ("running", "failed", "collapsed", "diverged", "n/a"):
            tell(f"  {run['state']}: {one_line(run['label'])}: {steps}{one_line(run['text'])}")
