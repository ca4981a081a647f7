"""Tests which files the version of a method's or a task's code covers."""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from harness import registry
from harness.errors import InputError
from harness.results.code import Code, method_code, task_code

METHOD = """\
{imports}
from methods.pooling import PoolingMethod

class Mine({parent}):
    name = "mine"
    {body}
"""
PLAIN: dict[str, str] = {"imports": "", "parent": "PoolingMethod", "body": "pass"}

# name -> (files of the plugin, what is edited, its text then)
COVERED: dict[str, tuple[dict[str, str], str, str]] = {
    "a helper in the same folder": (
        {
            "mine.py": METHOD.format(**{**PLAIN, "imports": "from aid import DIMS"}),
            "aid.py": "DIMS = 1\n",
        },
        "aid.py",
        "DIMS = 2\n",
    ),
    "a helper of a helper": (
        {
            "mine.py": METHOD.format(**{**PLAIN, "imports": "import aid"}),
            "aid.py": "import deeper\n",
            "deeper.py": "DIMS = 1\n",
        },
        "deeper.py",
        "DIMS = 2\n",
    ),
    "a helper that is imported where it is used": (
        {
            "mine.py": METHOD.format(
                **{**PLAIN, "body": "def fit(self, *a):\n        from aid import DIMS"}
            ),
            "aid.py": "DIMS = 1\n",
        },
        "aid.py",
        "DIMS = 2\n",
    ),
    "a helper that is imported by a function": (
        {
            "mine.py": METHOD.format(
                **{**PLAIN, "imports": "import importlib\naid = importlib.import_module('aid')"}
            ),
            "aid.py": "DIMS = 1\n",
        },
        "aid.py",
        "DIMS = 2\n",
    ),
    "from . import of a package": (
        {
            "mine/__init__.py": METHOD.format(**{**PLAIN, "imports": "from . import aid"}),
            "mine/aid.py": "DIMS = 1\n",
        },
        "mine/aid.py",
        "DIMS = 2\n",
    ),
    "a parent's folder": (
        {
            "mine/__init__.py": METHOD.format(
                **{**PLAIN, "imports": "from .deep.aid import DIMS"}
            ),
            "mine/deep/__init__.py": "",
            "mine/deep/aid.py": "from ..other import DIMS\n",
            "mine/other.py": "DIMS = 1\n",
        },
        "mine/other.py",
        "DIMS = 2\n",
    ),
    "the package's own __init__": (
        {
            "mine/__init__.py": "from .real import Mine\n",
            "mine/real.py": METHOD.format(**PLAIN),
        },
        "mine/__init__.py",
        "from .real import Mine\nMine.scale = 2\n",
    ),
    "a parent class": (
        {
            "mine.py": METHOD.format(
                **{**PLAIN, "imports": "import base", "parent": "base.Base"}
            ),
            "base.py": "from methods.pooling import PoolingMethod\nclass Base(PoolingMethod):\n    x = 1\n",
        },
        "base.py",
        "from methods.pooling import PoolingMethod\nclass Base(PoolingMethod):\n    x = 2\n",
    ),
    "a data file": (
        {
            "mine.py": METHOD.format(**{**PLAIN, "body": "data_files = ('table.txt',)"}),
            "table.txt": "1\n",
        },
        "table.txt",
        "2\n",
    ),
    "a file in a data folder": (
        {
            "mine.py": METHOD.format(**{**PLAIN, "body": "data_files = ('tables',)"}),
            "tables/a/one.bin": "1\n",
        },
        "tables/a/one.bin",
        "2\n",
    ),
    "a data file of a parent": (
        {
            "mine.py": METHOD.format(
                **{**PLAIN, "imports": "import base", "parent": "base.Base"}
            ),
            "base.py": "from methods.pooling import PoolingMethod\n"
            "class Base(PoolingMethod):\n    data_files = 'table.txt'\n",
            "table.txt": "1\n",
        },
        "table.txt",
        "2\n",
    ),
}  # fmt: skip


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def imported(folder: Path, module: str = "mine", name: str = "Mine") -> Any:
    """Return a class of a folder as a new process would import it."""
    forget_modules(folder)
    importlib.invalidate_caches()
    return getattr(importlib.import_module(module), name)


def forget_modules(folder: Path) -> None:
    for known, there in list(sys.modules.items()):
        if (getattr(there, "__file__", None) or "").startswith(str(folder)):
            del sys.modules[known]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path of imports, without byte code."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    forget_modules(tmp_path)


@pytest.mark.parametrize("case", COVERED)
def test_an_edit_of_what_a_method_uses_is_another_version(case: str, folder: Path) -> None:
    files, edited, text = COVERED[case]
    write(folder, files)
    write(folder, {"unused.py": "x = 1\n", "notes.txt": "1"})
    before = method_code(imported(folder))
    write(folder, {"unused.py": "x = 2\n", "notes.txt": "2"})
    assert method_code(imported(folder)) == before
    write(folder, {edited: text})
    after = method_code(imported(folder))
    assert after.version != before.version
    names = [name for name in after.files if after.files[name] != before.files.get(name)]
    assert names == [edited]


