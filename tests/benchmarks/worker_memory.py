"""What a corpus costs each of two workers on one machine, and what a worker's second cell has to load again.

    python tests/benchmarks/worker_memory.py [--sentences 1000000]

Each worker of the executor "processes" opens the corpus as cells do, reads every sentence in random order, waits until
the other one has, and tells its memory: what it has for itself (unique set size), and that with the pages of the file's
memory map, which it shares with the other one. Then each opens it again, as for its next cell.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
os.environ |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
sys.path.insert(0, str(ROOT))


def cell(path: str, folder: str, number: int) -> dict[str, float]:
    """What a cell does with its text: processor seconds until it is there, and memory."""
    import numpy as np
    import psutil

    from harness.comparison.experiment import CorpusSettings
    from harness.comparison.jobs import _loaded

    process = psutil.Process()
    before = process.memory_full_info()
    began = time.process_time()
    corpus = _loaded("").corpus(CorpusSettings(uri=path))
    seconds = time.process_time() - began
    assert sum(len(corpus[i]) for i in np.random.default_rng(number).permutation(len(corpus)).tolist())
    (Path(folder) / f"{number}").touch()
    late = time.monotonic() + 600
    while len(list(Path(folder).iterdir())) < 2 and time.monotonic() < late:
        time.sleep(0.1)
    after = process.memory_full_info()
    return {"pid": os.getpid(), "seconds": seconds, "own": after.uss - before.uss, "whole": after.rss - before.rss}


def main() -> None:
    """Print the table."""
    from harness.executors.executor import ExecutorSettings, Job
    from harness.executors.processes import Processes
    from tests.benchmarks.corpus_memory import make

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=1_000_000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, flags = Path(folder) / "corpus.txt", Path(folder) / "flags"
        make(path, args.sentences)
        flags.mkdir()
        executor = Processes(ExecutorSettings(name="processes", workers=2, cpus_per_cell=1), Path(folder))
        jobs = [Job(str(n), cell, (str(path), str(flags), n)) for n in range(4)]
        answers = [answer.value for answer in executor.run(jobs, lambda: None)]
        print(f"{args.sentences:,} sentences, {path.stat().st_size / 1e6:.0f} MB\n")
        print("| worker | cell | to open it, processor s | own memory, MB | with shared pages, MB |")
        print("|---|---|---:|---:|---:|")
        seen: set[float] = set()
        for told in answers:
            which = "next" if told["pid"] in seen else "first"
            seen.add(told["pid"])
            megabytes = f"{told['own'] / 1e6:.0f} | {told['whole'] / 1e6:.0f}"
            print(f"| {told['pid']:.0f} | {which} | {told['seconds']:.2f} | {megabytes} |")


if __name__ == "__main__":
    main()
