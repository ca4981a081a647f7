"""`harness track sync`: send to MLflow the runs that it lacks."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.files.printable import tell

PAGE = "http://127.0.0.1:5000/#/experiments?workflowType=machine_learning"
"""Where `mlflow ui` shows experiments; its own first page is the one for chats."""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `track` to the command line."""
    track = subparsers.add_parser("track", help="runs in MLflow", description="Runs in MLflow.")
    actions = track.add_subparsers(dest="action", required=True, metavar="ACTION")
    parser = actions.add_parser(
        "sync",
        help="send the runs that the store lacks, or has in an older state",
        description="Send the runs of a work directory that the MLflow store lacks, or has in an older state.",
    )
    parser.add_argument("--from", dest="workdir", type=Path, required=True, metavar="WORKDIR", help="a work directory")
    parser.add_argument(
        "--tracking-uri", metavar="URI", help="an MLflow server or database (default: WORKDIR/mlflow.db, a sqlite file)"
    )
    parser.set_defaults(run=_sync)


def _sync(args: argparse.Namespace) -> int:
    from harness.files.redaction import redacted
    from harness.tracking.tracker import default_uri, sync

    sent = sync(args.workdir, args.tracking_uri)
    uri = args.tracking_uri or default_uri(args.workdir)
    tell(f"sent {sent} runs to {redacted(uri)}" if sent else f"{redacted(uri)} has every run already")
    if uri.startswith("sqlite:"):
        tell(f"look at them with: mlflow ui --backend-store-uri {uri}")
        tell(f"then open: {PAGE}")
    return 0
