"""Which rows a figure or a table has room for."""

from __future__ import annotations

from collections.abc import Sequence

from reports.read.comparison_runs import ResultRow
from reports.stats.targets import Target

ROOM = 12  # panels, or lines in one panel, that a reader can still tell apart


def rows_shown(rows: Sequence[ResultRow], target: Target | None, room: int = ROOM) -> tuple[list[ResultRow], str]:
    """At most `room` of the rows, in their order, and a sentence for the caption about the others ("" if none).

    The best by `target` (the first, without one) are shown, and always the best untrained row: what the others are to
    be seen against.
    """
    if len(rows) <= room:
        return list(rows), ""
    scores = {row.key: value for row in rows if target and (value := target.value(row)) is not None}
    best = sorted(rows, key=lambda row: -scores.get(row.key, -1e9))
    kept = best[:room]
    untrained = next((row for row in best if row.supervision == "untrained"), None)
    if untrained is not None and untrained not in kept:
        kept[-1] = untrained
    keys = {row.key for row in kept}
    others = ", ".join(row.label for row in rows if row.key not in keys)
    which = f"the best by {target.short} and the best untrained one" if scores and target is not None else "the first"
    return [row for row in rows if row.key in keys], f" {room} of {len(rows)} rows, {which}; not drawn: {others}."
