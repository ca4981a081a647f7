"""A row with a grid becomes a row for each combination of its values."""

from __future__ import annotations

from copy import deepcopy
from itertools import product
from typing import Any

from harness.errors import InputError

_OF_A_ROW = ("preset", "family", "max_steps", "base_models")  # keys beside the config's that a grid may range over


def expanded(entries: list[Any], where: str) -> list[Any]:
    """The tables of `methods`, each one with a grid replaced by its combinations, the last key changing fastest.

    A key of the grid is one of the method's config, of the row itself (preset, max_steps, ...) or of its corpus
    (`"corpus.limit"`). Anything else that is wrong is left to who validates the tables.

    Raises:
        InputError: a grid without values, or over a corpus that the row does not name.
    """
    rows = []
    for number, entry in enumerate(entries, 1):
        grid = entry.get("grid") if isinstance(entry, dict) else None
        if not grid or not isinstance(grid, dict) or not _well_formed(entry):
            rows.append(entry)
            continue
        label = entry.get("name") or entry.get("method")
        for key, values in grid.items():
            if not isinstance(values, list) or not values:
                raise InputError(
                    f'{where}: methods[{number}] ({label}): grid: key "{key}": expected a list of values, as '
                    "grid = { dropout = [0.1, 0.2] }"
                )
        rows += [_row(entry, dict(zip(grid, values, strict=True)), where) for values in product(*grid.values())]
    return rows


def _well_formed(entry: dict[str, Any]) -> bool:
    """Can values be put into its tables?"""
    return isinstance(entry.get("config", {}), dict) and isinstance(entry.get("corpus", ""), (str, dict))


def _row(entry: dict[str, Any], values: dict[str, Any], where: str) -> dict[str, Any]:
    """One combination."""
    row = deepcopy({key: value for key, value in entry.items() if key != "grid"})
    name = str(entry.get("name") or entry.get("method"))
    unsaid = []
    for key, value in values.items():
        said = f"{value:g}" if isinstance(value, float) else str(value)
        if f"{{{key}}}" in name:
            name = name.replace(f"{{{key}}}", said)
        else:
            unsaid.append(f"{key} {said}")
        of_corpus = key.removeprefix("corpus.")
        if of_corpus != key:
            if not row.get("corpus"):
                raise InputError(f'{where}: row "{name}": grid over "{key}": give the row a corpus of its own')
            corpus = row["corpus"]
            row["corpus"] = {**({"uri": corpus} if isinstance(corpus, str) else corpus), of_corpus: value}
        elif key in _OF_A_ROW:
            row[key] = value
        else:
            row["config"] = {**row.get("config", {}), key: value}
    row["name"] = " · ".join([name, *([", ".join(unsaid)] if unsaid else [])])
    return row
