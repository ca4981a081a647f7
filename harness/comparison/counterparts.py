"""The untrained counterpart of every trained row: what it starts from, evaluated beside it, so that its gain is known.

Same base model, same pooling, same text length, and nothing learnt (`Method.untrained` says which row that is). Rows
with an equal start share one; where the file holds such a row, that is the one, and none is added.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness import registry
from harness.comparison.rows import Row
from harness.errors import InputError
from harness.method import Method

Blocks = tuple[str, ...]


def with_counterparts(rows: Sequence[Row]) -> list[Row]:
    """The rows and, after them, the untrained starts that the file does not hold (`Row.counterpart`).

    A start stands in the blocks of all rows that start from it. One of the file that lacks some of these gets them.
    """
    wanted: dict[str, tuple[Row, list[Row]]] = {}  # start -> it, and the rows that start from it
    for row in rows:
        if (start := start_of(row)) is not None:
            wanted.setdefault(key_of(start), (start, []))[1].append(row)
    made = list(rows)
    taken = {row.label for row in rows}
    names: dict[str, str] = {}  # start, whatever its base model -> its label
    for key, (start, trained) in wanted.items():
        blocks = tuple(dict.fromkeys(b for row in trained for some in row.seeds.values() for b in some))
        place = next((i for i, row in enumerate(made) if not row.fault and key_of(row) == key), None)
        if place is not None:
            made[place] = replace(made[place], seeds=_in_blocks(made[place].seeds, blocks))
            continue
        anywhere = key_of(replace(start, base_model=""))
        if anywhere not in names:
            names[anywhere] = next(name for name in _names(start, trained[0]) if name not in taken)
            taken.add(names[anywhere])
        made.append(replace(start, label=names[anywhere], seeds={next(iter(trained[0].seeds)): blocks}))
    return made


def start_of(row: Row) -> Row | None:
    """The untrained row that a row starts from, under its own label; None where there is none, or it cannot be run.

    Also where its method is not installed: then no row has a start, and the report says so.
    """
    if row.fault:
        return None
    found = row.method.untrained(row.config)
    if found is None:
        return None
    name, values = found
    try:
        method: type[Method] = registry.load(registry.METHODS, name)
        config = method.configure(values, base_model=row.base_model, where=f'the untrained start of "{row.label}"')
    except InputError:
        return None
    return Row(row.label, method, row.base_model, config, None, counterpart=True)


def key_of(row: Row) -> str:
    """Equal for rows that are one start."""
    what = [row.method.name, row.base_model, row.config.for_id()]
    return json.dumps(what, sort_keys=True, default=str)


def _in_blocks(seeds: Mapping[int, Blocks], blocks: Blocks) -> Mapping[int, Blocks]:
    """The seeds of a row that stands in further blocks: its first run does, for it has no other that differs."""
    there = {block for some in seeds.values() for block in some}
    first = next(iter(seeds))
    more = tuple(block for block in blocks if block not in there)
    return {**seeds, first: (*seeds[first], *more)} if more else seeds


def _names(start: Row, trained: Row) -> list[str]:
    """What an added start may be called, the shortest name first."""
    config: Any = start.config
    layer = ", from the embedding block" if config.pooling == "first_last_avg" and config.first_layer == 0 else ""
    length = f", {config.max_length} word pieces" if config.max_length is not None else ""
    named = [] if config.pooling == "none" else [f"untrained ({config.pooling}{layer}{length})"]
    other = f"untrained start of {trained.label}"
    return [*named, other, *(f"{other} ({number})" for number in range(2, 100))]
