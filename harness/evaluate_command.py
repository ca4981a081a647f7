"""`harness evaluate`: score any hub id, SentenceTransformer folder or saved method."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
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
    from harness.environment import describe
    from harness.plan import pick_device
    from harness.tasks.suites import resolve_tasks

    tasks = resolve_tasks([name.strip() for name in args.suite.split(",")], source=args.source)
    device = pick_device(args.device)
    model, pooling = open_for_evaluation(args.model, args.pooling, args.max_length)

    def encode(texts: list[str]) -> Any:
        return model.encode(texts, batch_size=args.batch_size, device=device, show_progress_bar=args.progress)

    result = evaluate(encode, tasks, pooling=pooling)
    if args.json:
        document = {
            "model": args.model,
            "pooling": pooling,
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
        from harness.records import write_atomic

        write_atomic(Path(args.json), text + "\n")
    _show(args.model, result, args.source)
    return 0


def open_for_evaluation(name: str, pooling: str | None = None, max_length: int | None = None) -> tuple[Any, str]:
    """Something with the `encode` of a method, and how its vectors are pooled.

    A folder that only its method can read (word vectors, a flow, several encoders) is loaded by that method; a model
    that our encoder does not know is run by sentence-transformers.

    Raises:
        InputError: no such model, a damaged one, or a length that cannot be set.
    """
    from harness.encoder import Encoder
    from harness.encoder.foreign import ForeignEncoder, open_model
    from harness.errors import InputError
    from harness.method import METHOD_FILE
    from harness.sources import resolve_model

    if pooling:
        return Encoder.from_pretrained(name, pooling=pooling, max_length=max_length), pooling
    folder = Path(resolve_model(name))
    if (folder / METHOD_FILE).is_file() and not (folder / "modules.json").exists():
        from harness import registry

        if max_length:
            raise InputError(f"--max-length: {name} is a saved method with a length of its own; leave it out")
        about = json.loads((folder / METHOD_FILE).read_text("utf-8"))
        method = registry.load(registry.METHODS, about["method"]).load(folder)
        return method, str(method.config.pooling)
    model = open_model(name)
    if isinstance(model, ForeignEncoder):
        print(f"run by sentence-transformers ({model.modules}): {model.why}", file=sys.stderr)
        if max_length:
            model.limit_length(max_length)
        return model, model.modules
    if max_length:
        model.max_length = min(max_length, model.max_length)
    return model, model.pooling.name


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
