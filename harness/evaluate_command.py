"""`harness evaluate`: score any hub id, SentenceTransformer folder or saved method."""

from __future__ import annotations

import argparse
import json
from typing import Any


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `harness evaluate` to the command line."""
    parser = subparsers.add_parser(
        "evaluate",
        help="score a model on suites or tasks",
        description="Score a model of the hub, a SentenceTransformer folder, a saved method or embedded:NAME.",
        epilog="example: harness evaluate sentence-transformers/all-MiniLM-L6-v2 --suite sts --source mteb",
    )
    parser.add_argument("model", help="hub id, folder or embedded:NAME")
    parser.add_argument("--suite", default="sts", help="comma-separated suites or tasks (see: harness list suites)")
    parser.add_argument("--source", default="senteval", choices=["senteval", "mteb"], help="copy of the STS sets")
    parser.add_argument("--pooling", help="pooling for a plain transformer (default: what the model says, else mean)")
    parser.add_argument("--max-length", type=int, help="word pieces kept (default: as many as the model takes)")
    parser.add_argument("--batch-size", type=int, default=64, help="sentences a batch (default: 64)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N or mps")
    parser.add_argument("--json", metavar="FILE", help="write scores, protocols and costs (- for stdout)")
    parser.add_argument("--progress", action="store_true", help="show a progress bar while encoding")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit code 0 when every task was scored."""
    from harness.embeddings import evaluate
    from harness.encoder import Encoder
    from harness.environment import describe
    from harness.plan import pick_device
    from harness.sources import resolve_model
    from harness.tasks.suites import resolve_tasks

    tasks = resolve_tasks([name.strip() for name in args.suite.split(",")], source=args.source)
    device = pick_device(args.device)
    if args.pooling:
        encoder = Encoder.from_pretrained(args.model, pooling=args.pooling, max_length=args.max_length)
    else:
        encoder = Encoder.load(resolve_model(args.model))
        if args.max_length:
            encoder.max_length = min(args.max_length, encoder.max_length)

    def encode(texts: list[str]) -> Any:
        return encoder.encode(texts, batch_size=args.batch_size, device=device, show_progress_bar=args.progress)

    result = evaluate(encode, tasks, pooling=encoder.pooling.name)
    if args.json:
        document = {
            "model": args.model,
            "pooling": encoder.pooling.name,
            "scores": [score.model_dump() for score in result.scores],
            "protocols": result.protocols,
            "notes": result.notes,
            "cost": result.cost,
            "environment": describe(device, "fp32"),
        }
        text = json.dumps(document, indent=1)
        if args.json == "-":
            print(text)
            return 0
        from pathlib import Path

        from harness.records import write_atomic

        write_atomic(Path(args.json), text + "\n")
    _show(args.model, result, args.source)
    return 0


def _show(model: str, result: Any, source: str) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{model} (source: {source})")
    for heading in ("task", "split", "metric", "aggregation", "value", "n", "protocol"):
        table.add_column(heading, justify="right" if heading in ("value", "n") else "left")
    main: list[float] = []
    for s in result.scores:
        correlation = s.metric in ("spearman", "pearson")
        if s.suite == "sts" and (s.metric, s.aggregation) == ("spearman", "all"):
            main.append(100 * s.value)
        value = f"{100 * s.value:.2f}" if correlation else f"{s.value:.3f}"
        table.add_row(s.task, s.split, s.metric, s.aggregation, value, f"{s.n:,}", s.protocol)
    console = Console()
    console.print(table)
    if len(main) > 1:
        console.print(f"mean of {len(main)} STS sets (Spearman, all): {sum(main) / len(main):.2f}")
    for note in result.notes:
        console.print(f"note: {note}", markup=False)
    console.print(f"{result.cost['sentences']:,.0f} sentences, {result.cost['sentences_per_second']:,.0f} a second")
