"""What tasks of files have in common: where the data comes from, and by what they are known."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from harness.sources.pair_sets import Source
from harness.tasks.own.data import Kind, OwnData, TaskFile, read_own

if TYPE_CHECKING:
    import pandas as pd

SOURCE: Source = "file"  # of the scores of such tasks
PREPARATION = "as in the file, without blanks around a text"


class FileTask:
    """A task whose examples are those of a table.

    Its protocol ids are hashes of what is read, and not of the path; so its scores are due again
    when the content has changed.
    """

    source: Any = SOURCE
    preparation = PREPARATION
    kind: Kind

    def __init__(self, settings: TaskFile, frame: pd.DataFrame | None = None) -> None:
        self.settings = settings
        self.name = settings.name
        self.suite = f"own-{self.kind}"
        self.described_as = self.kind
        self._frame = frame

    @cached_property
    def own(self) -> OwnData:
        """The examples of all parts.

        Raises:
            InputError: see `read_own`.
        """
        source = self.settings.path if self._frame is None else self._frame
        return read_own(source, self.settings.model_copy(update={"kind": self.kind}))

    @property
    def content(self) -> str:
        """What the version of its scores holds besides that of the code."""
        digest: str = self.sha256  # type: ignore[attr-defined]  # of the task itself
        return digest[:16]

    @property
    def data_remarks(self) -> list[str]:
        """Sentences about its data that a reader should know before anything is run."""
        return [f"{self.name}: {remark}" for remark in self.own.remarks]
