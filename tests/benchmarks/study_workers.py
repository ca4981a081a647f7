"""A study with one worker and with two, one thread each: how much faster, nothing twice and nothing lost?

    python tests/benchmarks/study_workers.py [--cells 12] [--steps 30] [--limit 2000]

Every call has a work directory of its own. At last the two workers' grid is run again: nothing may be trained then.
Start-up, tables and figures are within the seconds; "trials" are the seconds from the first trial's start to the last
one's end. The trials are trainings on embedded data; take as many cells and steps as make a minute of one worker.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

STUDY = """
method = "simcse"
preset = "mini"
config = {{ batch_size = 32, eval_every = 10 }}
corpus = {{ uri = "embedded:sentences", limit = {limit} }}
dev = {{ task = "Embedded-STS-natural" }}
steps = {steps}
precision = "fp32"
sampler = "grid"
[space]
temperature = [{values}]
"""


def main() -> None:
    """Print a line a call and the ratio; exit code 1 when a trial is doubled, lost or trained again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=12)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--limit", type=int, default=2000, help="sentences of the corpus")
    args = parser.parse_args()
    values = ", ".join(f"{0.02 * (k + 1):.2f}" for k in range(args.cells))
    good, spans = True, {}
    with tempfile.TemporaryDirectory() as folder_:
        folder = Path(folder_)
        (folder / "shared.toml").write_text(STUDY.format(limit=args.limit, steps=args.steps, values=values))
        values_by = {}
        for workers in (1, 2):
            seconds, processor = run(folder, workers)
            values_by[workers], spans[workers], doubled, lost = outcome(folder / str(workers), args.cells)
            good &= doubled == lost == 0
            print(f"{workers} worker{'s' * (workers > 1)}: {seconds:.1f} s, {processor:.1f} s of a processor, "
                  f"trials {spans[workers]:.1f} s, "
                  f"{len(values_by[workers])} finished, {doubled} doubled, {lost} lost", flush=True)  # fmt: skip
        same = values_by[1] == values_by[2]
        print(f"trials {spans[1] / spans[2]:.2f} times faster with 2 workers; {'same' if same else 'OTHER'} values")
        before = records(folder / "2")
        seconds, _ = run(folder, 2)
        trained = len(set(records(folder / "2").items()) - set(before.items()))
        print(f"the same again: {seconds:.1f} s, {trained} runs trained")
    sys.exit(0 if good and same and trained == 0 else 1)


def run(folder: Path, workers: int) -> tuple[float, float]:
    """Seconds of `harness study run`, with one thread a worker: by the clock, and of a processor."""
    command = [sys.executable, "-m", "harness", "study", "run", str(folder / "shared.toml"), "--quiet"]
    options = ["--workdir", str(folder / str(workers)), "--workers", str(workers), "--cpus-per-cell", "1"]
    options.append("--no-tracking")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([*command, *options], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    worked = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - begun, worked


def records(workdir: Path) -> dict[str, int]:
    """Run -> when its record was written, in nanoseconds."""
    return {file.parent.name: file.stat().st_mtime_ns for file in (workdir / "runs").glob("*/record.json")}


def outcome(workdir: Path, cells: int) -> tuple[dict[str, float], float, int, int]:
    """Configuration -> value, seconds from the first start to the last end, doubled and lost trials."""
    from studies.run.storage import default_url, load, open_storage
    from studies.run.trials import finished_trials

    url = default_url(workdir)
    study = load(open_storage(url), "shared", url)
    run_ = study.trials
    done = finished_trials(study)
    configurations = Counter(json.dumps(t.params) for t in run_)
    doubled = sum(count - 1 for count in configurations.values())
    starts = [t.datetime_start.timestamp() for t in run_ if t.datetime_start]
    ends = [t.datetime_complete.timestamp() for t in run_ if t.datetime_complete]
    values = {json.dumps(t.params): float(t.value or 0.0) for t in done}
    return values, max(ends) - min(starts), doubled, cells - len(values)


if __name__ == "__main__":
    main()
