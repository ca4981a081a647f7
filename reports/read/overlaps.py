"""What was trained or selected on against the texts of the tasks, as the work directory keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.results.overlaps import Overlap, TaskOverlap, read_overlap
from harness.results.record import Record
from reports.read.comparison_runs import Comparison

TRAINING, SELECTION = "training", "selection"


@dataclass(frozen=True)
class TextOverlap:
    """One text of a comparison, the rows that used it, and what it shares with tasks (None: it was not checked)."""

    use: str  # TRAINING or SELECTION
    name: str
    rows: tuple[str, ...]
    found: Overlap | None


def text_overlaps(comparison: Comparison) -> list[TextOverlap]:
    """Every text that a row of a comparison was trained or selected on."""
    met: dict[tuple[str, Any, Any], tuple[Mapping[str, Any], list[str]]] = {}
    for record in comparison.records:
        for use, about in _texts_of(record):
            met.setdefault((use, about.get("sha256"), about.get("kind")), (about, []))[1].append(record.row)
    return [
        TextOverlap(use, _name(about), tuple(dict.fromkeys(rows)), read_overlap(comparison.workdir, about))
        for (use, _, _), (about, rows) in met.items()
    ]


def _texts_of(record: Record) -> list[tuple[str, Mapping[str, Any]]]:
    parts = ((TRAINING, record.corpus), (SELECTION, record.dev))
    return [(use, part) for use, part in parts if part and part.get("sha256")]


def _name(about: Mapping[str, Any]) -> str:
    words = (about.get("name") or about.get("uri"),) if about.get("uri") else map(about.get, ("task", "split"))
    return " ".join(str(word) for word in words if word)


def checked(
    texts: list[TextOverlap], task: str, source: str, data: str | None
) -> list[tuple[TextOverlap, TaskOverlap]]:
    """What is known of a task, text by text; what was found in other data of that name is left out.

    `data`: fingerprint of the data that was scored; None where the records do not say it.
    """
    known = []
    for text in texts:
        one = text.found.tasks.get(f"{source}:{task}") if text.found is not None else None
        if one is not None and not one.unchecked and data in (None, one.data):
            known.append((text, one))
    return known


def data_of(comparison: Comparison, task: str, source: str) -> str | None:
    """Fingerprint of the data behind the scores of a task, as their protocols have it."""
    for record in comparison.records:
        for s in record.scores:
            if (s.task, s.source) == (task, source):
                data = (record.protocols.get(s.protocol) or record.protocols.get(s.comparable) or {}).get("data")
                if isinstance(data, str):
                    return data
    return None
