"""The report's section: slices that a reader can verify, scores of their examples alone, and a
table of examples.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from reports.document.table import Table
from reports.explore.examples import read_tasks
from reports.explore.section import FEWEST, explore, slice_masks, slices_of
from reports.load import RecordedResults, read_comparison
from reports.stats.significance import Significance
from tests.reports.explore.conftest import CLASSES, PAIRS


@pytest.fixture(scope="module")
def comparison(explored: Path) -> RecordedResults:
    return read_comparison(explored, "invented")


def tables(comparison: RecordedResults) -> list[Table]:
    found = explore(comparison, Significance(comparison))
    assert all(isinstance(table, Table) for table in found)
    return found  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("texts", "rule", "name"),
    [
        (("I don't know", "He didn’t go"), "Negation", "with"),
        (("Nothing without a note", "a note"), "Negation", "in one text only"),
        (("the knot was northern",), "Negation", "without"),
        (("A cat sat.", "a cat ran"), "Word overlap", "1/3 to 2/3"),
        (("one two", "three"), "Word overlap", "below 1/3"),
        (("one", "w " * 9), "Length", "9 to 16 words"),
        (("w " * 17,), "Length", "over 16 words"),
    ],
)
def test_slices_of_an_example(texts: tuple[str, ...], rule: str, name: str) -> None:
    assert slices_of(texts)[rule] == name
    assert ("Word overlap" in slices_of(texts)) == (len(texts) == 2)


def test_a_slice_has_the_score_of_its_examples_alone(comparison: RecordedResults) -> None:
    (task,) = read_tasks(comparison, lambda task: task == PAIRS)
    masks = slice_masks(task)
    table = tables(comparison)[0]
    assert [(c.group, c.title, int(c.sub)) for c in table.columns[1:]] == [
        (*k, m.sum()) for k, m in masks.items()
    ]
    assert all(mask.sum() >= FEWEST for mask in masks.values())
    for row, line in zip(task.rows(comparison), table.rows, strict=True):
        for mask, cell in zip(masks.values(), line.cells[1:], strict=True):
            runs = task.runs[row.key].values()
            values = [spearmanr(run.target[mask], run.outcome[mask]).statistic for run in runs]
            assert cell.value == pytest.approx(100 * np.mean(values), abs=1e-6)


def test_the_table_of_examples_has_the_largest_errors_of_each_task(
    comparison: RecordedResults,
) -> None:
    table = tables(comparison)[1]
    assert [block.split(" ")[0] for block, _ in table.blocks()] == [PAIRS, CLASSES]
    (task,) = read_tasks(comparison, lambda task: task == PAIRS)
    medians = np.median(list(task.errors.values()), axis=0)
    shown = [line.cells[-1].value for line in table.rows[:3]]
    assert shown == pytest.approx(sorted(medians, reverse=True)[:3])


def test_texts_of_other_data_sets_stay_out_of_the_report(
    comparison: RecordedResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reports.explore.section._OWN_SOURCE", "another source")
    assert [table.key for table in tables(comparison)] == ["slices"]
    assert [table.key for table in tables(replace(comparison, show_texts=True))] == [
        "slices",
        "examples",
    ]
