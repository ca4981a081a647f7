"""`harness evaluate`: score any hub id, SentenceTransformer folder or saved method."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.evaluation.vector_cache import StoredVectors


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
    parser.add_argument("--no-cache", action="store_true", help="encode all, and keep no vectors for the next time")
    parser.add_argument("--json", metavar="FILE", help="write scores, protocols and costs (- for stdout)")
    parser.add_argument("--progress", action="store_true", help="show a progress bar while encoding")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit code 0 when every task was scored, 1 when the data of some could not be had."""
    from harness.evaluation.scoring import evaluate
    from harness.machine.devices import pick_device
    from harness.machine.environment import describe
    from harness.tasks.catalogue import resolve_tasks
    from harness.tasks.vectors import Origin

    suites = [name.strip() for name in args.suite.split(",") if name.strip()]
    tasks = resolve_tasks(suites, source=args.source)
    device = pick_device(args.device)
    model, pooling = open_for_evaluation(args.model, args.pooling, args.max_length)

    def encode(texts: list[str]) -> Any:
        return model.encode(texts, batch_size=args.batch_size, device=device, show_progress_bar=args.progress)

    stored = None if args.no_cache else stored_vectors(args.model, model, pooling, args.max_length, device)
    origin = Origin(f"harness/{Path(args.model).name}", stored.name if stored else "unknown")
    result = evaluate(encode, tasks, pooling=pooling, cache=stored, origin=origin, model=model, device=device)
    for name, text in result.artifacts.items():
        if name.startswith("errors/"):
            print(text, file=sys.stderr)
    if args.json:
        document = {
            "model": args.model,
            "pooling": pooling,
            "scores": [score.model_dump() for score in result.scores],
            "protocols": result.protocols,
            "missing": {task: why.text for task, why in result.missing.items()},
            "notes": result.notes,
            "figures": result.figures,
            "cost": result.cost,
            "environment": describe(device, "fp32"),
        }
        text = json.dumps(document, indent=1)
        if args.json == "-":
            print(text)
            return 1 if result.missing else 0
        from harness.files.atomic import write_atomic

        write_atomic(Path(args.json), text + "\n")
    _show(args.model, result, args.source, suites)
    return 1 if result.missing else 0


def stored_vectors(name: str, model: Any, pooling: str, max_length: int | None, device: str) -> StoredVectors | None:
    """The vectors of `model` that earlier evaluations kept; None for one whose content cannot be told."""
    from harness.errors import InputError
    from harness.evaluation.vector_cache import EmbeddingCache, folder_hash
    from harness.identity.code import code_ids
    from harness.identity.models import model_fingerprint
    from harness.machine.environment import device_name
    from harness.sources import resolve_model
    from harness.sources.remote.cache_folder import cache_root

    folder = Path(resolve_model(name))
    try:
        content = folder_hash(folder) if folder.is_dir() else model_fingerprint(name)
    except InputError:  # no transformer: word vectors on the hub have no fingerprint
        return None
    if content == "None":  # a hub without commits
        return None
    cache = EmbeddingCache(cache_root() / "embeddings")
    code = code_ids(type(model))[0]
    return cache.of(content, pooling, code=code, device=device_name(device), max_length=max_length)


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


def _show(model: str, result: Any, source: str, suites: list[str]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{model} (source: {source})")
    for heading in ("task", "split", "metric", "aggregation", "value", "n", "protocol"):
        table.add_column(heading, justify="right" if heading in ("value", "n") else "left", overflow="fold")
    for s in result.scores:
        value = f"{100 * s.value:.2f}" if _in_percent(s) else f"{s.value:.3f}"
        table.add_row(s.task, s.split, s.metric, s.aggregation, value, f"{s.n:,}", s.protocol)
    console = Console() if sys.stdout.isatty() else Console(width=160)
    console.print(table)
    for line in _averages(result.scores, suites):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for note in result.notes:
        console.print(f"note: {note}", markup=False, highlight=False, soft_wrap=True)
    speed, cached = result.cost.get("sentences_per_second"), result.cost.get("sentences_cached", 0.0)
    console.print(
        f"{result.cost['sentences']:,.0f} sentences"
        + (f", {cached:,.0f} of them from the cache" if cached else "")
        + (f", encoded {speed:,.0f} a second" if speed else "")
    )


def _averages(scores: list[Any], named: list[str]) -> list[str]:
    """One line for each average of the suites among `named`; with tasks missing it has no value."""
    from harness import registry
    from harness.tasks.catalogue import suite

    suites = [suite(name) for name in named if name in registry.names(registry.SUITES)]
    means = {average.title: average for one in suites for average in one.averages}
    return [f"{title}: {average.of(scores).shown()}" for title, average in means.items()]


def _in_percent(score: Any) -> bool:
    """Is a score printed times 100? Of another package's suite, its declaration says so."""
    from harness.tasks.catalogue import suites

    if score.metric in ("spearman", "pearson", "accuracy", "f1") or score.suite in ("mteb", "embedded-mteb"):
        return True
    declared = suites().get(score.suite)
    return declared is not None and declared.metric == score.metric and declared.percent
