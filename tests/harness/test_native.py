"""The compiled fits: made once, shared out among threads without a difference, and never a condition for a result."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.tasks import native
from harness.tasks.classifier import PROTOTYPING, Split, configuration

compiled = pytest.mark.skipif(native.library() is None, reason="no C compiler")


@compiled
def test_it_is_compiled_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path))
    assert native.library.__wrapped__() is not None
    (first,) = (tmp_path / "compiled").iterdir()
    made = first.stat().st_mtime_ns
    assert native.library.__wrapped__() is not None
    assert [f.stat().st_mtime_ns for f in (tmp_path / "compiled").iterdir()] == [made]


@pytest.mark.parametrize("fault", ["no compiler", "a compiler that fails", "nowhere to write"])
def test_without_a_compiler_or_a_cache_there_is_none_and_nothing_is_left(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cache"
    monkeypatch.setenv("HARNESS_CACHE", str(folder))
    if fault == "no compiler":
        monkeypatch.setenv("CC", "no-such-compiler --fast")
    elif fault == "a compiler that fails":
        monkeypatch.setenv("CC", "false")
    else:
        folder.write_text("a file where the folder should be")
    assert native.library.__wrapped__() is None
    assert not list(tmp_path.rglob("*.so"))
    assert not list(tmp_path.rglob("tmp*"))


@compiled
@pytest.mark.parametrize("name", ["full", "prototyping"])
def test_threads_and_neighbours_make_no_difference(name: str) -> None:
    """One split, whose L2 values two threads share, and three splits on one thread: bit for bit the same fits."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((200, 30)).astype(np.float32), rng.integers(0, 3, 200)
    x[:, 0] += y
    order = rng.permutation(200)
    splits = [Split(order[a : a + 97], order[:a], order[180:], drawn) for a, drawn in ((40, 0), (50, 0), (60, 5))]
    l2 = np.array([[1e-5, 1e-3, 1e-1]] * 3)
    kernel = native.library()
    assert kernel is not None
    config = configuration(name)
    together = native.solve_natively(kernel, x, y, splits, l2, 3, config, 1)
    for s, split in enumerate(splits):
        alone = native.solve_natively(kernel, x, y, [split], l2[s : s + 1], 3, config, 2)
        np.testing.assert_array_equal(alone.accuracy[0], together.accuracy[s])
        np.testing.assert_array_equal(alone.predicted[0], together.predicted[s])


@compiled
def test_logits_far_out_stay_finite() -> None:
    """Features of size 1e4 drive sigmoid and softmax to their ends; separable labels are still learnt."""
    rng = np.random.default_rng(0)
    for classes in (2, 4):
        y = np.arange(120) % classes
        x = 1e4 * (np.eye(classes)[y] + 0.01 * rng.standard_normal((120, classes)))
        split = Split(np.arange(60), np.arange(60, 90), np.arange(90, 120))
        kernel = native.library()
        assert kernel is not None
        solved = native.solve_natively(kernel, x, y, [split], np.array([[1e-5]]), classes, PROTOTYPING, 1)
        np.testing.assert_array_equal(solved.predicted[0][0], y[90:])
