"""A release: what the wheel holds, where the version and the address are, what the workflows do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness import __version__
from tools import release

REPOSITORY = Path(__file__).parents[1]
PACKAGES = ("harness", "methods", "studies", "reports")
WORKFLOWS = sorted((REPOSITORY / ".github" / "workflows").glob("*.yml"))
BUILD = """
from setuptools import build_meta
build_meta.build_wheel("dist")
build_meta.build_sdist("dist")
"""
NOT_SHIPPED = {"reports/images/report.png"}  # the picture in README.md


def tracked(*under: str) -> list[str]:
    """The files of the repository below some folders, as git knows them."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *under],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
        text=True,
    )
    names = listed.stdout.split("\0")
    return [name for name in names if name and (REPOSITORY / name).is_file()]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source archive, built from a copy."""
    folder = tmp_path_factory.mktemp("release")
    for name in tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, folder / name)
    done = subprocess.run(
        [sys.executable, "-c", BUILD], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder / "dist"


def wheel_of(built: Path) -> Path:
    (wheel,) = built.glob("*.whl")
    return wheel


def test_the_wheel_has_every_file_of_the_packages_and_nothing_else(built: Path) -> None:
    with zipfile.ZipFile(wheel_of(built)) as wheel:
        names = set(wheel.namelist())
    about = {name for name in names if ".dist-info/" in name}
    assert names - about == set(tracked(*PACKAGES)) - NOT_SHIPPED
    assert {Path(name).name for name in about} >= {"METADATA", "entry_points.txt", "LICENSE"}


def test_the_source_archive_has_the_same_files_and_no_tests(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        names = {name.partition("/")[2] for name in files.getnames() if not name.endswith(".py")}
        every = {name.partition("/")[2].partition("/")[0] for name in files.getnames()}
    data = {name for name in tracked(*PACKAGES) if not name.endswith(".py")}
    assert data - NOT_SHIPPED <= names
    assert not every & {"tests", "tools", "docs", "build", ".github"}


def test_the_installed_wheel_plans_the_demo_from_an_empty_folder(
    built: Path, tmp_path: Path
) -> None:
    site, empty = tmp_path / "site", tmp_path / "empty"
    empty.mkdir()
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    target = ["--no-index", "--no-deps", "--no-compile", "--target", str(site)]
    subprocess.run([*install, *target, str(wheel_of(built))], check=True, capture_output=True)
    where = {**os.environ, "PYTHONPATH": str(site), "COLUMNS": "200"}
    code = "import harness, sys; from harness.cli import main; print(harness.__file__); sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "compare", "demo", "--dry-run"],
        cwd=empty,
        env=where,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(site / "harness"))
    assert "Barlow Twins (shuffle)" in done.stdout


def test_the_version_is_written_in_one_place(built: Path) -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" in project["project"]["dynamic"]
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))
    assert not {"version", "date-released", "doi", "repository-code", "url"} & citation.keys()
    assert f"-{__version__}-" in wheel_of(built).name
    changelog = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## \[(.+?)\]", changelog, re.MULTILINE)
    assert newest is not None
    assert __version__.partition(".dev")[0] == newest[1], "the changelog begins with this version"


def test_every_address_of_the_repository_is_that_of_pyproject() -> None:
    addresses: dict[str, set[str]] = {}
    owner = re.compile(r"[\w.-]+/sentence-harness\b")
    for name in tracked():
        if Path(name).suffix not in (".md", ".yml", ".toml", ".ipynb", ".cff", ".py"):
            continue
        text = (REPOSITORY / name).read_text(encoding="utf-8")
        for found in re.findall(r"(?:github\.com/|uses: |/github/)" + owner.pattern, text):
            match = owner.search(found)
            assert match is not None
            addresses.setdefault(match[0], set()).add(name)
    assert list(addresses) == [release.address().removeprefix("https://github.com/")]


def test_pages_install_from_the_repository_until_there_is_a_release() -> None:
    """`pip install "sentence-harness[extra]"` is right everywhere: it completes what is installed."""
    plain = re.compile(r"pip install (?:-U |--upgrade )?[\"']?sentence-harness(?!\[|\w| @)")
    pages = [name for name in tracked() if Path(name).suffix in (".md", ".ipynb", ".py")]
    found = [
        name
        for name in pages
        if name != "tests/test_release.py"
        and plain.search((REPOSITORY / name).read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("tag", "version", "changelog", "repository", "count"),
    [
        ("v1.2.0", "1.2.0", "## [1.2.0] - 2026-12-01\n", "https://github.com/a/b", 0),
        ("1.2.0", "1.2.0", "## [1.2.0] - 2026-12-01\n", "https://github.com/a/b", 1),
        ("v1.2.0", "1.2.0", "## [1.2.0] - unreleased\n", "https://github.com/a/b", 1),
        ("v1.2.0", "1.2.0", "## [1.20] - 2026-12-01\n", "https://github.com/OWNER/b", 2),
        ("v1.2.0.dev0", "1.2.0.dev0", "## [1.2.0.dev0] - 2026-12-01\n", "https://x.org/a/b", 1),
    ],
)
def test_a_tag_is_published_only_if_everything_agrees_with_it(
    tag: str, version: str, changelog: str, repository: str, count: int
) -> None:
    assert len(release.faults_of(tag, version, changelog, repository)) == count


def jobs_of(file: Path) -> dict[str, Any]:
    jobs: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))["jobs"]
    return jobs


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_workflows_read_only_and_end(file: Path) -> None:
    """`actionlint` checks the rest, in the job `workflows`."""
    text = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert text["permissions"] == {"contents": "read"}
    for job in text["jobs"].values():
        assert job["timeout-minutes"] <= 120
        assert set(job.get("permissions", {})) <= {"id-token"}
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step)
            assert re.fullmatch(r"[\w-]+/[\w-]+@[\w/.-]+", step.get("uses", "a/b@v1"))


def test_what_is_published_was_tried_before_and_needs_no_password() -> None:
    jobs = jobs_of(REPOSITORY / ".github" / "workflows" / "release.yml")
    publish, tried = jobs["publish"], jobs["try-the-wheel"]
    assert publish["needs"] == "try-the-wheel"
    assert tried["needs"] == "build"
    assert publish["permissions"] == {"id-token": "write"}
    assert "tag" in publish["if"]
    assert not any("checkout" in step.get("uses", "") for step in tried["steps"])
    assert "secrets." not in str(jobs)


def test_the_workflows_try_what_the_package_promises() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    promised = {
        line.rpartition(" ")[2]
        for line in project["classifiers"]
        if re.search(r"Python :: 3\.\d", line)
    }
    for name, job in (("test", "other-versions"), ("release", "try-the-wheel")):
        cells = jobs_of(REPOSITORY / ".github" / "workflows" / f"{name}.yml")[job]["strategy"]
        included = cells["matrix"]["include"]
        assert {cell["python"] for cell in included} == promised
        assert {cell["os"] for cell in included} == {"ubuntu-latest", "macos-latest"}
