"""Concatenated methods: the vectors are those of the parts, fitted alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.errors import InputError, NotFitted
from harness.method import FitContext
from harness.sources import load_corpus
from methods.concat import Concat
from methods.pooling import PoolingMethod
from methods.simcse import SimCSE

TEXTS = ["A dog runs across the field.", "Two children play chess.", "", "rain"]
POOLINGS = [{"method": "pooling", "preset": "cls"}, {"method": "pooling", "config": {"pooling": "max"}}]
TRAINED = [{"method": "pooling"}, {"method": "simcse", "config": {"batch_size": 8, "train_length": 16}}]


def concat(parts: list[dict[str, Any]], **values: Any) -> Concat:
    return Concat(Concat.configure({"parts": parts, **values}))


def pooled(**values: Any) -> np.ndarray:
    return np.asarray(PoolingMethod(PoolingMethod.configure(values)).fit().encode(TEXTS))


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def test_vectors_of_the_parts_side_by_side() -> None:
    a, b = pooled(pooling="cls"), pooled(pooling="max")
    method = concat(POOLINGS)
    with pytest.raises(NotFitted):
        method.encode("early")
    vectors = np.asarray(method.fit().encode(TEXTS))
    assert vectors.dtype == np.float32
    assert np.allclose(vectors, np.hstack([unit(a), unit(b)]), atol=1e-5)
    assert np.allclose(concat(POOLINGS, normalize=False).fit().encode(TEXTS), np.hstack([a, b]), atol=1e-5)
    # of unit parts, the cosine is the mean of the parts' cosines
    cosines = unit(vectors) @ unit(vectors).T
    assert cosines == pytest.approx((unit(a) @ unit(a).T + unit(b) @ unit(b).T) / 2, abs=1e-5)
    assert np.asarray(method.encode([])).shape == (0, 512)
    assert np.allclose(method.encode(TEXTS[0]), vectors[0], atol=1e-5)
    assert np.linalg.norm(np.asarray(method.encode(TEXTS, normalize_embeddings=True)), axis=1) == pytest.approx(1)


def test_a_trained_part_is_the_method_trained_alone(tmp_path: Path) -> None:
    corpus = load_corpus("embedded:sentences", limit=24)
    context = FitContext(seed=4, precision="fp32", max_steps=2)
    alone = SimCSE(SimCSE.configure(TRAINED[1]["config"])).fit(corpus, context)
    method = concat(TRAINED).fit(corpus, replace(context, folder=tmp_path / "run"))
    vectors = np.asarray(method.encode(TEXTS))
    assert np.allclose(vectors[:, 256:], unit(np.asarray(alone.encode(TEXTS))), atol=1e-5)
    assert method.fit_report.training["part 2"]["steps"] == 2
    assert (tmp_path / "run/part-2/curves.jsonl").is_file()
    assert not (tmp_path / "run/part-2/checkpoint").exists()

    seeds = concat([TRAINED[1], {**TRAINED[1], "seed": 1}]).fit(corpus, context)
    both = np.asarray(seeds.encode(TEXTS))
    assert np.allclose(both[:, :256], vectors[:, 256:], atol=1e-5)
    assert not np.allclose(both[:, 256:], both[:, :256], atol=1e-3)


def test_a_part_that_was_finished_before_a_kill_is_not_trained_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = load_corpus("embedded:sentences", limit=24)
    parts = [TRAINED[1], {**TRAINED[1], "seed": 1}]
    context = FitContext(seed=4, precision="fp32", max_steps=2, folder=tmp_path / "run")
    fit, calls = SimCSE.fit, []

    def counted(self: Any, *args: Any, **options: Any) -> Any:
        calls.append(self)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return fit(self, *args, **options)

    monkeypatch.setattr(SimCSE, "fit", counted)
    with pytest.raises(KeyboardInterrupt):
        concat(parts).fit(corpus, context)
    resumed = concat(parts).fit(corpus, context)
    assert len(calls) == 3, "one part, the interrupted one, and that one again"
    monkeypatch.setattr(SimCSE, "fit", fit)
    whole = concat(parts).fit(corpus, FitContext(seed=4, precision="fp32", max_steps=2))
    assert np.allclose(resumed.encode(TEXTS), whole.encode(TEXTS), atol=1e-6)
    assert resumed.fit_report.training["part 1"]["steps"] == 2


def test_whitened_on_the_corpus_and_saved(tmp_path: Path) -> None:
    corpus = load_corpus("embedded:sentences", limit=60)
    method = concat(POOLINGS, whiten=True, k=12).fit(corpus)
    assert Concat.text_for(method.config) == "sentences"
    y = np.asarray(method.encode(list(corpus)), dtype=np.float64)
    assert y.shape == (60, 12)
    assert np.abs(y.mean(0)).max() < 1e-3
    assert np.cov(y, rowvar=False) == pytest.approx(np.eye(12), abs=5e-3)
    method.save(tmp_path / "model")
    again = Concat.load(tmp_path / "model")
    assert again.config == method.config
    assert np.allclose(again.encode(TEXTS), method.encode(TEXTS), atol=1e-4)
    assert again.num_parameters() == method.num_parameters()


def test_what_a_row_needs_follows_from_its_parts() -> None:
    none, trained = concat(POOLINGS).config, concat(TRAINED).config
    assert (Concat.text_for(none), Concat.text_for(trained)) == ("none", "sentences")
    assert (Concat.supervision_for(none), Concat.supervision_for(trained)) == ("untrained", "unsupervised")
    assert (Concat.uses_dev(none), Concat.uses_dev(trained)) == (False, True)
    assert Concat.base_for(trained, "embedded:mini-bert") == "embedded:mini-bert"
    task = concat([{"method": "pooling"}, {"method": "whitening", "config": {"fit_on": "task", "k": 8}}])
    assert Concat.supervision_for(task.config) == "transductive"
    assert task.transductive
    texts = list(load_corpus("embedded:sentences", limit=30))
    assert np.asarray(task.fit().for_task(texts).encode(TEXTS)).shape == (4, 256 + 8)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([{"method": "pooling"}], "needs two parts"),
        ([{"method": "pooling"}, {"method": "simscse"}], 'part 2: unknown method "simscse".*did you mean "simcse"'),
        ([{"method": "pooling"}, {"method": "simcse", "config": {"tau": 1}}], 'part 2: .*unknown key "tau"'),
        (
            [{"method": "simcse"}, {"method": "whitening", "config": {"fit_on": "pairs"}}],
            r"same kind of text \(or none\), not from sentences \(simcse\) and pairs \(whitening\)",
        ),
    ],
)
def test_wrong_parts_are_named_in_one_line(parts: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        concat(parts)
    assert "\n" not in str(error.value)


def test_whitening_cannot_follow_a_part_that_changes_with_the_task() -> None:
    parts = [{"method": "pooling"}, {"method": "whitening", "config": {"fit_on": "task"}}]
    with pytest.raises(InputError, match="no part may be fitted to the task's text"):
        concat(parts, whiten=True).fit(load_corpus("embedded:sentences", limit=8))


def test_the_id_of_a_run_follows_the_versions_of_its_parts_and_the_values_of_their_presets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def inputs(family: str = "bert-base") -> dict[str, str]:
        part = {"method": "simcse", "preset": "paper", "family": family}
        return Concat.inputs(concat([{"method": "pooling"}, part]).config)

    before = inputs()
    assert inputs() == before
    assert inputs("roberta-base") != before
    monkeypatch.setattr(SimCSE, "presets", {"paper": {"bucket": 2}})
    assert inputs() != before
    monkeypatch.undo()
    monkeypatch.setattr(SimCSE, "version", 99)
    assert inputs() != before
