"""A curve by each option that rows differ in alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.results.comparison import ComparisonFile, ListedRun
from harness.results.store import write_comparison_file
from reports.figures.grid_curves import find_curves, grid_curves
from reports.load import RecordedResults, read_comparison
from reports.stats.significance import Significance
from tests.support import invented_runs as made


def compared(
    workdir: Path, rows: dict[str, tuple[dict[str, object], tuple[float, ...]]]
) -> RecordedResults:
    runs = []
    for label, (config, scores) in rows.items():
        for seed, score in enumerate(scores, 1):
            values = made.recipe("simcse", "default", "", **config)
            record = made.run(workdir, "simcse", values, seed, row=label, scores=made.sts(score))
            runs.append(ListedRun(id=record.id, row=label, base_model=record.base_model, seed=seed))
    tasks = tuple(f"senteval:{task}" for task in made.STS)
    write_comparison_file(workdir, ComparisonFile(name="mine", runs=tuple(runs), tasks=tasks))
    return read_comparison(workdir, "mine")


GRID = {
    f"SimCSE · temperature {t}": ({"temperature": t, "seed": 0}, (70.0 + i, 72.0 + i, 71.0 + i))
    for i, t in enumerate((0.01, 0.05, 0.5))
}


def test_a_grid_of_one_number_is_a_curve_with_intervals(tmp_path: Path) -> None:
    results = compared(tmp_path, GRID)
    (figure,) = grid_curves(results, Significance(results).first)
    assert figure.key == "grid-temperature"
    # 70, 71, 72: mean 71, s = 1, t(2; 0.975) = 4.3027: 71 +- 4.3027 / sqrt(3)
    assert "0.01: 71.00 [68.52, 73.48]" in figure.alt
    (axes,) = figure.plot.axes
    (line,) = [one for one in axes.lines if len(one.get_xdata()) == 3 and one.get_marker() == "o"]
    assert list(line.get_xdata()) == [0.01, 0.05, 0.5]
    np.testing.assert_allclose(line.get_ydata(orig=False), [71, 72, 73])
    assert axes.get_xscale() == "log"


@pytest.mark.parametrize("fewer", ["two values", "another option too", "no number"])
def test_what_is_no_grid_of_one_number_has_none(tmp_path: Path, fewer: str) -> None:
    rows = dict(GRID)
    last = "SimCSE · temperature 0.5"
    if fewer == "two values":
        del rows[last]
    elif fewer == "another option too":
        rows[last] = ({"temperature": 0.5, "learning_rate": 1e-5}, rows[last][1])
    else:
        rows = {
            f"{pooling}": ({"pooling": pooling}, (70.0, 71.0)) for pooling in ("cls", "mean", "max")
        }
    assert find_curves(compared(tmp_path, rows).rows) == {}


def test_two_base_curves_of_one_option_are_one_figure(tmp_path: Path) -> None:
    rows = dict(GRID)
    for label, (config, scores) in GRID.items():
        rows[label.replace("SimCSE", "Mean")] = ({**config, "pooling": "mean"}, scores)
    results = compared(tmp_path, rows)
    (figure,) = grid_curves(results, Significance(results).first)
    assert figure.alt.count("0.05:") == 2
    assert "SimCSE" in figure.alt
    assert "Mean" in figure.alt
