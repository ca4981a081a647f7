"""What tasks of files that mteb scores have in common: where the data comes from, and by what they
are known.
"""

from __future__ import annotations

from functools import cached_property

from harness.tasks.mteb.task import MTEBTask
from harness.tasks.own.data import TaskFile
from harness.tasks.own.file_task import SOURCE


class FileMTEBTask(MTEBTask):
    """A task of mteb whose data is a file or folder of the user's.

    Its protocol ids are hashes of what is read, and not of the path.
    """

    version = 2  # 1 read the stored score of what the file held before
    settings: TaskFile
    described_as: str

    def __init__(self, settings: TaskFile, described_as: str) -> None:
        super().__init__(task_name=settings.name, suite=f"own-{described_as}")
        object.__setattr__(self, "settings", settings)
        object.__setattr__(self, "described_as", described_as)

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def source(self) -> str:
        return SOURCE

    @cached_property
    def sha256(self) -> str:
        """Hash of what is read."""
        raise NotImplementedError

    @property
    def content(self) -> str:
        return self.sha256[:16]
