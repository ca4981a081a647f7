"""Scores of mteb's tasks follow from the outcomes that are kept of their examples, by kind of task."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from harness.evaluation.scoring import evaluate
from harness.results.facts import facts_of
from harness.results.outcomes import COLUMNS, value_of
from harness.results.text_ids import text_id
from harness.tasks.base import TaskResult
from harness.tasks.mteb.task import MTEBTask, make_embedded_task, mteb_task
from harness.tasks.sts import spearman
from harness.tasks.vectors import Origin

Array = np.ndarray[Any, Any]


def noisy(texts: list[str]) -> Array:
    """Counts of a text's words in 64 bins, and noise: no two texts are equally far apart."""
    counts = np.zeros((len(texts), 64), dtype=np.float32)
    for row, text in enumerate(texts):
        for word in text.lower().split():
            counts[row, zlib.crc32(word.encode()) % 64] += 1
        counts[row] += np.random.default_rng(zlib.crc32(text.encode())).normal(size=64) / 3
    return counts


def stored(result: TaskResult) -> dict[tuple[str, str], float]:
    """(task, metric) -> the score that its outcomes give."""
    if result.outcomes is None:
        return {}
    assert set(result.outcomes.columns) == set(COLUMNS)
    return {key: value_of(rows) for key, rows in result.outcomes.groupby(["task", "metric"])}  # type: ignore[misc]


WITHOUT = {"Regression", "MultilabelClassification", "Summarization", "BitextMining"}
MOCKS = (
    "MockClassificationTask",
    "MockPairClassificationTask",
    "MockMultilingualClusteringTask",
    "LegacyMockClusteringFastTask",
    "MockRetrievalTask",
    "MockMultilingualRerankingTask",
    "MockMultilingualSTSTask",
    "MockSummarizationTask",
    "MockBitextMiningTask",
    "MockMultilabelClassification",
    "MockRegressionTask",
)


def test_every_kind_of_mteb_s_own_mock_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    from mteb.mocks import ALL_MOCK_TASK_TEST_GRID

    seen = set()
    by_name = {mock.metadata.name: mock for mock in ALL_MOCK_TASK_TEST_GRID}
    for mock in map(by_name.__getitem__, MOCKS):
        monkeypatch.setattr(
            "harness.tasks.mteb.adapter.open_task", lambda name, subset, task=mock: task
        )
        result = MTEBTask(mock.metadata.name).evaluate(noisy, pooling="words")
        facts = facts_of(result.figures)[f"mteb:{mock.metadata.name}"]
        kind = mock.metadata.type
        seen.add(kind)
        values = {(score.task, score.metric): score.value for score in result.scores}
        assert not result.notes
        if kind in WITHOUT:
            assert result.outcomes is None
            assert facts.lacks
        elif kind == "STS":
            pairs = result.pairs
            assert pairs is not None
            by_subset = [
                spearman(part["score"], part["gold"]) for _, part in pairs.groupby("subset")
            ]
            assert float(np.mean(by_subset)) == pytest.approx(next(iter(values.values())), abs=1e-6)
        else:
            assert stored(result) == pytest.approx(values, abs=1e-6), mock.metadata.name
            assert facts.unit
            if kind == "PairClassification":
                assert result.outcomes is not None
                pairs = result.outcomes[result.outcomes["metric"] == facts.metric]
                assert facts.chance == pytest.approx(pairs["target"].mean())
    assert seen >= {
        "Classification",
        "PairClassification",
        "Clustering",
        "Retrieval",
        "Reranking",
        "STS",
        *WITHOUT,
    }


def test_queries_and_sets_of_the_embedded_tasks() -> None:
    from harness.sources.embedded import embedded_rows

    names = ("Embedded-Retrieval-contrast", "Embedded-Clustering")
    result = evaluate(noisy, [make_embedded_task(name) for name in names], pooling="words")
    values = {(score.task, score.metric): score.value for score in result.scores}
    assert stored(result) == pytest.approx(values, abs=6e-6)  # mteb rounds nDCG to five digits
    assert result.outcomes is not None
    queries, sets = (result.outcomes[result.outcomes["task"] == name] for name in names)
    rows = embedded_rows("retrieval", ["a", "b", "c"])
    assert queries["unit"].tolist() == [text_id(row["query"]) for row in rows]
    assert 0 < queries["outcome"].mean() < 1
    assert (sets.groupby("subset").size() == 10).all()  # draws of each part
    assert sets["unit"].nunique() == len(sets) == 30


def test_outcomes_are_kept_with_the_results_that_mteb_keeps(tmp_path: Path) -> None:
    def run(encode: Any) -> TaskResult:
        origin = Origin("harness/words", "1", tmp_path)
        return evaluate(
            encode,
            [make_embedded_task("Embedded-Retrieval-natural")],
            pooling="words",
            origin=origin,
        )

    first = run(noisy)
    again = run(lambda texts: np.zeros((len(texts), 4), dtype=np.float32))
    assert first.outcomes is not None
    assert again.outcomes is not None
    assert again.outcomes.equals(first.outcomes)  # read, as the score is
    assert again.scores[0].value == first.scores[0].value
    (file,) = tmp_path.rglob("*.examples.parquet")
    file.unlink()  # an earlier version kept none
    fresh = run(noisy)
    assert fresh.outcomes is not None
    assert fresh.outcomes.equals(first.outcomes)


def test_a_fault_in_keeping_outcomes_costs_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.tasks.mteb.examples.text_ids", lambda texts: 1 / 0)
    result = make_embedded_task("Embedded-Retrieval-natural").evaluate(noisy, pooling="words")
    assert result.scores[0].value > 0
    assert result.outcomes is None
    assert result.notes == [
        "Embedded-Retrieval-natural: outcomes of its examples are not saved: ZeroDivisionError: division by zero"
    ]


def test_outcomes_from_which_the_score_does_not_follow_are_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("harness.tasks.mteb.examples.value_of", lambda rows: 0.123)
    result = make_embedded_task("Embedded-Retrieval-natural").evaluate(noisy, pooling="words")
    assert result.outcomes is None
    assert "ndcg_at_10 does not follow from them" in result.notes[0]


@pytest.mark.hub
def test_the_best_of_five_similarities_of_real_pairs() -> None:
    result = evaluate(noisy, [mteb_task("mteb:TwitterSemEval2015")], pooling="words")
    values = {(score.task, score.metric): score.value for score in result.scores}
    assert stored(result) == pytest.approx(values, abs=1e-6)
    assert result.outcomes is not None
    rows = result.outcomes[result.outcomes["metric"] == "cosine_ap"]
    by_sklearn = average_precision_score(rows["target"], rows["outcome"])
    assert by_sklearn == pytest.approx(values["mteb:TwitterSemEval2015", "cosine_ap"], abs=1e-6)
    facts = facts_of(result.figures)["mteb:TwitterSemEval2015"]
    assert facts.chance == pytest.approx(rows["target"].mean())
