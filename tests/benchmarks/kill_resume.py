"""kill -9, ten times each in training, between training and evaluation, and in evaluation: is the table the same?

    python tests/benchmarks/kill_resume.py [--kills 10]

Every phase has a work directory of its own: the comparison is started, killed at a random point of the phase, started
again, and so on; after the last kill it runs to its end. The records are then held against an uninterrupted run's.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

EXPERIMENT = """
name = "kill"
seeds = [1, 2]
suites = ["embedded"]
[corpus]
uri = "embedded:sentences"
limit = 800
[dev]
task = "Embedded-STS-natural"
[shared]
batch_size = 16
eval_every = 10
[[methods]]
name = "SimCSE"
method = "simcse"
preset = "mini"
[[methods]]
name = "Barlow Twins"
method = "barlow_twins"
preset = "mini"
"""

CHILD = """
import os, signal, sys, threading
import harness.evaluation.scoring, harness.comparison.cell, harness.training
from harness.cli import main

def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)

phase, amount = sys.argv.pop(1), float(sys.argv.pop(1))
defaults = harness.method.FitContext.__init__.__defaults__
harness.method.FitContext.__init__.__defaults__ = tuple(0.0 if d == 30.0 else d for d in defaults)
if phase == "training":
    update, count = harness.training.Trainer._update, [0]
    def deadly(self):
        count[0] += 1
        if count[0] > amount:
            threading.Timer(0.01 + amount % 1, die).start()  # anywhere inside an update, a save or an evaluation
        update(self)
    harness.training.Trainer._update = deadly
elif phase == "between":
    harness.comparison.cell._evaluate = die
elif phase == "evaluation":
    evaluate = harness.evaluation.scoring.evaluate
    def deadly(*args, **kwargs):
        threading.Timer(amount, die).start()
        return evaluate(*args, **kwargs)
    harness.evaluation.scoring.evaluate = deadly
sys.exit(main(sys.argv[1:]))
"""


def main() -> None:
    """Print one line a phase; exit code 1 when a table differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    same = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "kill.toml").write_text(EXPERIMENT)
        start(folder, "whole", "none", 0)
        whole = table(folder / "whole")
        for phase in ("training", "between", "evaluation"):
            killed = 0
            while killed < args.kills:
                amount = {"training": rng.randint(1, 12) + rng.random() / 10, "evaluation": rng.uniform(0.0, 1.0)}
                code = start(folder, phase, phase, amount.get(phase, 0))
                if code == 0:  # finished before the blow fell: begin anew
                    subprocess.run(["rm", "-rf", str(folder / phase)], check=True)
                    continue
                assert code == -signal.SIGKILL, code
                killed += 1
            start(folder, phase, "none", 0)
            equal = table(folder / phase) == whole
            same &= equal
            print(f"{phase}: {killed} kills, {'same records' if equal else 'DIFFERENT records'}", flush=True)
    sys.exit(0 if same else 1)


def start(folder: Path, work: str, phase: str, amount: float) -> int:
    """Exit status of one start of the comparison."""
    argv = ["compare", str(folder / "kill.toml"), "--workdir", str(folder / work), "--no-tracking", "--quiet"]
    done = subprocess.run([sys.executable, "-c", CHILD, phase, str(amount), *argv], capture_output=True, text=True)
    if done.returncode not in (0, -signal.SIGKILL):
        print(done.stdout, done.stderr, file=sys.stderr)
    return done.returncode


def table(workdir: Path) -> list[tuple[object, ...]]:
    """What must not differ: row, seed, training statistics and every score, to the last bit."""
    from harness.results.manifest import read_records
    from harness.results.run_folder import RunFolder

    return [
        (r.row, r.seed, str(r.training), [s.value for s in r.scores], str(RunFolder(workdir, r.id).curves()))
        for r in read_records(workdir, "kill")
    ]


if __name__ == "__main__":
    main()
