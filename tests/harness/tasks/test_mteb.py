"""MTEB through the mteb library: its own conformance run, its own wrapper's scores, names,
averages, faults.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.errors import InputError, RunError
from harness.evaluation.scoring import evaluate, texts_of
from harness.tasks.catalogue import resolve_tasks, suites
from harness.tasks.mteb.benchmarks import (
    EN_V1,
    EN_V2,
    HUMAN,
    MTEB_SUITES,
    mteb_averages,
    mteb_values,
    names_of,
)
from harness.tasks.mteb.task import MTEBTask, make_embedded_task, mteb_task
from harness.tasks.vectors import EmbeddingTable, Origin, encode_once
from tests.support.errors import raises_input_error

Array = np.ndarray[Any, Any]


class Words:
    """Encodes a text as counts of its words in 64 bins, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, texts: list[str]) -> Array:
        self.texts += texts
        counts = np.zeros((len(texts), 64), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                counts[row, zlib.crc32(word.encode()) % 64] += 1
        return counts


RETRIEVAL = "Embedded-Retrieval-natural"


def test_mteb_accepts_the_adapter_in_its_own_offline_run() -> None:
    import mteb
    from mteb.models import EncoderProtocol
    from mteb.results.task_result import TaskResult

    from harness.tasks.mteb.adapter import HarnessEncoder

    encoder = HarnessEncoder(Words(), Origin("harness/words", "1"))
    assert isinstance(encoder, EncoderProtocol)
    outcome = mteb.mock_run(encoder).task_results
    text = {name: result for name, result in outcome.items() if result is not None}
    assert len(text) >= 25
    assert {name for name, result in text.items() if not isinstance(result, TaskResult)} == set()


def test_scores_are_those_of_mtebs_own_wrapper(tmp_path: Path) -> None:
    import mteb
    from sentence_transformers import SentenceTransformer

    from harness.encoder import Encoder
    from harness.tasks.mteb.adapter import open_task

    encoder = Encoder.from_pretrained("embedded:mini-bert", pooling="mean")
    encoder.save(tmp_path)
    theirs = mteb.evaluate(
        SentenceTransformer(str(tmp_path), device="cpu"),
        open_task("Embedded-Retrieval", "natural"),
        cache=None,
        show_progress_bar=False,
    )
    (ours,) = evaluate(encoder.encode, [make_embedded_task(RETRIEVAL)], pooling="mean").scores
    assert ours.value == pytest.approx(theirs.task_results[0].get_score(), abs=1e-6)
    assert (ours.metric, ours.n, ours.source) == ("ndcg_at_10", 60, "embedded")


def test_embedded_retrieval_is_ndcg_over_one_relevant_passage() -> None:
    from harness.sources.embedded import embedded_rows

    (score,) = evaluate(
        Words(), [make_embedded_task("Embedded-Retrieval-contrast")], pooling="words"
    ).scores
    rows = embedded_rows("retrieval", ["a", "b", "c"])
    u, v = (
        Words()([row[side] for row in rows]).astype(np.float64) for side in ("query", "passage")
    )
    u, v = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (u, v))
    similar = u @ v.T
    own = np.diag(similar)[:, None]
    # Ties make a rank ambiguous: mteb may place the right passage first or last among its equals.
    first, last = (similar > own + 1e-9).sum(1) + 1, (similar >= own - 1e-9).sum(1)
    best, worst = (np.where(rank <= 10, 1 / np.log2(1 + rank), 0).mean() for rank in (first, last))
    assert worst - 1e-5 <= score.value <= best + 1e-5
    assert score.n == len(rows) == 180


def test_no_text_is_encoded_twice() -> None:
    encode = Words()
    tasks = resolve_tasks(["embedded-mteb", "Embedded-STS-natural"])
    result = evaluate(encode, tasks, pooling="words")
    assert len(encode.texts) == len(set(encode.texts))
    assert result.cost["sentences"] == len(encode.texts)
    assert {s.task for s in result.scores} == {t.name for t in tasks}
    topics = next(s for s in result.scores if s.task == "Embedded-Clustering")
    assert (topics.metric, topics.n, topics.aggregation) == (
        "v_measure",
        3 * 8 * 25,
        "mean of 3 subsets",
    )
    assert 0 < topics.value < 1
    assert set(result.artifacts) == {f"mteb/{t.name}.json" for t in tasks[:3]}
    assert (
        json.loads(result.artifacts[f"mteb/{RETRIEVAL}.json"])["task_name"] == "Embedded-Retrieval"
    )


def test_results_are_filed_by_method_and_content(tmp_path: Path) -> None:
    def run(encode: Any, name: str, revision: str) -> float:
        origin = Origin(f"harness/{name}", revision, tmp_path)
        return (
            evaluate(encode, [make_embedded_task(RETRIEVAL)], pooling="words", origin=origin)
            .scores[0]
            .value
        )

    def lengths(texts: list[str]) -> Array:
        return np.eye(4)[[len(t) % 4 for t in texts]]

    first = run(Words(), "words", "1")
    assert run(lengths, "words", "1") == first  # read, not computed
    for name, revision in (("words", "2"), ("other", "1")):
        assert run(lengths, name, revision) < first
    (file,) = (
        f
        for f in tmp_path.rglob("Embedded-Retrieval.json")
        if "words" in str(f) and f.parent.name == "1"
    )
    file.write_text(file.read_text()[:100])  # a process was killed while it wrote
    assert run(Words(), "words", "1") == first


