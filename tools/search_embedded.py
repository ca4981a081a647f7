"""How the "mini" presets were found: a small grid, scored on the embedded dev part and never on its test part.

    python -m tools.search_embedded --out tools/search_embedded.csv

Every configuration is trained on `embedded:sentences` (or `embedded:pairs`, `embedded:documents`, where a method learns
from those) from `embedded:mini-bert` with a seed that no comparison uses; its score is the best dev Spearman (natural
part) during the run. The file keeps all rows, so that the choice can be checked and its cost (how many were tried) is
known.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import os
import time
from pathlib import Path
from typing import Any

from harness.files.printable import tell

RATES = [3e-5, 1e-4, 3e-4]  # every method gets these learning rates and at most one or two other things to vary
CLS: dict[str, list[Any]] = {"pooling": ["cls"], "learning_rate": RATES, "epochs": [1]}
GRIDS: dict[str, tuple[str, dict[str, list[Any]]]] = {  # name -> method, grid
    "simcse": ("simcse", {**CLS, "temperature": [0.05]}),
    "scd": ("scd", {**CLS, "decorrelation_weight": [0.005225, 0.0209]}),
    "barlow_twins": ("barlow_twins", {**CLS, "off_diagonal_weight": [0.005, 0.025], "view": ["dropout", "shuffle"]}),
    "vicreg": ("vicreg", {"view": ["dropout", "shuffle"], "learning_rate": RATES}),
    "mixcse": ("mixcse", {"learning_rate": RATES}),
    "esimcse": ("esimcse", {"learning_rate": RATES}),
    "consert": ("consert", {"learning_rate": RATES}),
    "diffcse": ("diffcse", {"learning_rate": RATES}),
    "sncse": ("sncse", {"learning_rate": RATES}),
    "dclr": ("dclr", {"learning_rate": RATES}),
    "rankcse": ("rankcse", {"learning_rate": RATES}),
    "byol": ("byol", {"learning_rate": RATES}),
    "w_mse": ("w_mse", {"learning_rate": RATES}),
    "self_guided": ("self_guided", {"learning_rate": RATES}),
    "contrastive_tension": ("contrastive_tension", {"learning_rate": [1e-5, *RATES]}),
    "contrastive_tension in-batch": ("contrastive_tension", {"objective": ["in_batch"], "learning_rate": RATES}),
    "is_bert": ("is_bert", {"learning_rate": RATES}),
    "tsdae": ("tsdae", {"learning_rate": RATES}),
    "cert": ("cert", {"learning_rate": RATES}),
    "simcse_supervised": ("simcse_supervised", {"learning_rate": RATES}),
    "quick_thoughts": ("quick_thoughts", {"learning_rate": RATES}),
    "declutr": ("declutr", {"learning_rate": RATES, "epochs": [15]}),  # 24 documents: two updates an epoch
}


def configurations(grid: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """All combinations of a grid's values."""
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def main() -> None:
    """Run the grid (rows that the file has already are kept) and print the best row of each method and pooling."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="tools.search_embedded.csv")
    parser.add_argument("--methods", nargs="*", default=list(GRIDS))
    parser.add_argument("--seeds", type=int, nargs="*", default=[101])
    args = parser.parse_args()
    from harness import registry
    from harness.errors import TrainingStopped
    from harness.method import FitContext
    from harness.sources import load_corpus, load_sts
    from harness.tasks.sts import DevSet

    dev = DevSet(load_sts("Embedded-STS-natural", source="embedded", split="dev"))
    out = Path(args.out)
    seen = {(row["method"], row["config"], row["seed"]) for row in _rows(out)}
    for name in args.methods:
        plugin, grid = GRIDS[name]
        method = registry.load(registry.METHODS, plugin)
        preset = "mini-in-batch" if name.endswith("in-batch") else "mini"
        for values in configurations(grid):
            for seed in args.seeds:
                text = ";".join(f"{key}={value}" for key, value in values.items())
                if (name, text, str(seed)) in seen:
                    continue
                started = time.perf_counter()
                config = method.configure({**values, "eval_every": 10}, preset=preset)
                fitted, kind = method(config), method.text_for(config)
                corpus = load_corpus(f"embedded:{kind}", kind=kind)
                try:
                    training = fitted.fit(corpus, FitContext(seed=seed, dev=dev)).fit_report.training
                    best, step = training["best_dev"], training["best_step"]
                except TrainingStopped as stop:
                    best, step = float("nan"), stop.status
                row = {"method": name, "config": text, "seed": seed, "best_dev": f"{100 * best:.2f}", "step": step,
                       "seconds": f"{time.perf_counter() - started:.1f}"}  # fmt: skip
                _append(out, row)
                tell(str(row))


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
