"""The CSV files of published numbers."""

from __future__ import annotations

import csv
from pathlib import Path

from harness.errors import InputError
from harness.results.published import folders
from reports.papers.definition import Definition

Published = dict[str, str]


def published_file(definition: Definition, file: str = "") -> list[Published]:
    """The rows of a published CSV file: beside the definition, else in the packages that carry such files.

    Raises:
        InputError: no such file.
    """
    name = file or definition.published
    places = [definition.folder / name, *(folder / name for folder in folders())]
    path_there = next((path for path in places if path.is_file()), None)
    if path_there is None:
        raise InputError(f'definition "{definition.name}": no published file "{name}" beside it or in a package')
    return read_published(path_there)


def read_published(path: Path) -> list[Published]:
    """Raises:
    InputError: not a CSV file with the columns of published numbers.
    """
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            rows = [{k: v or "" for k, v in row.items() if k is not None} for row in csv.DictReader(stream)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read as CSV ({error})") from None
    wanted = {"table", "model", "base_model", "task", "metric", "value", "source_mark", "notes"}
    if rows and not wanted <= set(rows[0]):
        raise InputError(f"{path}: lacks the columns {', '.join(sorted(wanted - set(rows[0])))}")
    return rows
