"""`harness train`: fit one method and save it as a SentenceTransformer folder."""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from pathlib import Path

from harness import registry
from harness.config import setting
from harness.errors import InputError, TrainingStopped
from harness.files.printable import markdown_text
from harness.machine.distributed import ALONE, join
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
    cls = registry.load(registry.METHODS, args.method)
    values = dict(setting(text) for text in args.set)
    config = cls.configure(values, preset=args.preset, where=f'method "{args.method}"')
    out = Path(args.out)
    from harness.comparison.experiment import DevSettings
    from harness.files.locks import work_lock
    from harness.machine.devices import pick_device
    from harness.method import METHOD_FILE, FitContext
    from harness.sources import load_corpus, load_sts
    from harness.tasks.sts import DevSet
    from harness.training import TrainedMethod

    team = join(args.device)
    with team.main_first():
        if (out / METHOD_FILE).exists():
            raise InputError(f"--out {out}: holds a saved model already; name another folder or delete it")
        kind = cls.text_for(config)
        corpus = None if kind == "none" else load_corpus(args.corpus, kind=kind, limit=args.limit)
        dev = None
        if args.dev != "none" and hasattr(config, "learning_rate"):
            source = DevSettings(task=args.dev, source=args.dev_source).where
            dev = DevSet(load_sts(args.dev, source=source, split="dev"))
    folder = out.with_name(out.name + ".training")
    if not issubclass(cls, TrainedMethod):  # learns without the loop: the main process does it by itself
        if not team.main:
            return 0
        team = ALONE
    with work_lock(folder) if team.main else nullcontext(), Reporter(1, quiet=args.quiet or not team.main) as reporter:
        reporter.start(args.method)
        context = FitContext(seed=args.seed, dev=dev, device=team.device or pick_device(args.device),
                             precision=args.precision, folder=folder, progress=reporter.step, team=team)  # fmt: skip
        method = cls(config, base_model=args.base_model)
        try:
            method.fit(corpus, context)
        except TrainingStopped as stop:
            reporter.done(f"{stop.status}: {stop.reason} (curves: {folder / 'curves.jsonl'})")
            return 1
        if not team.main:
            return 0
        base, corpus_uri = markdown_text(args.base_model), markdown_text(args.corpus)
        method.save(out, card=f"Trained by `{args.method}` from {base} on {corpus_uri}, seed {args.seed}.\n")
        best = method.fit_report.training.get("best_dev")
        reporter.done(f"saved to {out}" + (f", best dev {100 * best:.2f}" if best is not None else ""))
    return 0
