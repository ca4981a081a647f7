"""How the "mini" presets were found: a small grid, scored on the embedded dev part and never on its test part.

    python -m studies.search_embedded --out studies/search_embedded.csv

Every configuration is trained on `embedded:sentences` from `embedded:mini-bert` with a seed that no comparison uses;
its score is the best dev Spearman (natural part) during the run. The file keeps all rows, so that the choice can be
checked and its cost (how many were tried) is known.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import os
import time
from pathlib import Path
from typing import Any

COMMON: dict[str, list[Any]] = {"pooling": ["cls"], "learning_rate": [3e-5, 1e-4, 3e-4], "epochs": [1]}
GRIDS: dict[str, dict[str, list[Any]]] = {
    "simcse": {"temperature": [0.05]},
    "scd": {"decorrelation_weight": [0.005225, 0.0209]},
    "barlow_twins": {"off_diagonal_weight": [0.005, 0.025], "view": ["dropout", "shuffle"]},
}


def configurations(method: str) -> list[dict[str, Any]]:
    """All combinations of the method's grid with the common one."""
    grid = {**COMMON, **GRIDS[method]}
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def main() -> None:
    """Run the grid (rows that the file has already are kept) and print the best row of each method and pooling."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="studies/search_embedded.csv")
    parser.add_argument("--methods", nargs="*", default=list(GRIDS))
    parser.add_argument("--seeds", type=int, nargs="*", default=[101])
    args = parser.parse_args()
    from harness import registry
    from harness.errors import TrainingStopped
    from harness.method import FitContext
    from harness.sources import load_corpus, load_sts
    from harness.tasks.sts import DevSet

    corpus = load_corpus("embedded:sentences")
    dev = DevSet(load_sts("Embedded-STS-natural", source="embedded", split="dev"))
    out = Path(args.out)
    seen = {(row["method"], row["config"], row["seed"]) for row in _rows(out)}
    for name in args.methods:
        method = registry.load(registry.METHODS, name)
        for values in configurations(name):
            for seed in args.seeds:
                text = ";".join(f"{key}={value}" for key, value in values.items())
                if (name, text, str(seed)) in seen:
                    continue
                started = time.perf_counter()
                config = method.configure({**values, "eval_every": 10}, preset="mini")
                fitted = method(config)
                try:
                    training = fitted.fit(corpus, FitContext(seed=seed, dev=dev)).fit_report.training
                    best, step = training["best_dev"], training["best_step"]
                except TrainingStopped as stop:
                    best, step = float("nan"), stop.status
                row = {"method": name, "config": text, "seed": seed, "best_dev": f"{100 * best:.2f}", "step": step,
                       "seconds": f"{time.perf_counter() - started:.1f}"}  # fmt: skip
                _append(out, row)
                print(row, flush=True)


def _rows(file: Path) -> list[dict[str, str]]:
    if not file.exists():
        return []
    with file.open(newline="") as stream:
        return list(csv.DictReader(stream))


def _append(file: Path, row: dict[str, Any]) -> None:
    fresh = not file.exists()
    with file.open("a", newline="") as stream:
        writer = csv.DictWriter(stream, list(row), lineterminator=os.linesep)
        if fresh:
            writer.writeheader()
        writer.writerow(row)


if __name__ == "__main__":
    main()
