"""Why a task has no scores: what the task says, the record holds and a report prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.errors import InputError


@dataclass(frozen=True)
class Missing:
    """A reason, and of which kind it is.

    Attributes:
        kind: "data": it could not be read, and is requested again; "unfit": it was read, but does not suit the method
            or the task; "failed": a fault of the program, tried again by the next evaluation.
        text: one line for the reader.
    """

    kind: Literal["data", "unfit", "failed"]
    text: str

    def __str__(self) -> str:
        return self.text


def missing(error: Exception, *, was_read: bool) -> Missing:
    """The reason that an error gives for a task whose data was, or was not, read before it."""
    if isinstance(error, InputError):
        return Missing("unfit" if was_read else "data", str(error))
    return Missing("failed", f"failed: {type(error).__name__}: {str(error).partition(chr(10))[0]}")
