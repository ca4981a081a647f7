"""Scores within slices: those of the examples alone, judged with the correction for all slices."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import spearmanr

from reports.explore.examples import explored_tasks
from reports.explore.slice_tables import _difference, slice_blocks
from reports.explore.slices import FEWEST, slices_of
from reports.read.comparison_runs import read_comparison
from reports.stats.estimate import Estimate
from reports.stats.significance import Significance
from tests.reports.explore.conftest import CLASSES, PAIRS


def test_a_slice_has_the_score_of_its_examples_alone(explored: Path) -> None:
    comparison = read_comparison(explored, "invented")
    tasks = explored_tasks(comparison)
    found = slices_of(comparison, tasks)
    assert all(one.n >= FEWEST for one in found)
    assert {one.task.task for one in found} == {PAIRS, CLASSES}
    for one in found:
        named, numbers = one.task.traits[one.trait]
        mask = numbers == named.index(one.name)
        assert one.n == mask.sum()
        for row in comparison.rows:
            runs = one.task.runs[row.key].values()
            if one.task.task == PAIRS:
                values = [spearmanr(run.target[mask], run.outcome[mask]).statistic for run in runs]
            else:
                values = [run.outcome[mask].mean() for run in runs]
            assert one.mean(row) == pytest.approx(100 * np.mean(values), abs=1e-6)


def test_intervals_are_wider_by_the_correction_for_all_slices(explored: Path) -> None:
    comparison = read_comparison(explored, "invented")
    a, b = comparison.rows
    one = next(s for s in slices_of(comparison, explored_tasks(comparison)) if s.name == "without")
    (corrected,) = one.against([a], b)
    alone = Significance(comparison, examples=one.significance._examples)
    (single,) = alone.differences([(a, b)], one.target)
    assert corrected is not None
    assert single is not None
    assert corrected.estimate.value == single.estimate.value
    assert corrected.estimate.high - corrected.estimate.low > single.estimate.high - single.estimate.low
    assert corrected.estimate.p >= single.estimate.p


def test_tables_and_a_figure_of_each_task(explored: Path) -> None:
    comparison = read_comparison(explored, "invented")
    blocks = slice_blocks(comparison, explored_tasks(comparison))
    keys = [block.key for block in blocks]
    assert keys[0] == f"slices-embedded-{PAIRS}"
    assert keys[1] == f"{keys[0]}-differences"
    assert "corrected for all pairs of rows and for the" in blocks[1].legend[0]
    assert [len(row.cells) for row in blocks[0].rows] == [len(blocks[0].columns)] * 2
    assert blocks[0].columns[1].group == "Length"
    assert blocks[0].columns[1].sub.isdigit()


def test_an_interval_wider_than_scores_can_differ_is_not_shown() -> None:
    def cell(half: float) -> tuple[str, str, tuple[str, ...]]:
        estimate = Estimate(0.02, 0.02 - half, 0.02 + half, 0.5)
        shown = _difference(SimpleNamespace(estimate=estimate, judged=True, verdict="not separable"))
        return shown.text, shown.spread, shown.notes

    assert cell(0.1) == ("+2.0", "[−8.0, 12.0]", ())
    assert cell(76.0) == ("+2.0", "", ("not known: its few seeds differ too much for an interval",))
