"""The kept vectors of a row as a table for Embedding Atlas and its like: text, place, class, neighbours, vector.

embedding-atlas FILE.parquet --text text --x x --y y --neighbors neighbors
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from harness.errors import InputError, RunError
from reports.explore.embedding_map import labels_of, space_maps, words_of
from reports.read.comparison_runs import Comparison, ResultRow

EVERY = 1_000_000  # texts: all that were kept


def write_atlas(comparison: Comparison, row: ResultRow, file: Path) -> int:
    """Write the sample of a row's first run as Parquet; how many texts it has.

    Columns: x, y (first principal components), text ("" where its data cannot be had here), task, source, label, id,
    neighbors (a struct of "ids", numbers of rows, and "distances", 1 less the cosine), vector (float32).

    Raises:
        InputError: its runs kept no vectors. RunError: the file cannot be written.
    """
    import pandas as pd

    maps = space_maps(comparison, [row], EVERY)
    if not maps:
        raise InputError(
            f'no run of "{row.label}" kept vectors: earlier versions kept none; score it again on another task, or '
            "train it anew"
        )
    (one,) = maps
    task, source, ids = zip(*one.texts, strict=True)
    near = [
        {"ids": places.tolist(), "distances": np.round(1 - cosines, 6).tolist()}
        for places, cosines in zip(one.nearest, one.cosines, strict=True)
    ]
    frame = pd.DataFrame(
        {
            "x": one.xy[:, 0],
            "y": one.xy[:, 1],
            "text": words_of(one.texts),
            "task": task,
            "source": source,
            "label": labels_of(one.texts),
            "id": [f"{number % 2**64:016x}" for number in ids],
            "neighbors": near,
            "vector": list(one.vectors),
        }
    )
    try:
        frame.to_parquet(file, index=False, compression="zstd")
    except OSError as error:
        raise RunError(f"{file}: cannot be written ({error.strerror})") from None
    return len(frame)
