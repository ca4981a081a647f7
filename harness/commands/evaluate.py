"""`harness evaluate`: score any hub id, SentenceTransformer folder or saved method."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from harness.commands.encoding_options import add_encoding_options, encoding_of
from harness.commands.terminal import plain
from harness.files.printable import tell_error, tell_json, tell_lines, told


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `harness evaluate` to the command line."""
    parser = subparsers.add_parser(
        "evaluate",
        help="score a model on suites or tasks",
        description="Score a model of the hub, a SentenceTransformer folder, a saved method or embedded:NAME.",
        epilog="example: harness evaluate sentence-transformers/all-MiniLM-L6-v2 --suite sts --source mteb",
    )
    add_encoding_options(parser)
    parser.add_argument("--suite", default="sts", help="comma-separated suites or tasks (see: harness list suites)")
    parser.add_argument("--source", default="senteval", choices=["senteval", "mteb"], help="copy of the STS sets")
    parser.add_argument("--no-cache", action="store_true", help="encode all, and keep no vectors for the next time")
    parser.add_argument("--json", metavar="FILE", help="write scores, protocols and costs (- for stdout)")
    parser.add_argument(
        "--prompts", metavar="own|FILE", help="texts before the inputs: the model's own, or a JSON file of them by task"
    )
    parser.add_argument("--mteb-results", metavar="FOLDER", help="write the scores of mteb's tasks in mteb's layout")
    parser.add_argument("--model-name", metavar="ORG/NAME", help="name in --mteb-results (default: the hub id)")
    parser.add_argument("--revision", help="revision in --mteb-results (default: the hub's commit, or a content hash)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit code 0 when every task was scored, 1 when the data of some could not be had."""
    from harness import api

    suites = [name.strip() for name in args.suite.split(",") if name.strip()]
    evaluation = api.evaluate(
        args.model,
        suites,
        source=args.source,
        cached=not args.no_cache,
        prompts=_prompts(args.prompts),
        mteb_results=args.mteb_results,
        model_name=args.model_name,
        revision=args.revision,
        **encoding_of(args),
    )
    result = evaluation.result
    if evaluation.remark:
        tell_error(evaluation.remark)
    for name, text in result.artifacts.items():
        if name.startswith("errors/"):
            tell_lines(text, error=True)
    if args.json:
        if args.json == "-":
            tell_json(evaluation.as_dict())
            return 1 if result.missing else 0
        from harness.files.atomic import write_atomic

        write_atomic(Path(args.json), json.dumps(evaluation.as_dict(), indent=1) + "\n")
    _show(args.model, result, args.source, suites)
    return 1 if result.missing else 0


def _prompts(asked: str | None) -> Any:
    """The prompts of a file, by key; "own" and nothing as they are."""
    if asked is None or asked == "own":
        return asked
    from harness.errors import InputError
    from harness.files.reading import read_json

    read = read_json(Path(asked))
    if not isinstance(read, dict) or not all(isinstance(text, str) for text in read.values()):
        raise InputError(f'--prompts {asked}: expected texts by kind of task, as {{"STS": "query: "}}')
    return read


def _show(model: str, result: Any, source: str, suites: list[str]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=plain(f"{model} (source: {source})"))
    for heading in ("task", "split", "metric", "aggregation", "value", "n", "protocol"):
        table.add_column(heading, justify="right" if heading in ("value", "n") else "left", overflow="fold")
    for s in result.scores:
        value = f"{100 * s.value:.2f}" if _in_percent(s) else f"{s.value:.3f}"
        cells = (s.task, s.split, s.metric, s.aggregation, value, f"{s.n:,}", s.protocol)
        table.add_row(*(plain(cell) for cell in cells))
    console = Console() if sys.stdout.isatty() else Console(width=160)
    console.print(table)
    for line in _averages(result.scores, suites):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for note in result.notes:
        console.print(told(f"note: {note}"), markup=False, highlight=False, soft_wrap=True)
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
