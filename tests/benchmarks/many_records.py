"""Processor seconds and peak memory of the commands that read a work directory, at 2,000 records.

    python tests/benchmarks/many_records.py [--records 2000] [--command "report list"]

Four rows are run with one seed; the records of the other seeds are copies of theirs under the ids that the plan gives
them, with scores of their own. Each command runs in a process of its own, which is what is measured.
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
    """A work directory "w" below `folder` with so many records of one comparison."""
    from harness.comparison.experiment import read_experiment
    from harness.comparison.plan import make_plan

    rows = "".join(ENTRY.format(number=n, temperature=round(0.05 * n, 2)) for n in range(1, ROWS + 1))
    file, work = folder / "many.toml", folder / "w"
    file.write_text(EXPERIMENT.format(seeds=[1]) + rows)
    subprocess.run([sys.executable, "-m", "harness", "compare", str(file), "--workdir", str(work), "--no-tracking",
                    "--format", "md", "--quiet"], check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    file.write_text(EXPERIMENT.format(seeds=list(range(1, records // ROWS + 1))) + rows)
    cells = make_plan(read_experiment(str(file), []), str(file)).cells
    first = {cell.row.label: cell.id for cell in cells if cell.seed == 1}
    manifest = json.loads((work / "comparisons" / "many.json").read_text())
    manifest["experiment"]["seeds"] = list(range(1, records // ROWS + 1))
    manifest["cells"] = [{"id": c.id, "row": c.row.label, "base_model": c.base_model, "seed": c.seed} for c in cells]
    (work / "comparisons" / "many.json").write_text(json.dumps(manifest))
    rng = random.Random(0)
    for cell in cells:
        source, target = work / "runs" / first[cell.row.label], work / "runs" / cell.id
        if cell.seed == 1:
            continue
        target.mkdir()
        record = json.loads((source / "record.json").read_text())
        record |= {"id": cell.id, "seed": cell.seed, "identity": getattr(cell, "identity", {})}
        record["config"] |= {"seed": cell.seed} if "seed" in record["config"] else {}
        if "files" in record:  # its weights are not copied
            record["files"] = {n: h for n, h in record["files"].items() if not n.startswith("model/")}
        if not record.get("identity"):
            record.pop("identity", None)
        for score in record["scores"]:
            score["value"] += rng.gauss(0, 0.01)
        (target / "record.json").write_text(json.dumps(record, indent=1) + "\n")
        for name in ("pairs.parquet", "curves.jsonl"):
            shutil.copy(source / name, target / name)


def measured(command: list[str]) -> tuple[int, float, float]:
    """Exit code, processor seconds and peak MiB of a command."""
    process = subprocess.Popen([sys.executable, "-m", "harness", *command], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> int:
    """Exit code 1 where a command failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=2000)
    parser.add_argument("--command", default="", help="those with this in them")
    args = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, args.records)
        work, file = str(folder / "w"), str(folder / "many.toml")
        commands = {
            "compare --dry-run": ["compare", file, "--workdir", work, "--dry-run"],
            "report list": ["report", "list", "--from", work],
            "report build": ["report", "build", "many", "--from", work, "--format", "md,csv"],
            "compare, all kept": ["compare", file, "--workdir", work, "--no-tracking", "--format", "md", "--quiet"],
            "doctor --workdir": ["doctor", "--workdir", work],
            "track sync": ["track", "sync", "--from", work],
        }
        print(f"{'command':<20} {'code':>4} {'processor s':>12} {'peak MiB':>9}")
        for title, command in commands.items():
            if args.command in title:
                code, seconds, peak = measured(command)
                good &= code == 0
                print(f"{title:<20} {code:>4} {seconds:>12.1f} {peak:>9.0f}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
