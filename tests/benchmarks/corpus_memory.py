"""Memory and time of a corpus of a million sentences in each format: python tests/benchmarks/corpus_memory.py [FOLDER]

Each format is opened in a fresh process, every sentence is read in random order and the peak of the resident memory
is printed: the size of the process at its largest, pages of the memory map included, and in brackets without them.
The target is under 2 GB for 1,000,000 sentences.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import multiprocessing
import random
import tempfile
import time
from pathlib import Path

FORMATS = ("txt", "txt.gz", "csv", "jsonl", "jsonl.gz")


def make(path: Path, count: int) -> None:
    """Write `count` sentences of 5 to 60 words (about 140 bytes, as Wikipedia's) in the format that the name says."""
    rng = random.Random(1)
    vocabulary = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyzé", k=rng.randint(2, 10))) for _ in range(20_000)]
    with gzip.open(path, "wt", 1, "utf-8") if path.suffix == ".gz" else path.open("w", encoding="utf-8") as file:
        table = csv.writer(file)
        if ".csv" in path.suffixes:
            table.writerow(["text"])
        for _ in range(count):
            text = " ".join(rng.choices(vocabulary, k=min(60, max(5, int(rng.gauss(20, 10))))))
            if ".csv" in path.suffixes:
                table.writerow([text])
            else:
                file.write((json.dumps({"text": text}) if ".jsonl" in path.suffixes else text) + "\n")


def status(field: str) -> int:
    """A memory figure of this process in bytes (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    return 0


def measure(path: Path, results: multiprocessing.Queue[tuple[int, float, float, int, int, str]]) -> None:
    import numpy as np

    from harness.sources import load_corpus

    began = time.perf_counter()
    corpus = load_corpus(str(path))
    opened = time.perf_counter()
    characters = sum(len(corpus[i]) for i in np.random.default_rng(0).permutation(len(corpus)).tolist())
    read = time.perf_counter()
    assert characters
    own = status("RssAnon")
    results.put((len(corpus), opened - began, read - opened, status("VmHWM"), own, corpus.sha256[:12]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, nargs="?", help="where to write the files (default: a temporary folder)")
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=FORMATS)
    arguments = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    print(
        f"{'format':10} {'file MB':>8} {'sentences':>10} {'open s':>7} {'read all s':>11} {'peak MB (own)':>15}  sha256"
    )
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        for name in arguments.formats:
            path = Path(folder) / f"corpus.{name}"
            make(path, arguments.count)
            results = context.Queue()
            process = context.Process(target=measure, args=(path, results))
            process.start()
            count, opened, read, peak, own, sha256 = results.get()
            process.join()
            size, memory = path.stat().st_size / 1e6, f"{peak / 1e6:.0f} ({own / 1e6:.0f})"
            print(f"{name:10} {size:8.0f} {count:10} {opened:7.2f} {read:11.2f} {memory:>15}  {sha256}", flush=True)
            path.unlink()


if __name__ == "__main__":
    main()
