"""Shows accuracy and time of the seven transfer tasks with our classifiers and with scikit-learn's
LogisticRegression.

    python -m tools.benchmarks.transfer_speed [--model embedded:mini-bert] [--classifier
        adam|transcription] [--tasks MR,CR] [--seeds 1111,1,2] [--limit 2000] [--grid
        senteval|matched] [--keep FOLDER] [--without-sklearn]

`--classifier adam` is SentEval's full configuration, `transcription` the same, fit by fit in the
float64 numpy of the tests, which separates effects of the protocol from errors of our code.

The vectors are computed once and do not count. Every solver gets the same vectors and, where the
protocol has folds, the same folds. scikit-learn searches SentEval's own grid for it (six or seven
values of C) or, with `--grid matched`, the four values that correspond to ours: C = 1 / (l2 n).
`--limit` takes a part of each training set; `--keep` stores the vectors for the next run. Processor
time is printed in brackets after wall time.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from harness.tasks.base import Vectors

Array = np.ndarray[Any, Any]
Data = dict[str, tuple[Array, Array]]  # part -> features, labels


def vectors_of(task: Any, model: str, keep: Path | None) -> Vectors:
    """Return the table of the task's vectors: encoded, or read from `keep`."""
    from harness.encoder import Encoder
    from harness.sources import resolve_model
    from harness.tasks.vectors import encode_once

    file = keep and keep / f"{model.replace('/', '_').replace(':', '_')[-80:]}-{task.name}.npy"
    texts = list(dict.fromkeys(task.texts()))
    if file and file.exists():
        stored = np.load(file)
        return encode_once(lambda _: stored, texts)
    encoder = Encoder.load(resolve_model(model))
    table = encode_once(lambda new: encoder.encode(new, batch_size=64), texts)
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, table.vectors)
    return table


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


