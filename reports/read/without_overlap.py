"""A comparison scored anew without the examples of which a text stood in what a row was trained on.

An example is a pair of STS, or what else is judged by itself: a sentence or pair that is classified, a pair whose score
is predicted. Queries and captions are ranked among the texts of others, and sets are clustered whole: nothing can be
left out there. The same examples are left out for all rows, whichever of them saw the text, so that rows stay
comparable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from harness.errors import InputError
from harness.files.hashing import content_id
from harness.results.outcomes import SCORE, value_of
from harness.results.record import Record, Score
from harness.results.run_folder import RunFolder
from harness.tasks.sts import AGGREGATIONS, Correlation, aggregate, pearson, spearman
from reports.read.comparison_runs import Comparison, ResultRow
from reports.read.examples import LeftOut, kept_outcomes, kept_pairs
from reports.read.overlaps import TRAINING, TextOverlap, checked, data_of, text_overlaps

if TYPE_CHECKING:
    import pandas as pd

    Groups = Mapping[tuple[str, ...], pd.DataFrame]

FEWEST = 30  # fewer examples give no score worth a place in a table
_METRICS: dict[str, Correlation] = {"spearman": spearman, "pearson": pearson}
_LOOKS_INSIDE = ("geometry", "layers", "efficiency")  # suites that judge no text

Key = tuple[str, str]  # task, source


def without_overlap(comparison: Comparison) -> Comparison:
    """As `scored_without_overlap`, without the words."""
    return scored_without_overlap(comparison)[0]


def scored_without_overlap(comparison: Comparison) -> tuple[Comparison, dict[Key, str]]:
    """The comparison without such examples and without scores that cannot be computed so, and what is left of each task
    that is not whole, in words. Its description has them too.

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
    rows = tuple(_rescored(comparison, row, left_out, lost) for row in comparison.rows)
    scored = {(s.task, s.source) for row in rows for record in row.records for s in record.scores}
    for task, source in left_out.keys() - scored:
        said[task, source] = (
            f"{task}: left out, as its runs did not keep what each example scored; `harness compare FILE --rescore "
            "outcomes` does"
        )
    if not scored:
        why = next(iter(said.values()), "")
        raise InputError(f"{comparison.name}: nothing is left without the overlap with its training text: {why}")
    parts = tuple(part for whole in comparison.parts if (part := _part(whole)) is not None)
    title = f"{comparison.title} (without examples that were trained on)"
    fewer = replace(
        comparison,
        rows=rows,
        title=title,
        parts=parts,
        left_out=left_out,
        description=" ".join(filter(None, (comparison.description, sentence(list(said.values()))))),
    )
    return fewer, said


def sentence(said: list[str]) -> str:
    """What was left out, for the head of a report or the end of a verdict."""
    return (
        f"Without the examples of which a text stood in the training text of a row. {'; '.join(said)}." if said else ""
    )


def _part(part: Comparison) -> Comparison | None:
    """One block of a file with parts; None where nothing of it is left."""
    try:
        return without_overlap(part)
    except InputError:
        return None


def _read(comparison: Comparison, texts: list[TextOverlap]) -> tuple[dict[Key, LeftOut], set[Key], dict[Key, str]]:
    """The examples to leave out by task, the tasks that cannot be scored without, and what to tell of both."""
    left_out: dict[Key, LeftOut] = {}
    lost: set[Key] = set()
    said: dict[Key, str] = {}
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
            said[task, source] = f"{task}: left out, as it was not checked against all training text"
        elif not pairs and any(one.share for _, one in known):
            lost.add((task, source))
            said[task, source] = f"{task}: left out, as texts of it were trained on and none is judged by itself"
        elif gone and pairs - gone < FEWEST:
            lost.add((task, source))
            said[task, source] = f"{task}: left out, as texts of {gone:,} of its {pairs:,} examples were trained on"
        elif gone:
            left_out[task, source] = {subset: frozenset(some) for subset, some in numbers.items()}
            said[task, source] = f"{task}: scored on {pairs - gone:,} of {pairs:,} examples"
    return left_out, lost, said


def _rescored(comparison: Comparison, row: ResultRow, left_out: Mapping[Key, LeftOut], lost: set[Key]) -> ResultRow:
    return replace(row, records=tuple(_anew(comparison, record, left_out, lost) for record in row.records))


def _anew(comparison: Comparison, record: Record, left_out: Mapping[Key, LeftOut], lost: set[Key]) -> Record:
    """The record with the scores of its kept examples."""
    scores = [s for s in record.scores if (s.task, s.source) not in lost and (s.task, s.source) not in left_out]
    wanted = [s for s in record.scores if (s.task, s.source) in left_out and s.split != "dev"]
    if wanted:
        pairs, outcomes = _kept(comparison, record, left_out)
        scores += [new for s in wanted if (new := _of_pairs(s, pairs) or _of_outcomes(s, outcomes)) is not None]
    return record.model_copy(update={"scores": scores})


def _kept(comparison: Comparison, record: Record, left_out: Mapping[Key, LeftOut]) -> tuple[Groups, Groups]:
    """What a run kept of pairs by task and source, and of other examples by score, without what is left out."""
    folder = RunFolder(comparison.workdir, record.id)
    try:
        pairs = folder.pairs() if folder.pairs_file.exists() else None
        outcomes = folder.outcomes()
    except (OSError, ValueError):  # told where the comparison reads them
        return {}, {}
    of_pairs: dict[tuple[str, ...], pd.DataFrame] = {}
    if pairs is not None:
        for names, rows in pairs[pairs["split"] != "dev"].groupby(["task", "source"]):
            task, source = map(str, names)
            of_pairs[task, source] = kept_pairs(rows, left_out.get((task, source)))
    of_outcomes: dict[tuple[str, ...], pd.DataFrame] = {}
    for names, rows in outcomes.groupby(list(SCORE)):
        task, source, split, metric = map(str, names)
        of_outcomes[task, source, split, metric] = kept_outcomes(rows, left_out.get((task, source)))
    return of_pairs, of_outcomes


def _of_pairs(old: Score, kept: Groups) -> Score | None:
    """The same score of fewer pairs; None for what cannot be computed from pairs."""
    pairs = kept.get((old.task, old.source))
    if pairs is None or old.metric not in _METRICS or old.aggregation not in AGGREGATIONS:
        return None
    parts = [part for _, part in pairs.groupby("subset", sort=False) if len(part) > 1]
    if not parts:
        return None
    similarities, gold = ([part[column].to_numpy(dtype=np.float64) for part in parts] for column in ("score", "gold"))
    return _fewer(old, aggregate(_METRICS[old.metric], similarities, gold, old.aggregation), len(pairs))


def _of_outcomes(old: Score, kept: Groups) -> Score | None:
    """The same score of fewer examples; None where the run kept none."""
    rows = kept.get((old.task, old.source, old.split, old.metric))
    return _fewer(old, value_of(rows), len(rows)) if rows is not None and len(rows) else None


def _fewer(old: Score, value: float, n: int) -> Score:
    """A score under ids of its own."""
    ids = {name: content_id([getattr(old, name), "without overlap", n], 12) for name in ("protocol", "comparable")}
    return old.model_copy(update={"value": value, "n": n, **ids})
