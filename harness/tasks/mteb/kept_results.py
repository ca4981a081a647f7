"""What mteb keeps of one model on one task, so that it is read and not computed again; and the examples beside it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pandas as pd

from harness.files.atomic import write_atomic


class KeptResults:
    """In mteb's own `cache`; nothing is kept where that is None."""

    def __init__(self, cache: Any, model: Any, task: Any) -> None:
        self.cache = cache
        self._model = model
        self._task = task

    def _file(self, task: Any) -> Path:
        path: Path = self.cache.get_task_result_path(model_name=self._model, task_name=task.metadata.name)
        return path

    @property
    def _examples(self) -> Path:
        return self._file(self._task).with_suffix(".examples.parquet")

    def mended(self, *, with_examples: bool) -> pd.DataFrame | None:
        """The examples beside the result, after what a crash cut in half was removed: mteb would stumble over it.

        `with_examples`: a result without examples is removed too. An earlier version made it, or a kill came between.
        """
        if self.cache is None:
            return None
        whole = self._file(self._task)
        for file in whole.parent.glob("*.json*"):
            if not _sound(file):
                file.unlink()
        if not whole.exists():  # it will not fit what is made anew
            self._examples.unlink(missing_ok=True)
        examples = _read(self._examples)
        if examples is None and with_examples:
            for task in [self._task, *(getattr(self._task.metadata, "tasks", None) or [])]:
                self._file(task).unlink(missing_ok=True)
        return examples

    def keep(self, examples: pd.DataFrame) -> None:
        if self.cache is not None:
            buffer = io.BytesIO()
            examples.to_parquet(buffer, index=False, compression="zstd")
            write_atomic(self._examples, buffer.getvalue())


def _sound(file: Path) -> bool:
    text = file.read_text("utf-8", errors="replace")
    try:
        for part in text.splitlines() if file.suffix == ".jsonl" else [text]:
            json.loads(part)
    except ValueError:
        return False
    return True


def _read(file: Path) -> pd.DataFrame | None:
    """None where nothing lies, or it is damaged."""
    try:
        return pd.read_parquet(file) if file.exists() else None
    except (OSError, ValueError):
        return None
