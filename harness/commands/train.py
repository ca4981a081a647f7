"""`harness train`: fit one method and save it as a SentenceTransformer folder."""

from __future__ import annotations

import argparse

from harness.config import setting
from harness.errors import TrainingStopped
from harness.machine.distributed import follower
from harness.machine.progress import Reporter


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `harness train` to the command line."""
    parser = subparsers.add_parser(
        "train",
        help="train one method and save it",
        description="Fit one method on a corpus and save it in the SentenceTransformer layout. "
        "A run that was interrupted goes on when the same command is given again.",
        epilog="example: harness train simcse --out models/simcse --corpus embedded:sentences --preset mini",
    )
    parser.add_argument("method", help="see: harness list methods")
    parser.add_argument("--out", required=True, help="folder of the saved model")
    parser.add_argument("--base-model", default="embedded:mini-bert", help="hub id, folder or embedded:NAME")
    parser.add_argument("--corpus", default="embedded:sentences", help="text URI (default: embedded:sentences)")
    parser.add_argument("--limit", type=int, help="use the first N items of the corpus")
    parser.add_argument("--preset", help="a preset of the method")
    parser.add_argument("--family", help="whose values of the preset (default: those for the base model)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a value of its config")
    parser.add_argument("--seed", type=int, default=1, help="the one source of randomness (default: 1)")
    parser.add_argument("--dev", default="Embedded-STS-natural", help="task whose dev split selects (or none)")
    parser.add_argument("--dev-source", choices=["senteval", "mteb", "embedded"], help="which copy of it")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N or mps")
    parser.add_argument("--precision", default="auto", choices=["auto", "fp32", "bf16", "fp16"])
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.set_defaults(run=run, several=True)


def run(args: argparse.Namespace) -> int:
    """Exit code 0 when the model was saved, 1 when training collapsed or diverged."""
    from harness import api
    from harness.comparison.experiment import DevSettings

    try:
        api.train(
            args.method,
            out=args.out,
            config=dict(setting(text) for text in args.set),
            preset=args.preset,
            family=args.family,
            base_model=args.base_model,
            corpus=args.corpus,
            limit=args.limit,
            dev=None if args.dev == "none" else DevSettings(task=args.dev, source=args.dev_source),
            seed=args.seed,
            device=args.device,
            precision=args.precision,
            progress=Reporter(quiet=args.quiet or follower()),
        )
    except TrainingStopped:  # the progress has said why
        return 1
    return 0
