"""What every test relies on: no telemetry, no network unless a hub is named, caches of its own, one thread a worker."""

from __future__ import annotations

import os
import tempfile

import pytest

# Set before any test module imports torch, transformers or mlflow.
for name in ("HF_HUB_DISABLE_TELEMETRY", "MLFLOW_DISABLE_TELEMETRY", "DO_NOT_TRACK"):
    os.environ[name] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ.setdefault("MPLBACKEND", "Agg")
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

HUB = bool(os.environ.get("HF_ENDPOINT"))
if not HUB:
    os.environ["HF_HUB_OFFLINE"] = "1"  # a test that forgets its `hub` mark fails at once instead of waiting
if not (HUB and "HF_HOME" in os.environ) and not os.environ.get("HARNESS_TEST_HF_HOME"):
    # Made once by the process that starts the workers, which inherit it; `_home` lives as long as that process.
    _home = tempfile.TemporaryDirectory(prefix="harness-test-hf-", ignore_cleanup_errors=True)
    os.environ["HF_HOME"] = os.environ["HARNESS_TEST_HF_HOME"] = _home.name


def pytest_configure(config: pytest.Config) -> None:
    from hypothesis import settings

    settings.register_profile("harness", deadline=None, print_blob=True)
    settings.load_profile("harness")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if HUB:
        return
    skip = pytest.mark.skip(reason="needs a Hugging Face hub: set HF_ENDPOINT to one")
    for item in items:
        if "hub" in item.keywords:
            item.add_marker(skip)
