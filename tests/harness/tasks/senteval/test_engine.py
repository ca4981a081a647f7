"""The drop-in for SentEval's engine: its params, its calls of the script's functions, its result
keys.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from harness import senteval
from harness.errors import RunError
from harness.senteval import engine
from harness.tasks.senteval.relatedness import regressor_task
from tests.support.errors import raises_input_error
from tests.support.senteval_data import downstream, probing, sentence, words

Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = downstream(tmp_path_factory.mktemp("engine"), n=30)
    rng = np.random.default_rng(0)
    rows = {
        p: [(f"{i % 2}", sentence(rng, f"mark{i % 2}")) for i in range(40)]
        for p in ("tr", "va", "te")
    }
    probing(root, "bigram_shift.txt", rows)
    folder = root / "downstream" / "STS" / "STS13-en-test"
    folder.mkdir(parents=True)
    for name, scores in (
        ("FNWN", "5\n\n0\n2\n"),
        ("headlines", "1\n2\n3\n4\n"),
        ("OnWN", "0\n5\n0\n5\n"),
    ):
        (folder / f"STS.gs.{name}.txt").write_text(scores)
        pairs = [f"{sentence(rng)}\t{sentence(rng)}\n" for _ in range(4)]
        (folder / f"STS.input.{name}.txt").write_text("".join(pairs))
    return root


def params(root: Path, **more: Any) -> dict[str, Any]:
    classifier = {"nhid": 0, "optim": "rmsprop", "batch_size": 16, "tenacity": 3, "epoch_size": 2}
    return {
        "task_path": str(root),
        "usepytorch": True,
        "kfold": 3,
        "classifier": classifier,
        **more,
    }


def batcher(params: Any, batch: list[list[str]]) -> Array:
    return words([" ".join(sentence) for sentence in batch])


def test_result_keys_are_senteval_s(root: Path) -> None:
    tasks = [
        "MR",
        "TREC",
        "MRPC",
        "SICKEntailment",
        "SICKRelatedness",
        "STSBenchmark",
        "STS13",
        "BigramShift",
    ]
    tasks.append("SICKRelatedness-finetune")
    results = engine.SE(params(root), batcher).eval(tasks)
    assert list(results) == tasks
    for result in results.values():
        assert len(result.pop("notes")) == 1  # these files are small
    assert results["MR"].keys() == {"devacc", "acc", "ndev", "ntest"}
    assert (results["MR"]["ndev"], results["MR"]["ntest"], results["TREC"]["ndev"]) == (60, 60, 36)
    assert results["MR"]["acc"] > 85  # in percent
    assert results["MRPC"].keys() == {"devacc", "acc", "f1", "ndev", "ntest"}
    related = {"devpearson", "pearson", "spearman", "mse", "yhat", "ndev", "ntest"}
    plain = {"train", "dev", "test", "all"}
    assert results["SICKRelatedness"].keys() == results["STSBenchmark"].keys() == related | plain
    assert results["SICKRelatedness-finetune"].keys() == related
    for name, value in results["SICKRelatedness-finetune"].items():
        assert np.array_equal(value, results["SICKRelatedness"][name])
    assert results["STSBenchmark"]["yhat"].shape == (30,)
    assert list(results["STS13"]) == ["FNWN", "headlines", "OnWN", "all"]
    assert results["STS13"]["FNWN"]["nsamples"] == 3  # one pair was never scored
    means = [results["STS13"][s]["spearman"][0] for s in ("FNWN", "headlines", "OnWN")]
    assert results["STS13"]["all"]["spearman"]["mean"] == pytest.approx(np.mean(means), abs=1e-6)
    assert results["STS13"]["all"]["spearman"]["wmean"] == pytest.approx(
        np.average(means, weights=[3, 4, 4]), abs=1e-6
    )


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


def test_a_script_of_simcse_s_shape(root: Path) -> None:
    """Tasks one by one, an engine for each, torch's tensors; STS-B and SICK-R by cosine, on dev and
    on test.
    """
    from scipy import stats

    calls: list[int] = []

    def simcse_batcher(
        params: Any, batch: list[list[str]], max_length: int | None = None
    ) -> torch.Tensor:
        calls.append(len(batch))
        return torch.from_numpy(words([" ".join(sentence) for sentence in batch])).cpu()

    results: dict[str, Any] = {}
    for task in ("STS13", "STSBenchmark", "SICKRelatedness", "MR"):
        calls.clear()
        se = senteval.engine.SE(params(root), simcse_batcher, lambda params, samples: None)
        assert task in se.list_tasks
        results[task] = se.eval(task)
        if task == "STSBenchmark":
            assert sum(calls) == 6 * 30, "the regressor and the cosine share their vectors"
    lines = [
        f"{100 * results[task]['dev']['spearman'][0]:.2f}"
        for task in ("STSBenchmark", "SICKRelatedness")
    ]
    lines += [
        f"{100 * results[task]['test']['spearman'].correlation:.2f}"
        for task in ("STSBenchmark", "SICKRelatedness")
    ]
    lines += [
        f"{100 * results['STS13']['all']['spearman']['all']:.2f}",
        f"{results['MR']['acc']:.2f}",
    ]
    lines.append(f"{results['MR']['devacc']:.2f}")
    assert all(-100 <= float(line) <= 100 for line in lines)

    test = regressor_task("STS-B", root=root).data.parts["test"]
    cosines = [
        senteval.utils.cosine(*pair)
        for pair in zip(words(test.first), words(test.second), strict=True)
    ]
    expected = stats.pearsonr(
        cosines, test.labels
    )  # of whole counts there are ties, which ranks break by rounding
    assert results["STSBenchmark"]["test"]["pearson"] == pytest.approx(
        (expected.statistic, expected.pvalue), abs=1e-6
    )
    assert results["STSBenchmark"]["test"]["nsamples"] == 30
    assert results["STSBenchmark"]["all"]["pearson"].keys() == {"all", "mean", "wmean"}


def test_a_script_of_word_vectors(root: Path) -> None:
    """What SentEval's own first example does: a dictionary in `prepare`, means of vectors in
    `batcher`.
    """

    def prepare(params: Any, samples: list[list[str]]) -> None:
        _, params.word2id = senteval.utils.create_dictionary(samples)
        params.word_vec = {word: words([word])[0] for word in params.word2id}
        params.wvec_dim = 97

    def means(params: Any, batch: list[list[str]]) -> Array:
        vectors = [
            [params.word_vec[word] for word in sentence if word in params.word_vec]
            for sentence in batch
        ]
        return np.vstack([np.mean(some or [np.zeros(params.wvec_dim)], axis=0) for some in vectors])

    results = senteval.engine.SE(params(root, batch_size=7), means, prepare).eval(
        ["CR", "TREC", "STSBenchmark"]
    )
    assert results["CR"]["acc"] > 85
    assert results["STSBenchmark"]["pearson"] > 0.5


def test_the_helpers_of_scripts() -> None:
    words_, places = senteval.utils.create_dictionary(
        [["b", "a", "b"], ["c", "b", "a"]], threshold=2
    )
    assert words_ == ["<s>", "</s>", "<p>", "b", "a"]
    assert places["a"] == 4
    kind, settings = senteval.utils.get_optimizer("adadelta,lr=0.5,rho=0.8")
    assert (kind, settings) == (torch.optim.Adadelta, {"lr": 0.5, "rho": 0.8})
    with raises_input_error(key="optim"):
        senteval.utils.get_optimizer("adan")
    with raises_input_error(key="optim"):
        senteval.utils.get_optimizer("adam,lr")
    assert senteval.utils.dotdict({"a": 1}).a == 1


def test_senteval_s_defaults() -> None:
    se = engine.SE({"task_path": ""}, batcher)
    assert (se.params.seed, se.params.batch_size, se.params.kfold, se.params.usepytorch) == (
        1111,
        128,
        5,
        True,
    )
    c = se.classifier
    assert (c.nhid, c.optim, c.batch_size, c.tenacity, c.epoch_size, c.kfold) == (
        0,
        "adam",
        64,
        5,
        4,
        5,
    )


def test_errors_name_what_is_wrong(root: Path, tmp_path: Path) -> None:
    with raises_input_error(key="task"):
        engine.SE(params(root), batcher).eval(["SST"])
    with raises_input_error(key="usepytorch"):
        engine.SE(params(root, usepytorch=False), batcher)
    with raises_input_error(key="classifier"):
        engine.SE(params(root, classifier={"optim": "adam"}), batcher)
    with raises_input_error(key="tenacty"):
        engine.SE(params(root, classifier={"nhid": 0, "tenacty": 3}), batcher)
    with pytest.raises(RunError, match="batcher"):
        engine.SE(params(root), lambda p, b: np.ones(3)).eval("MR")
    with raises_input_error(file=tmp_path / "MR/rt-polarity.pos"):
        engine.SE(params(tmp_path), batcher).eval("MR")
    results = engine.SE(params(root), batcher).eval(["ImageCaptionRetrieval", "CR"])
    assert "train.pkl" in results["ImageCaptionRetrieval"]["error"]
    assert results["CR"]["acc"] > 85


def test_vectors_that_are_no_numbers_are_told_with_the_result(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(params: Any, batch: list[list[str]]) -> Array:
        vectors = batcher(params, batch)
        vectors[0, 0] = np.nan
        return vectors

    results = engine.SE(params(root, batch_size=1000), broken).eval(["CR", "STSBenchmark", "STS13"])
    assert "CR: vectors with NaN or infinity, replaced by 0: 1" in results["CR"]["notes"]
    assert any("NaN" in note for note in results["STSBenchmark"]["notes"])
    assert "STS13: vectors with NaN or infinity, replaced by 0: 6" in results["STS13"]["notes"]
    assert "CR: vectors with NaN or infinity, replaced by 0: 1" in caplog.messages


def test_files_of_another_size_than_the_published_ones_are_told(root: Path) -> None:
    (note,) = engine.SE(params(root), batcher).eval("CR")["notes"]
    assert note.startswith("CR: examples: 60 in all (not 3,775); files cut short")
    (note,) = engine.SE(params(root), batcher).eval("STS13")["notes"]
    assert note.startswith(
        "STS13: examples: 3 in FNWN (not 189), 4 in headlines (not 750), 4 in OnWN (not 561); "
    )


def test_a_batcher_that_raises_loses_only_its_own_task(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(params: Any, batch: list[list[str]]) -> Array:
        if params.current_task == "CR":
            raise KeyError("vocabulary")
        return np.ones(3) if params.current_task == "MPQA" else batcher(params, batch)

    se = engine.SE(params(root), failing)
    results = se.eval(["MR", "CR", "MPQA", "STS13"])
    assert results["MR"]["acc"] > 85
    assert results["CR"] == {"error": "KeyError: 'vocabulary'"}
    assert "of shape (3,); expected" in results["MPQA"]["error"]
    assert results["STS13"]["FNWN"]["nsamples"] == 3
    assert 'raise KeyError("vocabulary")' in caplog.text  # the traceback, for the script's author
    with pytest.raises(KeyError):
        se.eval("CR")


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"seed": None}, "classifier: seed"),
        ({"seed": 2**32}, "classifier: seed"),
        ({"seed": "1111"}, "classifier: seed"),
        ({"kfold": 1}, "classifier: kfold"),
        ({"batch_size": "32"}, 'params["batch_size"]'),
        ({"classifier": {"nhid": 0, "tenacity": "3"}}, "classifier: tenacity"),
        ({"classifier": {"nhid": 0, "dropout": "none"}}, "dropout"),
        ({"classifier": {"nhid": 0, "optim": None}}, "optim"),
        ({"classifier": 3}, "classifier"),
    ],
)
def test_settings_out_of_range(root: Path, change: dict[str, Any], key: str) -> None:
    with raises_input_error(key=key):
        engine.SE(params(root, **change), batcher)


def test_a_gold_score_that_is_no_number_costs_its_task_alone(root: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(root, tmp_path / "copy"))
    (copy / "downstream/STS/STS13-en-test/STS.gs.OnWN.txt").write_text("0\nnan\n0\n5\n")
    results = engine.SE(params(copy), batcher).eval(["STS13", "CR"])
    assert (
        "STS.gs.OnWN.txt, line 2: expected a score from 0 to 5, not 'nan'"
        in results["STS13"]["error"]
    )
    assert results["CR"]["acc"] > 85
