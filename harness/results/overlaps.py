"""What tasks share with a text that was trained or selected on: `WORKDIR/overlap/<id>.json`, a file for each text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from harness.errors import InputError
from harness.files.atomic import sweep, write_atomic
from harness.files.hashing import content_id
from harness.files.reading import read_json
from harness.results.migrations import OVERLAP

SELECTION = "selection"  # the kind of a dev set among texts


class TaskOverlap(BaseModel):
    """One task against one text.

    Attributes:
        data: sha256 of the task's data.
        texts: how many distinct texts it has, by their normal form; `equal` and `near`: how many of these the other
            text holds word for word, and nearly.
        pairs: how many pairs or other examples it scores, each by itself; 0 where it scores none so.
        touched: subset -> those that have such a text on either side, by their number (as in pairs.parquet; as in
            outcomes.parquet of all subsets together, under "").
        examples: a few (text of the task, nearly equal text).
        unchecked: why nothing of this is known; empty where it is.
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
        """Of its texts, those that are equal or nearly equal; in [0, 1]."""
        return (self.equal + self.near) / self.texts if self.texts else 0.0

    @property
    def touched_share(self) -> float:
        """Of its pairs or examples, those that have such a text; in [0, 1]."""
        return sum(map(len, self.touched.values())) / self.pairs if self.pairs else 0.0


class Overlap(BaseModel):
    """One text against all tasks that it was checked against. `rule` names how; `text` is what records say of it."""

    schema_version: int = OVERLAP.version
    rule: str
    text: dict[str, Any]
    tasks: dict[str, TaskOverlap] = {}  # by "SOURCE:TASK"

    @model_validator(mode="before")
    @classmethod
    def _of_today(cls, tree: Any) -> Any:
        return OVERLAP.migrated(tree, "overlap") if isinstance(tree, dict) and OVERLAP.key in tree else tree


def overlap_file(workdir: Path, text: Mapping[str, Any]) -> Path:
    """Where the overlap with a text is kept, by its content and by what is read from it (sentences or documents)."""
    return workdir / "overlap" / f"{content_id([text.get('sha256'), text.get('kind', SELECTION)])}.json"


def read_overlap(workdir: Path, text: Mapping[str, Any]) -> Overlap | None:
    """What is known of a record's `corpus` or `dev`; None where nothing was checked, or the file is damaged."""
    file = overlap_file(workdir, text)
    try:
        return Overlap.model_validate(read_json(file)) if file.is_file() else None
    except (InputError, ValidationError):
        return None


def write_overlap(workdir: Path, overlap: Overlap) -> None:
    """Write it whole; the caller keeps others from writing it meanwhile."""
    file = overlap_file(workdir, overlap.text)
    sweep(file)
    write_atomic(file, overlap.model_dump_json() + "\n")
