"""Mean removal and all-but-the-top against their formulas and scikit-learn's principal components."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import PCA

from harness.method import DEFAULT_BASE_MODEL, FitContext
from harness.sources import load_corpus
from methods.mean_removal import MeanRemoval
from methods.pooling import PoolingMethod
from tests.support.bases import narrow_bert
from tests.support.errors import raises_input_error

CORPUS = list(load_corpus("embedded:sentences", limit=60))
TEXTS = ["A dog runs across the field.", "Two children play chess.", "rain"]


def fitted(base_model: str | None = None, **values: Any) -> MeanRemoval:
    config = MeanRemoval.configure(values)
    method = MeanRemoval(config, base_model=base_model or narrow_bert())
    return method.fit(CORPUS, FitContext(device="cpu"))


def plain(texts: list[str]) -> np.ndarray:
    method = PoolingMethod(base_model=narrow_bert()).fit()
    return np.asarray(method.encode(texts), dtype=np.float64)


def expected(form: str, k: int) -> np.ndarray:
    x, corpus = plain(TEXTS), plain(CORPUS)
    mean = corpus.mean(0)
    if form == "r1":
        return x - mean
    if form == "r2":
        return x - np.outer(x @ mean, mean) / (mean @ mean)
    parts = PCA(k, svd_solver="full").fit(corpus)
    return x - parts.inverse_transform(parts.transform(x))  # subtracts the mean too


@pytest.mark.parametrize(("form", "k"), [("r1", 3), ("r2", 3), ("abtt", 1), ("abtt", 3)])
def test_forms_are_those_of_the_papers(form: str, k: int) -> None:
    wanted = expected(form, k)
    assert fitted(form=form, k=k, unit=False).encode(TEXTS) == pytest.approx(wanted, abs=1e-4)
    lengths = np.linalg.norm(wanted, axis=1, keepdims=True)
    assert fitted(form=form, k=k).encode(TEXTS) == pytest.approx(wanted / lengths, abs=1e-5)


def test_a_hundredth_of_the_dimensions_is_removed_by_default() -> None:
    method = fitted(DEFAULT_BASE_MODEL, form="abtt", unit=False)
    x = np.asarray(method.encode(CORPUS), dtype=np.float64)
    spread = np.linalg.svd(x - x.mean(0), compute_uv=False)
    assert (spread < 1e-3 * spread[0]).sum() == 1 + 3, (
        "60 centred vectors span 59 directions, less 3"
    )
    with raises_input_error(key="k"):
        fitted(DEFAULT_BASE_MODEL, form="abtt", k=256)


def test_the_report_has_the_length_of_the_mean() -> None:
    corpus = plain(CORPUS)
    training = fitted().fit_report.training
    assert training["mean_length"] == pytest.approx(np.linalg.norm(corpus.mean(0)), rel=1e-4)
    share = (corpus.mean(0) ** 2).sum() / (corpus**2).sum(1).mean()
    assert training["mean_share"] == pytest.approx(share, rel=1e-4)


@pytest.mark.parametrize("unit", [True, False])
def test_a_map_of_a_task_replaces_the_former_and_is_saved(unit: bool, tmp_path: Path) -> None:
    config = MeanRemoval.configure({"unit": unit}, preset="target")
    method = MeanRemoval(config, base_model=narrow_bert()).fit()
    assert method.supervision == "transductive"
    assert np.asarray(method.encode(TEXTS)) == pytest.approx(plain(TEXTS), abs=1e-5), (
        "no map before a task is known"
    )
    first = method.for_task(CORPUS[:30])
    first.save(tmp_path / "model")
    again = MeanRemoval.load(tmp_path / "model")
    assert np.asarray(again.encode(TEXTS)) == pytest.approx(
        np.asarray(first.encode(TEXTS)), abs=1e-5
    )
    second = method.for_task(CORPUS[30:]).encode(TEXTS)
    assert np.asarray(again.for_task(CORPUS[30:]).encode(TEXTS)) == pytest.approx(
        np.asarray(second), abs=1e-5
    )
