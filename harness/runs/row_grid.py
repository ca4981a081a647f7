"""A grid in a row of an experiment file: a row for each combination of its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from itertools import product
from typing import Any

from harness.errors import InputError

_GRID_KEYS = ("preset", "family", "base_models")  # of the row itself, not of its config


def expand_grid(
    entry: dict[str, Any],
    grid: Mapping[str, Sequence[Any]],
    place: str,
) -> list[dict[str, Any]]:
    """Return a table of `methods` for each combination of its grid, the last key changing fastest.

    A key of the grid is one of the method's config, of the row itself (preset, family, base_models)
    or of its corpus (`"corpus.limit"`).

    Args:
        place: of the row in its file, for messages.

    Raises:
        InputError: a key that has a value in the row too, or a grid over a corpus that the row does
            not name.
    """
    over_corpora = any(key.startswith("corpus.") for key in grid)
    if over_corpora and not entry.get("corpus"):
        raise InputError(
            'key "grid": over a corpus',
            file=place,
            key="grid",
            remedy="give the row a corpus of its own",
        )
    for key in grid:
        if _is_given(entry, key):
            raise InputError(
                f'key "{key}": has one value, and several in the grid of the row',
                file=place,
                key=key,
                remedy="leave one of them out, or set the grid (--set methods.ROW.grid.KEY=[...])",
            )
    rows = []
    for values in product(*grid.values()):
        rows.append(_grid_row(entry, dict(zip(grid, values, strict=True))))
    return rows


def _is_given(entry: dict[str, Any], key: str) -> bool:
    """True if a row has a value of its own for a key of its grid."""
    if key in _GRID_KEYS:
        return bool(entry.get(key))
    if not key.startswith("corpus."):
        return key in entry.get("config", {})
    corpus = entry["corpus"]
    if isinstance(corpus, dict):
        return key.removeprefix("corpus.") in corpus
    return key == "corpus.uri"


def _grid_row(entry: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """Return the row of one combination."""
    plain = {key: value for key, value in entry.items() if key != "grid"}
    row = deepcopy(plain)
    name = str(entry.get("name") or entry["method"])
    rest = []
    for key, value in values.items():
        text = str(value)
        if isinstance(value, float) and float(f"{value:g}") == value:
            text = f"{value:g}"
        if f"{{{key}}}" in name:
            name = name.replace(f"{{{key}}}", text)
        else:
            rest.append(f"{key} {text}")
        if key.startswith("corpus."):
            if isinstance(row["corpus"], dict):
                corpus = row["corpus"]
            else:
                corpus = {"uri": row["corpus"]}
            row["corpus"] = {**corpus, key.removeprefix("corpus."): value}
        elif key in _GRID_KEYS:
            row[key] = value
        else:
            row.setdefault("config", {})[key] = value
    if values:
        parts = [name, ", ".join(rest)]
        row["name"] = " · ".join(filter(None, parts))
    return row
