"""The map of a report's page: one canvas, the row and the colours chosen by the reader."""

from __future__ import annotations

import numpy as np

from reports.document.blocks import Widget
from reports.explore.embedding_map import SpaceMap, labels_of, space_maps, words_of
from reports.explore.known_texts import OURS
from reports.read.comparison_runs import Comparison
from reports.stats.shown_rows import rows_shown
from reports.stats.targets import Target

BYTES = 280_000  # of a page
_TEXTS = 400
_ROWS = 12
_LONG = 160  # signs of a text
_SCALE = 999  # coordinates are whole numbers up to this


def map_widget(comparison: Comparison, target: Target | None, *, texts: bool = False) -> Widget | None:
    """Maps of the rows that kept a sample of their vectors; None where none did.

    `texts`: of all data sets, not only of the embedded suite.
    """
    rows, others = rows_shown([row for row in comparison.rows if row.finished], target, _ROWS)
    most = min(_TEXTS, BYTES // (_LONG + 40 + 32 * max(len(rows), 1)))
    maps = space_maps(comparison, rows, most)
    if not maps:
        return None
    first = maps[0]
    words, gold = words_of(first.texts), labels_of(first.texts)
    tasks = list(dict.fromkeys(task for task, _, _ in first.texts))
    labels = list(
        dict.fromkeys(f"{task}: {label}" for (task, _, _), label in zip(first.texts, gold, strict=True) if label)
    )
    items = []
    for (task, source, one), text, label in zip(first.texts, words, gold, strict=True):
        shown = text if texts or source == OURS else ""
        cut = shown if len(shown) <= _LONG else f"{shown[: _LONG - 1]}…"
        items.append(
            [tasks.index(task), labels.index(f"{task}: {label}") if label else -1, cut or f"{one % 2**64:016x}"]
        )
    lacking = [row.label for row in rows if row.key not in {one.row.key for one in maps}]
    said = (
        f"{len(items)} texts, the same for all rows, by the first two principal components of their unit-length "
        "vectors; of one run a row. Touch a dot for its text and its nearest by cosine in all dimensions."
    )
    said += " Texts of data sets that may not be copied are ids." if any(s != OURS for _, s, _ in first.texts) else ""
    said += f" Without a map, as their runs kept no vectors: {', '.join(lacking)}." if lacking else ""
    data = {"tasks": tasks, "labels": labels, "texts": items, "rows": [_row(one) for one in maps], "scale": _SCALE}
    return Widget("map", "Map of the space", said + others.replace("not drawn", "not in it"), "map", data)


def _row(one: SpaceMap) -> dict[str, object]:
    low, span = one.xy.min(axis=0), float(np.ptp(one.xy, axis=0).max()) or 1.0  # one scale for both axes
    places = np.round(_SCALE * (one.xy - low) / span).astype(int)
    return {
        "name": one.row.label,
        "run": one.run,
        "share": round(one.share, 3),
        "xy": places.ravel().tolist(),
        "nearest": one.nearest.ravel().tolist(),
    }
