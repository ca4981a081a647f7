"""Twelve small cells by each executor, and what an executor takes for a job in which nothing happens.

    python tests/benchmarks/executors.py [--cells 12] [--updates 150] [--only throughput|empty]

Throughput: serial at one thread and at two, and two workers at one thread each, each in a process of its own. Wall
seconds mean something on an idle machine alone; so the processor seconds of coordinator and workers stand beside them,
and the seconds that follow for two free cores: the coordinator's, and half of the workers'.
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
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
WAYS: dict[str, tuple[int, dict[str, Any]]] = {  # threads of the coordinator, and the executor
    "serial, one thread": (1, {"name": "serial"}),
    "serial, two threads": (2, {"name": "serial"}),
    "processes, two workers at one thread": (1, {"name": "processes", "workers": 2, "cpus_per_cell": 1}),
}
JOBS = {"serial": 1000, "processes": 1000, "ray": 300, "slurm": 6}


def experiment(cells: int, updates: int) -> dict[str, Any]:
    """A row that is trained with so many seeds."""
    config = {"batch_size": 16, "train_length": 24, "epochs": 10}
    return {
        "name": "twelve", "seeds": list(range(1, cells + 1)), "suites": ["Embedded-STS-natural"], "max_steps": updates,
        "precision": "fp32", "corpus": {"uri": "embedded:sentences"}, "dev": None,
        "methods": [{"method": "simcse", "preset": "mini", "config": config}],
    }  # fmt: skip


def throughput(way: str, cells: int, updates: int) -> dict[str, float]:
    """Seconds of a comparison in this process, from where everything is imported."""
    threads, executor = WAYS[way]
    from harness.executors.executor import use_threads

    use_threads(threads)
    from harness import api

    loaded = _used(resource.RUSAGE_SELF)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as work:
        result = api.compare(experiment(cells, updates), workdir=work, tracked=False, formats=[], executor=executor)
    wall = time.perf_counter() - began
    assert {record.status for record in result.records} == {"finished"}
    return {
        "wall": wall,
        "coordinator": _used(resource.RUSAGE_SELF) - loaded,
        "workers": _used(resource.RUSAGE_CHILDREN),
        "training and scoring": sum(r.cost.get("train_cpu_seconds", 0.0) for r in result.records),
    }


def empty(name: str) -> dict[str, float]:
    """Seconds until the first answer of jobs in which nothing happens, and milliseconds of each further one."""
    from harness import registry
    from harness.executors.executor import ExecutorSettings, Job
    from tests.support.jobs import double

    kind = registry.load(registry.EXECUTORS, name)
    kind = type("Local", (kind,), {"cluster": "local"}) if name == "slurm" else kind
    count = JOBS[name]
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as work:
        settings = ExecutorSettings(name=name, workers=2, cpus_per_cell=1)
        with kind(settings, Path(work)) as executor:
            answers = executor.run([Job(str(n), double, (n,)) for n in range(count)], lambda: None)
            next(answers)
            first = time.perf_counter()
            rest = sum(1 for _ in answers)
            last = time.perf_counter()
    used = _used(resource.RUSAGE_SELF) + _used(resource.RUSAGE_CHILDREN)
    return {"first": first - began, "each": 1000 * (last - first) / rest, "processor": 1000 * used / count}


def _used(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def _in_a_process(*words: str) -> dict[str, float]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, __file__, *words], env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{words}: {done.stderr[-1500:]}")
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return told


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=12)
    parser.add_argument("--updates", type=int, default=150)
    parser.add_argument("--only", choices=("throughput", "empty"))
    parser.add_argument("--way", help=argparse.SUPPRESS)
    args = parser.parse_args()
    size = ("--cells", str(args.cells), "--updates", str(args.updates))
    if args.way:
        print(json.dumps(throughput(args.way, args.cells, args.updates) if args.way in WAYS else empty(args.way)))
        return
    print(f"load of the machine: {os.getloadavg()[0]:.1f}\n")
    if args.only != "empty":
        print(
            f"| {args.cells} cells of {args.updates} updates | wall s | coordinator s | workers s | free cores s | x |"
        )
        print("|---|---:|---:|---:|---:|---:|")
        base = 0.0
        for way in WAYS:
            told = _in_a_process("--way", way, *size)
            shown = [told["wall"], told["coordinator"], told["workers"]]
            if "two threads" not in way:  # of which no one knows what they would take side by side
                free = told["coordinator"] + told["workers"] / 2
                base = base or free
                shown += [free, base / free]
            print(f"| {way} | " + " | ".join(f"{value:.2f}" for value in shown) + " |", flush=True)
        print()
    if args.only != "throughput":
        print("| jobs in which nothing happens | first answer s | ms each | processor ms each |\n|---|---:|---:|---:|")
        for name, count in JOBS.items():
            try:
                told = _in_a_process("--way", name)
            except SystemExit as error:
                print(f"| {name} | not here | | | {str(error).splitlines()[-1][:80]}")
                continue
            print(
                f"| {name} ({count:,}) | {told['first']:.2f} | {told['each']:.2f} | {told['processor']:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