def test_faulty_encoders_are_told_apart_from_faulty_data() -> None:
    """Here nothing is announced, as by the tasks of the hub: each of mteb's two calls encodes on
    demand.
    """

    def table(encode: Any) -> EmbeddingTable:
        empty = np.empty((0, 0), dtype=np.float32)
        return EmbeddingTable([], empty, more=lambda texts: encode_once(encode, texts))

    with pytest.raises(RunError, match=r"shape \(3, 4\) for 60 texts"):
        make_embedded_task(RETRIEVAL).evaluate(table(lambda texts: np.ones((3, 4))), pooling="none")

    def damaged(texts: list[str]) -> Array:
        x = Words()(texts)
        x[0, 0] = np.nan
        return x

    result = make_embedded_task(RETRIEVAL).evaluate(table(damaged), pooling="words")
    assert result.notes == [f"{RETRIEVAL}: vectors with NaN or infinity, replaced by 0: 2"]


def test_what_was_not_announced_is_encoded_once_and_not_hoarded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encode = Words()
    empty = np.empty((0, 0), dtype=np.float32)
    table = EmbeddingTable([], empty, more=lambda texts: encode_once(encode, texts))
    asked = table(["b", "a", "b"])
    np.testing.assert_array_equal(asked, Words()(["b", "a", "b"]))
    table(["a", "c"])
    assert encode.texts == ["b", "a", "c"]
    assert (table.fresh, table.requested) == (3, 3)
    monkeypatch.setattr(
        "harness.tasks.vectors.KEPT_BYTES", 3 * 64 * 4
    )  # full: what comes now is not kept
    for _ in range(2):
        np.testing.assert_array_equal(table(["d", "a"]), Words()(["d", "a"]))
    assert encode.texts == ["b", "a", "c", "d", "d"]


def test_benchmarks_are_mtebs_own() -> None:
    import mteb

    from harness.tasks.mteb.adapter import open_task

    for ours, theirs in ((EN_V1, "MTEB(eng, v1)"), (EN_V2, "MTEB(eng, v2)")):
        benchmark = {task.metadata.name: task for task in mteb.get_benchmark(theirs).tasks}
        assert set(names_of(ours)) == set(benchmark)
        for category, names in ours.items():
            for name in names:
                task, expected = open_task(name), benchmark[name]
                assert task.metadata.type == category
                assert (list(task.eval_splits), list(task.hf_subsets)) == (
                    list(expected.eval_splits),
                    list(expected.hf_subsets),
                )


def test_other_suites_are_of_mtebs_tasks() -> None:
    import mteb

    from harness.tasks.mteb.adapter import open_task
    from harness.tasks.mteb.examples import task_facts

    for ours, theirs in (
        ("nanobeir", "NanoBEIR"),
        ("rteb-open", "RTEB(eng, beta)"),
        ("hume", "HUME(v1)"),
    ):
        public = [
            task.metadata.name
            for task in mteb.get_benchmark(theirs).tasks
            if task.metadata.is_public
        ]
        assert list(names_of(MTEB_SUITES[ours])) == public
    known = {
        task.metadata.name: task
        for task in (open_task(name) for name in names_of(MTEB_SUITES["hume"]))
    }
    english = {"en", "eng", "eng_Latn", "default"}
    assert all(
        len(task.hf_subsets) == 1 and set(task.hf_subsets) <= english for task in known.values()
    )
    assert HUMAN.keys() <= known.keys()
    assert task_facts(known["HUMESTS12"], ["test"], None).plain()["facts"]["human"] == 0.9121
    for name in names_of(MTEB_SUITES["negation-paraphrase"]):
        assert len(open_task(name).hf_subsets) == 1


def test_v1_has_the_56_data_sets_of_the_paper() -> None:
    assert [len(names) for names in EN_V1.values()] == [12, 11, 3, 4, 15, 10, 1]
    assert len(names_of(EN_V2)) == 41
    assert set(MTEB_SUITES["mteb-quick"]) == set(EN_V1)


def test_names_find_tasks() -> None:
    named = {
        name: resolve_tasks([name])[0].name
        for name in ("STS12", "SciFact", "mteb:STS12", "STS17/es-es")
    }
    assert named == {
        "STS12": "STS12",
        "SciFact": "mteb:SciFact",
        "mteb:STS12": "mteb:STS12",
        "STS17/es-es": "mteb:STS17/es-es",
    }
    assert (
        resolve_tasks(["FinancialPhrasebankClassification"])[0].name
        == "mteb:FinancialPhrasebankClassification"
    )
    assert len(resolve_tasks(["mteb-en-v1", "mteb-en-v2"])) == len(
        {*names_of(EN_V1), *names_of(EN_V2)}
    )
    with raises_input_error(key="mteb:STS17"):
        resolve_tasks(["mteb:STS17/es-e"])
    with raises_input_error(key="mteb:Bankin77Classification"):
        resolve_tasks(["mteb:Bankin77Classification"])
    with raises_input_error(key="mteb:CIFAR10"):
        resolve_tasks(["mteb:CIFAR10"])


