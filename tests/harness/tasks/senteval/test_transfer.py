"""Transfer and downstream tasks: files, schemes, features, scores; and what happens to files that
are damaged.
"""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from harness.errors import InputError, RunError
from harness.evaluation.scoring import evaluate
from harness.results.facts import facts_of
from harness.results.outcomes import value_of
from harness.results.record import Missing
from harness.results.text_ids import text_id
from harness.sources.senteval.labelled import SIZES, read_task
from harness.tasks.base import Task
from harness.tasks.catalogue import suites
from harness.tasks.senteval.caption_retrieval import (
    CaptionRetrievalTask,
    fit_and_rank,
    rank_recalls,
)
from harness.tasks.senteval.classifier import FULL, PROTOTYPING
from harness.tasks.senteval.relatedness import grade_targets, regress, regressor_task
from harness.tasks.senteval.transfer import TRANSFER, f1, transfer_task
from tests.support import senteval_reference as reference
from tests.support.errors import raises_input_error
from tests.support.senteval_data import downstream, noise, words

Array = np.ndarray[Any, Any]
QUICK = dataclasses.replace(PROTOTYPING, batch_size=16, kfold=3, optim="rmsprop", l2=(1e-5, 1e-3))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return downstream(tmp_path_factory.mktemp("senteval"))


def scores(tasks: list[Task], encode: Any) -> dict[tuple[str, str, str], float]:
    return {
        (s.task, s.split, s.metric): s.value
        for s in evaluate(encode, tasks, pooling="words").scores
    }


def test_readable_labels_are_read_and_random_vectors_are_chance(root: Path) -> None:
    names = ("MR", "SST2", "TREC", "MRPC", "SST5", "SICK-E", "SNLI")
    tasks: list[Task] = [transfer_task(name, classifier=QUICK, root=root) for name in names]
    good, blind = scores(tasks, words), scores(tasks, noise)
    for name in names:
        assert good[name, "test", "accuracy"] > 0.85, name
        assert good[name, "dev", "accuracy"] > 0.85, name
    assert good["MRPC", "test", "f1"] > 0.85
    chance = {"TREC": 1 / 6, "SST5": 0.2, "SICK-E": 1 / 3, "SNLI": 1 / 3}
    for name in names:
        if name != "MRPC":  # two equal sentences have equal vectors, random or not
            assert abs(blind[name, "test", "accuracy"] - chance.get(name, 0.5)) < 0.25, name


def test_the_number_of_examples_and_the_protocol_stand_with_a_score(root: Path) -> None:
    result = evaluate(words, [transfer_task("MR", classifier=QUICK, root=root)], pooling="words")
    by_split = {s.split: s for s in result.scores}
    assert (by_split["test"].n, by_split["test"].suite, by_split["test"].source) == (
        120,
        "transfer",
        "senteval",
    )
    described = result.protocols[by_split["test"].comparable]
    assert described["scheme"] == "nested k-fold"
    assert described["classifier"]["optim"] == "rmsprop"
    other = evaluate(
        words,
        [transfer_task("MR", classifier=dataclasses.replace(QUICK, seed=2), root=root)],
        pooling="",
    )
    assert other.scores[0].comparable != by_split["test"].comparable


