"""The curve of a training run: a line an event, such as the loss of a training step or a score on the dev set."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.files.atomic import write_atomic

logger = logging.getLogger(__name__)


class Curves:
    """`FOLDER/curves.jsonl`; lines after the checkpoint that a run resumes from are dropped."""

    def __init__(self, folder: Path | None) -> None:
        self.file = folder / "curves.jsonl" if folder else None
        self.lines: list[dict[str, Any]] = []

    def cut(self, step: int) -> None:
        """Read what an earlier process wrote, up to and including `step`."""
        if self.file is not None and self.file.exists():
            try:
                earlier = [json.loads(line) for line in self.file.read_text("utf-8").splitlines() if line]
                self.lines = [line for line in earlier if line["step"] <= step]
            except (IsADirectoryError, ValueError, TypeError, KeyError):
                if self.file.is_dir():
                    shutil.rmtree(self.file)  # else no curve could be written
                logger.warning("%s: damaged; the curve begins at step %d", self.file, step + 1)
                self.lines = []

    def add(self, step: int, kind: str, values: Mapping[str, Any]) -> None:
        """A line; `flush` writes it."""
        self.lines.append({"step": step, "kind": kind, **values})

    def flush(self, *, durable: bool = True) -> None:
        """Write all lines to the file; `durable` waits until they are on the disk."""
        if self.file is not None:
            write_atomic(self.file, "".join(json.dumps(line) + "\n" for line in self.lines), durable=durable)
