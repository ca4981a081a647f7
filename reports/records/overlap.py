"""The texts that tasks share with what rows were trained or selected on, and scores without them.

An example is a pair of STS, or anything else that is scored on its own: a classified sentence or
pair, a predicted score. Nothing can be left out where queries or captions are ranked among the
texts of others, or sets are clustered as a whole. The same examples are left out for all rows, so
that rows stay comparable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.contamination.check import Overlap, TaskOverlap, read_overlap
from harness.errors import InputError
from harness.files.hashing import content_id
from harness.results.record import Record
from harness.results.store import RunFolder
from reports.load import RecordedResults
from reports.read.examples import ExampleReader, Examples, LeftOut

TRAINING = "training text"
SELECTION = "dev set"
FEWEST = 30  # examples that a score needs
_OF_ALL = ("", "all")  # aggregations of scores that are one number over all examples
_NOT_SCORED = ("geometry", "layers", "efficiency")  # suites that score no text

Key = tuple[str, str]  # task, source


@dataclass(frozen=True)
class TextOverlap:
    """A training text or dev set, the rows that used it, and what it shares with tasks (None: it
    was not checked).
    """

    use: str  # TRAINING or SELECTION
    name: str
    rows: tuple[str, ...]
    found: Overlap | None


def text_overlaps(comparison: RecordedResults) -> list[TextOverlap]:
    """Every text that a row of the comparison was trained or selected on; training texts first."""
    met: dict[tuple[str, Any, Any], tuple[Mapping[str, Any], list[str]]] = {}
    for use in (TRAINING, SELECTION):
        for record in comparison.records:
            about = record.dev
            if use == TRAINING:
                about = record.corpus
            if about and about.get("sha256"):
                key = (use, about["sha256"], about.get("kind"))
                _, rows = met.setdefault(key, (about, []))
                rows.append(record.row)
    found = []
    for (use, _, _), (text, rows) in met.items():
        distinct = tuple(dict.fromkeys(rows))
        overlap = read_overlap(comparison.workdir, text)
        found.append(TextOverlap(use, _name(text), distinct, overlap))
    return found


def _name(about: Mapping[str, Any]) -> str:
    name = about.get("name") or about.get("uri")
    if about.get("uri"):
        return str(name)
    words = [about.get("task"), about.get("split")]
    return " ".join(str(word) for word in words if word)


def find_scored_tasks(comparison: RecordedResults) -> dict[tuple[str, str], str | None]:
    """(task, source) of everything that is scored by its texts -> fingerprint of its data, None if
    unknown.
    """
    found: dict[tuple[str, str], str | None] = {}
    for record in comparison.records:
        for s in record.scores:
            if s.suite in _NOT_SCORED or s.task.startswith("geometry:"):
                continue
            protocol = record.protocols.get(s.protocol) or record.protocols.get(s.comparable)
            data = (protocol or {}).get("data")
            key = (s.task, s.source)
            if not found.get(key):
                found[key] = data if isinstance(data, str) else None
    return found


def find_task_overlap(
    text: TextOverlap,
    task: str,
    source: str,
    data: str | None,
) -> TaskOverlap | None:
    """The result for one task; None if it was not checked, or with data other than `data`."""
    if text.found is None:
        return None
    one = text.found.tasks.get(f"{source}:{task}")
    if one is None or one.unchecked:
        return None
    if data is not None and data != one.data:
        return None
    return one


def without_overlap(comparison: RecordedResults) -> tuple[RecordedResults, dict[Key, str], str]:
    """Leave out the examples of which a text occurs in the training text of any row.

    Returns:
        The comparison with its scores recomputed, without scores that cannot be; for each task that
        lost examples a clause; and the sentence with all of them, which the comparison's
        description has too.

    Raises:
        InputError: no task was checked, or no score is left.
    """
    texts = [text for text in text_overlaps(comparison) if text.use == TRAINING]
    if texts and not any(text.found for text in texts):
        raise InputError(
            "its training text was not compared with its tasks",
            file=comparison.name,
            remedy="run `harness compare` with the same experiment again: finished runs are reused",
        )
    left_out, notes = _examples_to_leave_out(comparison, texts)
    reader = ExampleReader(left_out)
    rows = []
    scored = set()
    for row in comparison.rows:
        runs = []
        for record in row.records:
            run = _rescore(comparison.workdir, record, reader, notes.keys())
            runs.append(run)
            scored |= {(score.task, score.source) for score in run.scores}
        rows.append(replace(row, runs=tuple(runs)))
    for task, source in left_out.keys() - scored:
        notes[task, source] = f"{task}: left out, its runs did not store the score of each example"
    if not scored:
        why = next(iter(notes.values()), "")
        raise InputError(
            f"no score is left without the overlap with its training text: {why}",
            file=comparison.name,
        )
    parts = []
    for part in comparison.parts:
        with suppress(InputError):  # no score of this block is left
            parts.append(without_overlap(part)[0])
    sentence = ""
    if notes:
        clauses = "; ".join(notes.values())
        sentence = f"Without the examples of which a text occurs in a training text. {clauses}."
    fewer = replace(
        comparison,
        rows=tuple(rows),
        title=f"{comparison.title} (without examples that were trained on)",
        parts=tuple(parts),
        left_out=left_out,
        description=" ".join(filter(None, (comparison.description, sentence))),
    )
    return fewer, notes, sentence


def _examples_to_leave_out(
    comparison: RecordedResults, texts: list[TextOverlap]
) -> tuple[dict[Key, LeftOut], dict[Key, str]]:
    """The examples to leave out by task, and a sentence for each task that is not complete."""
    left_out: dict[Key, LeftOut] = {}
    notes: dict[Key, str] = {}
    for (task, source), data in find_scored_tasks(comparison).items():
        checked = [find_task_overlap(text, task, source, data) for text in texts]
        known = [one for one in checked if one is not None]
        pairs = max((one.pairs for one in known), default=0)
        touched = _join_touched(known)
        gone = sum(map(len, touched.values()))
        left = pairs - gone
        if len(known) < len(texts):
            note = "left out, it was not compared with all training text"
        elif not pairs and any(one.share for one in known):
            note = "left out, texts of it were trained on and no example is scored on its own"
        elif not gone:
            continue
        elif left < FEWEST:
            note = f"left out, texts of {gone:,} of its {pairs:,} examples were trained on"
        else:
            left_out[task, source] = touched
            note = f"scored on {left:,} of {pairs:,} examples"
        notes[task, source] = f"{task}: {note}"
    return left_out, notes


def _join_touched(known: Iterable[TaskOverlap]) -> dict[str, frozenset[int]]:
    """Return the numbers of the examples of a task that any text shares, by subset."""
    touched: dict[str, frozenset[int]] = {}
    for one in known:
        for subset, numbers in one.touched.items():
            before = touched.get(subset, frozenset())
            touched[subset] = before.union(numbers)
    return touched


def _rescore(
    workdir: Path,
    record: Record,
    reader: ExampleReader,
    changed: Any,
) -> Record:
    """The record with the scores of its remaining examples; scores that cannot be recomputed are
    dropped.
    """
    scores = []
    due = []
    for s in record.scores:
        key = (s.task, s.source)
        if key not in changed:
            scores.append(s)
        if key in reader.left_out and s.split != "dev" and s.aggregation in _OF_ALL:
            due.append(s)
    kept: dict[tuple[str, ...], Examples] = {}
    if due:
        # The comparison warns where it reads them.
        with suppress(OSError, ValueError, KeyError, InputError):
            kept = {one.score: one for one in reader.read(RunFolder(workdir, record.id))}
    for s in due:
        one = kept.get((s.task, s.source, s.split, s.metric))
        if one is None:
            continue
        n = len(one.outcome)
        changes: dict[str, Any] = {"value": one.value, "n": n}
        for name in ("protocol", "comparable"):
            content = [getattr(s, name), "without overlap", n]
            changes[name] = content_id(content, 12)
        scores.append(s.model_copy(update=changes))
    return record.model_copy(update={"scores": scores})
