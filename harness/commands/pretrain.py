"""`harness pretrain`: masked-language modelling on any text, from scratch or going on from a base model."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.errors import TrainingStopped
from harness.files.printable import tell
from harness.machine.progress import Reporter
from harness.pretraining.options import PretrainingConfig


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `harness pretrain` to the command line."""
    parser = subparsers.add_parser(
        "pretrain",
        help="make or adapt a base model by masked-language modelling",
        description="Pretrain a base model on your text, from scratch or from --base-model, and save it as a Hugging "
        "Face folder for --base-model of the other commands. A run that was interrupted goes on when the same command "
        "is given again.",
        epilog="example: harness pretrain --base-model embedded:mini-bert --corpus notes.txt --out my-base --steps 500",
    )
    parser.add_argument("--out", required=True, help="folder of the saved model")
    parser.add_argument("--corpus", required=True, action="append", metavar="URI", help="text; give it again for more")
    parser.add_argument("--column", help="column of the text, where a file has several (default: text)")
    parser.add_argument("--limit", type=int, help="use the first N items of each corpus")
    for name, field in PretrainingConfig.model_fields.items():
        flag = f"--{name.replace('_', '-')}"
        about = (field.description or "").replace("%", "%%")
        if field.annotation is bool:
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS, help=about)
        else:
            shown = "" if field.default is None else f" (default: {field.default})"
            parser.add_argument(flag, default=argparse.SUPPRESS, metavar="VALUE", help=about + shown)
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N or mps")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit code 0 when the model was saved, 1 when training diverged."""
    given = {name: value for name, value in vars(args).items() if name in PretrainingConfig.model_fields}
    config = PretrainingConfig.parse(given, "harness pretrain")
    from harness.pretraining.make_base_model import make_base_model  # imports torch: seconds

    try:
        made = make_base_model(
            config,
            args.corpus,
            Path(args.out),
            column=args.column,
            limit=args.limit,
            device=args.device,
            progress=Reporter(1, quiet=args.quiet),
        )
    except TrainingStopped:  # the progress has said why
        return 1
    tell(f"validation loss {made.loss:.3f} nats a masked token, {made.initial:.3f} before; {made.steps} updates")
    return 0
