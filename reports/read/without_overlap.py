"""A comparison scored anew without the pairs of which a sentence stood in what a row was trained on.

The same pairs are left out for all rows, whichever of them saw the text, so that rows stay comparable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.errors import InputError
from harness.files.hashing import content_id
from harness.results.record import Record, Score
from harness.results.run_folder import RunFolder
from harness.tasks.sts import AGGREGATIONS, Correlation, aggregate, pearson, spearman
from reports.read.comparison_runs import Comparison, ResultRow
from reports.read.examples import LeftOut, kept_pairs
from reports.read.overlaps import TRAINING, TextOverlap, checked, data_of, text_overlaps

if TYPE_CHECKING:
    import pandas as pd

FEWEST_PAIRS = 30  # fewer pairs give no correlation worth a place in a table
_METRICS: dict[str, Correlation] = {"spearman": spearman, "pearson": pearson}
_LOOKS_INSIDE = ("geometry", "layers", "efficiency")  # suites that judge no text

Key = tuple[str, str]  # task, source


def without_overlap(comparison: Comparison) -> Comparison:
    """The comparison without such pairs, and without the scores that cannot be computed so; its description says what
    is left of each task.

    Raises:
        InputError: no task of it was checked, or nothing is left.
    """
    texts = [text for text in text_overlaps(comparison) if text.use == TRAINING]
    if texts and not any(text.found for text in texts):
        raise InputError(
            f"{comparison.name}: its training text was not checked against its tasks; run `harness compare` with the "
            "same experiment again: finished runs are kept"
        )
    left_out, lost, said = _read(comparison, texts)
    kept = {row.key: _rescored(comparison, row, left_out, lost) for row in comparison.rows}
    rows = tuple(kept[row.key] for row in comparison.rows)
    if not any(record.scores for row in rows for record in row.records):
        raise InputError(f"{comparison.name}: nothing is left without the overlap with its training text: {said[0]}")
    parts = tuple(part for whole in comparison.parts if (part := _part(whole)) is not None)
    title = f"{comparison.title} (without pairs that were trained on)"
    return replace(
        comparison,
        rows=rows,
        title=title,
        parts=parts,
        left_out=left_out,
        description=" ".join(filter(None, (comparison.description, _sentence(said)))),
    )


def _sentence(said: list[str]) -> str:
    """What was left out, for the head of the report."""
    return (
        f"Without the pairs of which a sentence stood in the training text of a row. {'; '.join(said)}." if said else ""
    )


def _part(part: Comparison) -> Comparison | None:
    """One block of a file with parts; None where nothing of it is left."""
    try:
        return without_overlap(part)
    except InputError:
        return None


def _read(comparison: Comparison, texts: list[TextOverlap]) -> tuple[dict[Key, LeftOut], set[Key], list[str]]:
    """The pairs to leave out by task, the tasks that cannot be scored without, and what to tell of both."""
    left_out: dict[Key, LeftOut] = {}
    lost: set[Key] = set()
    said = []
    scored = {(s.task, s.source): s.suite for r in comparison.records for s in r.scores}
    for (task, source), suite in scored.items():
        if suite in _LOOKS_INSIDE or task.startswith("geometry:"):
            continue
        known = checked(texts, task, source, data_of(comparison, task, source))
        pairs = max((one.pairs for _, one in known), default=0)
        numbers: dict[str, set[int]] = {}
        for _, one in known:
            for subset, touched in one.touched.items():
                numbers.setdefault(subset, set()).update(touched)
        gone = sum(map(len, numbers.values()))
        if len(known) < len(texts):
            lost.add((task, source))
            said.append(f"{task}: left out, as it was not checked against all training text")
        elif not pairs and any(one.share for _, one in known):
            lost.add((task, source))
            said.append(f"{task}: left out, as texts of it were trained on and it has no pairs to leave out")
        elif gone and pairs - gone < FEWEST_PAIRS:
            lost.add((task, source))
            said.append(f"{task}: left out, as {gone:,} of its {pairs:,} pairs have a sentence that was trained on")
        elif gone:
            left_out[task, source] = {subset: frozenset(some) for subset, some in numbers.items()}
            said.append(f"{task}: scored on {pairs - gone:,} of {pairs:,} pairs")
    return left_out, lost, said


def _rescored(comparison: Comparison, row: ResultRow, left_out: Mapping[Key, LeftOut], lost: set[Key]) -> ResultRow:
    return replace(row, records=tuple(_anew(comparison, record, left_out, lost) for record in row.records))


def _anew(comparison: Comparison, record: Record, left_out: Mapping[Key, LeftOut], lost: set[Key]) -> Record:
    """The record with the scores of its kept pairs."""
    scores = [s for s in record.scores if (s.task, s.source) not in lost and (s.task, s.source) not in left_out]
    wanted = [s for s in record.scores if (s.task, s.source) in left_out and s.split != "dev"]
    frame: Any = _pairs(comparison, record) if wanted else None
    if frame is not None:
        groups = {
            (task, source): kept_pairs(part, left_out.get((str(task), str(source))))
            for (task, source), part in frame.groupby(["task", "source"])
        }
        scores += [new for s in wanted if (new := _score(s, groups.get((s.task, s.source)))) is not None]
    return record.model_copy(update={"scores": scores})


def _pairs(comparison: Comparison, record: Record) -> pd.DataFrame | None:
    folder = RunFolder(comparison.workdir, record.id)
    try:
        frame = folder.pairs() if folder.pairs_file.exists() else None
    except (OSError, ValueError):  # told where the comparison reads them
        return None
    return None if frame is None else frame[frame["split"] != "dev"]


def _score(old: Score, pairs: pd.DataFrame | None) -> Score | None:
    """The same score of fewer pairs, under an id of its own; None for what cannot be computed from pairs."""
    if pairs is None or old.metric not in _METRICS or old.aggregation not in AGGREGATIONS:
        return None
    parts = [part for _, part in pairs.groupby("subset", sort=False) if len(part) > 1]
    if not parts:
        return None
    similarities, gold = ([part[column].to_numpy(dtype=np.float64) for part in parts] for column in ("score", "gold"))
    value = aggregate(_METRICS[old.metric], similarities, gold, old.aggregation)
    fewer = len(pairs)
    ids = {name: content_id([getattr(old, name), "without overlap", fewer], 12) for name in ("protocol", "comparable")}
    return old.model_copy(update={"value": value, "n": fewer, **ids})
