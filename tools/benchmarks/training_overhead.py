"""Shows the overhead of training over a bare torch loop with the same model, batches, optimiser and
precision.

    python -m tools.benchmarks.training_overhead [--steps 60] [--precision bf16]

The bare loop tokenises the same texts and does forward, loss, backward, clipping and AdamW: nothing
else. Both loops alternate, three times; the ratio is that of the best times.
"""

from __future__ import annotations

import argparse
import time

import torch

from harness.encoder.precision import autocast
from harness.method import FitContext
from harness.sources import load_corpus, resolve_model
from harness.training import BatchStream
from methods.objectives import nt_xent
from methods.simcse import SimCSE


def bare(texts: list[list[str]], precision: str) -> float:
    """Run a plain loop over `texts` and return its seconds."""
    from transformers import AutoModel, AutoTokenizer

    folder = resolve_model("embedded:mini-bert")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, add_pooling_layer=False, dtype=torch.float32)
    head = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Tanh())
    parameters = [*model.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=3e-5, fused=True)
    model.train()
    started = time.perf_counter()
    for step, batch in enumerate(texts):
        features = tokenizer(
            [*batch, *batch], truncation=True, max_length=32, padding=True, return_tensors="pt"
        )
        with autocast(precision, "cpu"):
            h = head(model(**features).last_hidden_state[:, 0])
            loss = nt_xent(h[: len(batch)], h[len(batch) :], temperature=0.05)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        for group in optimizer.param_groups:
            group["lr"] = 3e-5 * (1 - step / len(texts))
        optimizer.step()
    return time.perf_counter() - started


def main() -> None:
    """Print both times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--precision", default="bf16")
    args = parser.parse_args()
    corpus = load_corpus("embedded:sentences")
    config = SimCSE.configure({"max_steps": args.steps, "epochs": 5}, preset="mini")
    stream = BatchStream(corpus, batch_size=64, bucket=32, seed=1, length_cap=6 * 32)
    texts = [stream.batch(step).texts for step in range(args.steps)]
    context = FitContext(seed=1, precision=args.precision)
    ours = []
    plain = []
    for _ in range(3):
        plain.append(bare(texts, args.precision))
        ours.append(SimCSE(config).fit(corpus, context).fit_report.cost["train_seconds"])
    print(
        f"{args.steps} updates of 64 sentences, mini-bert, {args.precision}, {torch.get_num_threads()} threads"
    )
    print(
        f"bare loop {min(plain):.2f} s, harness {min(ours):.2f} s, ratio {min(ours) / min(plain):.3f}"
    )


if __name__ == "__main__":
    main()
