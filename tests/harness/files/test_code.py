"""Which files are the code of a user's module: those of installed packages are not, wherever they
are installed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.files.code import find_sources, is_library


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A folder of the user and one of installed packages that is none of this Python's."""
    mine = tmp_path / "mine"
    installed = tmp_path / "lib" / "python3" / "site-packages"
    for folder in (mine, installed):
        folder.mkdir(parents=True)
        monkeypatch.syspath_prepend(str(folder))
    return mine, installed


def test_packages_of_another_environment_are_no_code_of_the_user(
    folders: tuple[Path, Path],
) -> None:
    mine, installed = folders
    (installed / "a_library.py").write_text("VALUE = 1\n")
    (mine / "a_helper.py").write_text("import a_library\n")
    (mine / "a_loss.py").write_text("import a_helper\nimport a_library\n")
    assert set(find_sources(["a_loss"])) == {"a_loss", "a_helper"}
    assert is_library(installed / "a_library.py")
    assert not is_library(mine / "a_loss.py")


def test_a_package_without_init_below_one_that_is_not_imported(folders: tuple[Path, Path]) -> None:
    mine, _ = folders
    inner = mine / "a_package" / "without_init"
    inner.mkdir(parents=True)
    (mine / "a_package" / "__init__.py").write_text("")
    (inner / "deep.py").write_text("VALUE = 1\n")
    (mine / "a_loss_too.py").write_text("from a_package.without_init import deep\n")
    found = set(find_sources(["a_loss_too"]))
    assert {"a_loss_too", "a_package"} <= found
