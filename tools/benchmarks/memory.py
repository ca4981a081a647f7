"""Shows that memory stays bounded at a million sentences: reading a corpus of each file format, and
encoding.

    python -m tools.benchmarks.memory [corpus|encode] [--counts 2000 40000 1000000] [--model
    embedded:mini-bert]

Every line is measured in a fresh process (Linux). `corpus` reads all sentences of a file in random
order; the target is a peak under 2 GB, pages of the memory map included (in brackets without them).
`encode` runs `Encoder.encode` with one thread, by default on a random network of two layers, 64
wide; its peak is the memory beyond what the process held before and beyond the vectors.
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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

FORMATS = ("txt", "txt.gz", "csv", "jsonl", "jsonl.gz")


def status(field: str) -> int:
    """Return a memory figure of this process in bytes (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    return 0


def write_corpus(path: Path, count: int) -> None:
    """Write `count` sentences of 5 to 60 words (about 140 bytes, as in Wikipedia) in the format of
    the file's name.
    """
    rng = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyzé"
    words = ["".join(rng.choices(letters, k=rng.randint(2, 10))) for _ in range(20_000)]
    is_zipped = path.suffix == ".gz"
    with (
        gzip.open(path, "wt", 1, "utf-8") if is_zipped else path.open("w", encoding="utf-8") as file
    ):
        table = csv.writer(file)
        if ".csv" in path.suffixes:
            table.writerow(["text"])
        for _ in range(count):
            length = min(60, max(5, int(rng.gauss(20, 10))))
            text = " ".join(rng.choices(words, k=length))
            if ".csv" in path.suffixes:
                table.writerow([text])
            elif ".jsonl" in path.suffixes:
                file.write(json.dumps({"text": text}) + "\n")
            else:
                file.write(text + "\n")


def read_corpus(path: Path, results: multiprocessing.Queue[str]) -> None:
    import numpy as np

    from harness.sources import load_corpus

    began = time.process_time()
    corpus = load_corpus(str(path))
    opened = time.process_time()
    assert sum(len(corpus[i]) for i in np.random.default_rng(0).permutation(len(corpus)).tolist())
    peak = f"{status('VmHWM') / 1e6:.0f} ({status('RssAnon') / 1e6:.0f})"
    results.put(
        f"{len(corpus):>9,} {opened - began:7.2f} {time.process_time() - opened:7.2f} {peak:>14}"
    )


def small_encoder() -> Any:
    """Make two random layers with the vocabulary of the embedded model."""
    from transformers import BertConfig, BertModel

    from harness.encoder import Encoder
    from harness.encoder.pooling import Pooling

    tokenizer = Encoder.from_pretrained("embedded:mini-bert").tokenizer
    shape = {
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 1,
        "intermediate_size": 64,
    }
    model = BertModel(BertConfig(vocab_size=len(tokenizer), **shape), add_pooling_layer=False)
    return Encoder(model, tokenizer, pooling=Pooling.parse("mean", 1), max_length=64)


def texts(count: int) -> Iterator[str]:
    """Yield short sentences, of which one in ten repeats an earlier one."""
    draw = random.Random(1)
    words = [
        "a",
        "the",
        "dog",
        "cat",
        "child",
        "runs",
        "sleeps",
        "under",
        "river",
        "house",
        "old",
        "red",
        "never",
    ]
    for number in range(count):
        source = number if number % 10 else draw.randrange(number + 1)
        yield f"{source} {' '.join(random.Random(source).choices(words, k=2 + source % 10))}"


def encode(model: str | None, count: int, results: multiprocessing.Queue[str]) -> None:
    import torch

    from harness.encoder import Encoder

    torch.set_num_threads(1)
    encoder = Encoder.from_pretrained(model) if model else small_encoder()
    encoder.encode(list(texts(256)))
    before = status("VmRSS")
    began = time.process_time()
    vectors = encoder.encode(texts(count)).nbytes
    seconds = time.process_time() - began
    beyond = (status("VmHWM") - before - vectors) / 1e6
    results.put(f"{count:>9,} {1e6 * seconds / count:9.0f} {vectors / 1e6:11.0f} {beyond:10.0f}")


def measure(work: Callable[..., None], *arguments: Any) -> str:
    """Return the line that `work` reports from a process of its own."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    process = context.Process(target=work, args=(*arguments, results))
    process.start()
    line: str = results.get()
    process.join()
    return line


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", nargs="?", choices=["corpus", "encode"], help="default: both")
    parser.add_argument(
        "--counts", type=int, nargs="+", default=[2_000, 40_000, 1_000_000], help="of sentences"
    )
    parser.add_argument("--model", help="that encodes; default: two random layers")
    args = parser.parse_args()
    if args.part != "encode":
        print("format    sentences  open s  read s  peak MB (own)")
        with tempfile.TemporaryDirectory() as folder:
            for name in FORMATS:
                path = Path(folder) / f"corpus.{name}"
                write_corpus(path, max(args.counts))
                print(f"{name:8} {measure(read_corpus, path)}", flush=True)
                path.unlink()
    if args.part != "corpus":
        print("    texts us a text  vectors MB  beyond MB")
        for count in args.counts:
            print(measure(encode, args.model, count), flush=True)


if __name__ == "__main__":
    main()
