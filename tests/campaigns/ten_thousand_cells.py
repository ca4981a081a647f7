"""What 10,000 cells on 1,000 workers cost the coordinator: planning, placing, recording, going on, and the report.

    python tests/campaigns/ten_thousand_cells.py [--cells 1000,10000] [--executors simulated,processes] [--profile]

The cells are invented: a worker copies a real run under the id that the plan gives, with scores of its own, instead of
training. All else is real: the plan, the jobs as they travel, records and pairs on the disk, the manifest, the report.
"simulated" is an executor in this process, with 1,000 workers by name whose jobs take random times; "processes" is the
real one with two workers. Processor milliseconds a cell of the coordinator, which a busy machine does not change; what
is not flat from the smallest to the largest number fell (exit code 1).
"""

from __future__ import annotations

import argparse
import cProfile
import heapq
import json
import os
import pickle
import pstats
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
sys.path.insert(0, str(Path(__file__).parents[2]))

from harness.comparison.experiment import Experiment, read_experiment
from harness.comparison.jobs import CellJob, Made
from harness.comparison.plan import Plan, make_plan
from harness.comparison.run import run_comparison
from harness.executors.executor import Answer, Executor, ExecutorSettings, Job
from harness.executors.processes import Processes
from harness.results.run_folder import RunFolder

ROWS, WORKERS = 20, 1000
FLAT = 2.0  # so much more a cell may cost with ten times as many cells


def experiment(seeds: int) -> Experiment:
    """Rows that differ in a temperature."""
    methods = [
        {"method": "simcse", "name": f"SimCSE {n}", "config": {"temperature": round(0.02 * n, 2)}}
        for n in range(1, ROWS + 1)
    ]
    return read_experiment(
        {
            "name": "many", "seeds": list(range(1, seeds + 1)), "suites": ["Embedded-STS-natural"], "max_steps": 2,
            "precision": "fp32", "corpus": {"uri": "embedded:sentences", "limit": 64}, "dev": None,
            "shared": {"batch_size": 8, "max_length": 8}, "methods": methods,
        }
    )  # fmt: skip


def invented(folder: str, job: CellJob) -> Made:
    """In place of `harness.comparison.jobs.made`: the template under another name."""
    template, places = _template(folder)
    row, seed, about = places[job.cell]
    record = template | {"id": job.cell, "row": row, "seed": seed, "identity": about}
    record["config"] = template["config"] | {"temperature": round(0.02 * int(row.split()[1]), 2)}
    draw = random.Random(job.cell)
    record["scores"] = [{**score, "value": score["value"] + draw.gauss(0, 0.01)} for score in template["scores"]]
    run = RunFolder(Path(job.workdir), job.cell)
    run.path.mkdir(parents=True, exist_ok=True)
    for name in ("pairs.parquet", "curves.jsonl"):
        shutil.copyfile(Path(folder) / "template" / name, run.path / name)
    run.record_file.write_text(json.dumps(record))
    return Made(json.dumps(record))


@lru_cache(maxsize=1)
def _template(folder: str) -> tuple[dict[str, Any], dict[str, tuple[str, int, dict[str, Any]]]]:
    return (
        json.loads((Path(folder) / "template" / "record.json").read_text()),
        json.loads((Path(folder) / "places.json").read_text()),
    )


class Simulated(Executor):
    """1,000 workers by name: jobs end in the order of times that are drawn, and travel as bytes."""

    name = "simulated"
    worked = 0.0  # seconds that are the workers'

    def run(self, jobs: Sequence[Job], tick: Callable[[], None]) -> Iterator[Answer]:
        """As `Executor.run`."""
        draw, queue, busy = random.Random(0), list(reversed(list(jobs))), list[tuple[float, int, Job]]()
        now, number = 0.0, 0
        while queue or busy:
            while queue and len(busy) < WORKERS:
                heapq.heappush(busy, (now + draw.expovariate(1.0), number, queue.pop()))
                number += 1
            now, _, job = heapq.heappop(busy)
            call, arguments = pickle.loads(pickle.dumps((job.call, job.arguments)))
            began = time.process_time()
            value = call(*arguments)
            self.worked += time.process_time() - began
            yield Answer(job, pickle.loads(pickle.dumps(value)))


