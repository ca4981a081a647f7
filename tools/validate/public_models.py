"""Scores that others published of public models, and ours of the same models."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator
from pathlib import Path

from tools.validate.evidence import Evidence

PART = "models"
PUBLISHED = Path(__file__).with_name("published.csv")
OWN_STS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
FIRST = (
    "BIOSSES",
    "STS-B",
    "STS16",
    "STS12",
    "STS13",
    "STS14",
    "STS15",
    "SICK-R",
)  # small sets first


def read_published() -> dict[tuple[str, str], float]:
    """Return the published score, in points, of each (model, task).

    >>> read_published()["all-MiniLM-L6-v2", "STS12"]
    72.37
    """
    with PUBLISHED.open(encoding="utf-8", newline="") as lines:
        return {
            (line["model"], line["task"]): float(line["score"]) for line in csv.DictReader(lines)
        }


def case_of(model: str, task: str) -> str:
    """Return the name of a case."""
    return f"{model}: {task}"


def measure(folders: dict[str, str], known: Collection[str]) -> Iterator[Evidence]:
    """Yield the score of each published one that is not known, smallest data first.

    Args:
        folders: where a model is, if it is not that of the hub.
        known: cases that were measured before.
    """
    import harness

    published = read_published()
    order = sorted(published, key=lambda one: ("mpnet" in one[0], one[1] not in FIRST))
    for model, task in order:
        if case_of(model, task) in known:
            continue
        name = task if task in OWN_STS else f"mteb:{task}"
        where = folders.get(model, f"sentence-transformers/{model}")
        found = harness.evaluate(where, [name], source="mteb").scores()
        (value,) = found.loc[
            found["metric"].isin(["spearman", "cosine_spearman", "accuracy"]), "value"
        ].head(1)
        yield Evidence(PART, case_of(model, task), "score", 100 * value, published[model, task])
