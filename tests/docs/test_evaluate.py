"""The page on evaluation: its comparison of two models is valid, and its own task gives scores and
outcomes.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from docs.make import REPOSITORY
from harness.runs.experiment import read_experiment

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


def test_the_task_on_own_data_gives_a_score_and_outcomes(tmp_path: Path) -> None:
    lines = [
        f"{'train' if i < 40 else 'test'},{'login' if i % 2 else 'billing'},ticket {i}"
        for i in range(60)
    ]
    (tmp_path / "tickets.csv").write_text("\n".join(["split,label,text", *lines]), encoding="utf-8")
    names: dict[str, Any] = {"__file__": str(tmp_path / "tickets.py"), "__name__": "tickets"}
    exec(BLOCKS["tickets.py"], names)
    task = names["Tickets"]()
    known = {text: np.array([i % 2, 1], dtype=np.float32) for i, text in enumerate(task.texts())}
    result = task.evaluate(lambda texts: np.stack([known[text] for text in texts]), pooling="mean")
    (accuracy,) = (score for score in result.scores if score.split == "test")
    assert (accuracy.metric, accuracy.value, accuracy.n) == ("accuracy", 1.0, 20)
    assert result.outcomes is not None
    assert len(result.outcomes) == 20


def test_the_task_on_own_pairs_gives_a_correlation(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text(
        "sentence1,sentence2,score\na,b,5\nc,d,3\ne,f,0\n", encoding="utf-8"
    )
    names: dict[str, Any] = {"__file__": str(tmp_path / "my_pairs.py"), "__name__": "my_pairs"}
    exec(BLOCKS["my_pairs.py"], names)
    vectors = dict(
        zip(
            "abcdef",
            np.eye(2)[[0, 0, 0, 1, 0, 1]] + [[0, 0], [0, 0], [0, 0.5], [0, 0], [0, 0], [-0.5, 0]],
            strict=True,
        )
    )
    result = names["MyPairs"]().evaluate(
        lambda texts: np.stack([vectors[text] for text in texts]), pooling="mean"
    )
    (spearman,) = (s for s in result.scores if (s.metric, s.aggregation) == ("spearman", "all"))
    assert (round(spearman.value, 6), spearman.n) == (1.0, 3)