def test_a_method_of_one_file_has_the_hash_of_that_file(folder: Path) -> None:
    text = "class Mine:\n    name = 'mine'\n"
    write(folder, {"mine.py": text})
    assert method_code(imported(folder)).version == hashlib.sha256(text.encode()).hexdigest()[:16]


def test_a_declared_version_wins_and_that_of_a_parent_is_covered(folder: Path) -> None:
    write(folder, {"mine.py": METHOD.format(**{**PLAIN, "body": "version = 3"})})
    assert method_code(imported(folder)) == Code(3)
    write(folder, {"mine.py": METHOD.format(**PLAIN)})
    kind = imported(folder)
    before = method_code(kind)
    parent = registry.load(registry.METHODS, "pooling")
    version = parent.version
    try:
        parent.version = version + 1
        assert method_code(kind).version != before.version
    finally:
        parent.version = version


def test_a_data_file_that_is_missing_is_named(folder: Path) -> None:
    write(folder, {"mine.py": METHOD.format(**{**PLAIN, "body": "data_files = ('table.txt',)"})})
    with pytest.raises(InputError) as raised:
        method_code(imported(folder))
    assert raised.value.key == "data_files"
    assert Path(str(raised.value.file)) == folder / "table.txt"


def test_a_file_that_changed_after_its_import_is_refused_and_identified_as_imported(
    folder: Path,
) -> None:
    write(folder, COVERED["a helper in the same folder"][0])
    kind = imported(folder)
    before = method_code(kind)
    before.check_current()
    write(folder, {"aid.py": "DIMS = 2\n"})
    assert method_code(kind).version == before.version, "the process computes as before"
    with pytest.raises(InputError) as raised:
        method_code(kind).check_current()
    assert Path(str(raised.value.file)) == folder / "aid.py"
    fresh = imported(folder)
    method_code(fresh).check_current()
    assert method_code(fresh).version != before.version


def test_a_task_of_a_plugin_covers_its_code_and_shipped_ones_have_version_1(folder: Path) -> None:
    from harness.tasks.catalogue import resolve_tasks

    (shipped,) = resolve_tasks(["Embedded-STS-natural"])
    assert task_code(shipped) == Code(1)
    files = {
        "words.py": "import aid\nclass Words:\n    name = 'words'\n",
        "aid.py": "CUT = 1\n",
    }
    write(folder, files)
    before = task_code(imported(folder, "words", "Words")())
    write(folder, {"aid.py": "CUT = 2\n"})
    after = task_code(imported(folder, "words", "Words")())
    assert before.version != after.version
    assert before.files.keys() == {"words.py", "aid.py"}
    write(folder, {"words.py": files["words.py"] + "    version = 4\n"})
    assert task_code(imported(folder, "words", "Words")()) == Code(4)


def test_what_a_typed_class_uses_of_other_cells_is_covered(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from IPython.core.interactiveshell import InteractiveShell

    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    shell = InteractiveShell()
    shell.run_cell("class Typed:\n    def loss(self):\n        return half(SIZE)\n")
    versions = []
    for cell in (
        "SIZE = 1\nunused = 1",
        "SIZE = 2",
        "unused = 2",
        "def half(x):\n    return x / 2",
        "def half(x):\n    return x / 2 + 1",
        "x = 7",
    ):
        shell.run_cell(cell, store_history=True)
        versions.append(method_code(shell.user_ns["Typed"]).version)
    same = [a == b for a, b in pairwise(versions)]
    assert same == [False, True, False, False, True]


def test_tables_and_arrays_of_other_cells_are_covered_in_any_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from IPython.core.interactiveshell import InteractiveShell

    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    shell = InteractiveShell()
    shell.run_cell(
        "import numpy, torch\nWEIGHTS = {'a': [1]}\nSTOP = {'a', 'b', 'c'}\nA = numpy.ones(2)\n"
        "T = torch.ones(2, dtype=torch.bfloat16)\n"
        "S = torch.ones(2).to_sparse()\nLOOP = [1]\nLOOP.append(LOOP)\n"
        "class Typed:\n    def loss(self):\n        return WEIGHTS, STOP, A, T, S, LOOP, print\n"
    )
    kind = shell.user_ns["Typed"]
    files = method_code(kind).files
    assert {name for name in files if name.startswith("value of ")} == {
        "value of A",
        "value of LOOP",
        "value of S",
        "value of STOP",
        "value of T",
        "value of WEIGHTS",
    }
    changes = ("WEIGHTS['a'][0] = 2", "STOP.add('d')", "A[0] = 2", "T[1] = 3", "S = 2 * S")
    for change in (*changes, "LOOP[0] = 2"):
        before = method_code(kind).version
        shell.run_cell(change)
        assert method_code(kind).version != before
    shell.run_cell("STOP = {'c', 'b'} | {'a', 'd'}")
    assert "value of STOP" in files
    stop = method_code(kind).files["value of STOP"]
    shell.run_cell("STOP = set(reversed(sorted(STOP)))")
    assert method_code(kind).files["value of STOP"] == stop
