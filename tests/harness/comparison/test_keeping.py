"""Whose weights stay: what `keep` removes, what stays known of it, and that it is made again when asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import api
from harness.commands.workdir_check import of_run
from harness.comparison.comparison_result import Comparison
from harness.results.run_folder import RunFolder
from tests.support import short_runs

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("few_pairs")]

NATURAL, CONTRAST = "Embedded-STS-natural", "Embedded-STS-contrast"
EXPERIMENT = {
    "name": "small",
    "seeds": [1, 2],
    "suites": [NATURAL],
    "max_steps": 3,
    "precision": "fp32",
    "corpus": {"uri": "embedded:sentences", "limit": 40},
    "dev": {"task": NATURAL},
    "methods": [
        {"method": "simcse", "preset": "mini", "config": {"batch_size": 8, "train_length": 12}},
    ],
}


def compare(folder: Path, monkeypatch: pytest.MonkeyPatch, said: list[str] | None = None, **more: object) -> Comparison:
    short_runs.no_report(monkeypatch)
    say = said.append if said is not None else None
    return api.compare({**EXPERIMENT, **more}, workdir=folder, tracked=False, say=say)


def test_no_weights_stay_and_new_scores_are_added_to_the_same_weights_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = compare(tmp_path, monkeypatch, keep="none", seeds=[1]).records[0]
    folder = RunFolder(tmp_path, first.id)
    assert not folder.model.exists()
    assert not folder.fitted_file.exists()
    vectors = {file.parent for file in (tmp_path / "embeddings").glob("*/*")}
    assert len(vectors) == 1  # those of its start, and none of weights that are gone
    assert "model/model.safetensors" in first.removed
    assert of_run(folder) == []
    said: list[str] = []
    again = compare(tmp_path, monkeypatch, said, keep="none", seeds=[1], suites=[CONTRAST]).records[0]
    assert "simcse: 1 runs are trained again" in said[0]
    assert (again.id, {s.task for s in again.scores}) == (first.id, {CONTRAST})
    whole = folder.read()
    assert whole is not None
    assert {s.task for s in whole.scores} == {NATURAL, CONTRAST}
    assert whole.removed == first.removed


def test_without_vectors_further_scores_come_from_the_kept_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = compare(tmp_path, monkeypatch, keep_vectors=False, seeds=[1]).records[0]
    assert not list((tmp_path / "embeddings").glob("*/*"))
    again = compare(tmp_path, monkeypatch, keep_vectors=False, seeds=[1], suites=[NATURAL, CONTRAST]).records[0]
    assert again.id == run.id
    assert again.training == run.training  # not trained again
    kept = {s.task: s.value for s in again.scores if (s.metric, s.aggregation) == ("spearman", "all")}
    assert kept[NATURAL] == next(s.value for s in run.scores if (s.metric, s.aggregation) == ("spearman", "all"))
    assert CONTRAST in kept


def test_the_best_run_of_a_row_by_dev_score_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [run for run in compare(tmp_path, monkeypatch, keep="selected").records if run.method == "simcse"]
    best = max(runs, key=lambda run: run.training["best_dev"])
    assert {run.id for run in runs if RunFolder(tmp_path, run.id).model.exists()} == {best.id}