def test_a_rehearsal_refuses_a_large_set_before_anything_of_it_is_fetched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fetched(*_: object) -> None:
        raise AssertionError("asked the hub")

    monkeypatch.setattr("harness.tasks.mteb.task.check_data", fetched)
    for name in (
        "MSMARCO",
        "CQADupstackRetrieval",
    ):  # the second joins twelve, and has no count of its own
        (task,) = resolve_tasks([f"mteb:{name}"])
        with pytest.raises(
            InputError, match=r"has [\d,]+ sentences; a rehearsal takes tasks of up to 4,000"
        ):
            texts_of(task, 4000)
    whole, part = resolve_tasks(["mteb:STS17/all", "mteb:STS17/es-es"])
    assert isinstance(part, MTEBTask)
    assert isinstance(whole, MTEBTask)
    assert part.at_least() == 250
    assert whole.at_least() == 5346


def test_missing_data_is_told_and_averages_are_incomplete() -> None:
    import os

    if os.environ.get("HF_ENDPOINT"):
        pytest.skip("needs to be without a hub")
    result = evaluate(
        Words(), [*resolve_tasks(["mteb-quick"]), make_embedded_task(RETRIEVAL)], pooling="words"
    )
    assert set(result.missing) == {t.name for t in resolve_tasks(["mteb-quick"])}
    assert all(
        "not in the local cache, and no hub can be reached" in why.text
        for why in result.missing.values()
    )
    categories, overall = mteb_averages(result.scores, "mteb-quick")
    assert all(average.value is None for average in categories.values())
    assert (overall.value, overall.of, len(overall.missing)) == (None, 10, 10)
    with raises_input_error(file="mteb:SciFact") as caught:
        evaluate(Words(), [mteb_task("mteb:SciFact")], pooling="words")
    assert str(caught.value).startswith("mteb:SciFact: no data: not in the local cache")


def test_averages_go_over_data_sets_and_take_the_numbers_that_each_table_prints() -> None:
    from harness.results.record import Score

    def score(name: str, metric: str, value: float) -> Score:
        return Score(
            task=f"mteb:{name}",
            suite="mteb",
            source="mteb",
            split="test",
            metric=metric,
            aggregation="",
            value=value,
            n=1,
            protocol="p",
            comparable="c",
        )

    scores = []
    for names in EN_V1.values():
        for i, name in enumerate(names):
            if name in EN_V1["PairClassification"]:
                scores += [score(name, "max_ap", 0.9), score(name, "cosine_ap", 0.6)]
            elif name == "SummEval":
                scores += [score(name, "summeval_v1", 0.31), score(name, "cosine_spearman", 0.2)]
            else:
                scores.append(score(name, "main", 0.1 * (i % 3)))
    categories, overall = mteb_averages(scores, "mteb-en-v1")
    assert categories["PairClassification"].value == pytest.approx(60)
    assert categories["Summarization"].value == pytest.approx(31)
    assert categories["Classification"].value == pytest.approx(10)
    # By hand: 12 sets 0 10 20 ... sum 120, 11: 100, 4: 30, 15: 150, 10: 90; pairs 3 x 60; SummEval
    # 31.
    assert overall.value == pytest.approx((120 + 100 + 30 + 150 + 90 + 180 + 31) / 56)
    assert mteb_values(scores)["TwitterSemEval2015"] == pytest.approx(90)
    last = suites()["mteb-en-v1"].averages[-1]
    assert last.title == "mteb-en-v1, average over data sets"
    assert last.of(scores) == overall
    assert last.of(scores[:-2]).describe() == "incomplete (55 of 56; missing: SummEval)"


@pytest.mark.hub
def test_summeval_has_the_number_of_version_1_and_the_right_one() -> None:
    import datasets
    from scipy.stats import spearmanr

    result = evaluate(Words(), [mteb_task("mteb:SummEval")], pooling="words")
    by_metric = {s.metric: s.value for s in result.scores}
    rho, p = [], []
    for row in datasets.load_dataset("mteb/summeval", split="test"):
        machine, human = Words()(row["machine_summaries"]), Words()(row["human_summaries"])
        machine, human = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (machine, human))
        best = (machine @ human.T).max(axis=1)
        if len(set(row["relevance"])) > 1:
            outcome = spearmanr(row["relevance"], best)
            rho.append(outcome.statistic)
            p.append(outcome.pvalue)
    assert by_metric["cosine_spearman"] == pytest.approx(
        np.mean(rho), abs=2e-3
    )  # mteb has ties where we have noise
    assert by_metric["summeval_v1"] == pytest.approx((np.mean(rho) + np.mean(p)) / 2, abs=2e-3)
