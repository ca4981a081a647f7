"""Shows that `kill -9` at random moments loses nothing: the same command gives the scores of an
uninterrupted call.

    python -m tools.campaigns.kills [--kills 20] [--what compare|study] [--workers 1] [--seed 0]
        [--who group|coordinator] [--within SECONDS]

A small comparison (two trained methods, two seeds) or study (a grid of six trials; other samplers
draw other values after an interruption) is run once without interruption. Then it is killed at
random moments, by SIGKILL to its whole process group, as often as requested; each time it ends, a
new work directory begins. With `--who coordinator` SIGKILL goes to the command's own process alone,
as an out-of-memory killer sends it: its workers must have ended 30 seconds later.

Scores, dev scores and trial values must be equal to the last digit, and no finished run may be
executed again. The exit code is 1 where one of this does not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from tools.campaigns.counted import save_count

COMMON = """
name = "kills"
precision = "fp32"
[corpus]
uri = "embedded:sentences"
limit = 600
[dev]
task = "Embedded-STS-natural"
pairs = 40
every = 4
"""
COMPARISON = f"""seeds = [1, 2]
suites = ["Embedded-STS-natural"]
max_steps = 12
{COMMON}
[shared]
batch_size = 16
[[methods]]
method = "simcse"
preset = "mini"
[[methods]]
method = "barlow_twins"
preset = "mini"
"""
STUDY = f"""method = "simcse"
preset = "mini"
sampler = "grid"
steps = 8
seeds = [101]
config = {{ batch_size = 16 }}
{COMMON}
[space]
temperature = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5]
"""


GRACE = 30.0  # seconds in which workers notice that their coordinator has ended


def run(command: list[str], after: float | None = None, *, alone: bool = False) -> tuple[int, int]:
    """Run a command, or kill its process group after some seconds, or its own process `alone`.

    Returns:
        Its exit code, negative where it was killed, and how many processes it has left behind.
    """
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        _, errors = process.communicate(timeout=after)
    except subprocess.TimeoutExpired:
        workers = psutil.Process(process.pid).children(recursive=True)
        if alone:
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
        _, orphans = psutil.wait_procs(workers, timeout=GRACE)
        for orphan in orphans:
            orphan.kill()
        process.communicate()
        return -9, len(orphans)
    if process.returncode:
        print(errors[-2000:])
    return process.returncode, 0


def results(workdir: Path) -> dict[str, Any]:
    """Run -> its scores and dev score, and when it finished."""
    found = {}
    for file in workdir.glob("runs/*/record.json"):
        record = json.loads(file.read_text())
        scores = [[s["task"], s["metric"], s["aggregation"], s["value"]] for s in record["scores"]]
        if record["status"] == "finished":
            found[record["id"]] = (scores, record["training"].get("best_dev"), record["finished"])
    return found


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--what", choices=("compare", "study"), default="compare")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--who", choices=("group", "coordinator"), default="group")
    parser.add_argument(
        "--within", type=float, help="seconds in which to kill; default: those of a whole call"
    )
    return parser.parse_args()


def main() -> int:
    """Kill as often as requested, and return the exit code."""
    args = _parse_arguments()
    rng = random.Random(args.seed)
    faults = 0
    kills = 0
    orphans = 0
    alone = args.who == "coordinator"
    os.environ |= {"OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        file = folder / "kills.toml"
        file.write_text(COMPARISON if args.what == "compare" else STUDY)
        words = ["compare"] if args.what == "compare" else ["study", "run"]

        def command(workdir: Path) -> list[str]:
            line = [sys.executable, "-m", "harness", *words, str(file), "--workdir", str(workdir)]
            line += ["--tracking-uri=none", "--quiet"]
            if args.what == "compare":
                line += ["--format", "md"]
            if args.workers > 1:
                line += ["--executor", "processes", "--workers", str(args.workers)]
            return line

        start = time.monotonic()
        assert run(command(folder / "whole")) == (0, 0)
        whole = args.within or time.monotonic() - start
        expected = results(folder / "whole")
        round_ = 0
        while kills < args.kills:
            workdir = folder / f"killed-{round_}"
            known: dict[str, Any] = {}
            round_ += 1
            while True:
                after = rng.uniform(0.1, 1.0) * whole if kills < args.kills else None
                code, left = run(command(workdir), after, alone=alone)
                orphans += left
                kills += code == -9
                now = results(workdir)
                again = [run for run in known if now.get(run, known[run])[2] != known[run][2]]
                faults += len(again)
                known = now
                if code != -9:
                    break
            seen = {run: value[:2] for run, value in now.items()}
            wanted = {run: value[:2] for run, value in expected.items()}
            good = seen == wanted and code == 0
            faults += not good
            verdict = "equal" if good else "NOT EQUAL"
            print(f"work directory {round_}: {kills} kills so far, {verdict}", flush=True)
    name = f"kills {args.what}, {args.who}, {args.workers} workers"
    save_count(name, kills, faults + orphans)
    print(
        f"{args.what}, {args.workers} workers: {kills} kills of the {args.who}, {faults} faults, "
        f"{orphans} processes left behind"
    )
    return 1 if faults or orphans else 0


if __name__ == "__main__":
    sys.exit(main())
