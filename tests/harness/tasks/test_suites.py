"""Suites: which tasks a name stands for, and what happens to names that stand for none."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from harness.errors import InputError
from harness.tasks.catalogue import offers, resolve_tasks, suites
from harness.tasks.mteb.benchmarks import EN_V1, names_of
from reports.papers.paper_suites import DECLUTR_DOWNSTREAM
from tests.support.errors import raises_input_error

SEVEN = ["STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R"]


def test_sts_is_the_seven_tasks_of_the_papers_in_their_order() -> None:
    tasks = resolve_tasks(["sts"])
    assert [t.name for t in tasks] == SEVEN
    assert {t.source for t in tasks} == {"senteval"}
    assert {t.suite for t in tasks} == {"sts"}


def test_source_applies_to_public_data_only() -> None:
    tasks = resolve_tasks(["STS-B", "geometry", "embedded"], source="mteb")
    assert [t.source for t in tasks] == [
        "mteb",
        "mteb",
        "embedded",
        "embedded",
        "embedded",
        "embedded",
    ]


@pytest.mark.parametrize(
    "name", ["banking77", "Banking77Classification", "mteb:banking77", "BANKING77classification"]
)
def test_tasks_of_mteb_are_found_without_prefix_and_suffix(name: str) -> None:
    assert [task.name for task in resolve_tasks([name])] == ["mteb:Banking77Classification"]
    with raises_input_error(key="arxiv"):
        resolve_tasks(["arxiv"])


def test_a_task_named_twice_runs_once() -> None:
    assert [t.name for t in resolve_tasks(["STS-B", "sts"])] == ["STS-B", *SEVEN[:5], "SICK-R"]


def test_every_task_is_reachable_by_its_own_name() -> None:
    assert {name for suite in suites().values() for name in suite.tasks} == set(offers())
    assert [t.name for t in resolve_tasks(list(offers()))] == list(offers())


def test_suites_of_the_papers_are_what_each_evaluates() -> None:
    """SCD and SimCSE: STS and transfer (SimCSE, sections 6 and E), alignment and uniformity.
    DeCLUTR: 18 downstream and 10 probing tasks (section 4.3). The non-contrastive study: MTEB's 56
    sets (table 4). SG-OPT: STS, transfer.
    """
    transfer = ["MR", "CR", "SUBJ", "MPQA", "SST2", "TREC", "MRPC"]
    named = {
        paper: [t.name for t in resolve_tasks([paper])]
        for paper in suites()
        if paper.startswith("paper-")
    }
    assert named["paper-scd"] == [*SEVEN, *transfer, "geometry:STS-B"]
    assert named["paper-nc"] == [*(f"mteb:{name}" for name in names_of(EN_V1)), "geometry:STS-B"]
    assert len(named["paper-cropping"]) == 21
    assert set(named["paper-cropping"]) < set(named["paper-nc"])
    assert len(named["paper-declutr"]) == len(set(named["paper-declutr"])) == 28
    assert named["paper-declutr"][:18] == list(DECLUTR_DOWNSTREAM)
    assert named["paper-sg"] == [*SEVEN, *transfer, "layers:STS-B", "efficiency:STS-B"]
    full = next(t for t in resolve_tasks(["paper-scd"]) if t.name == "MR").classifier.describe()  # type: ignore[attr-defined]
    expected = {
        "kfold": 10,
        "optim": "adam",
        "batch_size": 64,
        "tenacity": 5,
        "epoch_size": 4,
        "nhid": 0,
    }
    assert {key: full[key] for key in expected} == expected


def test_every_suite_has_a_line_about_it_and_a_paper_the_averages_of_its_suites() -> None:
    about = [suite.about for suite in suites().values()]
    assert all(line and "\n" not in line and len(line) <= 100 for line in about)
    sts, transfer = suites()["sts"].averages, suites()["transfer"].averages
    assert suites()["paper-scd"].averages == suites()["paper-sg"].averages == (*sts, *transfer)
    assert suites()["paper-nc"].averages == suites()["mteb-en-v1"].averages


def test_unknown_names_are_one_clear_line() -> None:
    with raises_input_error(key="STSB"):
        resolve_tasks(["sts", "STSB"])
    with raises_input_error(key="source"):
        resolve_tasks(["sts"], source="sentevl")
    with pytest.raises(
        InputError,
        match="no suite or task named; suites: compression, downstream, efficiency, embedded",
    ):
        resolve_tasks([])


@pytest.mark.parametrize(
    ("name", "key"),
    [("Embedded-STS", "Embedded-STS"), ("mteb:Embedded-Clusterin", "Embedded-Clusterin")],
)
def test_an_unknown_embedded_task_is_one_clear_line(name: str, key: str) -> None:
    with raises_input_error(key=key):
        resolve_tasks([name])


def test_embedded_suite_runs_without_a_hub() -> None:
    from harness.evaluation.scoring import evaluate

    rng = np.random.default_rng(0)
    tasks = resolve_tasks(["embedded"])
    result = evaluate(lambda texts: rng.standard_normal((len(texts), 64)), tasks, pooling="random")
    headline = {
        s.task: s for s in result.scores if (s.metric, s.aggregation) == ("spearman", "all")
    }
    # Random vectors know nothing: within four standard errors 1 / sqrt(n - 1) of 0.
    assert set(headline) == {"Embedded-STS-natural", "Embedded-STS-contrast"}
    assert all(abs(s.value) < 4 / np.sqrt(s.n - 1) for s in headline.values())
    assert all("STS-B" not in s.task for s in result.scores)
    geometry = {s.task: s.value for s in result.scores if s.metric == "uniformity"}
    assert set(geometry) == {"geometry:Embedded-STS-natural", "geometry:Embedded-STS-contrast"}
    assert result.pairs is not None
    assert set(result.pairs["subset"]) == set("abcdefghij")


@pytest.mark.hub
def test_both_sources_of_the_years_agree() -> None:
    """MTEB's STS12-16 are SentEval's pairs in one set a year, so `all` of any encoder is one
    number.

    One sentence of STS14 is tokenised otherwise ("t." and "t ."), which moves one pair of 3,750.
    """
    from harness.evaluation.scoring import evaluate

    def words(texts: list[str]) -> np.ndarray:
        counts = np.zeros((len(texts), 256), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.split():
                counts[row, zlib.crc32(word.encode()) % 256] += 1
        return counts

    senteval, mteb = (
        {
            s.task: (s.value, s.n)
            for s in evaluate(
                words, resolve_tasks(SEVEN[:5], source=source), pooling="words"
            ).scores
            if (s.metric, s.aggregation) == ("spearman", "all")
        }
        for source in ("senteval", "mteb")
    )
    assert [n for _, n in mteb.values()] == [3108, 1500, 3750, 3000, 1186]
    for task, (value, n) in mteb.items():
        assert senteval[task][0] == pytest.approx(value, abs=5e-4 if task == "STS14" else 1e-9)
        assert senteval[task][1] == n
