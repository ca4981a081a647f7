"""Ids of code: of built-in methods and tasks by the versions of their parts, of others' by version or content."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any

import pytest

from harness import registry
from harness.identity import code
from harness.identity.code import code_ids, evaluation_ids
from harness.identity.ledger import kept_ledgers, ledger_of
from harness.identity.review import Review
from harness.tasks.sts import STSTask

REPOSITORY = Path(__file__).resolve().parents[3]
PACKAGES = ("harness", "methods")


def method(name: str) -> Any:
    return registry.load(registry.METHODS, name)


def test_ids_of_code_are_those_of_before_until_a_version_changes(versions: Callable[..., None]) -> None:
    names = ("simcse", "mixcse", "barlow_twins", "random", "concat")
    before = {name: code_ids(method(name)) for name in names}
    scores = evaluation_ids(STSTask)
    assert before["simcse"][0] == "e3da8b74e1b9550d"  # as records of Python 3.11 have it
    assert scores[0] == "5c7f6cfc3387c99a"
    versions(nt_xent=2)
    assert {name for name in names if code_ids(method(name)) != before[name]} == {"simcse", "mixcse"}
    assert len(code_ids(method("simcse"))) == 1  # no other id is of the same code any more
    first = code_ids(method("simcse"))
    versions(nt_xent=3)
    assert code_ids(method("simcse")) != first
    assert evaluation_ids(STSTask) == scores
    versions(training=2)
    assert {name for name in names if code_ids(method(name)) != before[name]} == {"simcse", "mixcse", "barlow_twins"}
    versions(evaluation=2)
    assert {name for name in names if code_ids(method(name)) != before[name]} == set()
    assert evaluation_ids(STSTask) != scores


# No run of these was made before there were ledgers.
SINCE_THE_LEDGERS = {"infersent", "sbert", "skip_thought", "esimcse", "consert", "diffcse", "promptbert", "rankcse",
                     "model2vec", "llm2vec", "sncse", "dclr"}  # fmt: skip


def test_every_built_in_method_and_task_has_its_ids_of_before() -> None:
    for name in registry.names(registry.METHODS):
        kind = method(name)
        if kind.__module__.startswith("methods.") and name not in SINCE_THE_LEDGERS:
            assert len(set(code_ids(kind))) == 3, name  # of Python 3.11, 3.12 and 3.13


OTHERS_METHOD = '''
from dataclasses import dataclass
from foreign_package.helpers import scale
from methods.objectives import nt_xent
{version}
class Foreign:
    """Somebody's."""
    {attribute}
    def loss(self, a, b):
        return scale(nt_xent(a, b, temperature=0.05))
'''


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """The code id of a method of a package without a ledger, with this declared version and helper."""
    # A file written anew within a second, as long as before, would be read from its bytecode of before.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def made(attribute: str = "version = None", helper: str = "return 2 * x", unrelated: str = "x = 1") -> str:
        folder = tmp_path / "foreign_package"
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").write_text("")
        (folder / "helpers.py").write_text(f"def scale(x):\n    {helper}\n")
        (folder / "unrelated.py").write_text(unrelated)
        (folder / "method.py").write_text(OTHERS_METHOD.format(version="", attribute=attribute))
        for name in [name for name in sys.modules if name.startswith("foreign_package")]:
            del sys.modules[name]
        monkeypatch.syspath_prepend(str(tmp_path))
        invalidate_caches()
        module = import_module("foreign_package.method")
        code._ids.cache_clear()
        return code_ids(module.Foreign)[0]

    return made


def test_a_third_partys_code_counts_as_far_as_its_method_imports_it(foreign: Callable[..., str]) -> None:
    plain = foreign()
    assert foreign(helper='"""Twice."""\n    return 2 * x  # twice') == plain
    assert foreign(unrelated="x = 2") == plain
    assert foreign(helper="return 3 * x") != plain


def test_a_third_party_may_declare_versions_instead(foreign: Callable[..., str]) -> None:
    first = foreign(attribute="version = 1")
    assert foreign(attribute="version = 1", helper="return x + x") == first
    assert foreign(attribute="version = 2") != first


def test_a_third_party_rests_on_the_versions_of_what_it_imports(
    foreign: Callable[..., str], versions: Callable[..., None]
) -> None:
    before = foreign(attribute="version = 1")
    versions(nt_xent=2)
    assert foreign(attribute="version = 1") != before
    versions(barlow_twins_loss=2)
    assert foreign(attribute="version = 1") == before


def test_ids_do_not_depend_on_the_python_that_computes_them(tmp_path: Path) -> None:
    """The normal form has no field that a version of `ast` added, and none of its empty ones."""
    form = json.dumps(Review(kept_ledgers()).form("harness.training.loop").tree)
    assert '"type_params"' not in form
    assert '"ctx"' not in form


def test_ids_are_computed_without_the_slow_libraries() -> None:
    code = "import sys, harness.identity.code, harness.identity.review; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_ledgers_are_installed_with_their_packages() -> None:
    for package in PACKAGES:
        ledger = ledger_of(REPOSITORY / package)
        assert ledger is not None
        assert ledger.packages <= set(PACKAGES)
