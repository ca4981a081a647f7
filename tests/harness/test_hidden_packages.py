"""A folder of the user's own may have a methods.py: plug-ins are found all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with modules that have the names of our packages."""
    for name in ("methods", "reports", "studies"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong module')\n")
    return tmp_path


def python(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, check=False
    )


def test_the_command_runs_in_such_a_folder(folder: Path) -> None:
    done = python(folder, "-m", "harness", "list", "methods", "pooling")
    assert (done.returncode, done.stderr) == (0, "")
    assert "pooling" in done.stdout


def test_a_script_in_such_a_folder_has_the_plugins(folder: Path) -> None:
    ask = "from harness import registry as r; print(r.load(r.METHODS, 'pooling').name); import studies.samplers"
    done = python(folder, "-c", ask)
    assert (done.returncode, done.stdout, done.stderr) == (0, "pooling\n", "")


def test_a_module_that_was_imported_before_is_named_in_one_line(folder: Path) -> None:
    (folder / "methods.py").write_text("mine = 1\n")
    ask = "import methods; from harness.cli import main; raise SystemExit(main(['train', 'simcse', '--out', 'x']))"
    done = python(folder, "-c", ask)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert str(folder / "methods.py") in line
