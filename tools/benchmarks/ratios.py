"""Shows the cost of the harness as ratios to the libraries it is compared with (`make bench`,
docs/speed.md).

    python -m tools.benchmarks.ratios [--only encode,trainer] [--repeats 3] [--out FILE]

Every line is a ratio of processor times within one run: the two sides alternate, and the ratio is
given with its minimum and maximum over the repeats. Wall time is not used, since it depends on what
else the machine does.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from harness.machine.environment import describe, versions
from tools.benchmarks.encode_throughput import mixed_sentences

if TYPE_CHECKING:
    import torch

Timed = Callable[[], float]  # runs once; processor seconds
_STEPS = 12
_BATCH = 64


@dataclass(frozen=True)
class Line:
    """A quantity of each repeat: `unit` "" for a ratio, "%" for a share."""

    what: str
    values: list[float]
    about: str
    unit: str = ""

    def cells(self) -> tuple[str, str, str, str]:
        digits = 1 if self.unit else 2
        middle = f"{statistics.median(self.values):.{digits}f} {self.unit}".rstrip()
        low = f"{min(self.values):.{digits}f}"
        high = f"{max(self.values):.{digits}f}"
        return self.what, middle, f"{low} to {high}", self.about


def measure_time(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def turns(theirs: Timed, ours: Timed, repeats: int) -> tuple[list[float], str]:
    """Return theirs / ours of each repeat, and the median seconds of both."""
    pairs = [(theirs(), ours()) for _ in range(repeats)]
    seconds = [statistics.median(side) for side in zip(*pairs, strict=True)]
    return [a / b for a, b in pairs], f"{seconds[0]:.2f} s against {seconds[1]:.2f} s"


def encode(repeats: int) -> Iterator[Line]:
    """Compare encoding, also with the machine's own peak in matrix multiplication."""
    import torch
    from sentence_transformers import SentenceTransformer
    from torch.utils.flop_counter import FlopCounterMode

    from harness.encoder import Encoder

    texts = mixed_sentences(1500)
    encoder = Encoder.load("embedded:mini-bert")
    with tempfile.TemporaryDirectory() as folder:
        encoder.save(f"{folder}/model")
        other = SentenceTransformer(f"{folder}/model", device="cpu")

    def ours() -> np.ndarray:
        vectors: np.ndarray = encoder.encode(texts, batch_size=64)
        return vectors

    def theirs() -> np.ndarray:
        return other.encode(texts, batch_size=64, show_progress_bar=False)

    apart = float(np.abs(ours() - theirs()).max())  # both have run once
    values, seconds = turns(lambda: measure_time(theirs), lambda: measure_time(ours), repeats)
    about = f"{len(texts)} texts, mini-bert, fp32: {seconds}; vectors differ by {apart:.0e}"
    yield Line("SentenceTransformer.encode / Encoder.encode", values, about)
    with FlopCounterMode(display=False) as counter:
        ours()
    done = counter.get_total_flops()
    shares = []
    peaks = []
    for _ in range(repeats):
        peak = peak_of_matmul(torch.float32)
        peaks.append(peak)
        shares.append(100 * done / measure_time(ours) / peak)
    about = (
        f"{statistics.median(peaks) / 1e9:.0f} GFLOP a processor second, by products of 1024 x 1024"
    )
    yield Line("Encoder.encode: share of the peak", shares, about, "%")


def peak_of_matmul(dtype: torch.dtype) -> float:
    """Return the floating-point operations a processor second of the largest products that stay in the cache."""
    import torch

    a = torch.randn(1024, 1024).to(dtype)
    for _ in range(3):
        a @ a
    count = 20
    return count * 2 * 1024**3 / measure_time(lambda: [a @ a for _ in range(count)])


