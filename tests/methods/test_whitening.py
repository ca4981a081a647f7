"""BERT-whitening fitted to pairs or to each task's own text, and what happens with too little of
it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.errors import StopRequested
from harness.method import FitContext
from harness.sources import Corpus, load_corpus
from methods.parts.vector_maps import text_chunks
from methods.whitening import Whitening
from tests.support.errors import raises_input_error

TEXTS = ["A dog runs across the field.", "Two children play chess.", "rain"]


def whitening(**values: Any) -> Whitening:
    return Whitening(Whitening.configure({"k": 16, **values}))


@pytest.fixture(scope="module")
def pairs() -> Corpus:
    return load_corpus("embedded:pairs", kind="pairs", limit=20)


@pytest.mark.parametrize(
    ("preset", "text", "supervision"),
    [
        ("paper", "sentences", "unsupervised"),
        ("nli-256", "pairs", "unsupervised"),
        ("target", "none", "transductive"),
        ("target-256", "none", "transductive"),
    ],
)
def test_the_setting_decides_what_text_is_needed(preset: str, text: str, supervision: str) -> None:
    config = Whitening.configure({}, preset=preset)
    assert Whitening(config).text == text
    assert Whitening(config).supervision == supervision


def test_both_sides_of_pairs_enter(pairs: Corpus, tmp_path: Path) -> None:
    texts = [t for pair in pairs for t in (pair.anchor, pair.positive, pair.negative) if t]
    assert [text for chunk in text_chunks(pairs, FitContext(), 7) for text in chunk] == texts
    file = tmp_path / "sides.txt"
    file.write_text("\n".join(texts) + "\n")
    sides = whitening().fit(load_corpus(str(file)))
    fitted = whitening(fit_on="pairs").fit(pairs)
    a, b = np.asarray(fitted.encode(TEXTS)), np.asarray(sides.encode(TEXTS))
    assert a @ a.T == pytest.approx(b @ b.T, rel=1e-3), "equal up to the signs of the directions"
    with raises_input_error(file='method "whitening"'):
        whitening(fit_on="pairs").fit(load_corpus("embedded:sentences", limit=20))


def test_a_request_to_stop_ends_the_encoding_of_a_corpus(pairs: Corpus) -> None:
    asked = iter([False, True])
    chunks = text_chunks(pairs, FitContext(stop=lambda: next(asked)), 7)
    assert len(next(chunks)) >= 7
    with pytest.raises(StopRequested):
        next(chunks)


def test_fitted_to_a_task() -> None:
    method = whitening(fit_on="task", k=8).fit()
    plain = np.asarray(method.encode(TEXTS))
    assert plain.shape == (3, 256), "before it has seen a task, the method has no map"
    first, second = (list(load_corpus("embedded:sentences", limit=n)) for n in (40, 60))
    a, b = method.for_task(first), method.for_task(second[20:])
    y = np.asarray(a.encode(first), dtype=np.float64)
    assert y.shape == (40, 8)
    assert np.abs(y.mean(0)).max() < 1e-3
    assert np.cov(y, rowvar=False) == pytest.approx(np.eye(8), abs=5e-3)
    assert not np.allclose(a.encode(TEXTS), b.encode(TEXTS), atol=0.1)
    assert np.array_equal(np.asarray(a.encode(first), dtype=np.float64), y), (
        "a second task leaves the first alone"
    )
    assert np.array_equal(np.asarray(method.encode(TEXTS)), plain)
    again = np.asarray(a.for_task(second[20:]).encode(TEXTS))
    assert np.allclose(again, b.encode(TEXTS), atol=1e-5), (
        "a map replaces the former map, it does not follow it"
    )


def test_a_task_with_fewer_sentences_than_dimensions_is_refused() -> None:
    # n points whitened in n - 1 dimensions form a regular simplex: every similarity would be equal
    texts = list(load_corpus("embedded:sentences", limit=12))
    method = whitening(fit_on="task", k=None).fit()
    with raises_input_error():
        method.for_task([*texts, *texts])
    with raises_input_error(file="the task's text"):
        method.for_task(texts[:1])
    shrunk = whitening(fit_on="task", k=None, epsilon=0.1).fit().for_task(texts)
    assert np.asarray(shrunk.encode(texts)).shape == (12, 256)


def test_a_task_fitted_map_is_saved_with_its_encoder(tmp_path: Path) -> None:
    texts = list(load_corpus("embedded:sentences", limit=30))
    method = whitening(fit_on="task").fit()
    adapted = method.for_task(texts)
    adapted.save(tmp_path / "model")
    assert np.allclose(
        Whitening.load(tmp_path / "model").encode(TEXTS), adapted.encode(TEXTS), atol=1e-5
    )
    method.save(tmp_path / "waiting")
    modules = (tmp_path / "waiting" / "modules.json").read_text(encoding="utf-8")
    assert "harness.modules.SavedMethod" in modules, (
        "nobody may take the encoder alone for the method"
    )
    again = Whitening.load(tmp_path / "waiting").for_task(texts)
    assert np.allclose(again.encode(TEXTS), adapted.encode(TEXTS), atol=1e-4)
