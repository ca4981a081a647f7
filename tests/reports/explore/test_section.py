"""The table of examples in the report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reports.explore.examples import read_tasks
from reports.explore.section import example_table
from reports.read.comparison_runs import Comparison, read_comparison
from tests.reports.explore.conftest import CLASSES, PAIRS


@pytest.fixture(scope="module")
def comparison(explored: Path) -> Comparison:
    return read_comparison(explored, "invented")


def test_the_table_of_examples_has_the_largest_errors_of_each_task(comparison: Comparison) -> None:
    table = example_table(comparison)
    assert table is not None
    assert [block.split(" ")[0] for block, _ in table.blocks()] == [PAIRS, CLASSES]
    (task,) = read_tasks(comparison, lambda task: task == PAIRS)
    medians = np.median(list(task.errors.values()), axis=0)
    shown = [line.cells[-1].value for line in table.rows[:3]]
    assert shown == pytest.approx(sorted(medians, reverse=True)[:3])


def test_texts_of_other_data_sets_stay_out_of_the_report(
    comparison: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reports.explore.section._OWN_SOURCE", "another source")
    assert example_table(comparison) is None
    assert example_table(replace(comparison, show_texts=True)) is not None
