"""Memory and time of encoding by the number of texts.

python -m tests.benchmarks.encode_memory [--model embedded:mini-bert] [--counts 2000 40000 1000000]

Each count is encoded in a fresh process with one thread, by `Encoder.encode` (vectors in memory) and `harness.encode`
(vectors in a file): the peak of the process beyond what it held before, without the vectors of the first, and processor
time for a text. Without --model a random network of two layers, 64 wide, so that a million texts take minutes.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.benchmarks.corpus_memory import status


def small() -> Any:
    """Two random layers with the word pieces of the embedded model."""
    from transformers import BertConfig, BertModel

    from harness.encoder import Encoder
    from harness.encoder.pooling import Pooling

    tokenizer = Encoder.from_pretrained("embedded:mini-bert").tokenizer
    shape = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 1, "intermediate_size": 64}
    model = BertModel(BertConfig(vocab_size=len(tokenizer), **shape), add_pooling_layer=False)
    return Encoder(model, tokenizer, pooling=Pooling.parse("mean", 1), max_length=64)


def texts(count: int) -> Iterator[str]:
    """Short sentences, one in ten of them said before."""
    draw = random.Random(1)
    words = ["a", "the", "dog", "cat", "child", "runs", "sleeps", "under", "river", "house", "old", "red", "never"]
    for number in range(count):
        said = number if number % 10 else draw.randrange(number + 1)
        yield f"{said} {' '.join(random.Random(said).choices(words, k=2 + said % 10))}"


def measure(model: str | None, count: int, how: str, results: multiprocessing.Queue[str]) -> None:
    import torch

    import harness
    from harness.encoder import Encoder

    torch.set_num_threads(1)
    encoder = Encoder.from_pretrained(model) if model else small()
    encoder.encode(list(texts(256)))
    before, began = status("VmRSS"), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        if how == "memory":
            held = encoder.encode(texts(count)).nbytes
        else:
            harness.encode(encoder, texts(count), out=Path(folder, "vectors.npy"), device="cpu")
            held = 0
        took = time.process_time() - began
    beyond = (status("VmHWM") - before - held) / 1e6
    results.put(f"{count:>9,} {how:>7} {held / 1e6:10.0f} {beyond:10.0f} {1e6 * took / count:10.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", help="default: two random layers")
    parser.add_argument("--counts", type=int, nargs="+", default=[2_000, 40_000, 1_000_000])
    parser.add_argument("--how", nargs="+", choices=["memory", "file"], default=["memory", "file"])
    arguments = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    print("    texts vectors  theirs MB  beyond MB  us a text")
    for count in arguments.counts:
        for how in arguments.how:
            results = context.Queue()
            process = context.Process(target=measure, args=(arguments.model, count, how, results))
            process.start()
            print(results.get(), flush=True)
            process.join()


if __name__ == "__main__":
    main()
