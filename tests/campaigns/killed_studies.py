"""kill -9 of a study's coordinator at random moments, hundreds of times: is the study what it was to be?

    python tests/campaigns/killed_studies.py [--kills 100] [--cells 12] [--training] [--executors serial thread]

Coordinators are forked from a process that has imported everything, so that a blow falls anywhere in the work and not
in Python's start. `thread` makes runs as workers do, two trials at a time. In the end there must be exactly the planned
trials, each finished and none cut short, a run each, and every configuration must have the undisturbed value.
`tests/benchmarks/study_kill.py` kills worker processes, too, and takes its time.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.benchmarks.study_kill import RANDOM, TRAINING
from tests.support import forked, thread_executor


def before() -> None:
    """In each coordinator."""
    thread_executor.install(setattr)
    thread_executor.Thread.at_a_time = 2


def main() -> None:
    """Print a line an executor; exit code 1 when a study is not what was planned."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--cells", type=int, default=12, help="trials of the grid")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--training", action="store_true")
    parser.add_argument("--executors", nargs="*", default=["serial", "thread"])
    args = parser.parse_args()
    rng = random.Random(args.seed)
    good = True
    with tempfile.TemporaryDirectory() as folder_, forked.nothing_drawn(), forked.every_update_a_checkpoint():
        folder = Path(folder_)
        values = [f"{0.01 * (k + 1):.2f}" if args.training else str(k + 2) for k in range(args.cells)]
        (folder / "kill.toml").write_text((TRAINING if args.training else RANDOM).format(values=", ".join(values)))
        forked.import_what_is_used_by(command(folder, "first", "serial"))
        begun = time.monotonic()
        whole = forked.run(command(folder, "whole", "serial"), before=before)
        seconds = time.monotonic() - begun
        assert whole.code == 0, whole.err
        expected, _ = results(folder / "whole")
        print(f"undisturbed: {len(expected)} trials, best {max(expected.values()):.6f}, {seconds:.1f} s", flush=True)
        for executor in args.executors:
            good &= campaign(folder, executor, args.kills, rng, seconds, expected)
    sys.exit(0 if good else 1)


def campaign(
    folder: Path, executor: str, kills: int, rng: random.Random, seconds: float, expected: dict[str, float]
) -> bool:
    """Kill and start again until all blows have fallen, over as many studies as that takes; did each one hold?"""
    fallen = studies = held = 0
    begun = time.monotonic()
    while fallen < kills:
        studies, before_it, ended = studies + 1, fallen, False
        while not ended and fallen < kills:
            started = forked.Started(command(folder, executor, executor), before=before)
            late = time.monotonic() + rng.uniform(0.0, min(seconds / 2, 10.0))
            while time.monotonic() < late and started.poll():
                time.sleep(0.002)
            ended = not started.poll()
            if not ended:
                started.kill()
                fallen += 1
            end = started.wait()
            assert not ended or end.code == 0, end
        last = forked.run(command(folder, executor, executor), before=before)
        assert last.code == 0, last.err
        values, states = results(folder / executor)
        as_planned = values == expected and states == {"COMPLETE": len(expected)}
        held += as_planned
        told = "as planned" if as_planned else f"NOT AS PLANNED: {states}, {len(values)} values"
        print(f"{executor}: study {studies}: {fallen - before_it} kills, {told}", flush=True)
        shutil.rmtree(folder / executor)
    print(f"{executor}: {fallen} kills over {studies} studies of {len(expected)} trials, {held} as planned, "
          f"{time.monotonic() - begun:.0f} s", flush=True)  # fmt: skip
    return held == studies


def command(folder: Path, work: str, executor: str) -> list[str]:
    """`harness study run`."""
    options = ["--workdir", str(folder / work), "--executor", executor, "--no-tracking", "--quiet"]
    return ["study", "run", str(folder / "kill.toml"), *options, "--cpus-per-cell", "1"]


def results(workdir: Path) -> tuple[dict[str, float], dict[str, int]]:
    """Configuration -> value of the trials that count, and how many of all trials are in each state."""
    from studies.run.storage import default_url, load, open_storage
    from studies.run.trials import finished_trials

    url = default_url(workdir)
    stored = load(open_storage(url), "kill", url)
    counted = finished_trials(stored)
    runs = len(list((workdir / "runs").glob("*/record.json")))
    assert len({str(t.params) for t in counted}) == len(counted) == runs, (len(counted), runs)
    return {str(t.params): float(t.value or 0.0) for t in counted}, dict(Counter(t.state.name for t in stored.trials))


if __name__ == "__main__":
    main()