def test_order_is_senteval_s_by_length_then_label_and_empty_lines_are_sentences(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "MR"
    folder.mkdir()
    (folder / "rt-polarity.pos").write_text("c c c\na\n\nb  b \n")
    (folder / "rt-polarity.neg").write_text("z\ny y\n")
    part = read_task("MR", tmp_path).parts["all"]
    assert part.first == [".", "z", "a", "y y", "b b", "c c c"]
    assert part.labels.tolist() == [1, 0, 1, 0, 1, 1]


def test_snli_is_ordered_by_its_second_sentence_and_the_label_s_name(tmp_path: Path) -> None:
    folder = tmp_path / "SNLI"
    folder.mkdir()
    for part in ("train", "dev", "test"):
        (folder / f"s1.{part}").write_text("a a\na\nb\n")
        (folder / f"s2.{part}").write_text("x\ny\nz\n")
        (folder / f"labels.{part}").write_text("entailment\nneutral\ncontradiction\n")
    train = read_task("SNLI", tmp_path).parts["train"]
    assert train.first == ["b", "a", "a a"]
    assert train.labels.tolist() == [2, 1, 0]


def damage(root: Path, tmp_path: Path, name: str, change: Any) -> Path:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(root, copy)
    file = copy / "downstream" / name
    change(file)
    return copy


def _line(text: str) -> Any:
    return lambda file: file.write_text(file.read_text().replace("\n", f"\n{text}\n", 1))


SST2 = "SST/binary/sentiment-dev"
SST5 = "SST/fine/sentiment-test"
TREC = "TREC/TREC_10.label"
MRPC = "MRPC/msr_paraphrase_test.txt"
SICK = "SICK/SICK_trial.txt"


@pytest.mark.parametrize(
    ("task", "file", "change", "place", "line"),
    [
        ("MR", "MR/rt-polarity.neg", Path.unlink, "MR/rt-polarity.neg", None),
        ("MR", "MR/rt-polarity.neg", lambda f: f.write_bytes(b""), "MR/rt-polarity.neg", None),
        ("SST2", SST2, _line("no label here"), SST2, 2),
        ("SST2", SST2, _line("fine\t2"), SST2, 2),
        ("SST5", SST5, _line("7 stars"), SST5, 2),
        ("TREC", TREC, lambda f: f.write_bytes(b"FOO:x why ?\n"), TREC, 1),
        ("MRPC", MRPC, _line("1\t2\t3\tonly one"), MRPC, 2),
        ("SICK-E", SICK, _line("1\ta\tb\t3.5\tMAYBE"), SICK, 2),
        ("SNLI", "SNLI/s2.dev", _line("one too many"), "SNLI", None),
        ("SNLI", "SNLI/labels.test", lambda f: f.write_text("-\n" * 60), "SNLI/labels.test", 1),
        ("SST2", SST2, lambda f: f.write_bytes(b"\xff\xfe\t1\n"), SST2, None),
    ],
)
def test_damaged_files_are_one_clear_line_and_other_tasks_go_on(
    root: Path, tmp_path: Path, task: str, file: str, change: Any, place: str, line: int | None
) -> None:
    bad = damage(root, tmp_path, file, change)
    quick = dataclasses.replace(QUICK, kfold=2, l2=(1e-3,))
    with raises_input_error(file=bad / "downstream" / place, line=line) as alone:
        evaluate(words, [transfer_task(task, classifier=quick, root=bad)], pooling="words")
    tasks: list[Task] = [transfer_task(name, classifier=quick, root=bad) for name in (task, "CR")]
    result = evaluate(words, tasks, pooling="words")
    assert {s.task for s in result.scores} == {"CR"}
    assert result.missing == {task: Missing("data", str(alone.value))}
    assert any(str(alone.value) in note for note in result.notes)


@pytest.mark.parametrize("score", ["6.0", "nan", "high"])
def test_scores_out_of_range_are_refused(root: Path, tmp_path: Path, score: str) -> None:
    bad = damage(
        root, tmp_path, "STS/STSBenchmark/sts-dev.csv", _line(f"g\tf\t1\t1\t{score}\ta\tb")
    )
    with raises_input_error(file=bad / "downstream/STS/STSBenchmark/sts-dev.csv", line=2):
        regressor_task("STS-B", root=bad).texts()


def test_nothing_to_score_at_all_is_an_error(tmp_path: Path) -> None:
    tasks: list[Task] = [transfer_task(name, root=tmp_path) for name in ("MR", "CR")]
    with raises_input_error(file=tmp_path / "MR/rt-polarity.pos"):
        evaluate(words, tasks, pooling="words")


def test_bad_vectors_are_reported_and_scored_as_zeros(root: Path) -> None:
    def holes(texts: list[str]) -> Array:
        x = words(texts)
        x[::7] = np.nan
        return x

    result = evaluate(holes, [transfer_task("CR", classifier=QUICK, root=root)], pooling="words")
    assert 0.5 < result.scores[0].value < 1
    assert result.notes[0].startswith("CR: examples: 120 in all (not 3,775); files cut short")
    assert result.notes[1].startswith("CR: vectors with NaN or infinity, replaced by 0: ")
    with pytest.raises(RunError, match=r"shape \(1, 97\) for"):
        evaluate(
            lambda t: words(t)[:1],
            [transfer_task("CR", classifier=QUICK, root=root)],
            pooling="words",
        )


def test_f1_by_hand() -> None:
    gold, predicted = np.array([1, 1, 1, 0, 0]), np.array([1, 1, 0, 1, 0])
    assert f1(gold, predicted) == 66.67  # precision 2/3, recall 2/3
    assert f1(gold, np.zeros(5)) == 0


def test_grades_by_hand() -> None:
    """Tai et al.'s target; a score below 1 keeps only the mass of grade 1 (there is no grade 0)."""
    expected = [
        [0, 0, 0.6, 0.4, 0],
        [0, 0, 0, 0, 1],
        [1, 0, 0, 0, 0],
        [0.2, 0, 0, 0, 0],
        [0, 0, 0, 0, 0],
    ]
    np.testing.assert_allclose(
        grade_targets(np.array([3.4, 5.0, 1.0, 0.2, 0.0])), expected, atol=1e-6
    )


def test_regressor_equals_torch_s_own_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    from scipy.stats import pearsonr

    monkeypatch.setattr("harness.tasks.senteval.relatedness._MAX_PASSES", 200)
    rng = np.random.default_rng(0)
    x = {
        p: rng.standard_normal((n, 6)).astype(np.float32)
        for p, n in (("train", 60), ("dev", 40), ("test", 30))
    }
    weights = rng.standard_normal(6)
    y = {
        p: np.clip(3 + v @ weights + 0.3 * rng.standard_normal(len(v)), 1, 5) for p, v in x.items()
    }
    fit = regress(x, y)

    shuffle = np.random.RandomState(1111)
    torch.manual_seed(1111)
    model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Softmax(dim=-1))
    optimizer = torch.optim.Adam(model.parameters())
    tx, grades = {p: torch.as_tensor(v) for p, v in x.items()}, torch.arange(1.0, 6.0)
    target, best, kept, failures = torch.as_tensor(grade_targets(y["train"])), -1.0, np.empty(0), 0
    for _ in range(5):  # 250 passes: the first count beyond 200
        for _ in range(50):
            order = torch.as_tensor(shuffle.permutation(60))
            for rows in order.split(64):
                loss = torch.nn.functional.mse_loss(model(tx["train"][rows]), target[rows])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        now = float(pearsonr((model(tx["dev"]) @ grades).detach().numpy(), y["dev"])[0])
        if now > best:
            best, kept = now, (model(tx["test"]) @ grades).detach().numpy()
        else:
            failures += 1
        if failures > 3:
            break
    assert fit.dev_pearson == pytest.approx(best, abs=1e-3)
    np.testing.assert_allclose(fit.predicted, kept, atol=0.02)


