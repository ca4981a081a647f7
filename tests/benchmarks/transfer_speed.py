"""The seven transfer tasks by our classifiers beside scikit-learn's LogisticRegression: accuracy and seconds, one run.

    python tests/benchmarks/transfer_speed.py [--model embedded:mini-bert] [--tasks MR,CR] [--seeds 1111,1,2]
        [--limit 2000] [--grid senteval|matched] [--keep FOLDER] [--without-sklearn]

The vectors are made once and do not count. Every solver sees the same vectors and, for the levels that have folds, the
same folds. scikit-learn searches SentEval's own grid for it (six or seven values of C) or, with `--grid matched`, the
four values that correspond to ours: C = 1 / (l2 n). `--limit` takes a part of each training set, for a quick look;
`--keep` stores the vectors for the next run. Processor time stands beside wall time: it is the fairer figure on a CPU
that others use too.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Data = dict[str, tuple[Array, Array]]  # part -> features, labels


def vectors_of(task: Any, model: str, keep: Path | None) -> Callable[[list[str]], Array]:
    """The table of the task's vectors: encoded, or read from `keep`."""
    from harness.embeddings import encode_once
    from harness.encoder import Encoder
    from harness.sources import resolve_model

    file = keep and keep / f"{model.replace('/', '_').replace(':', '_')[-80:]}-{task.name}.npy"
    texts = list(dict.fromkeys(task.texts()))
    if file and file.exists():
        stored = np.load(file)
        return encode_once(lambda asked: stored, texts)
    encoder = Encoder.load(resolve_model(model))
    table = encode_once(lambda asked: encoder.encode(asked, batch_size=64), texts)
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, table.vectors)
    return table


def shortened(data: Any, limit: int) -> Any:
    """The task's data with at most `limit` examples a part, evenly taken."""
    from harness.sources.senteval_files import Labelled, Part

    parts = {}
    for name, part in data.parts.items():
        rows = np.linspace(0, len(part) - 1, min(limit, len(part))).astype(int)
        second = [part.second[i] for i in rows] if part.second else []
        parts[name] = Part([part.first[i] for i in rows], second, part.labels[rows])
    return Labelled(parts, data.classes, data.sha256)


def scikit_learn(data: Data, k: int, grid: str) -> float:
    """SentEval's scikit-learn path: the test accuracy in percent."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold

    def fit(x: Array, y: Array, c: float) -> Any:
        return LogisticRegression(C=c, random_state=1111).fit(x, y)

    def values(n: int, first: int, last: int) -> list[float]:
        if grid == "matched":
            return [1 / (l2 * n) for l2 in (1e-5, 1e-4, 1e-3, 1e-2)]
        return [2.0**e for e in range(first, last)]

    def searched(x: Array, y: Array, first: int, last: int) -> Any:
        found = []
        cs = values(len(y), first, last)
        for c in cs:
            inner = folds.split(x, y)
            found.append(round(100 * float(np.mean([fit(x[a], y[a], c).score(x[b], y[b]) for a, b in inner])), 2))
        return fit(x, y, cs[int(np.argmax(found))])

    folds = StratifiedKFold(k, shuffle=True, random_state=1111)
    if "all" in data:
        x, y = data["all"]
        return float(np.mean([100 * searched(x[a], y[a], -2, 4).score(x[b], y[b]) for a, b in folds.split(x, y)]))
    if "dev" not in data:
        return float(100 * searched(*data["train"], -1, 6).score(*data["test"]))
    models = [fit(*data["train"], c) for c in values(len(data["train"][1]), -2, 4)]
    return float(100 * max(models, key=lambda m: round(m.score(*data["dev"]), 4)).score(*data["test"]))


def timed(run: Callable[[], float]) -> tuple[float, float, float]:
    """Accuracy, wall seconds, processor seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = run()
    return found, time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    import warnings

    from harness.tasks.classifier import FULL, LBFGS
    from harness.tasks.transfer import TRANSFER, transfer_task

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="embedded:mini-bert")
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
    total: dict[str, list[float]] = {}
    for name in args.tasks.split(","):
        task = transfer_task(name)
        table = vectors_of(task, args.model, args.keep)
        task.data = shortened(task.data, args.limit)
        data = {part: (task._features(rows, table)[0], rows.labels) for part, rows in task.data.parts.items()}

        def ours(classifier: Any, task: Any = task, table: Any = table) -> float:
            task.classifier = classifier
            return float(task.outcome(table)[0].test)

        runs: dict[str, Callable[[], float]] = {
            f"full, seed {s}": partial(ours, dataclasses.replace(FULL, seed=s)) for s in seeds
        }
        runs["lbfgs"] = partial(ours, LBFGS)
        if not args.without_sklearn:
            runs["scikit-learn"] = partial(scikit_learn, data, 10, args.grid)
        for label, run in runs.items():
            accuracy, wall, cpu = timed(run)
            total.setdefault(label, []).extend((wall, cpu))
            print(
                f"{name:6} {label:16} accuracy {accuracy:6.2f}   {wall:8.1f} s wall {cpu:8.1f} s processor", flush=True
            )
    for label, seconds in total.items():
        print(f"all    {label:16} {'':15}   {sum(seconds[::2]):8.1f} s wall {sum(seconds[1::2]):8.1f} s processor")


if __name__ == "__main__":
    main()
