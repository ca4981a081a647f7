"""Compute the scores of golden.json again and store them: python -m tests.golden.make"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from harness import api
from harness.runs.inputs import forget_loaded
from tests.support import short_runs

PAIRS = 60  # of a set: encoding all of them takes longer than all else
FILE = Path(__file__).with_name("golden.json")


def compute(golden: dict[str, Any], group: str, folder: Path) -> dict[str, dict[str, float]]:
    """Train and score the rows of a group; return row -> "TASK METRIC AGGREGATION" -> value."""
    rows = golden["groups"][group]
    experiment = {**golden["experiment"], "methods": rows}
    forget_loaded()
    with pytest.MonkeyPatch.context() as patch:
        short_runs.few_pairs(patch, PAIRS)
        done = api.compare(experiment, workdir=folder, tracking_uri="none", formats=[])
    forget_loaded()
    names = {row["name"] for row in rows}
    scores = {}
    for record in done.records:
        if record.row in names:
            assert record.status == "finished", f"{record.row}: {record.reason}"
            scores[record.row] = {
                " ".join(filter(None, (score.task, score.metric, score.aggregation))): score.value
                for score in record.scores
            }
            assert len(scores[record.row]) == len(record.scores)
    return scores


def main() -> None:
    golden = json.loads(FILE.read_text())
    golden["scores"] = {}
    for group in golden["groups"]:
        with tempfile.TemporaryDirectory() as folder:
            golden["scores"] |= compute(golden, group, Path(folder))
    FILE.write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
