"""kill -9 of workers, of the coordinator, and of all at once, at random moments: is the study what it was to be?

    python tests/benchmarks/study_kill.py [--kills 10] [--training] [--cells 24] [--phases workers coordinator all]

A grid is run undisturbed in one process. Then it is run by two workers of which one is killed now and then, with its
coordinator killed and started again, and with all its processes killed at once. In the end there must be exactly the
planned trials, each finished, as many runs, and every configuration must have the undisturbed value. With --training
the trials are short trainings (they go on from their checkpoints) instead of random vectors.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import psutil

RANDOM = """
method = "random"
precision = "fp32"
suites = ["Embedded-STS-natural", "Embedded-STS-contrast"]
objectives = ["Embedded-STS-natural"]
sampler = "grid"
[space]
dimension = [{values}]
"""
TRAINING = """
method = "simcse"
preset = "mini"
config = {{ batch_size = 8, eval_every = 3, train_length = 12 }}
corpus = {{ uri = "embedded:sentences", limit = 80 }}
dev = {{ task = "Embedded-STS-natural" }}
steps = 9
precision = "fp32"
sampler = "grid"
[space]
temperature = [{values}]
"""


def main() -> None:
    """Print a line a phase; exit code 1 when a study is not what was planned."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--cells", type=int, default=24, help="trials of the grid")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--training", action="store_true")
    parser.add_argument(
        "--phases", nargs="*", choices=("workers", "coordinator", "all"), default=["workers", "coordinator", "all"]
    )
    args = parser.parse_args()
    rng = random.Random(args.seed)
    same = True
    with tempfile.TemporaryDirectory() as folder_:
        folder = Path(folder_)
        values = [f"{0.01 * (k + 1):.2f}" if args.training else str(k + 2) for k in range(args.cells)]
        text = (TRAINING if args.training else RANDOM).format(values=", ".join(values))
        # A blow falls when the other worker has ended a run: soon enough on one and the same run four times in a row.
        (folder / "kill.toml").write_text(f"executor = {{ retries = {args.kills} }}\n{text}")
        begun = time.monotonic()
        assert start(folder, "whole", 1).wait() == 0
        seconds = time.monotonic() - begun
        whole = results(folder / "whole")
        print(f"undisturbed: {len(whole[0])} trials, best {max(whole[0].values()):.6f}, {seconds:.0f} s", flush=True)
        for phase in args.phases:
            strike = kill_workers if phase == "workers" else kill_coordinator
            begun = time.monotonic()
            kills = anew = 0
            while True:
                kills += strike(folder, phase, args.kills - kills, rng, seconds)
                if kills == args.kills:
                    break
                shutil.rmtree(folder / phase)  # finished before all blows had fallen: begin anew
                anew += 1
            assert start(folder, phase, 2).wait() == 0
            values_of, states = results(folder / phase)
            equal = values_of == whole[0] and states == {"COMPLETE": args.cells}
            same &= equal
            told = ", ".join(f"{count} {state.lower()}" for state, count in sorted(states.items()))
            print(f"{phase}: {kills} kills ({anew} times begun anew), {args.cells} trials planned, {told}, "
                  f"best {max(values_of.values()):.6f}, {'as planned' if equal else 'NOT AS PLANNED'}, "
                  f"{time.monotonic() - begun:.0f} s", flush=True)  # fmt: skip
    sys.exit(0 if same else 1)


def start(folder: Path, work: str, workers: int) -> subprocess.Popen[bytes]:
    """`harness study run` in a process of its own."""
    command = [sys.executable, "-m", "harness", "study", "run", str(folder / "kill.toml")]
    options = ["--workdir", str(folder / work), "--workers", str(workers), "--cpus-per-cell", "1"]
    options += ["--no-tracking", "--quiet"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}  # with another number of threads, sums differ in the last bits
    with (folder / f"{work}.log").open("ab") as log:
        return subprocess.Popen([*command, *options], env=environment, stdout=log, stderr=log)


def kill_workers(folder: Path, work: str, kills: int, rng: random.Random, seconds: float) -> int:
    """Kill a worker of a running study at up to `kills` random moments; returns how many fell before it was over."""
    process = start(folder, work, 2)
    killed, finished = 0, 0
    while killed < kills:
        # Some work must be done between two blows, or a run loses all its tries.
        wait_for_a_run(process, folder / work, finished)
        time.sleep(rng.uniform(0.0, 2.0))
        workers = children(process.pid)
        if process.poll() is not None:
            break
        if workers:
            finished = count(folder / work)
            kill(rng.choice(workers))
            killed += 1
    assert process.wait() == 0, (folder / f"{work}.log").read_text()
    return killed


def kill_coordinator(folder: Path, work: str, kills: int, rng: random.Random, seconds: float) -> int:
    """Start a study and kill its coordinator, again and again; returns how many blows fell before it was over."""
    for killed in range(kills):
        process = start(folder, work, 2)
        if killed % 2:  # in the midst of the trials, however slow the machine has become
            wait_for_a_run(process, folder / work, count(folder / work))
            moment = rng.uniform(0.0, 2.0)
        else:  # anywhere from the start of the interpreter on
            moment = rng.uniform(0.0, seconds)
        try:
            assert process.wait(moment) == 0
            return killed
        except subprocess.TimeoutExpired:
            for pid in [process.pid, *(children(process.pid) if work == "all" else [])]:
                kill(pid)
            process.wait()
    return kills


def wait_for_a_run(process: subprocess.Popen[bytes], workdir: Path, finished: int) -> None:
    """Until there are more finished runs than `finished`, or the process has ended."""
    while process.poll() is None and count(workdir) <= finished:
        time.sleep(0.02)


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def children(pid: int) -> list[int]:
    """The worker processes that a coordinator has started."""
    with suppress(psutil.NoSuchProcess):
        started = [child for child in psutil.Process(pid).children() if "spawn_main" in " ".join(child.cmdline())]
        return [child.pid for child in started]
    return []


def count(workdir: Path) -> int:
    """Finished runs."""
    return len(list((workdir / "runs").glob("*/record.json")))


def results(workdir: Path) -> tuple[dict[str, float], dict[str, int]]:
    """Configuration -> value of the trials that count, and how many of all trials are in each state."""
    from studies.run.storage import default_url, load, open_storage
    from studies.run.trials import finished_trials

    url = default_url(workdir)
    stored = load(open_storage(url), "kill", url)
    counted = finished_trials(stored)
    assert len({str(t.params) for t in counted}) == len(counted) == count(workdir)
    states = Counter(t.state.name for t in stored.trials)
    return {str(t.params): float(t.value or 0.0) for t in counted}, states


if __name__ == "__main__":
    main()
