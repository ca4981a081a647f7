"""Memory and seconds until the first update, and what batches cost, by the size of a corpus.

python -m tests.benchmarks.first_update [--corpus wiki1m] [--counts 10000 1000000]

Each count is measured in a fresh process, in seconds of the processor, which a busy machine changes little: opening the
corpus, one update of SimCSE on the embedded model (the corpus opened again), then the order of an epoch and 512 of its
batches, without and with length-sorted megabatches. RSS is that after opening; the peak counts the pages of the mapped
file too, in brackets without them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time

from tests.benchmarks.corpus_memory import status

BATCHES = 512


def measure(uri: str, limit: int, results: multiprocessing.Queue[str]) -> None:
    import harness
    from harness.sources import load_corpus
    from harness.training import BatchStream

    began = time.process_time()
    corpus = load_corpus(uri, limit=limit)
    opened = time.process_time() - began
    lines = [f"{len(corpus):>9,} {opened:7.2f} {1e6 * opened / len(corpus):9.2f}", f"{status('VmRSS') / 1e6:8.0f}"]
    began = time.process_time()
    harness.train("simcse", corpus=uri, limit=limit, config={"max_steps": 1}, dev=None, device="cpu")
    lines.append(f"{time.process_time() - began:8.2f}")
    for bucket in (1, 32):
        began = time.process_time()
        stream = BatchStream(corpus, batch_size=64, bucket=bucket, seed=1, length_cap=192)
        stream.batch(0)
        first = time.process_time() - began
        for step in range(1, BATCHES):
            stream.batch(step % stream.steps_per_epoch)
        each = (time.process_time() - began - first) / BATCHES / 64
        lines.append(f"{1000 * first:8.1f} {1e6 * each:7.2f}")
    peak = f"{status('VmHWM') / 1e6:.0f} ({status('RssAnon') / 1e6:.0f})"
    results.put(" ".join([*lines, f"{peak:>14}"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--corpus", default="wiki1m")
    parser.add_argument("--counts", type=int, nargs="+", default=[10_000, 1_000_000])
    arguments = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    print("sentences  open s  µs/sent.  RSS MB  update s  first ms, µs/sent. (bucket 1, then 32)  peak MB (own)")
    for count in arguments.counts:
        results = context.Queue()
        process = context.Process(target=measure, args=(arguments.corpus, count, results))
        process.start()
        print(results.get(), flush=True)
        process.join()


if __name__ == "__main__":
    main()