def scikit_learn(data: Data, k: int, grid: str) -> float:
    """Return the test accuracy in percent by SentEval's scikit-learn path."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold
    from threadpoolctl import threadpool_limits

    def fit(x: Array, y: Array, c: float) -> Any:
        return LogisticRegression(C=c, random_state=1111).fit(x, y)

    def values(n: int, first: int, last: int) -> list[float]:
        if grid == "matched":
            return [1 / (l2 * n) for l2 in (1e-5, 1e-4, 1e-3, 1e-2)]
        return [2.0**e for e in range(first, last)]

    def search_and_fit(x: Array, y: Array, first: int, last: int) -> Any:
        scores = []
        cs = values(len(y), first, last)
        for c in cs:
            inner = folds.split(x, y)
            accuracies = [fit(x[a], y[a], c).score(x[b], y[b]) for a, b in inner]
            scores.append(round(100 * float(np.mean(accuracies)), 2))
        return fit(x, y, cs[int(np.argmax(scores))])

    folds = StratifiedKFold(k, shuffle=True, random_state=1111)
    # One thread: its products are so small that a second one made it ten times slower.
    with threadpool_limits(1):
        if "all" in data:
            x, y = data["all"]
            accuracies = []
            for a, b in folds.split(x, y):
                model = search_and_fit(x[a], y[a], -2, 4)
                accuracies.append(100 * model.score(x[b], y[b]))
            return float(np.mean(accuracies))
        if "dev" not in data:
            return float(100 * search_and_fit(*data["train"], -1, 6).score(*data["test"]))
        models = [fit(*data["train"], c) for c in values(len(data["train"][1]), -2, 4)]
        best = max(models, key=lambda m: round(m.score(*data["dev"]), 4))
        return float(100 * best.score(*data["test"]))


def transcription(data: Data, k: int, seed: int) -> float:
    """Return the test accuracy in percent of SentEval's protocol as the tests' float64 numpy reads it:
    minutes a task.
    """
    from tests.support import senteval_reference as reference

    if "all" in data:
        return reference.nested_cross_validation(*data["all"], k=k, seed=seed)[1]
    if "dev" not in data:
        return reference.kfold_on_train(*data["train"], *data["test"], k=k, seed=seed)[1]
    x = {part: vectors for part, (vectors, _) in data.items()}
    y = {part: labels for part, (_, labels) in data.items()}
    return reference.train_dev_test(x, y, seed=seed)[1]


@dataclass
class Run:
    """Accuracy in percent, wall and processor seconds."""

    accuracy: float
    wall: float
    processor: float


def measure_time(run: Callable[[], float]) -> Run:
    wall = time.perf_counter()
    cpu = time.process_time()
    accuracies = run()
    return Run(accuracies, time.perf_counter() - wall, time.process_time() - cpu)


def row(first: str, ours: list[str], rest: list[str]) -> str:
    left = "".join(f"{cell:>9}" for cell in ours)
    right = "".join(f"{cell:>14}" for cell in rest)
    return f"{first:6} {left}{right}"


def main() -> None:
    import warnings

    from harness.tasks.senteval.classifier import FULL
    from harness.tasks.senteval.transfer import TRANSFER, transfer_task

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="embedded:mini-bert")
    parser.add_argument("--classifier", choices=["adam", "transcription"], default="adam")
    parser.add_argument("--tasks", default=",".join(TRANSFER))
    parser.add_argument("--seeds", default="1111,1,2")
    parser.add_argument("--limit", type=int, default=10**9)
    parser.add_argument("--grid", choices=["senteval", "matched"], default="senteval")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--without-sklearn", action="store_true")
    args = parser.parse_args()
    warnings.filterwarnings("ignore", module="sklearn")
    import torch

    torch.ones(8, 8) @ torch.ones(8, 8)  # threads and libraries are up before the clock runs
    seeds = [int(s) for s in args.seeds.split(",")]
    print(
        f"{args.model}, {args.classifier}, {torch.get_num_threads()} threads; s: wall (processor), ours a seed"
    )
    titles = ["sklearn", "mean - theirs", "s ours", "s sklearn", "theirs/ours"]
    print(row("task", [f"seed {s}" for s in seeds], titles))
    all_ours: list[list[Run]] = []
    all_theirs: list[Run] = []
    for name in args.tasks.split(","):
        task = transfer_task(name)
        table = vectors_of(task, args.model, args.keep)
        task.data = shorten(task.data, args.limit)
        x, _ = task.inputs(table)
        data = {part: (x[part], rows.labels) for part, rows in task.data.parts.items()}

        def ours(seed: int, task: Any = task, table: Any = table, data: Data = data) -> float:
            if args.classifier == "transcription":
                return transcription(data, 10, seed)
            task.classifier = dataclasses.replace(FULL, seed=seed)
            return float(task.outcome(table)[0].test)

        runs = [measure_time(partial(ours, seed)) for seed in seeds]
        theirs = Run(nan, nan, nan)
        if not args.without_sklearn:
            theirs = measure_time(partial(scikit_learn, data, 10, args.grid))
        all_ours.append(runs)
        all_theirs.append(theirs)
        print(line(name, runs, theirs), flush=True)
    by_seed = zip(*all_ours, strict=True)
    print(line("all", [summarise(list(runs)) for runs in by_seed], summarise(all_theirs)))


def summarise(runs: list[Run]) -> Run:
    """Return the mean accuracy and the sums of the times."""
    wall = sum(run.wall for run in runs)
    processor = sum(run.processor for run in runs)
    return Run(mean_of(runs, "accuracy"), wall, processor)


def mean_of(runs: list[Run], what: str) -> float:
    return float(np.mean([getattr(run, what) for run in runs]))


def line(name: str, ours: list[Run], theirs: Run) -> str:
    wall = mean_of(ours, "wall")
    cpu = mean_of(ours, "processor")
    return row(
        name,
        [f"{run.accuracy:.2f}" for run in ours],
        [
            f"{theirs.accuracy:.2f}",
            f"{mean_of(ours, 'accuracy') - theirs.accuracy:+.2f}",
            f"{wall:.1f} ({cpu:.1f})",
            f"{theirs.wall:.1f} ({theirs.processor:.1f})",
            f"{theirs.wall / wall:.1f} ({theirs.processor / cpu:.1f})",
        ],
    )


if __name__ == "__main__":
    main()
