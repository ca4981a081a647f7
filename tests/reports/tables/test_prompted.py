"""The footnote of a row whose texts are not read as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.load import RecordedRow
from reports.tables.score_cells import head_cells
from tests.support.invented_runs import run


@pytest.mark.parametrize(
    ("pooling", "marked"),
    [("echo", True), ("echo_last:[X] again: [X]", True), ("mean", False), ("prompt:[X]?", False)],
)
def test_a_row_that_reads_every_text_twice_is_marked(
    pooling: str, marked: bool, tmp_path: Path
) -> None:
    row = RecordedRow.of_records("mine", "base", (run(tmp_path, "pooling", {"pooling": pooling}),))
    assert any("twice" in note for note in head_cells(row)[0].notes) == marked


def test_prompts_are_in_the_same_note(tmp_path: Path) -> None:
    record = run(
        tmp_path, "pretrained", {"pooling": "echo"}, training={"prompts": {"STS": "query: "}}
    )
    (note,) = head_cells(RecordedRow.of_records("mine", "base", (record,)))[0].notes
    assert "twice" in note
    assert 'STS "query: "' in note
