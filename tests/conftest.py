"""What every test relies on: no telemetry, no network unless a hub is named, caches of its own, one
thread a worker.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

# Set before any test module imports torch, transformers or mlflow.
for name in ("HF_HUB_DISABLE_TELEMETRY", "MLFLOW_DISABLE_TELEMETRY", "DO_NOT_TRACK"):
    os.environ[name] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ.setdefault("MPLBACKEND", "Agg")
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# Compiled modules and rewritten tests are saved for the workers and the processes that tests start,
# hundreds of which would else compile the same files.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

gc.disable()  # while test modules import a million objects; see pytest_collection_finish

FOLDER = Path(__file__).parent
HUB = bool(os.environ.get("HF_ENDPOINT"))
if not HUB:
    os.environ["HF_HUB_OFFLINE"] = (
        "1"  # a test that forgets its `hub` mark fails at once instead of waiting
    )
if "HARNESS_TEST_FOLDER" not in os.environ:
    # Made once by the process that starts the workers, which inherit it; `_folder` lives as long as
    # that process.
    _folder = tempfile.TemporaryDirectory(prefix="harness-test-", ignore_cleanup_errors=True)
    os.environ["HARNESS_TEST_FOLDER"] = _folder.name
    if not (HUB and "HF_HOME" in os.environ):
        os.environ["HF_HOME"] = str(Path(_folder.name) / "hf")
    # Not the user's: what another version of the code or an earlier run left there decides nothing.
    os.environ["HARNESS_CACHE"] = str(Path(_folder.name) / "cache")


def pytest_configure(config: pytest.Config) -> None:
    from hypothesis import settings

    settings.register_profile("harness", deadline=None, print_blob=True)
    settings.load_profile("harness")


# These files come first, the longest before the others, so that at the end no worker is left alone
# with one of them.
LONG_FILES = (
    "methods/test_conformance.py",
    "harness/test_api_examples.py",
    "golden/test_golden.py",
    "studies/test_study.py",
    "reports/test_build.py",
    "test_action.py",
    "harness/commands/test_fetch.py",
    "harness/sources/test_hub.py",
    "reports/stats/test_simultaneous.py",
    "harness/tasks/test_mteb.py",
    "harness/test_network.py",
    "harness/encoder/test_several_devices.py",
    "methods/test_saved_for_others.py",
    "harness/tasks/own/test_kinds.py",
    "harness/test_tracking.py",
    "harness/commands/test_new.py",
    "harness/encoder/test_saving.py",
    "harness/runs/test_incumbent.py",
    "test_release.py",
    "harness/encoder/test_models_of_others.py",
    "reports/papers/test_tables.py",
    "harness/test_api.py",
    "harness/runs/test_code_changes.py",
    "harness/runs/test_pack.py",
    "harness/runs/test_compare.py",
    "harness/runs/test_placement.py",
    "harness/runs/test_own_files.py",
    "docs/test_contributing.py",
    "harness/training/test_command.py",
)
LONG_SECONDS = 30.0  # a test that takes longer is named at the end of the run


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {FOLDER / name: place for place, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: places.get(item.path, len(places)))
    if HUB:
        return
    skip = pytest.mark.skip(reason="needs a Hugging Face hub: set HF_ENDPOINT to one")
    for item in items:
        if "hub" in item.keywords:
            item.add_marker(skip)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def short_measurements() -> Iterator[None]:
    """The speed of an architecture is measured by two passes over few sentences, in hundreds of
    work directories.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"SENTENCES": 16, "PASSES": 2, "_SHORTEST": 0.0}.items():
            patch.setattr(f"harness.evaluation.inference_cost.{name}", value)
        yield


@pytest.fixture(scope="session")
def word_vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small file of random word vectors, for methods that take public ones of the hub by default."""
    import re

    import numpy as np

    from harness.conformance.subject import TEXTS
    from harness.sources import embedded_rows

    text = " ".join([*TEXTS, *(row["text"] for row in embedded_rows("sentences")), "word . Nobody"])
    words = sorted({*text.split(), *re.findall(r"\w+", text)})
    draw = np.random.default_rng(0)
    file = tmp_path_factory.mktemp("vectors") / "vectors.txt"
    lines = [f"{word} {' '.join(f'{x:.4f}' for x in draw.normal(size=16))}\n" for word in words]
    file.write_text("".join(lines))
    return file


@pytest.fixture(autouse=True)
def nothing_known_of_shared_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests replace functions of the harness, which a run of a plugin would notice in a later one."""
    from harness.machine import shared_code

    monkeypatch.setattr(shared_code, "_PROCESS", shared_code._Process())


@contextmanager
def _registry_as_before() -> Iterator[None]:
    """Forget the plugins that this process is given meanwhile: after a method of the user's own,
    functions that a test replaces would count as changed by it.
    """
    from harness import registry

    before = {group: dict(added) for group, added in registry._added.items()}
    try:
        yield
    finally:
        registry._added.clear()
        registry._added.update(before)


@pytest.fixture(scope="module", autouse=True)
def registry_as_before_the_module() -> Iterator[None]:
    """Plugins that fixtures of a module register are forgotten after its tests."""
    with _registry_as_before():
        yield


@pytest.fixture(autouse=True)
def registry_as_before_the_test(registry_as_before_the_module: None) -> Iterator[None]:
    """Plugins that a test registers are forgotten after it."""
    with _registry_as_before():
        yield


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Iterator[Any]:
    """Fixtures of modules and sessions replace functions, too, and are set up before those of tests."""
    if fixturedef.scope == "function":
        return (yield)
    from harness.machine import shared_code

    known = shared_code._PROCESS
    shared_code._PROCESS = shared_code._Process()
    try:
        return (yield)
    finally:
        shared_code._PROCESS = known


@pytest.fixture(scope="module")
def few_pairs() -> Iterator[None]:
    """Sets of scored pairs have about twenty pairs."""
    from tests.support import short_runs

    with pytest.MonkeyPatch.context() as patch:
        short_runs.few_pairs(patch)
        yield


@pytest.fixture(scope="module")
def no_report() -> Iterator[None]:
    """Comparisons and studies draw no figure and write no report."""
    from tests.support import short_runs

    with pytest.MonkeyPatch.context() as patch:
        short_runs.no_report(patch)
        yield


_frozen = 0  # modules that were imported when garbage was last set aside


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """After each file, and each test that imported libraries: what lives on (the collected tests,
    torch, transformers, mlflow ...) is not searched again.

    A run collects garbage before it measures its memory. Among some million objects of imported
    libraries that takes longer than all else that the small cells of these tests do.
    """
    global _frozen
    another_file = nextitem is None or nextitem.path != item.path
    if another_file or len(sys.modules) > _frozen + 50:
        gc.collect()
        gc.freeze()
        _frozen = len(sys.modules)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tests that have grown long are named, with what to do; they do not fail, since a loaded
    machine is slow too.
    """
    took: dict[str, float] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                took[report.nodeid] = took.get(report.nodeid, 0.0) + report.duration
    long = {name: seconds for name, seconds in took.items() if seconds > LONG_SECONDS}
    if long:
        terminalreporter.section(f"tests that took longer than {LONG_SECONDS:.0f} s")
        terminalreporter.line(
            "Share their set-up, shrink their data, or mark them `campaign` beside a shorter test."
        )
        for name, seconds in sorted(long.items(), key=lambda pair: -pair[1]):
            terminalreporter.line(f"{seconds:6.0f} s {name}")
