"""Makes the table from which a dry run estimates what nobody has measured
(`harness/runs/typical_costs.json`).

    python -m tools.benchmarks.typical_costs [--parts encoding methods classifier tasks]

Each part replaces its own figures and leaves the others; each method is saved as soon as it is
measured, and `--missing` measures those that the table does not have. `encoding` is the share of the speed of a
product of matrices that `Encoder.encode` reaches, by the width of the model; `methods` what a
training step, an encoding and a fit of each method cost, in encodings of the same texts;
`classifier` the cost of SentEval's classifier; `overhead` the seconds of whatever else a run does;
`tasks` the texts of the public data sets, which have
to be within reach. Seconds are of the processor, so that other work on the machine matters little.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness import registry
from harness.encoder import Encoder
from harness.errors import HarnessError
from harness.method import FitContext
from harness.runs import typical_costs
from harness.runs.measure import sample_texts, time_row
from harness.runs.rows import Row
from harness.runs.typical_costs import Shape, Texts
from harness.runs.typical_runs import read_passes, texts_of_corpus
from harness.sources import load_corpus

FILE = Path(typical_costs.__file__).with_suffix(".json")
BASE = "embedded:mini-bert"
WIDTHS = {128: 4, 256: 4, 384: 6, 768: 6, 1024: 6}  # width -> layers that are measured
SUITES = ("sts", "sts-dev", "transfer", "downstream", "probing")
CLASSIFIED = {1: "CR", 2: "TREC", 3: "MRPC"}  # number of parts -> the task that is measured
REPEATS = 3
EXAMPLES = 300  # of a part, to which classifiers are fitted
UNLIKE = ("model2vec",)  # it fits to a vocabulary: its cost does not grow with the text
BATCH = 32
SAMPLE = 96  # items of a corpus that methods learn from


def shorten(data: Any, limit: int) -> Any:
    """Return the task's data with at most `limit` examples a part, evenly taken."""
    from harness.sources.senteval.labelled import Labelled, LabelledSplit

    parts = {}
    for name, part in data.parts.items():
        rows = np.linspace(0, len(part) - 1, min(limit, len(part))).astype(int)
        first = [part.first[i] for i in rows]
        second = [part.second[i] for i in rows] if part.second else []
        parts[name] = LabelledSplit(first, second, part.labels[rows])
    return Labelled(parts, data.classes, data.sha256)


