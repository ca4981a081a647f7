"""What a finished run's files held when its record was written: damage to them is noticed, not scored or drawn."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from harness.results.card_files import CARD_FILES
from harness.results.run_folder import RunFolder

MODEL = "model/"


def weights(folder: RunFolder) -> dict[str, str]:
    """Name in the run's folder -> sha256 of every file of its saved model, but the card, which people may edit."""
    files = sorted(f for f in folder.model.rglob("*") if f.is_file() and f.name not in CARD_FILES)
    return {f.relative_to(folder.path).as_posix(): _sha256(f) for f in files}


def results(folder: RunFolder) -> dict[str, str]:
    """Name -> sha256 of the pairs, outcomes, sample, figures and curve, as far as there are any."""
    files = (folder.pairs_file, folder.outcomes_file, folder.sample_file, folder.figures_file, folder.curves_file)
    return {f.name: _sha256(f) for f in files if f.is_file()}


def changed(folder: RunFolder, expected: dict[str, str]) -> Iterator[str]:
    """The names of those files that are there, and are not as `expected`; they are read one by one."""
    for name, digest in expected.items():
        file = folder.path / name
        if file.is_file() and _sha256(file) != digest:
            yield name


def lost(folder: RunFolder, expected: dict[str, str]) -> list[str]:
    """The names of those files that are not there any more."""
    return [name for name in expected if not (folder.path / name).is_file()]


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
