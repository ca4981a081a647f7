"""Shows what a dry run estimates of unlike plans, and what they took.

    python -m tools.benchmarks.estimates [--only tiny transfer] [--model FOLDER] [--out FILE]

Nothing is measured before: every work directory is new. Estimate and truth are seconds of one
thread; the truth is processor time, so that other work on the machine matters little. `transfer`
needs SentEval's files, `larger` a model of the size of BERT-base (`--model`).

The estimate was corrected on the first five plans. The others were added afterwards, and nothing was
corrected on them. docs/speed.md has what is saved in `estimates.jsonl`.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

MINI = "embedded:mini-bert"
SIMCSE = {"method": "simcse", "preset": "mini"}
POOLING = {"method": "pooling", "config": {"pooling": "mean"}}
PLANS: dict[str, tuple[str, dict[str, Any]]] = {
    "tiny": (
        "SimCSE, 24 training steps with a dev set",
        {
            "methods": [SIMCSE],
            "suites": ["Embedded-STS-natural"],
            "max_steps": 24,
            "dev": {"task": "Embedded-STS-natural"},
        },
    ),
    "prompts": (
        "two untrained rows, one with eight prompts",
        {"methods": [POOLING, {"method": "metaeol"}], "suites": ["Embedded-STS-contrast"]},
    ),
    "transfer": (
        "an untrained row on CR and TREC, with their classifiers",
        {"methods": [POOLING], "suites": ["CR", "TREC"]},
    ),
    "long": (
        "SimCSE, an epoch over 4,000 sentences",
        {
            "methods": [SIMCSE],
            "shared": {"epochs": 1},
            "corpus": {"uri": "embedded:sentences", "limit": 4000},
            "suites": ["Embedded-STS-contrast"],
        },
    ),
    "larger": ("a model of BERT-base's size on 200 pairs", {"suites": []}),
    "documents": (
        "DeCLUTR, 20 training steps on documents",
        {
            "methods": [{"method": "declutr", "preset": "mini"}],
            "corpora": {"documents": "embedded:documents"},
            "suites": ["Embedded-STS-contrast"],
            "max_steps": 20,
        },
    ),
    "several": (
        "Barlow Twins and VICReg with three seeds, a dev set every 10 steps",
        {
            "methods": [
                {"method": "barlow_twins", "preset": "mini-shuffle"},
                {"method": "vicreg", "preset": "mini-shuffle"},
            ],
            "seeds": [1, 2, 3],
            "suites": ["embedded"],
            "max_steps": 20,
            "dev": {"task": "Embedded-STS-natural", "every": 10},
        },
    ),
    "whitened": (
        "whitening, on pairs and embedded tasks of mteb's kinds",
        {
            "methods": [{"method": "whitening", "preset": "mini"}],
            "suites": ["embedded", "embedded-mteb"],
        },
    ),
}
CORRECTED = ("tiny", "prompts", "transfer", "long", "larger")  # on which the estimate was corrected
RESULTS = Path(__file__).with_suffix(".jsonl")


def experiment_of(name: str, model: str, folder: Path) -> dict[str, Any]:
    """Return the experiment of a plan."""
    experiment = {"name": name, "seeds": [1], "base_models": [MINI], **PLANS[name][1]}
    if name == "larger":
        experiment |= {"methods": [{"model": model}], "suites": [str(write_pairs(folder))]}
    return experiment


def write_pairs(folder: Path) -> Path:
    """Write 200 pairs of the embedded suite as a file."""
    from harness.tasks.catalogue import resolve_tasks

    (task,) = resolve_tasks(["Embedded-STS-natural"], source="senteval")
    texts = list(dict.fromkeys(task.texts()))[:400]
    file = folder / "pairs.csv"
    with file.open("w", encoding="utf-8", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(["sentence1", "sentence2", "score"])
        for place in range(0, len(texts), 2):
            rows.writerow([texts[place], texts[place + 1], place % 5])
    return file


def measure(name: str, model: str) -> dict[str, Any]:
    """Return the estimated and the true seconds of a plan, in this process."""
    from harness import api
    from harness.api.experiments import plan_comparison
    from harness.runs.costs import CostEstimate

    with tempfile.TemporaryDirectory() as folder:
        experiment = experiment_of(name, model, Path(folder))
        plan = plan_comparison(experiment).plan
        estimate = CostEstimate(plan, Path(folder) / "work")
        seconds = estimate.seconds()
        started = time.process_time()
        result = api.compare(
            experiment, workdir=Path(folder) / "work", tracking_uri="none", formats=[]
        )
        took = time.process_time() - started
        if result.failed or seconds is None:
            raise SystemExit(f"{name}: {result.failed} {estimate.describe()}")
    return {"plan": name, "estimate": seconds, "truth": took}


def table(lines: list[dict[str, Any]]) -> str:
    """Return the figures as a table in Markdown."""
    rows = [
        "| plan, nothing measured before | corrected on it | estimated, s | took, s | ratio |",
        "|---|---|---:|---:|---:|",
    ]
    for line in lines:
        about, _ = PLANS[line["plan"]]
        seen = "yes" if line["plan"] in CORRECTED else "no"
        numbers = (f"{line['estimate']:.0f}", f"{line['truth']:.0f}")
        ratio = f"{line['estimate'] / line['truth']:.2f}"
        rows.append(f"| {' | '.join((about, seen, *numbers, ratio))} |")
    return "\n".join(rows)


def read_table() -> str:
    """Return the table of what is saved."""
    return table([json.loads(line) for line in RESULTS.read_text("utf-8").splitlines()])


def main() -> None:
    """Measure each plan in a process of its own, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", default=list(PLANS), choices=PLANS)
    parser.add_argument("--model", default="sentence-transformers/all-mpnet-base-v2")
    parser.add_argument("--out", type=Path, help="JSON lines, to which each plan is added")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.here:
        print(json.dumps(measure(args.only[0], args.model)))
        return
    lines = []
    for name in args.only:
        command = [sys.executable, "-m", "tools.benchmarks.estimates", "--here", "--only", name]
        done = subprocess.run(
            [*command, "--model", args.model],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        line = done.stdout.splitlines()[-1]
        lines.append(json.loads(line))
        if args.out is not None:
            with args.out.open("a", encoding="utf-8") as stream:
                stream.write(line + "\n")
    print(table(lines))


if __name__ == "__main__":
    main()