def measure_encoding() -> dict[str, list[float]]:
    """Return the share of the speed of a product for each width."""
    corpus = load_corpus("embedded:sentences", limit=512)
    shares = []
    for width, layers in WIDTHS.items():
        texts = list(corpus)[: 512 if width < 512 else 96]
        encoder = make_encoder(width, layers)
        shape = Shape.of(encoder.transformer.config.to_dict())
        giga = len(texts) * shape.giga(Texts.of(texts).tokens)
        encoder.encode(texts[:16])
        found = []
        for _ in range(REPEATS):
            seconds = time_encoding(encoder, texts)
            found.append(giga / seconds / measure_product())
        shares.append(round(sorted(found)[REPEATS // 2], 3))
        print(width, found, flush=True)
    return {"width": list(WIDTHS), "share": shares}


def make_encoder(width: int, layers: int) -> Encoder:
    """Make a BERT of random weights with the embedded model's tokenizer."""
    from transformers import BertConfig, BertModel

    from harness.encoder import Pooling

    tokenizer = Encoder.load(BASE).tokenizer
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=width // 64,
        intermediate_size=4 * width,
    )
    model = BertModel(config, add_pooling_layer=False)
    return Encoder(model, tokenizer, pooling=Pooling.parse("mean"), max_length=128).eval()


def time_encoding(encoder: Any, texts: list[str]) -> float:
    """Return the processor seconds of one encoding."""
    started = time.process_time()
    encoder.encode(texts)
    return time.process_time() - started


def measure_product() -> float:
    """Return GFLOP per second of a product now, and not as it was at the start."""
    typical_costs.measure_products.cache_clear()
    return typical_costs.measure_products()


def measure_methods(names: Sequence[str]) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield what each method costs in encodings by the bare transformer, which are timed next to
    it.
    """
    from harness.runs.conditions import CorpusSettings

    encoder = Encoder.load(BASE)
    for name in names:
        if name in UNLIKE:
            continue
        method = registry.load(registry.METHODS, name)
        small = {"batch_size": BATCH} if "batch_size" in method.Config.model_fields else {}
        try:
            config = method.configure(small, base_model=BASE)
            kind = method(config, base_model=BASE).text
            settings = None if kind == "none" else CorpusSettings(uri=f"embedded:{kind}", kind=kind)
            row = Row(name, method, BASE, config, settings)
            found = measure_method(row, encoder)
        except HarnessError as error:
            print(f"{name}: left out: {error}", flush=True)
            continue
        print(name, found, flush=True)
        yield name, found


def measure_method(row: Row, encoder: Encoder) -> dict[str, float]:
    """Return the cost of a method: of a step, of encoding and of fitting without steps."""
    corpus = None
    if row.corpus is not None:
        corpus = load_corpus(row.corpus.uri, kind=row.corpus.kind, limit=SAMPLE)
    texts = texts_of_corpus(corpus) if corpus is not None else list(sample_texts(None))
    length = row.length(corpus)
    one = time_encoding(encoder, texts) / len(texts)
    if length is None:
        started = time.process_time()
        row.instance.fit(corpus, FitContext(device="cpu"))
        spent = time.process_time() - started
        fit = spent / one / len(texts) if corpus is not None else 0.0
    else:
        fit = 0.0
    steps = 0 if length is None else length.steps
    rates = time_row(row, corpus, steps, "cpu", precision="fp32", clock=time.process_time)
    one = (one + time_encoding(encoder, texts) / len(texts)) / 2
    step = 0.0
    if length is not None:
        texts_of_item = len(texts) / min(len(corpus or ()), 256)
        step = rates["step"] / (length.batch * texts_of_item * one)
    passes = sum(one.tokens for one in read_passes(row.config, [Texts.of(texts)]))
    encode = rates["sentence"] / one / (passes / Texts.of(texts).tokens)
    figures = {"step": step, "encode": encode, "fit": fit}
    return {name: float(f"{value:.2g}") for name, value in figures.items()}


def measure_classifier() -> dict[str, float]:
    """Return GFLOP for each dimension and example of a fit, by the number of parts; vectors count
    hashed words, which says as much of these labels as a small model.
    """
    from sklearn.feature_extraction.text import HashingVectorizer

    from harness.tasks.catalogue import resolve_tasks
    from harness.tasks.senteval.transfer import SINGLE
    from harness.tasks.vectors import encode_once

    width = 256
    words = HashingVectorizer(n_features=width)
    found = {}
    for parts, name in CLASSIFIED.items():
        task: Any = resolve_tasks([name], source="senteval")[0]
        task.data = shorten(task.data, EXAMPLES)
        texts = list(dict.fromkeys(task.texts()))
        table = encode_once(lambda new: words.transform(new).toarray().astype("float32"), texts)
        started = time.process_time()
        task.evaluate(table, pooling="mean")
        spent = time.process_time() - started
        examples = sum(map(len, task.data.parts.values())) * (1 if task.features == SINGLE else 2)
        giga = spent * measure_product() / (examples * width)
        found[str(parts)] = float(f"{giga:.3g}")
        print(name, spent, found, flush=True)
    return found


def measure_overhead() -> dict[str, float]:
    """Return the seconds that a run takes besides training, encoding and scoring, and those that the
    first one of a process takes more: it imports libraries.
    """
    from harness import api

    found = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pairs.csv"
        file.write_text(
            "sentence1,sentence2,score\nA dog.,A cat.,1\nIt rains.,Rain.,4\nNo.,Yes.,0\n"
        )
        for pooling in ("mean", "cls"):
            started = time.process_time()
            rows = [{"method": "pooling", "config": {"pooling": pooling}}]
            work = Path(folder) / pooling
            api.compare(rows, suites=[str(file)], workdir=work, tracking_uri="none", formats=[])
            found.append(time.process_time() - started)
    return {"start": round(found[0] - found[1], 1), "run": round(found[1], 1)}


def count_tasks() -> dict[str, dict[str, float]]:
    """Return the texts of the public tasks; those whose data is out of reach keep their figures."""
    from harness.tasks.base import task_key
    from harness.tasks.catalogue import SOURCES, resolve_tasks

    found = dict(json.loads(FILE.read_text("utf-8"))["tasks"])
    for source in SOURCES:
        for suite in SUITES:
            for task in resolve_tasks([suite], source=source):
                try:
                    texts = list(dict.fromkeys(task.texts()))
                    work = typical_costs.fitting_work(task)
                except HarnessError as error:
                    print(f"{task_key(task)}: {error}", flush=True)
                    continue
                about = Texts.of(texts)
                figures = {"count": about.count, "characters": round(about.characters, 1)}
                if work:
                    figures["fitting"] = float(f"{work:.3g}")
                found[task_key(task)] = figures
    return found


PARTS: dict[str, Callable[[], Any]] = {
    "encoding": measure_encoding,
    "classifier": measure_classifier,
    "overhead": measure_overhead,
    "tasks": count_tasks,
}


def read_table() -> dict[str, Any]:
    """Return the table that ships."""
    table: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    return table


def save(table: dict[str, Any]) -> None:
    """Write the table that ships."""
    FILE.write_text(json.dumps(table, indent=1) + "\n", "utf-8")


def main() -> None:
    """Write the parts that are named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = ["methods", *PARTS]
    parser.add_argument("--parts", nargs="*", default=every, choices=every)
    parser.add_argument("--methods", nargs="*", default=[], help="measure only these")
    parser.add_argument("--missing", action="store_true", help="only methods without figures")
    args = parser.parse_args()
    table = read_table()
    if "methods" in args.parts:
        names = args.methods or registry.names(registry.METHODS)
        if args.missing:
            names = [name for name in names if name not in table["methods"]]
        for name, figures in measure_methods(names):
            table["methods"][name] = figures
            save(table)
    for part in args.parts:
        if part in PARTS:
            table[part] = PARTS[part]()
            save(table)


if __name__ == "__main__":
    main()
