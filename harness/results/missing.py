"""Why a task has no scores: what the task says, the record keeps and a report prints."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from harness.errors import InputError

_FAILED = "failed: "  # how a record on disk tells a fault of the program from other reasons


@dataclass(frozen=True)
class Missing:
    """A reason, and of which kind it is.

    Attributes:
        kind: "data": it could not be read, and is asked for again; "unfit": it was read, but does not suit the method
            or the task; "failed": a fault of the program, tried again by the next evaluation.
        text: one line for the reader.
    """

    kind: Literal["data", "unfit", "failed"]
    text: str

    def __str__(self) -> str:
        return self.text


def missing(error: Exception, *, was_read: bool) -> Missing:
    """What an error says about a task, whose data was read before it or was not."""
    if isinstance(error, InputError):
        return Missing("unfit" if was_read else "data", str(error))
    return Missing("failed", f"{_FAILED}{type(error).__name__}: {str(error).partition(chr(10))[0]}")


def from_record(reasons: Mapping[str, Any], unfit: Collection[str]) -> dict[str, Any]:
    """Reasons by task from a record on disk, where they are texts, and `unfit` names some of their tasks."""
    return {task: _kept(why, task in unfit) if isinstance(why, str) else why for task, why in reasons.items()}


def _kept(text: str, unfit: bool) -> Missing:
    if unfit:
        return Missing("unfit", text)
    return Missing("failed" if text.startswith(_FAILED) else "data", text)
