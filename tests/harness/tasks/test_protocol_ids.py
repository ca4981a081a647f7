"""Protocol ids let numbers of different years stand in one column: those of today are those of the
first release.

The ids below were printed by the code as it stood before descriptions became a dataclass (the
commit "Imports after the moves" and its parents build them by hand as dicts), from the very inputs
of this file.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.sources.pair_sets import PairSet, Subset
from harness.sources.senteval.labelled import Labelled, LabelledSplit
from harness.tasks import efficiency
from harness.tasks.base import TaskResult
from harness.tasks.efficiency import EfficiencyTask
from harness.tasks.geometry import GeometryTask
from harness.tasks.layers import LayersTask
from harness.tasks.mteb import adapter
from harness.tasks.mteb.task import mteb_task
from harness.tasks.protocol import Description
from harness.tasks.senteval.caption_retrieval import CaptionRetrievalTask, CaptionSet, Recalls
from harness.tasks.senteval.classifier import CONFIGURATIONS
from harness.tasks.senteval.fits import Accuracies
from harness.tasks.senteval.relatedness import Regression, RegressorTask
from harness.tasks.senteval.suites import EmbeddedTransferTask
from harness.tasks.senteval.transfer import ClassificationTask
from harness.tasks.sts import STSTask

# Family -> "task split metric aggregation" -> (comparable, protocol).
FROZEN: dict[str, dict[str, tuple[str, str]]] = {
    "captions": {
        "caption-retrieval dev recall mean of six recalls": ("67171240f84b", "acc209bb3480"),
        "caption-retrieval test i2t_r1": ("078fbea56d8a", "64c215fe47ca"),
        "caption-retrieval test i2t_r10": ("459a49d7ddb7", "98514070163b"),
        "caption-retrieval test i2t_r5": ("d237cabdb7c6", "767e3c03576d"),
        "caption-retrieval test recall mean of six recalls": ("6367c6ad98c9", "4d490c9c36e0"),
        "caption-retrieval test t2i_r1": ("8bf922ff673b", "a6b3cfe464e0"),
        "caption-retrieval test t2i_r10": ("d6f07997a3c5", "3c0990799040"),
        "caption-retrieval test t2i_r5": ("5c55cbc989e3", "04fa26580c13"),
    },
    "classification in folds": {
        "MR dev accuracy": ("1fdb5f4b42ae", "12e75a47654d"),
        "MR test accuracy": ("451e1f01d4bc", "25a5de9b8893"),
    },
    "classification of pairs": {
        "MRPC dev accuracy": ("2e97775a9290", "6e806151d5ad"),
        "MRPC test accuracy": ("6367d2245116", "b1669fa100f3"),
        "MRPC test f1": ("82cee1232435", "b4589c5f4b2a"),
    },
    "classification with dev": {
        "SNLI dev accuracy": ("fab9d8261e50", "4141ad70afd6"),
        "SNLI test accuracy": ("43c02bc70a4c", "1101406a9931"),
    },
    "efficiency": {
        "efficiency:STS-B test encode_seconds": ("702378a38ff8", "f0344664a338"),
        "efficiency:STS-B test sentences_per_second": ("666c954218da", "383812a01837"),
        "efficiency:STS-B test train_seconds": ("e754fe17df05", "70c134fb18ef"),
    },
    "embedded transfer": {
        "Embedded-Questions dev accuracy": ("4082b8b3097a", "d7b5a1dae466"),
        "Embedded-Questions test accuracy": ("3355cd8ff6f9", "abda096c9585"),
    },
    "geometry": {
        "geometry:STS-B all alignment": ("c22bab0bb56c", "4247f335f17c"),
        "geometry:STS-B all effective_rank": ("4a0a819a29c0", "73a180f9becd"),
        "geometry:STS-B all isoscore": ("1f787f727a74", "159a78b5b0b6"),
        "geometry:STS-B all mean_cosine": ("c9c6de30071a", "3d81e1315166"),
        "geometry:STS-B all partition_isotropy": ("5a2a85ebf2b6", "8192753a45f0"),
        "geometry:STS-B all rankme": ("d11dfddb6699", "44d25668ac63"),
        "geometry:STS-B all std": ("3c2ee14afec8", "485e41a505a1"),
        "geometry:STS-B all uniformity": ("3deba819fd12", "be327a6d2c54"),
    },
    "layers": {
        "STS-B@layer:0:cls test spearman all": ("bb13fab29f0e", "ddbd221764f1"),
        "STS-B@layer:0:max test spearman all": ("f04bc25bb73f", "a44b6d45f69e"),
        "STS-B@layer:0:mean test spearman all": ("3d01fe829c5a", "e25167cc3c79"),
    },
    "mteb": {
        "mteb:STS17 test main mean of 2 subsets": ("982112ef4330", "7e29c0025ee2"),
        "mteb:STS17 test other mean of 2 subsets": ("8b948df2f5ae", "22a79940a37e"),
    },
    "probing": {
        "WordContent dev accuracy": ("b23496698616", "d3a60be8d6cc"),
        "WordContent test accuracy": ("b9b58ad98423", "b5fdb5bf1953"),
    },
    "prototyping": {
        "prototyping:MR dev accuracy": ("e150385f04a8", "5a5acc87aa94"),
        "prototyping:MR test accuracy": ("1a5d34f698b1", "de3b202729ba"),
    },
    "regressor": {
        "regressor:SICK-R dev pearson": ("e04a1438108b", "4098362b3a4c"),
        "regressor:SICK-R test mse": ("321658f25d8f", "41b8b0da0831"),
        "regressor:SICK-R test pearson": ("b6f8e7571ce5", "05c8e6f4a134"),
        "regressor:SICK-R test spearman": ("eee7919f8fb1", "f1d2f33daa3f"),
    },
    "sts": {
        "STS-B test pearson all": ("9d5368c2880c", "7fa9b27c5ff4"),
        "STS-B test pearson mean": ("50bcda446b74", "190922ebca1e"),
        "STS-B test pearson wmean": ("7cdb87c036ce", "539f4261963a"),
        "STS-B test spearman all": ("9fa3603f195c", "64accf178721"),
        "STS-B test spearman mean": ("288df861f9e5", "4f5437727889"),
        "STS-B test spearman wmean": ("2b3de86f8f9b", "6b4c7dba1a8b"),
    },
    "summeval": {
        "mteb:SummEval test main": ("99dc15b8566c", "57a0d519aea8"),
        "mteb:SummEval test other": ("376d01a9dcca", "52b786fa12db"),
        "mteb:SummEval test summeval_v1": ("58657ba2e19c", "e3c205574f6c"),
    },
}
A, B = ["a cat sits", "a dog runs"], ["the cat sat", "it rains"]
PAIRS = PairSet(
    "STS-B",
    "senteval",
    "test",
    (Subset("test", A, B, np.array([5.0, 1.0])), Subset("more", A[::-1], B, np.array([2.0, 3.0]))),
    "0" * 64,
    "raw text",
)
SINGLE, PAIR = LabelledSplit(A, [], np.array([1, 0])), LabelledSplit(A, B, np.array([1, 0]))


def vectors(texts: Sequence[str]) -> np.ndarray[Any, Any]:
    return np.array(
        [[len(text), text.count("a") + 1, text.count("t")] for text in texts], dtype=np.float32
    )


def check(family: str, result: TaskResult) -> None:
    """The ids of every score of a family; of layers, those of the first one."""
    ids = {
        f"{s.task} {s.split} {s.metric} {s.aggregation}".strip(): (s.comparable, s.protocol)
        for s in result.scores
    }
    assert {
        name: ids[name] for name in ids if "@layer" not in name or "@layer:0:" in name
    } == FROZEN[family]


def scored(task: Any, outcome: Any, monkeypatch: pytest.MonkeyPatch) -> TaskResult:
    """The result of a task whose fit is given."""
    monkeypatch.setattr(task, "outcome", lambda vectors: outcome)
    result: TaskResult = task.evaluate(vectors, pooling="mean")
    return result


def test_sts_and_geometry() -> None:
    check("sts", STSTask.of(PAIRS).evaluate(vectors, pooling="mean"))
    check("geometry", GeometryTask.of([PAIRS]).evaluate(vectors, pooling="mean"))


def test_layers() -> None:
    from harness.encoder import Encoder

    model = Encoder.from_pretrained("embedded:mini-bert")
    check("layers", LayersTask.of(PAIRS).evaluate_model(model, device="cpu", pooling="mean"))


def test_efficiency(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(efficiency, "device_name", lambda device: "a processor")
    monkeypatch.setattr("torch.get_num_threads", lambda: 1)
    task = EfficiencyTask.of(PAIRS)
    report = SimpleNamespace(
        cost={"train_seconds": 3.0, "corpus_sentences_seen": 16},
        training={"steps": 2, "precision": "fp32"},
    )
    model = SimpleNamespace(
        config=SimpleNamespace(batch_size=8),
        fit_report=report,
        encode=lambda texts, **how: vectors(texts),
    )
    check("efficiency", task.evaluate_model(model, device="cpu", pooling="mean"))


@pytest.mark.parametrize(
    ("family", "data", "parts", "options"),
    [
        ("classification in folds", "MR", {"all": SINGLE}, {}),
        ("classification of pairs", "MRPC", {"train": PAIR, "test": PAIR}, {}),
        (
            "classification with dev",
            "SNLI",
            {"train": PAIR, "dev": PAIR, "test": PAIR},
            {"suite": "downstream"},
        ),
        (
            "probing",
            "WordContent",
            {"train": SINGLE, "dev": SINGLE, "test": SINGLE},
            {"suite": "probing"},
        ),
        (
            "prototyping",
            "MR",
            {"all": SINGLE},
            {"name": "prototyping:MR", "classifier": CONFIGURATIONS["prototyping"]},
        ),
    ],
)
def test_classification(
    family: str,
    data: str,
    parts: dict[str, LabelledSplit],
    options: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = ClassificationTask(data, lambda: Labelled(parts, 2, "1" * 64), **options)
    check(family, scored(task, (Accuracies(70.0, 60.0, np.array([1, 0])), 0), monkeypatch))


def test_the_other_senteval_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    embedded = EmbeddedTransferTask("Embedded-Questions")
    embedded.data = Labelled({"train": SINGLE, "test": SINGLE}, 2, "1" * 64)
    check(
        "embedded transfer",
        scored(embedded, (Accuracies(70.0, 60.0, np.array([1, 0])), 0), monkeypatch),
    )
    regressor = RegressorTask(
        "SICK-R", lambda: Labelled({"train": PAIR, "dev": PAIR, "test": PAIR}, 0, "2" * 64)
    )
    check("regressor", scored(regressor, (Regression(0.5, np.array([1.0, 2.0])), 0), monkeypatch))
    captions = CaptionRetrievalTask()
    captions.data = CaptionSet({}, {"train": A, "dev": A, "test": A}, "3" * 64)
    recalls = Recalls(np.zeros(1, dtype=np.int64), np.zeros((1, 5), dtype=np.int64))
    check("captions", scored(captions, (recalls, recalls, 0), monkeypatch))


def test_mteb(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = adapter.BenchmarkScores(
        data={"mteb/sts17": "abc"},
        conditions={
            "mteb_task": "STS17",
            "subsets": ["en-en", "es-es"],
            "similarity": "cosine",
            "version": "mteb 2.0",
        },
        splits=["test"],
        subsets=2,
        metrics=("main", "other"),
        n=4,
        scores={"test": [{"main": 0.5, "other": 0.2}, {"main": 0.7, "other": 0.1}]},
        json="{}",
        damaged=0,
    )
    monkeypatch.setattr(adapter, "run_task", lambda *how: outcome)
    check("mteb", mteb_task("mteb:STS17").evaluate(vectors, pooling="mean"))
    monkeypatch.setattr(adapter, "run_task", lambda *how: dataclasses.replace(outcome, subsets=1))
    check("summeval", mteb_task("mteb:SummEval").evaluate(vectors, pooling="mean"))


def test_what_is_particular_to_a_task_does_not_overwrite_what_all_have() -> None:
    with pytest.raises(ValueError, match="given twice for its protocol: metric"):
        Description("mine", "mine", "test", "accuracy", "0", particular={"metric": "f1"}).plain()
