"""The small comparison, run once for all tests that read it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from harness.api.result import Comparison
from harness.runs.inputs import forget_loaded
from tests.support import short_runs, small_runs


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """The small comparison with few pairs, computed with one thread; not to be changed."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        short_runs.few_pairs(patch)
        done = small_runs.compare(tmp_path_factory.mktemp("small") / "work")
    torch.set_num_threads(threads)
    forget_loaded()
    return done


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Few pairs and one thread, as for the small comparison, and nothing that an earlier test has
    loaded.
    """
    short_runs.few_pairs(monkeypatch)
    forget_loaded()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    forget_loaded()


@pytest.fixture
def work(small: Comparison, tmp_path: Path) -> Path:
    """A copy of its work directory, to change."""
    return Path(shutil.copytree(small.workdir, tmp_path / "work"))
