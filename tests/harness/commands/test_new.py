"""`harness new`: what it writes is installed as it says, and its own tests pass."""

from __future__ import annotations

import importlib
import os
import site
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest

from harness import registry
from harness.cli import main
from harness.commands.new import package_files
from harness.tasks import catalogue
from tests.support.errors import raises_input_error
from tests.support.forks import run_fork

REPOSITORY = Path(__file__).parents[3]
NAMES = {"method": "own_contrast", "task": "own-order"}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a fresh environment, which sees the libraries of this one and this checkout."""
    folder = tmp_path_factory.mktemp("environment")
    venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = folder / "lib" / version / "site-packages"
    (site / "shared.pth").write_text(f"{REPOSITORY}\n{sysconfig.get_path('purelib')}\n")
    return folder / "bin" / "python"


def test_the_packages_are_installed_and_their_tests_pass(
    python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    editable, folders = [], []
    for kind, name in NAMES.items():
        assert main(["new", kind, name]) == 0
        folder = str(tmp_path / name)
        editable += ["-e", folder]
        folders.append(folder)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONPATH", None)
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-index"]
    options = ["--quiet", "--no-deps", "--no-build-isolation", *editable]
    done = subprocess.run(
        [*install, *options],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (packages,) = python.parents[1].glob("lib/python*/site-packages")
    output = tmp_path / "output.txt"
    code = run_fork(_run_tests, packages, folders, output)
    assert code == 0, output.read_text()
    assert "6 passed" in output.read_text()


def _run_tests(packages: Path, folders: list[str], output: Path) -> None:
    """End this process, which is a fork, as pytest does in the environment of those packages.

    It has imported the libraries, and forgets what it knows of plugins.
    """
    stream = os.open(output, os.O_CREAT | os.O_WRONLY)
    for number in (1, 2):
        os.dup2(stream, number)
    sys.stdout = sys.__stdout__
    sys.stderr = sys.__stderr__
    site.addsitedir(str(packages))
    importlib.invalidate_caches()
    registry._read_entry_points.cache_clear()
    catalogue.offers.cache_clear()
    code = pytest.main(["-q", "-p", "no:cacheprovider", *folders])
    sys.stdout.flush()
    os._exit(code)


@pytest.mark.parametrize("kind", list(NAMES))
def test_the_files_name_what_they_are(kind: str) -> None:
    files = package_files(kind, "my-thing")
    project = tomllib.loads(files["pyproject.toml"])
    assert project["project"]["entry-points"][f"harness.{kind}s"] == {
        "my-thing": "my_thing:MyThing"
    }
    assert set(files) == {"README.md", "my_thing.py", "pyproject.toml", "test_my_thing.py"}
    compile(files["my_thing.py"], "my_thing.py", "exec")


@pytest.mark.parametrize(
    "name",
    [
        "My",
        "1st",
        "a b",
        "../up",
        "class",
        "torch",
        "simcse",
        "os",
        "a" * 61,
        "x\x1b[31m",
        "a--b",
        "",
    ],
)
def test_names_that_cannot_be_used_write_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with raises_input_error(key="NAME"):
        _run("method", name, tmp_path / "out")
    assert not any(tmp_path.iterdir())


def test_a_folder_that_exists_is_never_written_to(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("text")
    with raises_input_error(file=tmp_path):
        _run("method", "own_contrast", tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def _run(kind: str, name: str, out: Path) -> int:
    from harness.cli import build_parser

    args = build_parser().parse_args(["new", kind, name, "--out", str(out)])
    code: int = args.run(args)
    return code