def test_regressor_tasks_score_by_correlation(root: Path) -> None:
    result = evaluate(
        words,
        [regressor_task("STS-B", root=root), regressor_task("SICK-R", root=root)],
        pooling="words",
    )
    values = {(s.task, s.split, s.metric): s.value for s in result.scores}
    assert values["regressor:STS-B", "test", "spearman"] > 0.6
    assert values["regressor:SICK-R", "test", "pearson"] > 0.8
    assert ("regressor:SICK-R", "dev", "pearson") in values
    assert values["regressor:SICK-R", "test", "mse"] < 1


def partly(texts: list[str]) -> Array:
    """Vectors from which the labels can be read only in part, so that no accuracy is trivially 1."""
    return words(texts) + 0.4 * np.tile(noise(texts), 7)[:, :97]


def by_hand(data: Any) -> dict[str, Array]:
    pairs = {p: (partly(part.first), partly(part.second)) for p, part in data.parts.items()}
    return {p: np.hstack([abs(u - v), u * v]) for p, (u, v) in pairs.items()}


def test_sick_e_and_sst5_equal_a_float64_transcription(root: Path) -> None:
    """Three classes of pairs and five of sentences, by the full configuration but for batches that
    suit 60 examples.
    """
    for name in ("SICK-E", "SST5"):
        task = transfer_task(name, classifier=dataclasses.replace(FULL, batch_size=4), root=root)
        parts = task.data.parts
        x = (
            by_hand(task.data)
            if name == "SICK-E"
            else {p: partly(part.first) for p, part in parts.items()}
        )
        dev, test = reference.train_dev_test(
            x, {p: part.labels for p, part in parts.items()}, batch=4
        )
        measured = scores([task], partly)
        assert 0.4 < measured[name, "test", "accuracy"] < 1
        assert 100 * measured[name, "dev", "accuracy"] == pytest.approx(
            dev, abs=100 / len(parts["dev"])
        )
        assert 100 * measured[name, "test", "accuracy"] == pytest.approx(
            test, abs=100 / len(parts["test"])
        )


