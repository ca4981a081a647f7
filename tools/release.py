"""`python -m tools.release TAG`: check that a tag may be published.

Exit code 0 if version, changelog and addresses agree with it, else 1, with a line for each fault.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

from harness import __version__

REPOSITORY = Path(__file__).parents[1]
PLACEHOLDER = "OWNER"
"""The owner of the repository, in every address, until it has one."""


def address() -> str:
    """Return the address of the repository, from pyproject.toml, the one place that decides it."""
    text = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    found: str = tomllib.loads(text)["project"]["urls"]["Repository"]
    return found


def faults_of(tag: str, version: str, changelog: str, repository: str) -> list[str]:
    """Return what forbids a release, a line each.

    Args:
        tag: such as "v0.2.0".
        version: that of the package.
        changelog: the text of CHANGELOG.md.
        repository: the address of the repository.

    >>> faults_of("v1.0.0", "1.0.0", "## [1.0.0] - 2026-01-31", "https://github.com/a/b")
    []
    """
    faults = []
    if tag != f"v{version}":
        faults.append(f"the tag {tag} is not v{version}, the version in harness/__init__.py")
    if not re.fullmatch(r"\d+\.\d+\.\d+(rc\d+)?", version):
        faults.append(f"{version} is the version of a state between releases")
    dated = re.compile(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", re.MULTILINE)
    if not dated.search(changelog):
        faults.append(f"CHANGELOG.md has no section [{version}] with a date")
    if f"/{PLACEHOLDER}/" in repository:
        faults.append(f"pyproject.toml names no repository yet: {repository}")
    return faults


def main(tag: str) -> int:
    """Print the faults; 1 if there are any."""
    changelog = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    faults = faults_of(tag, __version__, changelog, address())
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
