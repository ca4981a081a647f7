"""A data set of the hub as a corpus: its rows are streamed, and what is taken of them is kept in the harness's cache.

Neither the whole set nor a copy of it in another format has to lie on the disk, and a second run reads nothing again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.errors import InputError
from harness.files.printable import tell_error
from harness.sources.remote.hub import dataset_errors, hub_commit

if TYPE_CHECKING:
    from datasets import IterableDataset

_ROWS = 1000  # read at once
_SILENT = 20.0  # seconds between two lines about a long read


@dataclass(frozen=True)
class HubTable:
    """Rows of a data set `repository` ("ORG/NAME"): its `config` ("": the only one) and `split` ("train+test": both).

    `labels` are the names of whole-number labels, where the set itself does not name them.
    """

    repository: str
    revision: str = ""
    config: str = ""
    split: str = "train"
    labels: tuple[str, ...] = ()

    def __str__(self) -> str:
        at = f"@{self.revision}" if self.revision else ""
        config = f"?config={self.config}&split=" if self.config else "?split="
        return f"hf://datasets/{self.repository}{at}{config}{self.split}"

    def commit(self) -> str | None:
        """The commit that the revision stands for now; None while the hub is out of reach.

        Raises:
            InputError: the hub has no such data set or revision.
        """
        return hub_commit(self.repository, self.revision or None)

    def rows(self, required: Sequence[str], optional: Sequence[str], commit: str) -> Iterator[tuple[str | None, ...]]:
        """The values of the columns `required` then `optional`, row by row (None: null, or no such column); labels by
        name.

        Raises:
            InputError: no such config, split or column, a column that holds no text.
            RunError: the connection broke.
        """
        import datasets

        began = told = time.monotonic()
        read = 0
        with dataset_errors(str(self), self.repository, self.revision or None):
            for split in self.split.split("+"):
                data = datasets.load_dataset(
                    self.repository, self.config or None, split=split, revision=commit, streaming=True
                )
                labels: dict[str, Sequence[str]] | None = None
                for batch in data.iter(batch_size=_ROWS):
                    if labels is None:  # features are None where only the rows tell them
                        self._check(required, list(batch))
                        labels = {column: self._labels(data, column) for column in (*required, *optional)}
                    count = len(next(iter(batch.values())))
                    nothing = [None] * count
                    values = [
                        self._texts(column, batch.get(column, nothing), names) for column, names in labels.items()
                    ]
                    yield from zip(*values, strict=True)
                    read += count
                    if time.monotonic() - told > _SILENT:
                        told = time.monotonic()
                        tell_error(f"{self}: {read:,} rows read in {told - began:.0f} s")

    def _check(self, required: Sequence[str], has: Sequence[str]) -> None:
        for column in required:
            if column not in has:
                raise InputError(
                    f'{self}: no column "{column}"; its columns are: {", ".join(has)}; name the right one with '
                    "columns=ROLE:COLUMN in the URI, or `columns`"
                )

    def _labels(self, data: IterableDataset, column: str) -> Sequence[str]:
        """Names of the labels, where a column holds their numbers."""
        feature = (data.features or {}).get(column)
        return getattr(feature, "names", None) or self.labels

    def _texts(self, column: str, values: Sequence[Any], labels: Sequence[str]) -> list[str | None]:
        return [value if isinstance(value, str) else self._label(column, value, labels) for value in values]

    def _label(self, column: str, value: Any, labels: Sequence[str]) -> str | None:
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool) and labels:
            return labels[value] if 0 <= value < len(labels) else None  # -1 stands for a row without a label
        raise InputError(f'{self}: column "{column}" holds no text but {str(value)[:40]!r} ({type(value).__name__})')
