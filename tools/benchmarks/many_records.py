"""Shows processor seconds and peak memory of the commands that read a work directory with 2,000
records.

    python -m tools.benchmarks.many_records [--records 2000] [--command "report build"]

Four rows are run with one seed; the records of the other seeds are copies under the ids that the
plan gives them, with other scores. Each command is measured in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.runs.plan import Job

os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
ROWS = 4
EXPERIMENT = """
name = "many"
seeds = {seeds}
suites = ["Embedded-STS-natural"]
corpus = {{ uri = "embedded:sentences", limit = 64 }}
max_steps = 2
precision = "fp32"
[dev]
task = "Embedded-STS-natural"
[shared]
batch_size = 8
max_length = 8
"""
ENTRY = """
[[methods]]
method = "simcse"
name = "SimCSE {number}"
config = {{ temperature = {temperature} }}
"""


def make(folder: Path, records: int) -> None:
    """Make a work directory "w" below `folder` with so many records of one comparison."""
    from harness.results.comparison import ListedRun
    from harness.results.store import read_comparison_file, write_comparison_file
    from harness.runs.experiment import read_experiment
    from harness.runs.plan import make_plan

    numbers = range(1, ROWS + 1)
    rows = "".join(ENTRY.format(number=n, temperature=round(0.05 * n, 2)) for n in numbers)
    seeds = list(range(1, records // ROWS + 1))
    file = folder / "many.toml"
    work = folder / "w"
    file.write_text(EXPERIMENT.format(seeds=[1]) + rows)
    command = [sys.executable, "-m", "harness", *compare_command(str(file), str(work))]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    file.write_text(EXPERIMENT.format(seeds=seeds) + rows)
    plan = make_plan(read_experiment(str(file), []), str(file))
    first = {job.row: job.id for job in plan.jobs if job.spec.seed == 1}
    comparison = read_comparison_file(work, "many")
    assert comparison is not None
    runs = []
    for job in plan.jobs:
        if job.row in first and not plan.row_of(job).added:
            base = job.spec.base_model
            runs.append(ListedRun(id=job.id, row=job.row, base_model=base, seed=job.spec.seed))
    starts = [run for run in comparison.runs if run.added]
    experiment = comparison.experiment | {"seeds": seeds}
    changes = {"experiment": experiment, "runs": (*runs, *starts)}
    write_comparison_file(work, comparison.model_copy(update=changes))

    rng = random.Random(0)
    for job in plan.jobs:
        target = work / "runs" / job.id
        if not target.exists():
            copy_run(work / "runs" / first[job.row], target, job, rng)


def copy_run(source: Path, target: Path, job: Job, rng: random.Random) -> None:
    """Copy a run without its weights under the id of `job`, with other scores."""
    target.mkdir()
    record = json.loads((source / "record.json").read_text())
    record |= {"digest": "", "id": job.id, "spec": job.spec.model_dump(mode="json")}
    files = record["files"].items()
    record["removed"] = {name: digest for name, digest in files if name.startswith("model/")}
    record["files"] = {name: digest for name, digest in files if not name.startswith("model/")}
    for score in record["scores"]:
        score["value"] += rng.gauss(0, 0.01)
    (target / "record.json").write_text(json.dumps(record, indent=1) + "\n")
    for name in record["files"]:
        shutil.copy(source / name, target / name)


def compare_command(file: str, work: str) -> list[str]:
    """Return the words of `harness compare` that run an experiment file quietly."""
    options = ["--tracking-uri=none", "--format", "md", "--quiet"]
    return ["compare", file, "--workdir", work, *options]


def measure(command: list[str]) -> tuple[int, float, float]:
    """Return exit code, processor seconds and peak MiB of a command."""
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", *command], stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> int:
    """Measure the commands; exit code 1 where one failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=2000)
    parser.add_argument("--command", default="", help="those with this in them")
    args = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, args.records)
        work = str(folder / "w")
        file = str(folder / "many.toml")
        formats = ["--format", "md", "--format", "csv"]
        commands = {
            "compare --dry-run": ["compare", file, "--workdir", work, "--dry-run"],
            "report build": ["report", "build", "many", "--workdir", work, *formats],
            "compare, all reused": compare_command(file, work),
            "doctor --workdir": ["doctor", "--workdir", work],
            "status": ["status", "--workdir", work],
            "track sync": ["track", "sync", "--workdir", work],
        }
        print(f"{'command':<20} {'code':>4} {'processor s':>12} {'peak MiB':>9}")
        for title, command in commands.items():
            if args.command in title:
                code, seconds, peak = measure(command)
                good &= code == 0
                print(f"{title:<20} {code:>4} {seconds:>12.1f} {peak:>9.0f}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
