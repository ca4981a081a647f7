"""The table and the figure of compressed vectors: the scores that the task gave, by the bytes of a
sentence.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.results.record import Record
from harness.sources.pair_sets import PairSet, Subset
from harness.tasks.compression import CompressionTask
from reports.load import RecordedResults, read_comparison
from reports.tables.compression import compression_figure, compression_tables
from tests.support import synthetic

D = 40


def scored(made: synthetic.Invented, row: str, seed: int) -> Record:
    """A run with the scores of random vectors."""
    rng = np.random.default_rng(seed)
    texts = [f"text {i}" for i in range(60)]
    vectors = dict(zip(texts, rng.normal(size=(60, D)).astype(np.float32), strict=True))
    subset = Subset("test", texts[:30], texts[30:], np.arange(30, dtype=np.float64))
    task = CompressionTask.of(PairSet("STS-B", "senteval", "test", (subset,), "0" * 64, "raw text"))
    result = task.evaluate(lambda some: np.stack([vectors[text] for text in some]), pooling="mean")
    record = made.add(row, seed, tasks=("STS-B",), geometry=False)
    return made.extend(record, result.scores, figures=result.figures)


def test_scores_are_tabled_and_drawn_by_their_bytes(tmp_path: Path) -> None:
    made = synthetic.Invented(tmp_path, scale=0.05)
    records = [scored(made, "SimCSE", 1), scored(made, "SimCSE", 2), scored(made, "SCD", 3)]
    comparison: RecordedResults = read_comparison(tmp_path, "invented")
    (table,) = compression_tables(comparison)
    line = next(row for row in table.rows if row.cells[0].text.startswith("SimCSE"))
    shown = {column.key: cell for column, cell in zip(table.columns, line.cells, strict=True)}
    scores = [s for r in records[:2] for s in r.scores if s.task == "compression:STS-B"]
    of = {metric: [s.value for s in scores if s.metric == metric] for metric in shown}
    for metric in (
        "spearman",
        "spearman_first_16",
        "spearman_random_16",
        "spearman_mteb_int8",
        "spearman_hamming",
    ):
        assert shown[metric].value == pytest.approx(100 * np.mean(of[metric]))
    assert "spearman_first_64" not in shown
    figure = compression_figure(comparison)
    assert figure is not None
    (axes,) = [axes for axes in figure.plot.axes if axes.get_visible()]
    filled, hollow = axes.get_lines()[:2]
    assert list(filled.get_xdata()) == [4 * 16, 4 * 32, 4 * D]
    assert list(hollow.get_xdata()) == [D / 8, D, 4 * D]
    assert filled.get_ydata()[-1] == hollow.get_ydata()[-1]
    drawn = {row.label: row for row in comparison.rows}
    assert set(axes.get_legend_handles_labels()[1]) == set(drawn)


def test_without_such_scores_there_is_neither(tmp_path: Path) -> None:
    made = synthetic.Invented(tmp_path, scale=0.05)
    made.add("SimCSE", tasks=("STS-B",))
    comparison = read_comparison(tmp_path, "invented")
    assert compression_tables(comparison) == []
    assert compression_figure(comparison) is None
