"""`harness pretrain`: masked-language modelling on any text, from scratch or going on from a base model."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import InputError, TrainingStopped
from harness.machine.progress import Reporter
from harness.pretraining.options import PretrainingConfig

if TYPE_CHECKING:
    from harness.sources import Corpus


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
    out = Path(args.out)
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise InputError(f"--out {out}: exists already; name another folder or delete it")
    from harness.files.locks import work_lock
    from harness.machine.devices import pick_device
    from harness.pretraining.model_folder import save
    from harness.pretraining.pretrain import Pretraining

    device = pick_device(args.device)
    corpora = [_corpus(uri, args.column, args.limit) for uri in args.corpus]
    folder = out.with_name(out.name + ".training")
    with work_lock(folder), Reporter(1, quiet=args.quiet) as reporter:
        reporter.start("pretrain")
        pretraining = Pretraining(config, corpora, folder=folder, device=device, progress=reporter.step)
        try:
            loss = pretraining.run()
        except TrainingStopped as stop:
            reporter.done(f"{stop.status}: {stop.reason} (curves: {folder / 'curves.jsonl'})")
            return 1
        save(pretraining, out)
        reporter.done(f"saved to {out}")
    shutil.rmtree(folder, ignore_errors=True)
    print(
        f"validation loss {loss:.3f} nats a masked token, {pretraining.initial:.3f} before; {pretraining.step} updates"
    )
    return 0


def _corpus(uri: str, column: str | None, limit: int | None) -> Corpus:
    """The texts behind `uri`: what it is known to hold, else one text a line or row."""
    from harness.sources import load_corpus
    from harness.sources.corpus.uri import locate

    kind = locate(uri).kind or "sentences"
    columns = {"text": column} if column else None
    return load_corpus(uri, kind="sentences" if column else kind, columns=columns, limit=limit)  # type: ignore[call-overload, no-any-return]
