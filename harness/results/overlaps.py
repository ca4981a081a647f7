"""The texts that tasks share with a training text or dev set: `WORKDIR/cache/overlaps/ID.json`, one for each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.errors import InputError
from harness.files.atomic import sweep, write_atomic
from harness.files.hashing import content_id
from harness.files.reading import read_json

SELECTION = "selection"  # the kind of a text that is a dev set


class TaskOverlap(BaseModel):
    """One task compared with one text.

    Attributes:
        data: sha256 of the task's data.
        texts: number of distinct texts of the task, in normal form; `equal` and `near`: how many of them the other
            text holds word for word, and nearly.
        pairs: number of examples (pairs or single texts) that are scored one by one; 0 for other tasks.
        touched: subset -> numbers of the examples with such a text on either side (as numbered in the run's pairs;
            under "" as in its outcomes).
        examples: a few (text of the task, nearly equal text).
        unchecked: why the task was not compared; empty if it was.
    """

    model_config = ConfigDict(frozen=True)

    data: str = ""
    suite: str = ""
    texts: int = 0
    equal: int = 0
    near: int = 0
    pairs: int = 0
    touched: dict[str, list[int]] = {}
    examples: list[tuple[str, str]] = []
    unchecked: str = ""

    @property
    def share(self) -> float:
        """Share of its texts that are equal or nearly equal, in [0, 1]."""
        return (self.equal + self.near) / self.texts if self.texts else 0.0

    @property
    def touched_share(self) -> float:
        """Share of its examples that have such a text, in [0, 1]."""
        return sum(map(len, self.touched.values())) / self.pairs if self.pairs else 0.0


class Overlap(BaseModel):
    """One text compared with tasks. rule: how; text: its description as in a record; tasks: by "SOURCE:TASK"."""

    schema_version: Literal[1] = 1
    rule: str
    text: dict[str, Any]
    tasks: dict[str, TaskOverlap] = {}


def overlap_file(workdir: Path, text: Mapping[str, Any]) -> Path:
    """The file of a text, named by its content and by what is read from it (sentences or documents)."""
    return workdir / "cache" / "overlaps" / f"{content_id([text.get('sha256'), text.get('kind', SELECTION)])}.json"


def read_overlap(workdir: Path, text: Mapping[str, Any]) -> Overlap | None:
    """The stored result for a record's `corpus` or `dev`; None if there is none, or the file is damaged."""
    file = overlap_file(workdir, text)
    try:
        return Overlap.model_validate(read_json(file)) if file.is_file() else None
    except (InputError, ValidationError):
        return None


def write_overlap(workdir: Path, overlap: Overlap) -> None:
    """Replace the file of a text. The caller holds its lock."""
    file = overlap_file(workdir, overlap.text)
    sweep(file)
    write_atomic(file, overlap.model_dump_json() + "\n")
