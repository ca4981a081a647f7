"""The texts that tasks share with what rows were trained or selected on, as the work directory stores it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.results.overlaps import Overlap, TaskOverlap, read_overlap
from reports.read.comparison_runs import Comparison

TRAINING, SELECTION = "training text", "dev set"
_NOT_SCORED = ("geometry", "layers", "efficiency")  # suites that score no text


@dataclass(frozen=True)
class TextOverlap:
    """A training text or dev set, the rows that used it, and what it shares with tasks (None: it was not checked)."""

    use: str  # TRAINING or SELECTION
    name: str
    rows: tuple[str, ...]
    found: Overlap | None


def text_overlaps(comparison: Comparison) -> list[TextOverlap]:
    """Every text that a row of the comparison was trained or selected on; training texts first."""
    met: dict[tuple[str, Any, Any], tuple[Mapping[str, Any], list[str]]] = {}
    for use in (TRAINING, SELECTION):
        for record in comparison.records:
            about = record.corpus if use == TRAINING else record.dev
            if about and about.get("sha256"):
                met.setdefault((use, about["sha256"], about.get("kind")), (about, []))[1].append(record.row)
    return [
        TextOverlap(use, _name(about), tuple(dict.fromkeys(rows)), read_overlap(comparison.workdir, about))
        for (use, _, _), (about, rows) in met.items()
    ]


def _name(about: Mapping[str, Any]) -> str:
    name = about.get("name") or about.get("uri")
    return str(name) if about.get("uri") else " ".join(str(about[key]) for key in ("task", "split") if about.get(key))


def scored_tasks(comparison: Comparison) -> dict[tuple[str, str], str | None]:
    """(task, source) of everything that is scored by its texts -> fingerprint of its data, None if unknown."""
    found: dict[tuple[str, str], str | None] = {}
    for record in comparison.records:
        for s in record.scores:
            if s.suite not in _NOT_SCORED and not s.task.startswith("geometry:"):
                protocol = record.protocols.get(s.protocol) or record.protocols.get(s.comparable) or {}
                data = protocol.get("data")
                found[s.task, s.source] = found.get((s.task, s.source)) or (data if isinstance(data, str) else None)
    return found


def checked(text: TextOverlap, task: str, source: str, data: str | None) -> TaskOverlap | None:
    """The result for one task; None if it was not checked, or with data other than `data`."""
    one = text.found.tasks.get(f"{source}:{task}") if text.found is not None else None
    return one if one is not None and not one.unchecked and data in (None, one.data) else None
