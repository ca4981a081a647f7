"""What was measured: a file of lines, one for each quantity of a case."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

FILE = Path(__file__).with_name("measured.csv")
LIBRARIES = ("sentence-harness", "torch", "transformers", "mteb")


@dataclass(frozen=True)
class Evidence:
    """A measured quantity.

    Attributes:
        part, case, quantity: the table, line and column that it is in.
        value: what was measured.
        reference: what it is compared with, as published or computed by other code; None where the
            value says enough, such as a largest difference.
        date: of the measurement.
        versions: of the libraries that matter.
    """

    part: str
    case: str
    quantity: str
    value: float
    reference: float | None = None
    date: str = ""
    versions: str = ""


def describe_versions() -> str:
    """Return the versions of this package and of the libraries that compute.

    >>> describe_versions().split()[0]
    'sentence-harness'
    """
    return ", ".join(f"{name} {version(name)}" for name in LIBRARIES)


def read_evidence(file: Path = FILE) -> list[Evidence]:
    """Return every line of the file; none where it does not exist."""
    if not file.is_file():
        return []
    found = []
    with file.open(encoding="utf-8", newline="") as lines:
        for line in csv.DictReader(lines):
            numbers: dict[str, float | None] = {"value": float(line["value"])}
            numbers["reference"] = float(line["reference"]) if line["reference"] else None
            found.append(Evidence(**{**line, **numbers}))  # type: ignore[arg-type]
    return found


def write_evidence(lines: Iterable[Evidence], file: Path = FILE) -> None:
    """Write all lines, sorted, so that a case that is measured again changes its lines alone."""
    names = [field.name for field in fields(Evidence)]
    ordered = sorted(lines, key=lambda one: (one.part, one.case, one.quantity))
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(one) for one in ordered)


def save(new: Evidence, file: Path = FILE) -> Evidence:
    """Add a line with today's date and the versions, in place of one of the same quantity."""
    today = datetime.now(UTC).date().isoformat()
    dated = Evidence(**{**asdict(new), "date": today, "versions": describe_versions()})
    kept = [one for one in read_evidence(file) if _key(one) != _key(new)]
    write_evidence([*kept, dated], file)
    return dated


def cases_of(part: str, lines: Iterable[Evidence]) -> Iterator[str]:
    """Yield the cases of a part, each once, in the order of the file."""
    yield from dict.fromkeys(one.case for one in lines if one.part == part)


def _key(one: Evidence) -> tuple[str, str, str]:
    return one.part, one.case, one.quantity
