"""Labelled texts of a file as clusters: V-measure, drawn and computed by mteb."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from harness.errors import InputError
from harness.files.hashing import sha256_of_text
from harness.tasks.own.data import OwnData, TaskFile, read_own
from harness.tasks.own.mteb_task import FileMTEBTask


class FileClustering(FileMTEBTask):
    """The test part of labelled texts."""

    kind = "clustering"
    _frame: Any

    def __init__(self, settings: TaskFile, frame: Any = None) -> None:
        super().__init__(settings, self.kind)
        object.__setattr__(self, "_frame", frame)

    @cached_property
    def own(self) -> OwnData:
        """Raises:
        InputError: see `read_own`.
        """
        if self._frame is None:
            source = self.settings.path
        else:
            source = self._frame
        return read_own(source, self.settings.model_copy(update={"kind": "clustering"}))

    @cached_property
    def labelled(self) -> tuple[list[str], list[str]]:
        """Texts and labels of the test part.

        Raises:
            InputError: all labels are equal.
        """
        rows = self.own.rows("test")
        labels = rows["label"].tolist()
        if len(set(labels)) < 2:
            message = f"all labels are {labels[0]!r:.40}: at least two are needed"
            raise InputError(message, file=self.own.where, key='column "label"')
        return rows["text"].tolist(), labels

    @cached_property
    def sha256(self) -> str:
        return sha256_of_text(repr(self.labelled))

    @property
    def data_remarks(self) -> list[str]:
        return [f"{self.name}: {remark}" for remark in self.own.remarks]

    def texts(self) -> list[str]:
        return self.labelled[0]

    def at_least(self) -> int:
        return len(self.labelled[0])

    def open(self) -> Any:
        from harness.tasks.mteb.own_tasks import clustering_task

        return clustering_task(self.name, self.sha256, *self.labelled)