def test_regressors_of_sts_b_and_sick_r_equal_a_float64_transcription(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """STS-B's scores begin at 0, SICK's at 1."""
    from scipy.stats import pearsonr, spearmanr

    monkeypatch.setattr("harness.tasks.senteval.relatedness._MAX_PASSES", 200)
    for name in ("STS-B", "SICK-R"):
        task = regressor_task(name, root=root)
        gold = {p: np.asarray(part.labels, dtype=float) for p, part in task.data.parts.items()}
        dev, predicted = reference.regress(by_hand(task.data), gold, max_passes=200)
        measured = scores([task], partly)
        assert 0.2 < dev < 0.999
        assert measured[f"regressor:{name}", "dev", "pearson"] == pytest.approx(dev, abs=1e-3)
        assert measured[f"regressor:{name}", "test", "pearson"] == pytest.approx(
            pearsonr(predicted, gold["test"])[0], abs=1e-3
        )
        assert measured[f"regressor:{name}", "test", "spearman"] == pytest.approx(
            spearmanr(predicted, gold["test"])[0], abs=0.01
        )
        assert measured[f"regressor:{name}", "test", "mse"] == pytest.approx(
            ((predicted - gold["test"]) ** 2).mean(), abs=1e-2
        )


def test_recalls_by_hand() -> None:
    """Two images, ten captions: caption 0 prefers the wrong image, all others their own."""
    images = np.eye(2)
    captions = np.array([[0.0, 1.0], *[[1.0, 0.0]] * 4, *[[0.0, 1.0]] * 5])
    recalls = rank_recalls(images, captions)
    assert recalls.text_to_image == (90.0, 100.0, 100.0, 1.0)
    assert recalls.image_to_text == (100.0, 100.0, 100.0, 1.0)


def test_caption_retrieval_learns_a_linear_map_and_says_what_it_needs(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    folder = tmp_path / "COCO"
    folder.mkdir()
    with raises_input_error(file=folder / "train.pkl"):
        CaptionRetrievalTask(tmp_path).texts()
    images: dict[str, Array] = {}
    for part in ("train", "valid", "test"):
        images[part] = rng.standard_normal((200, 8)).astype(np.float32)
        ids = {i: [5 * i + k for k in range(5)] for i in range(200)}
        captions = {
            5 * i + k: {"cleaned_caption": f"{part} {i} {k}"} for i in range(200) for k in range(5)
        }
        tree = {"features": images[part], "image_to_caption_ids": ids, "captions": captions}
        (folder / f"{part}.pkl").write_bytes(pickle.dumps(tree))

    def encode(texts: list[str]) -> Array:
        rows = [text.split() for text in texts]
        return np.stack([images[p][int(i)] for p, i, *_ in rows]) @ np.random.default_rng(
            5
        ).standard_normal((8, 12))

    result = evaluate(encode, [CaptionRetrievalTask(tmp_path, width=32)], pooling="x")
    values = {(s.split, s.metric): s.value for s in result.scores}
    assert values["test", "i2t_r10"] > 0.2  # chance: 0.05
    assert values["test", "recall"] == pytest.approx(
        np.mean([values["test", f"{way}_r{k}"] for way in ("i2t", "t2i") for k in (1, 5, 10)])
    )
    assert result.outcomes is not None
    stored = dict(list(result.outcomes.groupby("metric")))
    tested = {metric: value for (split, metric), value in values.items() if split == "test"}
    assert {metric: value_of(rows) for metric, rows in stored.items()} == pytest.approx(
        tested, abs=1e-6
    )
    assert [len(stored[metric]) for metric in ("recall", "i2t_r1", "t2i_r1")] == [200, 200, 1000]
    assert (
        stored["t2i_r1"]["unit"].nunique() == 200
    )  # the five captions of an image are drawn together
    with raises_input_error(key="caption retrieval"):
        fit_and_rank(
            {p: np.ones((2, 3)) for p in ("train", "dev", "test")},
            {p: np.ones((10, 3)) for p in ("train", "dev", "test")},
        )


def rounded_mean(rows: Any) -> float:
    """As SentEval rounds: each fold's percentage, then their mean."""
    return round(
        float(
            np.mean([round(100 * part["outcome"].mean(), 2) for _, part in rows.groupby("subset")])
        ),
        2,
    )


def test_accuracies_and_f1_follow_from_the_outcome_of_each_example(root: Path) -> None:
    tasks: list[Task] = [
        transfer_task(name, classifier=QUICK, root=root) for name in ("MR", "SST5", "TREC", "MRPC")
    ]
    result = evaluate(lambda texts: partly(texts)[:, :3], tasks, pooling="words")
    assert result.outcomes is not None
    stored = dict(list(result.outcomes.groupby(["task", "metric"])))
    tested = [score for score in result.scores if score.split == "test"]
    assert {(score.task, score.metric) for score in tested} == set(stored)
    for score in tested:
        rows = stored[score.task, score.metric]
        assert len(rows) == score.n
        assert 0.1 < score.value < 1
        if score.metric == "accuracy":
            assert 100 * score.value == pytest.approx(rounded_mean(rows), abs=1e-9), score.task
            assert rows["target"].isna().all()
        else:
            assert round(100 * value_of(rows), 2) == pytest.approx(100 * score.value, abs=1e-9)
    folds = stored["MR", "accuracy"]
    assert folds["subset"].nunique() == QUICK.kfold
    assert folds["example"].tolist() == list(range(120))  # each is tested once
    assert folds["unit"].tolist() == [text_id(text) for text in tasks[0].data.parts["all"].first]  # type: ignore[attr-defined]


def test_what_guessing_gives_stands_beside_the_scores(root: Path) -> None:
    names = ("MR", "SICK-E", "MRPC")
    tasks: list[Task] = [transfer_task(name, classifier=QUICK, root=root) for name in names]
    facts = facts_of(evaluate(words, tasks, pooling="words").figures)
    assert {name: facts[name].chance for name in names if name != "SICK-E"} == {
        name: suites()["transfer"].chance_of(name) for name in names if name != "SICK-E"
    }
    assert facts["SICK-E"].chance == suites()["downstream"].chance_of("SICK-E")
    labels = tasks[2].data.parts["test"].labels  # type: ignore[attr-defined]
    assert [(facts[name].chance, facts[name].metric) for name in names] == [
        (0.5, "accuracy"),
        (1 / 3, "accuracy"),
        (0.5, "accuracy"),
    ]
    assert facts["MR"].majority == 0.5
    assert facts["MRPC"].majority == max(labels.mean(), 1 - labels.mean())
    assert facts["MR"].unit.startswith("the example")
    assert facts["MRPC"].unit.startswith("the pair")


def test_correlations_of_a_regressor_follow_from_what_it_predicted(root: Path) -> None:
    result = evaluate(partly, [regressor_task("SICK-R", root=root)], pooling="words")
    assert result.outcomes is not None
    stored = dict(list(result.outcomes.groupby("metric")))
    values = {score.metric: score.value for score in result.scores if score.split == "test"}
    assert stored.keys() == values.keys() == {"spearman", "pearson", "mse"}
    for metric, value in values.items():
        assert value_of(stored[metric]) == pytest.approx(value, abs=1e-6), metric


@pytest.mark.hub
def test_counts_of_the_real_files() -> None:
    """The numbers of examples that SentEval's own description gives."""
    from harness.sources.senteval.labelled import downstream_folder

    folder = downstream_folder()
    counts = {
        task: [len(p) for p in read_task(task, folder).parts.values()]
        for task in (*TRANSFER, "SST5", "SICK-E")
    }
    assert counts == {
        "MR": [10662],
        "CR": [3775],
        "SUBJ": [10000],
        "MPQA": [10606],
        "SST2": [67349, 872, 1821],
        "TREC": [5452, 500],
        "MRPC": [4076, 1725],
        "SST5": [8544, 1101, 2210],
        "SICK-E": [4500, 500, 4927],
    }
    for task, sizes in counts.items():
        assert list(SIZES[task].values()) == sizes


def test_a_file_that_the_hubs_copy_lacks_is_named_without_the_cache(tmp_path, monkeypatch):
    monkeypatch.setattr("harness.sources.senteval.labelled.cache_root", lambda: tmp_path / "cache")
    for file, said in (
        (
            tmp_path / "cache" / "senteval" / "ab12" / "SNLI" / "s1.train",
            r"^SNLI/s1\.train: not in the copy of",
        ),
        (
            tmp_path / "mine" / "SNLI" / "s1.train",
            "no such file; the SentEval folder is not complete",
        ),
    ):
        with pytest.raises(InputError, match=said) as caught:
            read_task("SNLI", file.parents[1])
        assert ("HARNESS_SENTEVAL" in str(caught.value)) == ("cache" in str(file.parent))
