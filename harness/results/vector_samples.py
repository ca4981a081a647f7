"""The kept sample of a run's vectors (`sample.parquet`): columns task, source, id (`harness.results.text_ids`) and
vector, the bytes of d little-endian half-precision numbers of unit length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("task", "source", "id", "vector")


def frame(task: str, source: str, ids: Sequence[int], vectors: NDArray[Any]) -> pd.DataFrame:
    """The rows of one task: n ids and (n, d) vectors."""
    import pandas as pd

    rows = [row.astype("<f2").tobytes() for row in vectors]
    columns = {"task": task, "source": source, "id": np.array(ids, dtype=np.int64), "vector": rows}
    return pd.DataFrame(columns, columns=list(COLUMNS))


def vectors_of(sample: pd.DataFrame) -> NDArray[np.float32]:
    """(n, d).

    Raises:
        ValueError: rows of unlike length.
    """
    rows = [np.frombuffer(row, dtype="<f2") for row in sample["vector"]]
    return np.stack(rows).astype(np.float32) if rows else np.empty((0, 0), dtype=np.float32)
