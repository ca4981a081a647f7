"""Shows sentences per second of `Encoder.encode` and of `SentenceTransformer.encode` for the same
model and sentences.

    python -m tools.benchmarks.encode_throughput [--model embedded:mini-bert] [--count 10000]
    [--rounds 3]

The sentences are distinct and of mixed length (a word to a paragraph), drawn from the embedded
suite with a fixed seed. The two alternate, the best round of each counts, and the vectors are
compared. On a CPU that other processes use too, the processor time is fairer than the wall time.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable

import numpy as np


def mixed_sentences(count: int, seed: int = 0) -> list[str]:
    """Draw `count` distinct texts: fragments, sentences, and runs of up to five sentences."""
    from harness.sources import embedded_rows

    pool = [row["text"] for row in embedded_rows("sentences")]
    random.Random(seed).shuffle(pool)
    draw = random.Random(seed + 1)
    texts: dict[str, None] = {}
    while len(texts) < count:
        kind = draw.random()
        if kind < 0.2:
            words = draw.choice(pool).split()
            start = draw.randrange(len(words))
            text = " ".join(words[start : start + draw.randint(1, 6)])
        elif kind < 0.9:
            text = draw.choice(pool)
            if kind >= 0.5:
                text = f"{text} {draw.choice(pool)}"
        else:
            text = " ".join(draw.choices(pool, k=draw.randint(3, 5)))
        texts[text] = None
    return list(texts)


def measure_time(
    encode: Callable[[list[str]], np.ndarray], texts: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return (wall seconds, processor seconds) and the vectors."""
    start = np.array([time.perf_counter(), time.process_time()])
    vectors = encode(texts)
    return np.array([time.perf_counter(), time.process_time()]) - start, vectors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="embedded:mini-bert")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--batch-size",
        type=int,
        default=64,
        help="given to both (sentence-transformers' default is 32)",
    )
    parser.add_argument(
        "--pooling", help="base model with this pooling; default: as the model was saved, else mean"
    )
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()

    import torch
    from sentence_transformers import SentenceTransformer

    from harness.encoder import Encoder

    texts = mixed_sentences(arguments.count)
    pooling = arguments.pooling
    if pooling:
        encoder = Encoder.from_pretrained(arguments.model, pooling=pooling)
    else:
        encoder = Encoder.load(arguments.model)
    with tempfile.TemporaryDirectory() as folder:
        encoder.save(f"{folder}/model")
        other = SentenceTransformer(f"{folder}/model", device=arguments.device)
    size = arguments.batch_size

    def encode_here(batch: list[str]) -> np.ndarray:
        vectors: np.ndarray = encoder.encode(batch, batch_size=size, device=arguments.device)
        return vectors

    def encode_there(batch: list[str]) -> np.ndarray:
        return other.encode(batch, batch_size=size, show_progress_bar=False)

    contenders = {"Encoder": encode_here, "SentenceTransformer": encode_there}
    best = {name: np.full(2, np.inf) for name in contenders}
    vectors: dict[str, np.ndarray] = {}
    for encode in contenders.values():
        encode(texts[:256])  # set-up is not measured
    for _ in range(arguments.rounds):
        for name, encode in contenders.items():
            seconds, vectors[name] = measure_time(encode, texts)
            best[name] = np.minimum(best[name], seconds)
    lengths = [len(ids) for ids in encoder.tokenize(texts)]
    print(
        f"{arguments.model}, {encoder.pooling.name}, {arguments.device}, {torch.get_num_threads()} threads"
    )
    print(
        f"{len(texts)} distinct texts, {np.mean(lengths):.1f} tokens on average ({min(lengths)} to {max(lengths)})"
    )
    for name, (wall, processor) in best.items():
        print(
            f"{name:20s} {len(texts) / wall:8.0f} sentences/s, {len(texts) / processor:8.0f} a processor second"
        )
    ours, theirs = vectors.values()
    wall, processor = best["SentenceTransformer"] / best["Encoder"]
    print(f"ratio {wall:.2f} in wall time, {processor:.2f} in processor time")
    print(f"largest difference {np.abs(ours - theirs).max():.1e}")


if __name__ == "__main__":
    main()
