"""A map of the space of each row: some texts in two dimensions, with the nearest of them in all dimensions.

From the sample of vectors that every run keeps (`harness.results.vector_samples`), of unit length: the first two
principal components, and neighbours by cosine. Two dimensions show little of the space; how much is said, and the
neighbours are those of the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.errors import InputError
from harness.results.run_folder import RunFolder
from harness.results.vector_samples import vectors_of
from reports.explore.known_texts import gold_labels, texts_by_id
from reports.read.comparison_runs import Comparison, ResultRow

NEIGHBOURS = 5
Texts = tuple[tuple[str, str, int], ...]  # task, source, id


@dataclass(frozen=True)
class SpaceMap:
    """The map of one row, of its first run that kept a sample.

    Attributes:
        texts: task, source and id of each of the n texts; vectors: (n, d), of unit length.
        xy: (n, 2) first principal components, of which `share` says what part of the variance they have.
        nearest: (n, `NEIGHBOURS`) places of the nearest others; cosines: to them.
    """

    row: ResultRow
    run: str
    texts: Texts
    vectors: NDArray[np.float32]
    xy: NDArray[np.float64]
    share: float
    nearest: NDArray[np.int64]
    cosines: NDArray[np.float64]


def space_maps(comparison: Comparison, rows: Iterable[ResultRow], most: int) -> list[SpaceMap]:
    """The maps of those rows whose runs kept a sample, all of the same texts: at most `most`, as many of each task.

    A row that kept other texts than the first is left out; damaged samples are, with a warning.
    """
    found = [(row, *kept) for row in rows if (kept := _kept(comparison, row)) is not None]
    if not found:
        return []
    common = set(found[0][2]).intersection(*(texts for _, _, texts, _ in found))
    chosen = evenly([text for text in found[0][2] if text in common], most)
    if len(chosen) <= NEIGHBOURS:
        return []
    maps = []
    for row, run, texts, vectors in found:
        place = {text: number for number, text in enumerate(texts)}
        maps.append(_map(row, run, tuple(chosen), vectors[[place[text] for text in chosen]]))
    return maps


def _kept(comparison: Comparison, row: ResultRow) -> tuple[str, Texts, NDArray[np.float32]] | None:
    for record in row.finished:
        try:
            sample = RunFolder(comparison.workdir, record.id).sample()
            if len(sample):
                columns = (sample["task"], sample["source"], sample["id"].astype(int))
                return record.id, tuple(zip(*columns, strict=True)), vectors_of(sample)
        except (OSError, ValueError, KeyError, InputError) as fault:
            comparison.warnings.append(f"vectors of run {record.id} are unreadable ({type(fault).__name__})")
    return None


def evenly(texts: Sequence[tuple[str, str, int]], most: int) -> list[tuple[str, str, int]]:
    """At most `most` texts, as many of each task as there is room for, in their order."""
    by_task: dict[tuple[str, str], list[tuple[str, str, int]]] = {}
    for text in texts:
        by_task.setdefault(text[:2], []).append(text)
    room = max(1, most // max(len(by_task), 1))
    return [text for some in by_task.values() for text in some[:room]][:most]


def _map(row: ResultRow, run: str, texts: Texts, vectors: NDArray[np.float32]) -> SpaceMap:
    xy, share = components(vectors)
    cosines = vectors.astype(np.float64) @ vectors.T.astype(np.float64)
    np.fill_diagonal(cosines, -np.inf)
    nearest = np.argsort(-cosines, axis=1, kind="stable")[:, :NEIGHBOURS]
    return SpaceMap(row, run, texts, vectors, xy, share, nearest, np.take_along_axis(cosines, nearest, axis=1))


def components(vectors: NDArray[np.float32]) -> tuple[NDArray[np.float64], float]:
    """(n, 2) first two principal components of (n, d) vectors, and their share of the variance.

    The sign of a component is free: its largest entry is made positive, so that a map is the same every time.
    """
    x = vectors.astype(np.float64)
    x = x - x.mean(axis=0)
    left, values, _ = np.linalg.svd(x, full_matrices=False)
    scores = left * values
    wide = np.zeros((len(x), 2))
    wide[:, : scores.shape[1]] = scores[:, :2]
    peaks = wide[np.abs(wide).argmax(axis=0), [0, 1]]
    total = float((values**2).sum())
    return wide * np.where(peaks < 0, -1.0, 1.0), float((values[:2] ** 2).sum()) / total if total > 0 else 0.0


def labels_of(texts: Texts) -> list[str]:
    """The gold class or cluster of each text, "" where its task has none, or its data cannot be had here."""
    by_task: dict[tuple[str, str], dict[str, str]] = {}
    for task, source, _ in texts:
        if (task, source) not in by_task:
            by_task[task, source] = gold_labels(task, source)
    known = words_of(texts)
    return [by_task[task, source].get(text, "") for (task, source, _), text in zip(texts, known, strict=True)]


def words_of(texts: Texts) -> list[str]:
    """The texts themselves, "" where their data cannot be had here."""
    return [texts_by_id(task, source).get(one, "") for task, source, one in texts]
