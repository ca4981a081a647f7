"""The drop-in for SentEval's engine: its params, its calls of the script's functions, its result keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.errors import InputError, RunError
from harness.senteval import engine
from tests.support.senteval_data import downstream, probing, sentence, words

Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = downstream(tmp_path_factory.mktemp("engine"), n=30)
    rng = np.random.default_rng(0)
    rows = {p: [(f"{i % 2}", sentence(rng, f"mark{i % 2}")) for i in range(40)] for p in ("tr", "va", "te")}
    probing(root, "bigram_shift.txt", rows)
    folder = root / "downstream" / "STS" / "STS13-en-test"
    folder.mkdir(parents=True)
    for name, scores in (("FNWN", "5\n\n0\n2\n"), ("headlines", "1\n2\n3\n4\n"), ("OnWN", "0\n5\n0\n5\n")):
        (folder / f"STS.gs.{name}.txt").write_text(scores)
        pairs = [f"{sentence(rng)}\t{sentence(rng)}\n" for _ in range(4)]
        (folder / f"STS.input.{name}.txt").write_text("".join(pairs))
    return root


def params(root: Path, **more: Any) -> dict[str, Any]:
    classifier = {"nhid": 0, "optim": "rmsprop", "batch_size": 16, "tenacity": 3, "epoch_size": 2}
    return {"task_path": str(root), "usepytorch": True, "kfold": 3, "classifier": classifier, **more}


def batcher(params: Any, batch: list[list[str]]) -> Array:
    return words([" ".join(sentence) for sentence in batch])


def test_result_keys_are_senteval_s(root: Path) -> None:
    tasks = ["MR", "TREC", "MRPC", "SICKEntailment", "SICKRelatedness", "STSBenchmark", "STS13", "BigramShift"]
    results = engine.SE(params(root), batcher).eval(tasks)
    assert list(results) == tasks
    assert results["MR"].keys() == {"devacc", "acc", "ndev", "ntest"}
    assert (results["MR"]["ndev"], results["MR"]["ntest"], results["TREC"]["ndev"]) == (60, 60, 36)
    assert results["MR"]["acc"] > 85  # in percent
    assert results["MRPC"].keys() == {"devacc", "acc", "f1", "ndev", "ntest"}
    related = {"devpearson", "pearson", "spearman", "mse", "yhat", "ndev", "ntest"}
    assert results["SICKRelatedness"].keys() == results["STSBenchmark"].keys() == related
    assert results["STSBenchmark"]["yhat"].shape == (30,)
    assert list(results["STS13"]) == ["FNWN", "headlines", "OnWN", "all"]
    assert results["STS13"]["FNWN"]["nsamples"] == 3  # one pair was never scored
    means = [results["STS13"][s]["spearman"][0] for s in ("FNWN", "headlines", "OnWN")]
    assert results["STS13"]["all"]["spearman"]["mean"] == pytest.approx(np.mean(means), abs=1e-6)
    assert results["STS13"]["all"]["spearman"]["wmean"] == pytest.approx(np.average(means, weights=[3, 4, 4]), abs=1e-6)


def test_the_script_s_functions_are_called_as_senteval_calls_them(root: Path) -> None:
    seen: dict[str, Any] = {"sizes": []}

    def prepare(params: Any, samples: list[list[str]]) -> None:
        seen["samples"] = len(samples)
        params.vocabulary = {word for sample in samples for word in sample}

    def own(params: Any, batch: list[list[str]]) -> Array:
        assert params.current_task == "MR"
        assert "good" in params.vocabulary
        assert all(isinstance(sentence, list) for sentence in batch)
        seen["sizes"].append(len(batch))
        return batcher(params, batch)

    result = engine.SE(params(root, batch_size=25), own, prepare).eval("MR")
    assert seen == {"samples": 60, "sizes": [25, 25, 10]}
    assert result["acc"] > 85


def test_senteval_s_defaults() -> None:
    se = engine.SE({"task_path": ""}, batcher)
    assert (se.params.seed, se.params.batch_size, se.params.kfold, se.params.usepytorch) == (1111, 32, 5, True)
    c = se.classifier
    assert (c.nhid, c.optim, c.batch_size, c.tenacity, c.epoch_size, c.kfold) == (0, "adam", 64, 5, 4, 5)


def test_faults_are_told(root: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r'unknown task "SST" .*did you mean'):
        engine.SE(params(root), batcher).eval(["SST"])
    with pytest.raises(InputError, match='"nhid" is missing'):
        engine.SE(params(root, classifier={"optim": "adam"}), batcher)
    with pytest.raises(InputError, match=r'unknown key "tenacty" \(did you mean "tenacity"'):
        engine.SE(params(root, classifier={"nhid": 0, "tenacty": 3}), batcher)
    with pytest.raises(InputError, match="scikit-learn's head is not offered"):
        engine.SE(params(root, usepytorch=False), batcher)
    with pytest.raises(RunError, match="batcher returned shape"):
        engine.SE(params(root), lambda p, b: np.ones(3)).eval("MR")
    with pytest.raises(InputError, match="no such file"):
        engine.SE(params(tmp_path), batcher).eval("MR")
    results = engine.SE(params(root), batcher).eval(["ImageCaptionRetrieval", "CR"])
    assert "train.npy" in results["ImageCaptionRetrieval"]["error"]
    assert results["CR"]["acc"] > 85


def test_exact_solver_through_the_classifier_s_settings(root: Path) -> None:
    exact = params(root, classifier={"nhid": 0, "solver": "lbfgs"})
    assert engine.SE(exact, batcher).eval("SST2")["acc"] > 80
