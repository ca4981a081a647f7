"""Shows what it costs a training step that glibc returns freed memory to the system.

    python -m tools.benchmarks.allocation [--repeats 5] [--steps 12]

Processes with and without the variables alternate. Each trains SimCSE and prints processor seconds
and page faults of its steps; the first training of a process is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys

VARIABLES = {"MALLOC_TRIM_THRESHOLD_": str(2**30), "MALLOC_MMAP_THRESHOLD_": str(2**30)}
SIZES = ("mini-bert", "two layers of BERT-base's size")


def train(size: str, steps: int) -> None:
    """Train twice in this process; print processor seconds, page faults and peak memory of the second."""
    import resource

    for counted in (False, True):
        before = resource.getrusage(resource.RUSAGE_SELF)
        if size == SIZES[0]:
            _train_mini(steps)
        else:
            _train_base(steps)
        after = resource.getrusage(resource.RUSAGE_SELF)
        if counted:
            user = after.ru_utime - before.ru_utime
            system = after.ru_stime - before.ru_stime
            faults = after.ru_minflt - before.ru_minflt
            found = {"seconds": user + system, "system": system, "faults": faults}
            print(json.dumps(found | {"mib": after.ru_maxrss / 1024}))


def _train_mini(steps: int) -> None:
    from harness.method import FitContext
    from harness.sources import load_corpus
    from methods.simcse import SimCSE

    config = SimCSE.configure({"max_steps": steps, "batch_size": 64, "train_length": 32})
    SimCSE(config).fit(load_corpus("embedded:sentences", limit=64 * steps), FitContext(seed=1))


def _train_base(steps: int) -> None:
    import torch
    from transformers import BertConfig, BertModel

    from harness.encoder import Encoder, Pooling
    from harness.sources import load_corpus
    from methods.objectives import nt_xent

    torch.manual_seed(0)
    transformer = BertModel(BertConfig(num_hidden_layers=2), add_pooling_layer=False)
    tokenizer = Encoder.load("embedded:mini-bert").tokenizer
    encoder = Encoder(transformer, tokenizer, pooling=Pooling.parse("cls"), max_length=32).train()
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=3e-5)
    corpus = load_corpus("embedded:sentences", limit=64 * steps)
    texts = [corpus[place] for place in range(len(corpus))]
    for step in range(steps):
        batch = texts[64 * step : 64 * (step + 1)]
        optimizer.zero_grad()
        loss = nt_xent(*encoder.two_views(batch), temperature=0.05)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()


def measure(size: str, steps: int, variables: dict[str, str]) -> dict[str, float]:
    """Return what a process with these variables prints."""
    command = [sys.executable, "-m", "tools.benchmarks.allocation", "--train", size]
    environment = os.environ | {"OMP_NUM_THREADS": "1"} | variables
    done = subprocess.run(
        [*command, "--steps", str(steps)],
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Print a row for each size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--train", choices=SIZES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.train:
        train(args.train, args.steps)
        return
    print("| training | without / with | least to most | page faults | peak MiB |")
    print("|---|---:|---:|---:|---:|")
    for size in SIZES:
        without = []
        with_them = []
        for _ in range(args.repeats):
            without.append(measure(size, args.steps, {}))
            with_them.append(measure(size, args.steps, VARIABLES))
        ratios = []
        for a, b in zip(without, with_them, strict=True):
            ratios.append(a["seconds"] / b["seconds"])
        cells = [
            size,
            f"{statistics.median(ratios):.3f}",
            f"{min(ratios):.3f} to {max(ratios):.3f}",
        ]
        for key in ("faults", "mib"):
            sides = [statistics.median(one[key] for one in side) for side in (without, with_them)]
            cells.append(f"{sides[0]:,.0f}; {sides[1]:,.0f}")
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