def with_invented(kind: type[Executor], folder: Path, began: list[float]) -> type[Executor]:
    """The executor, whose jobs are `invented`; it notes when it was called."""

    class Inventing(kind):  # type: ignore[valid-type, misc]
        def run(self, jobs: Sequence[Job], tick: Callable[[], None]) -> Iterator[Answer]:
            began.append(time.process_time())
            told = [replace(job, call=invented, arguments=(str(folder), *job.arguments)) for job in jobs]
            yield from super().run(told, tick)

    return Inventing


def campaign(folder: Path, cells: int, kind: type[Executor], profile: bool, report: bool) -> dict[str, float]:
    """Milliseconds a cell, by stage."""
    work, seeds = folder / "work", max(1, cells // ROWS)
    work.mkdir()
    clock = time.process_time
    stages: dict[str, float] = {}
    began = clock()
    plan = make_plan(experiment(seeds), "many", work)
    count = len(plan.cells)
    stages["plan"] = clock() - began
    _give_template(folder, plan)
    asked: list[float] = []
    executor = with_invented(kind, folder, asked)(ExecutorSettings(name="x", workers=2, cpus_per_cell=1), work)
    profiler = cProfile.Profile() if profile else nullcontext()
    children, began = _children(), clock()
    with profiler:
        records = run_comparison(plan, work, command_of=lambda cell: "invented", executor=executor)
    ended = clock()
    assert [record.status for record in records] == ["finished"] * count
    if profile:
        pstats.Stats(profiler).sort_stats("cumulative").print_stats(45)  # type: ignore[arg-type]
    stages["jobs made"] = asked[0] - began
    stages["scheduled, recorded"] = ended - asked[0]
    worked = getattr(executor, "worked", 0.0)
    stages["scheduled, recorded"] -= worked
    stages["workers"] = worked + _children() - children
    began = clock()
    again = make_plan(experiment(seeds), "many", work)
    run_comparison(again, work, command_of=lambda cell: "invented", executor=executor)
    stages["the same command again"] = clock() - began
    before = _children()
    command = [sys.executable, "-m", "harness", "report", "build", "many", "--from", str(work), "--format", "md"]
    if report:
        subprocess.run(command, capture_output=True, check=True)
        stages["report"] = _children() - before
    stages = {stage: 1000 * seconds / count for stage, seconds in stages.items()}
    files = [file for file in work.rglob("*") if file.is_file()]
    stages["files a cell"] = len(files) / count
    stages["kB a cell"] = sum(file.stat().st_size for file in files) / count / 1000
    stages["peak MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    return stages


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _give_template(folder: Path, plan: Plan) -> None:
    """A real run of the first row, and what each cell is called."""
    template = folder / "template"
    first = make_plan(experiment(1).model_copy(update={"methods": experiment(1).methods[:1]}), "many", folder / "one")
    (record,) = run_comparison(first, folder / "one", command_of=lambda cell: "invented")
    shutil.copytree(RunFolder(folder / "one", record.id).path, template)
    told = json.loads((template / "record.json").read_text())
    told["files"] = {n: h for n, h in told["files"].items() if not n.startswith("model/")}
    (template / "record.json").write_text(json.dumps(told))
    places = {cell.id: (cell.row.label, int(cell.seed), cell.identity) for cell in plan.cells}
    (folder / "places.json").write_text(json.dumps(places))


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", default="1000,10000")
    parser.add_argument("--executors", default="simulated,processes")
    parser.add_argument("--profile", action="store_true", help="of the coordinator")
    parser.add_argument("--no-report", action="store_true", help="which takes longest")
    args = parser.parse_args()
    fell = False
    for name in args.executors.split(","):
        kind = {"simulated": Simulated, "processes": Processes}[name]
        table: dict[int, dict[str, float]] = {}
        for cells in map(int, args.cells.split(",")):
            with tempfile.TemporaryDirectory(prefix="many-") as folder:
                table[cells] = campaign(Path(folder), cells, kind, args.profile, not args.no_report)
            print(cells, table[cells], file=sys.stderr, flush=True)
        few, many = min(table), max(table)
        print(f"\n| {name}: milliseconds a cell | " + " | ".join(f"{cells:,}" for cells in table) + " |")
        print("|---|" + "---:|" * len(table))
        for stage in table[few]:
            print(f"| {stage} | " + " | ".join(f"{table[cells][stage]:.2f}" for cells in table) + " |")
            flat = table[many][stage] <= FLAT * max(table[few][stage], 0.1) or stage == "peak MB"
            fell |= not flat
            if not flat:
                print(f"not flat: {stage}", file=sys.stderr)
    return int(fell)


if __name__ == "__main__":
    sys.exit(main())