def trainer(repeats: int) -> Iterator[Line]:
    """Compare SimCSE by sentence-transformers' trainer and by our loop: same texts, batch, length and
    steps, fp32.
    """
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    from harness.encoder import Encoder
    from harness.method import FitContext
    from harness.sources import load_corpus
    from methods.simcse import SimCSE

    corpus = load_corpus("embedded:sentences", limit=_STEPS * _BATCH)
    texts = [corpus[i] for i in range(len(corpus))]
    pairs = Dataset.from_dict({"a": texts, "b": texts})

    def theirs(folder: str) -> float:
        model = SentenceTransformer(f"{folder}/model", device="cpu")
        model.max_seq_length = 32
        arguments = SentenceTransformerTrainingArguments(
            f"{folder}/out",
            per_device_train_batch_size=_BATCH,
            max_steps=_STEPS,
            learning_rate=3e-4,
            use_cpu=True,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            logging_strategy="no",
        )
        loss = MultipleNegativesRankingLoss(model, scale=20)
        loop = SentenceTransformerTrainer(
            model=model, args=arguments, train_dataset=pairs, loss=loss
        )
        return measure_time(loop.train)

    def ours(**batches: object) -> float:
        # No preset: its dropout rate would be another than the trainer's, which is the base
        # model's.
        keys = {
            "batch_size": _BATCH,
            "train_length": 32,
            "pooling": "mean",
            "learning_rate": 3e-4,
            **batches,
        }
        config = SimCSE.configure({"max_steps": _STEPS, **keys})
        report = SimCSE(config).fit(corpus, FitContext(seed=1, precision="fp32")).fit_report
        return report.cost["train_cpu_seconds"]

    with tempfile.TemporaryDirectory() as folder:
        Encoder.load("embedded:mini-bert").save(f"{folder}/model")
        for name, batches in {
            "random batches": {"bucket": 1, "packed": False},
            "random batches, packed": {"bucket": 1, "packed": True},
            "batches of like length": {"bucket": 32, "packed": False},
            "batches of like length, packed": {"bucket": 32, "packed": True},
        }.items():
            values, seconds = turns(
                lambda: theirs(folder), lambda batches=batches: ours(**batches), repeats
            )
            yield Line(
                f"sentence-transformers' trainer / training, {name}",
                values,
                f"SimCSE, {_STEPS} steps of {_BATCH} sentences, mini-bert, fp32: {seconds}",
            )


def packing(repeats: int) -> Iterator[Line]:
    """Compare gradients of SimCSE's loss on layers of BERT-base's size, of random batches that are padded
    and that are packed; lengths are spread about as those of Wikipedia's sentences: log-normal, 29
    tokens in the middle.
    """
    import torch
    from transformers import BertConfig, BertModel

    from harness.encoder import Encoder, Pooling
    from methods.objectives import nt_xent

    layers = 2
    rows = 64
    draw = np.random.default_rng(0)
    torch.manual_seed(0)
    transformer = BertModel(BertConfig(num_hidden_layers=layers), add_pooling_layer=False)
    tokenizer = Encoder.load("embedded:mini-bert").tokenizer
    encoder = Encoder(transformer, tokenizer, pooling=Pooling.parse("cls"), max_length=512).train()
    encoder.pack_batches()
    for cap in (32, 64, 128):
        lengths = np.exp(draw.normal(np.log(29), 0.44, rows)).clip(4, cap).astype(int)
        ids = [draw.integers(100, 16000, length).tolist() for length in lengths]

        def update(packs: bool, ids: list[list[int]] = ids) -> None:
            encoder.packed = packs
            encoder.zero_grad()
            loss = nt_xent(*encoder.two_views(ids, ids), temperature=0.05)
            loss.backward()  # type: ignore[no-untyped-call]

        update(True)
        values, seconds = turns(
            lambda: measure_time(lambda: update(False)),
            lambda: measure_time(lambda: update(True)),
            repeats,
        )
        padding = rows * max(lengths) / sum(lengths)
        about = (
            f"{rows} sentences, {layers} layers of BERT-base's size, fp32, "
            f"{padding:.2f} positions a token: {seconds}"
        )
        yield Line(f"padded / packed, random batches cut to {cap}", values, about)


