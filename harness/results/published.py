"""Published numbers by key: what papers print for a method, from folders that come in by an entry
point.

A package that carries such numbers names a folder (a Path) of CSV files under `harness.presets`.
Columns: paper, table, model, base_model, task, metric, value; a method card names rows as
"FILE:MODEL", e.g. "scd.csv:SCD-BERT_base".
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

from harness import registry
from harness.config import nearest
from harness.errors import InputError

PublishedRow = dict[str, str]


def published_rows(key: str) -> list[PublishedRow]:
    """The rows of "FILE:MODEL" in their order; of several packages with such a file, all.

    Raises:
        InputError: malformed key, unknown file, or a model that the file does not have (with the
            nearest one).
    """
    name, colon, model = key.partition(":")
    if not colon or not model:
        raise InputError(f'published row "{key}": expected FILE.csv:MODEL', key=key)
    places = [folder / name for folder in folders()]
    files = [path for path in places if path.is_file()]
    if not files:
        known = sorted(_file_names())
        raise InputError(
            f'published row "{key}": no file "{name}"{nearest(name, known)}; known: {", ".join(known)}',
            key=key,
        )
    rows = []
    for file in files:
        for row in _table(file):
            if row["model"] == model:
                rows.append(row)
    if not rows:
        names: set[str] = set()
        for file in files:
            names.update(row["model"] for row in _table(file))
        models = sorted(names)
        raise InputError(
            f'published row "{key}": {name} has no model "{model}"{nearest(model, models)}', key=key
        )
    return rows


def folders() -> list[Path]:
    """The folders of all installed packages that carry published numbers."""
    names = registry.names(registry.PRESETS)
    return [registry.load(registry.PRESETS, name) for name in names]


def _file_names() -> set[str]:
    names: set[str] = set()
    for folder in folders():
        names.update(path.name for path in folder.glob("*.csv"))
    return names


def summary(rows: list[PublishedRow]) -> list[str]:
    """One line for each paper, table and base model: where the values are, then "task value" in
    order.

    The metric is named where a line has one; a table that mixes metrics (MTEB's categories) says by
    its tasks what each number is.
    """
    lines: dict[tuple[str, ...], list[PublishedRow]] = {}
    for row in rows:
        key = (row["paper"], row["table"], row["base_model"])
        lines.setdefault(key, []).append(row)
    said = []
    for place, printed in lines.items():
        metrics = {row["metric"] for row in printed}
        parts = [*place]
        if len(metrics) == 1:
            parts += metrics
        where = " · ".join(part for part in parts if part)
        values = [f"{row['task']} {row['value']}" for row in printed]
        said.append(f"{where}: {', '.join(values)}")
    return said


@cache
def _table(file: Path) -> list[PublishedRow]:
    with file.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))
