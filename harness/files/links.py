"""Links in a work directory, which may come from somebody else: nothing is written or removed
through one that leads out of it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from harness.errors import InputError

_RUNS = "runs"
_RUN = re.compile(r"[0-9a-f]{8,64}|\..*")  # what a folder of runs holds: ids, and hidden leftovers
_DEEP = ("reports", "cache", "comparisons", "plans", "mlartifacts")
_FILES = ("mlflow.db", "studies.journal", "measurements.json", "gate.jsonl", "progress.json")
_OWN = (*_DEEP, _RUNS, *_FILES, "progress.html")


def refuse_links(workdir: Path) -> None:
    """Refuse links that lead out of a work directory, among what the program writes there.

    Runs may be elsewhere, on a larger disk: `runs` may be a link to a folder that holds nothing but
    runs. Folders of runs are checked when one is written (`refuse_links_below`).

    Raises:
        InputError: a file or folder of the program is a link that leads out.
    """
    for name in _OWN:
        path = workdir / name
        if name == _RUNS and path.is_symlink() and _has_runs_only(path):
            continue
        refuse_link(path, workdir)
    for path in workdir.glob(".*"):
        refuse_link(path, workdir)
    for name in _DEEP:
        refuse_links_below(workdir / name, workdir)


def refuse_links_below(folder: Path, root: Path | None = None) -> None:
    """Refuse links below a folder, at any depth, that lead out of `root` (the folder itself).

    Raises:
        InputError: there is one.
    """
    for path in _links_below(folder):
        refuse_link(path, folder if root is None else root)


def real_path(path: Path) -> Path:
    """Return the whole path once links are followed; a link to itself stays as it is.

    `Path.resolve` raises a RuntimeError for such a link.
    """
    return Path(os.path.realpath(path))


def is_inside(path: Path, folder: Path) -> bool:
    """True if what a path names lies below a folder once links are followed, or is nothing: a link
    to itself leads nowhere.
    """
    try:
        path.resolve()
    except (OSError, RuntimeError):
        return True
    return real_path(path).is_relative_to(real_path(folder))


def refuse_link(path: Path, root: Path) -> None:
    """Refuse a link that leads out of `root`.

    Raises:
        InputError: it does.
    """
    if path.is_symlink() and not is_inside(path, root):
        target = os.readlink(path)
        raise InputError(
            f"is a link to {target}, and nothing is written through a link that leads out",
            file=path,
            remedy="remove the link, or put what it names in its place",
        )


def _links_below(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place, name)
            if path.is_symlink():
                yield path


def _has_runs_only(path: Path) -> bool:
    try:
        names = os.listdir(path)
        return all(_RUN.fullmatch(name) for name in names)
    except OSError:
        return False