def start(repeats: int) -> Iterator[Line]:
    """Compare processes from nothing with what importing sentence-transformers takes."""

    def process(*words: str) -> Timed:
        def run() -> float:
            before = os.times()
            subprocess.run([sys.executable, *words], check=True, capture_output=True)
            after = os.times()
            user = after.children_user - before.children_user
            system = after.children_system - before.children_system
            return user + system

        return run

    theirs = process("-c", "import sentence_transformers")
    commands = {
        "--help": ["--help"],
        "list methods": ["list", "methods"],
        "list suites": ["list", "suites"],
    }
    for name, words in commands.items():
        ours = process("-m", "harness", *words)
        theirs()  # files are in the cache of the system from here on
        ours()
        values, seconds = turns(ours, theirs, repeats)
        yield Line(f"harness {name} / import sentence_transformers", values, seconds)


def dev(repeats: int) -> Iterator[Line]:
    """Measure what selection on the dev set takes of a small training, and tokenisation of that."""
    from harness.encoder import Encoder
    from harness.method import FitContext
    from harness.sources import load_corpus, load_sts
    from harness.tasks.sts import DevSet
    from methods.simcse import SimCSE

    corpus = load_corpus("embedded:sentences")
    chosen = DevSet(load_sts("Embedded-STS-natural", source="embedded", split="dev"))
    config = SimCSE.configure({"max_steps": _STEPS}, preset="mini")
    shares = []
    for _ in range(repeats):
        context = FitContext(seed=1, precision="fp32", dev=chosen)
        cost = SimCSE(config).fit(corpus, context).fit_report.cost
        seconds = cost["dev_seconds"] + cost["train_seconds"]
        shares.append(100 * cost["dev_seconds"] / seconds)
    about = f"SimCSE's preset for mini-bert, {_STEPS} training steps, {len(chosen.texts())} sentences (wall time)"
    yield Line("dev evaluation: share of a training", shares, about, "%")
    encoder = Encoder.load("embedded:mini-bert")
    texts = chosen.texts()
    encoder.encode(texts)
    tokens = []
    for _ in range(repeats):
        tokenising = measure_time(lambda: encoder.tokenize(texts))
        encoding = measure_time(lambda: encoder.encode(texts))
        tokens.append(100 * tokenising / encoding)
    yield Line(
        "tokenisation: share of a dev evaluation", tokens, "what caching the ids would save", "%"
    )


PARTS: dict[str, Callable[[int], Iterator[Line]]] = {
    "encode": encode,
    "trainer": trainer,
    "packed": packing,
    "start": start,
    "dev": dev,
}


def main() -> None:
    """Print the table as its lines are there, then the machine."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", default=",".join(PARTS), help="parts, with commas (default: %(default)s)"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, help="a file to add the lines to")
    args = parser.parse_args()
    machine = describe("cpu", "fp32")
    printed = ["| what | median | over repeats | how |\n| --- | --- | --- | --- |"]
    print(printed[0], flush=True)
    for part in args.only.split(","):
        for line in PARTS[part](args.repeats):
            printed.append(f"| {' | '.join(line.cells())} |")
            print(printed[-1], flush=True)
    libraries = versions(("torch", "transformers", "sentence-transformers"))
    library_text = ", ".join(f"{name} {number}" for name, number in libraries.items())
    printed.append(
        f"\n{machine['cpu']}, {machine['cores']} cores, {machine['threads']} in use, Python {machine['python']}, "
        f"{library_text}; {args.repeats} repeats; "
        f"{time.strftime('%B %Y')}."
    )
    print(printed[-1])
    if args.out is not None:
        with args.out.open("a", encoding="utf-8") as file:
            file.write("\n".join(printed) + "\n")


if __name__ == "__main__":
    main()
