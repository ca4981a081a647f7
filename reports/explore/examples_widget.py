"""The examples of a report's page: a sample of each task, to be chosen from by rows and filters.

The page holds no texts of data sets whose licence may forbid it: those of the embedded suite are ours, of all others
there are ids, and a command that shows their texts to whoever has the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from reports.document.blocks import Widget
from reports.explore.examples import ExploredTask, trait_titles
from reports.explore.known_texts import OURS
from reports.read.comparison_runs import Comparison, ResultRow
from reports.stats.shown_rows import rows_shown
from reports.stats.targets import Target

MOST = 420  # examples of a page
FEWEST = 24  # of a task
_ROWS = 16
_LONG = 400  # signs of a text; passages of retrieval are cut


def examples_widget(
    comparison: Comparison, tasks: Sequence[ExploredTask], target: Target | None, *, texts: bool = False
) -> Widget | None:
    """A sample of the examples of each task: half of it those that most rows get wrong, the others those on which two
    rows differ most, for each two rows in turn. None where fewer than two rows kept their examples.

    `texts`: of all data sets, not only of the embedded suite.
    """
    members = [row for row in comparison.rows if any(row.key in task.runs for task in tasks)]
    rows, others = rows_shown(members, target, _ROWS)
    if len(rows) < 2:
        return None
    room = max(FEWEST, MOST // max(len(tasks), 1))
    shown = [plain for task in tasks if (plain := _task(task, rows, room, texts or task.source == OURS)) is not None]
    if not shown:
        return None
    hidden = [task["task"] for task in shown if task["hidden"]]
    lacking = list(dict.fromkeys(task.known.why for task in tasks if task.known.why))
    said = [
        "What two rows make of single examples. Error: how far the place of a pair by cosine is from its place by gold "
        "score, as a share of all places; of a classified text, the share of seeds that are wrong; of a query, 1 less "
        "its score. A sample of each task: those that most rows get wrong, and those on which two rows differ most. "
        "All of them: harness examples WORKDIR A B."
    ]
    said += [f"Texts of {', '.join(hidden)} are not in the page, as their licences may forbid it."] if hidden else []
    said += [f"Texts that are lacking: {'; '.join(lacking)}."] if lacking else []
    names = [f"{row.label} · {row.base_model}" if _twice(row, rows) else row.label for row in rows]
    data = {"rows": names, "tasks": shown, "titles": trait_titles()}
    return Widget("examples", "Examples", " ".join(said) + others.replace("not drawn", "not in it"), "examples", data)


def _twice(row: ResultRow, rows: Sequence[ResultRow]) -> bool:
    return sum(other.label == row.label for other in rows) > 1


def _task(task: ExploredTask, rows: Sequence[ResultRow], room: int, texts: bool) -> dict[str, Any] | None:
    have = [row for row in rows if row.key in task.runs]
    if len(have) < 2:
        return None
    ids = task.examples.texts
    traits = {key: list(named) for key, (named, _) in task.traits.items()}
    hidden = not texts and any(task.known.texts)
    items = []
    for place in sample(task, have, room):
        known = task.known.texts[place] if texts else ()
        words = [text if len(text) <= _LONG else f"{text[: _LONG - 1]}…" for text in known]
        marks = [f"{int(one) % 2**64:016x}" for one in ids[place]] if ids is not None and not words else []
        items.append(
            {
                "n": place + 1,
                "gold": task.gold[place],
                "texts": words,
                "ids": marks,
                "scores": [_number(task.scores, row, place) for row in rows],
                "errors": [_number(task.errors, row, place) for row in rows],
                "slices": [int(numbers[place]) for _, numbers in task.traits.values()],
            }
        )
    return {
        "task": task.task, "metric": task.metric, "of": task.n, "traits": traits, "hidden": hidden, "items": items,
    }  # fmt: skip


def _number(values: Any, row: ResultRow, place: int) -> float | None:
    return round(float(values[row.key][place]), 3) if row.key in values else None


def sample(task: ExploredTask, rows: Sequence[ResultRow], room: int) -> list[int]:
    """At most `room` places of examples, in the order of the data."""
    errors = np.stack([task.errors[row.key] for row in rows])
    if task.n <= room:
        return list(range(task.n))
    chosen = dict.fromkeys(int(place) for place in np.argsort(-np.median(errors, axis=0), kind="stable")[: room // 2])
    for place in _in_turn([np.argsort(-np.abs(a - b), kind="stable") for a, b in combinations(errors, 2)]):
        if len(chosen) >= room:
            break
        chosen[place] = None
    return sorted(chosen)


def _in_turn(orders: Sequence[Any]) -> Iterator[int]:
    """The first of each, then the second of each, and so on."""
    for places in zip(*orders, strict=True):
        yield from map(int, places)
