"""The compiled fits: shared out among threads without a difference, finite far out, kept where there is room."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from harness.tasks.senteval import pair_regressor
from harness.tasks.senteval.fits.numba_descent import compiled
from harness.tasks.senteval.fits.numba_fits import solve_compiled
from harness.tasks.senteval.fits.problem import CONFIGURATIONS, PROTOTYPING, Split


def double(value: int) -> int:
    return 2 * value


@pytest.mark.parametrize("writable", [True, False])
def test_loops_are_kept_where_a_folder_can_be_written(
    writable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cache"
    if not writable:
        folder.write_text("a file where the folder should be")
    # By the environment: numba reads its settings anew whenever a variable of its own has changed.
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder))
    monkeypatch.setenv("NUMBA_CACHE_LOCATOR_CLASSES", "UserProvidedCacheLocator")
    numba.config.reload_config()
    for _ in range(2):
        loop: Any = compiled(double)
        assert loop(21) == 42
    assert sum(loop.stats.cache_hits.values()) == writable


@pytest.mark.parametrize("name", ["full", "prototyping"])
def test_threads_and_neighbours_make_no_difference(name: str) -> None:
    """One split, whose L2 values two threads share, and three splits on one thread: bit for bit the same fits."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((200, 30)).astype(np.float32), rng.integers(0, 3, 200)
    x[:, 0] += y
    order = rng.permutation(200)
    splits = [Split(order[a : a + 97], order[:a], order[180:], drawn) for a, drawn in ((40, 0), (50, 0), (60, 5))]
    l2 = np.array([[1e-5, 1e-3, 1e-1]] * 3)
    config = CONFIGURATIONS[name]
    together = solve_compiled(x, y, splits, l2, 3, config, 1)
    for s, split in enumerate(splits):
        alone = solve_compiled(x, y, [split], l2[s : s + 1], 3, config, 2)
        np.testing.assert_array_equal(alone.accuracy[0], together.accuracy[s])
        np.testing.assert_array_equal(alone.predicted[0], together.predicted[s])


def test_logits_far_out_stay_finite() -> None:
    """Features of size 1e4 drive sigmoid and softmax to their ends; separable labels are still learnt."""
    rng = np.random.default_rng(0)
    for classes in (2, 4):
        y = np.arange(120) % classes
        x = 1e4 * (np.eye(classes)[y] + 0.01 * rng.standard_normal((120, classes)))
        split = Split(np.arange(60), np.arange(60, 90), np.arange(90, 120))
        solved = solve_compiled(x, y, [split], np.array([[1e-5]]), classes, PROTOTYPING, 1)
        np.testing.assert_array_equal(solved.predicted[0][0], y[90:])


def test_the_compiled_regressor_takes_torch_s_steps() -> None:
    """Weights and biases after each round, on rows that no whole number of batches makes."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((150, 45)).astype(np.float32)
    target = pair_regressor.grade_targets(rng.uniform(0, 5, 150))
    ours, torchs = (way(x, target, 3, "cpu") for way in (pair_regressor._on_processor, pair_regressor._on_device))
    for _ in range(3):
        for mine, theirs in zip(next(ours), next(torchs), strict=True):
            np.testing.assert_allclose(mine, theirs, atol=2e-5)
