"""Retrieval from a BEIR folder (corpus.jsonl, queries.jsonl, qrels/*.tsv), scored by mteb: nDCG@10 is
the main score.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from harness.files.hashing import sha256_of_text
from harness.tasks.own.beir import Folder, read_beir
from harness.tasks.own.data import FEW, TaskFile
from harness.tasks.own.mteb_task import FileMTEBTask


class FileRetrieval(FileMTEBTask):
    """Retrieval by a user's queries from a user's passages."""

    def __init__(self, settings: TaskFile) -> None:
        super().__init__(settings, "retrieval")

    @cached_property
    def folder(self) -> Folder:
        """Raises:
        InputError: see `read_beir`.
        """
        return read_beir(self.settings.path)

    @cached_property
    def sha256(self) -> str:
        read = self.folder
        whole = [sorted(read.passages.items()), sorted(read.queries.items())]
        grades = []
        for query, found in sorted(read.relevant.items()):
            grades.append((query, sorted(found.items())))
        return sha256_of_text(repr([whole, grades]))

    @property
    def data_remarks(self) -> list[str]:
        count = len(self.folder.queries)
        remarks = []
        if count < FEW:
            remarks.append(f"only {count} queries: scores of fewer than {FEW} say little")
        if unanswered := self.folder.unanswered:
            remarks.append(
                f"{unanswered:,} of {count:,} queries have no relevant passage and score 0"
            )
        no_query = sum(not text for text in self.folder.queries.values())
        no_passage = sum(not title and not text for title, text in self.folder.passages.values())
        if no_query or no_passage:
            remarks.append(f"{no_query:,} queries and {no_passage:,} passages have no text")
        return [f"{self.name}: {remark}" for remark in remarks]

    def texts(self) -> list[str]:
        """Queries, and passages behind their titles: as mteb joins them."""
        passages = []
        for title, text in self.folder.passages.values():
            passages.append(f"{title} {text}".strip())
        return [*self.folder.queries.values(), *passages]

    def at_least(self) -> int:
        return len(self.folder.queries) + len(self.folder.passages)

    def open(self) -> Any:
        from harness.tasks.mteb.own_tasks import retrieval_task

        return retrieval_task(self.name, self.sha256, self.folder)
