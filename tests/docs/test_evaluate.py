"""The page on evaluation: its comparison of two models is valid, and its files are tasks."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

from docs.make import REPOSITORY
from harness.runs.experiment import read_experiment
from harness.runs.plan import make_plan
from tests.support import own_files

BLOCKS = dict(
    re.findall(
        r'^```\w+ title="([^"]+)"\n(.*?)^```$',
        (REPOSITORY / "docs" / "how-to" / "evaluate.md").read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
)


def test_the_comparison_of_two_models_is_valid() -> None:
    read = read_experiment({"name": "models", **tomllib.loads(BLOCKS["models.toml"])})
    assert [(row.label, row.method) for row in read.methods] == [
        ("E5", "pretrained"),
        ("MiniLM", "pretrained"),
    ]


def test_the_files_of_the_page_are_tasks_and_the_dev_set_is_a_part_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    own_files.pairs_file(tmp_path / "data" / "pairs.csv", 100)
    rows = [(f"ticket {i}", "login" if i % 2 else "billing") for i in range(60)]
    own_files.write_table(tmp_path / "data" / "tickets.csv", ("body", "team"), rows)
    keys = {"name": "own", **tomllib.loads(BLOCKS["own.toml"]), "max_steps": 1}
    plan = make_plan(read_experiment(keys), "own")
    found = [(task.name, task.suite) for task in plan.tasks]
    assert found == [
        ("pairs.csv", "own-similarity"),
        ("tickets.csv", "own-classification"),
        ("teams", "own-clustering"),
    ]
    assert plan.dev is not None
    assert 15 <= len(plan.dev) <= 45  # about 30 of 100 pairs
    known = {text: np.array([i % 2, 1], dtype=np.float32) for i, (text, _) in enumerate(rows)}
    result = plan.tasks[1].evaluate(
        lambda texts: np.stack([known[text] for text in texts]), pooling="mean"
    )
    (accuracy,) = (score for score in result.scores if score.split == "test")
    assert (accuracy.metric, accuracy.value, accuracy.n) == ("accuracy", 1.0, 60)
    assert result.outcomes is not None
    assert len(result.outcomes) == 60
