"""`python -m tools.why_pages [NAME ...]`: answer the questions of docs/why.md.

Each is a comparison of two rows from the embedded model, then `harness.why`. The answers are saved
in docs/answers/why.json, with a waterfall each in docs/static; `python -m docs.make` writes them into
the page. A work directory (--workdir) that has the runs is used again.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import harness
from harness.files.printable import tell
from harness.results.store import read_comparison_file
from harness.sources.pair_sets import load_sts

DOCS = Path(__file__).parents[1] / "docs"
ANSWERS = DOCS / "answers" / "why.json"
SEEDS = [1, 2, 3]
STEPS = 24
BATCH_SIZE = 16
PAIRS = 400


@dataclass(frozen=True)
class Question:
    """Two rows, and what differs between them.

    Attributes:
        asked: the question, as the page has it.
        rows: entries of an experiment; the second row is the one that the difference begins at.
        factors: those that are one each, all others being joined.
    """

    asked: str
    rows: tuple[dict[str, Any], dict[str, Any]]
    factors: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, str]:
        """The labels of the two rows."""
        first, second = (row["name"] for row in self.rows)
        return first, second


_SCD_PAPER = {
    "temperature": 1.0,
    "decorrelation_weight": 0.005,
    "off_diagonal_weight": 0.013,
    "dropout_a": 0.05,
    "dropout_b": 0.15,
}
"""Where the presets "paper" and "code" differ on BERT-base; for the embedded model they are equal."""
_SCD_CODE = {
    "temperature": 0.05,
    "decorrelation_weight": 0.005225,
    "off_diagonal_weight": 0.012,
    "dropout_a": 0.05,
    "dropout_b": 0.155,
}

QUESTIONS = {
    "demo": Question(
        "Why does Barlow Twins (shuffle) beat SimCSE in the demo?",
        (
            {"name": "Barlow Twins (shuffle)", "method": "barlow_twins", "preset": "mini-shuffle"},
            {"name": "SimCSE", "method": "simcse", "preset": "mini"},
        ),
    ),
    "search": Question(
        "What did the search of SimCSE's recipe for the embedded model gain, and through which option?",
        (
            {"name": "searched", "method": "simcse", "preset": "mini"},
            {"name": "before", "method": "simcse", "preset": "code"},
        ),
    ),
    "scd": Question(
        'What is the difference between SCD\'s presets "paper" and "code" worth?',
        (
            {"name": "code", "method": "scd", "preset": "mini", "config": _SCD_CODE},
            {"name": "paper", "method": "scd", "preset": "mini", "config": _SCD_PAPER},
        ),
        factors=("temperature",),
    ),
}


def write_pairs(workdir: Path) -> Path:
    """Write the first test pairs of Embedded-STS-natural, and return the file."""
    workdir.mkdir(parents=True, exist_ok=True)
    path = workdir.resolve() / "natural.csv"
    natural = load_sts("Embedded-STS-natural", source="embedded")
    pairs = [
        pair
        for subset in natural.subsets
        for pair in zip(subset.sentences1, subset.sentences2, subset.gold, strict=True)
    ]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("sentence1", "sentence2", "score"))
        writer.writerows(pairs[:PAIRS])
    return path


def experiment_of(name: str, question: Question, workdir: Path) -> dict[str, Any]:
    """Return the comparison of a question's two rows."""
    return {
        "name": f"why-{name}",
        "base_models": ["embedded:mini-bert"],
        "seeds": SEEDS,
        "suites": [str(write_pairs(workdir))],
        "corpus": "embedded:sentences",
        "budget": {"steps": STEPS},
        "dev": None,
        "shared": {"batch_size": BATCH_SIZE},
        "methods": list(question.rows),
    }


def answer(name: str, workdir: Path) -> dict[str, Any]:
    """Run the comparison of a question and the rows between, and return the answer."""
    question = QUESTIONS[name]
    began = time.process_time()
    experiment = experiment_of(name, question, workdir)
    if read_comparison_file(workdir, experiment["name"]) is None:
        harness.compare(experiment, workdir=workdir, tracked=False, formats=[])
    found = harness.why(
        workdir,
        *question.names,
        comparison=experiment["name"],
        factors=question.factors,
        runs=1000,
        tracked=False,
        formats=["html"],
    )
    return {"text": found.text, "data": found.data, "cpu_seconds": time.process_time() - began}


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(QUESTIONS), choices=list(QUESTIONS))
    parser.add_argument("--workdir", type=Path, default=Path("work/why"))
    args = parser.parse_args()
    for name in args.names:
        tell(json.dumps({name: answer(name, args.workdir)}, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
