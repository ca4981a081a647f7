"""Shows what training with each method costs per text, as a ratio to SimCSE on the same machine.

    python -m tools.benchmarks.method_cost [--texts 512] [--rounds 3] [--methods scd
    simcse:mlm_weight=0.1 ...]

Each method trains for one epoch from the embedded mini-bert with its preset "mini" on the first
texts of the embedded corpus of its kind. SimCSE is run again next to each method, and the ratio is
that of the best rounds. A text is a sentence, a pair, or for DeCLUTR a whole document, from which
it takes several spans.
"""

from __future__ import annotations

import argparse
from typing import Any

from harness import registry
from harness.config import setting
from harness.method import FitContext, Method
from harness.sources import Corpus, load_corpus
from harness.training import TrainedMethod


def seconds(method: type[Method], config: Any, corpus: Corpus) -> float:
    """Training seconds per text seen in one epoch, from a fresh start."""
    fitted = method(config, base_model="embedded:mini-bert").fit(corpus, FitContext(seed=1))
    cost = fitted.fit_report.cost
    return float(cost["train_seconds"]) / float(cost["corpus_sentences_seen"])


def main() -> None:
    """Print a line for each method."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--methods", nargs="*", help="NAME or NAME:KEY=VALUE (default: all that train)"
    )
    args = parser.parse_args()
    names = registry.names(registry.METHODS)
    methods = {name: registry.load(registry.METHODS, name) for name in names}
    trained = [name for name, method in methods.items() if issubclass(method, TrainedMethod)]
    reference = methods["simcse"]
    sentences = load_corpus("embedded:sentences", limit=args.texts)
    for entry in args.methods or [*trained, "simcse:mlm_weight=0.1"]:
        name, _, override = entry.partition(":")
        method = methods[name]
        values: dict[str, Any] = {"epochs": 1}
        if override:
            key, value = setting(override)
            values[key] = value
        config = method.configure(values, preset="mini")
        kind = method(config).text
        corpus = load_corpus(f"embedded:{kind}", kind=kind, limit=args.texts)
        usual = reference.configure({"epochs": 1}, preset="mini")
        own = []
        beside = []
        for _ in range(args.rounds):
            beside.append(seconds(reference, usual, sentences))
            own.append(seconds(method, config, corpus))
        print(
            f"{entry:24} {kind:10} {1000 * min(own):7.2f} ms a text, {min(own) / min(beside):5.2f} x SimCSE",
            flush=True,
        )


if __name__ == "__main__":
    main()
