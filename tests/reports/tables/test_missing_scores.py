"""A task whose data was missing: a cell that says why, and no average that looks whole without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.results.record import Missing, Score
from harness.results.store import RunFolder
from harness.tasks.senteval.transfer import TRANSFER
from reports.load import read_comparison
from reports.tables.suites import sts_tables, suite_tables
from reports.targets import targets
from tests.support.synthetic import STS, Invented

LEFT = tuple(task for task in STS if task != "STS16")
WHY = "hf://datasets/x/STS16: not in the local cache, and the hub cannot be reached"


@pytest.mark.parametrize("everywhere", [True, False])
def test_a_missing_task_is_a_marked_cell_and_the_average_is_incomplete(
    tmp_path: Path, everywhere: bool
) -> None:
    invented = Invented(tmp_path, scale=0.05)
    invented.add("mean", supervision="untrained", tasks=LEFT if everywhere else tuple(STS))
    lacking = invented.add("SimCSE", tasks=LEFT)
    for record in [
        lacking,
        *(r for r in read_comparison(tmp_path, "invented").records if everywhere),
    ]:
        RunFolder(tmp_path, record.id).write(
            record.model_copy(update={"missing": {"STS16": Missing("data", WHY)}})
        )
    comparison = read_comparison(tmp_path, "invented")
    (target,) = targets(comparison)
    assert [task for task, _ in target.tasks] == list(STS)
    (table,) = sts_tables(comparison, None)
    place = {column.key: j for j, column in enumerate(table.columns)}
    assert table.columns[place["average"]].sub == "7 tasks"
    rows = {row.cells[0].text: row.cells for row in table.rows}
    for label in ("mean", "SimCSE") if everywhere else ("SimCSE",):
        cell, average = rows[label][place["STS16"]], rows[label][place["average"]]
        assert (cell.state, cell.notes) == ("missing", (WHY,))
        assert (average.state, average.value) == ("missing", None)
        assert "STS16" in average.notes[0]
        assert rows[label][place["STS15"]].state == "value"
    if not everywhere:
        assert rows["mean"][place["average"]].state == "value"


def test_what_an_evaluation_remarks_about_a_task_is_a_footnote_of_its_cell(tmp_path: Path) -> None:
    invented = Invented(tmp_path, scale=0.05)
    record = invented.add("mean", supervision="untrained", tasks=tuple(STS))
    note = "STS12: examples: 700 in MSRpar (not 750); files cut short"
    RunFolder(tmp_path, record.id).write(record.model_copy(update={"training": {"notes": [note]}}))
    (table,) = sts_tables(read_comparison(tmp_path, "invented"), None)
    place = {column.key: j for j, column in enumerate(table.columns)}
    (row,) = table.rows
    assert row.cells[place["STS12"]].notes == (note,)
    assert row.cells[place["STS13"]].notes == ()


def test_transfer_tables_mark_what_is_missing(tmp_path: Path) -> None:
    def scores(tasks: tuple[str, ...], suite: str, value: float) -> list[Score]:
        return [
            Score(
                task=t,
                suite=suite,
                source="s",
                split=split,
                metric="accuracy",
                aggregation="",
                value=v,
                n=10,
                protocol="p" + t + split,
                comparable=t + split,
            )
            for t in tasks
            for split, v in (("dev", 0.1), ("test", value))
        ]

    invented = Invented(tmp_path, scale=0.05)
    for label, tasks, missing in (
        ("whole", TRANSFER, {}),
        ("lacking", TRANSFER[1:], {TRANSFER[0]: Missing("data", WHY)}),
    ):
        record = invented.add(label)
        own = scores(tasks, "transfer", 0.8) + scores(
            ("Embedded-Questions",), "embedded-transfer", 0.25
        )
        RunFolder(tmp_path, record.id).write(
            record.model_copy(update={"scores": record.scores + own, "missing": missing})
        )
    transfer, embedded = suite_tables(read_comparison(tmp_path, "invented"))
    rows = {row.cells[0].text: row.cells for row in transfer.rows}
    assert [cell.value for cell in rows["whole"][3:]] == pytest.approx([80.0] * 8)
    assert TRANSFER[0] in rows["lacking"][-1].notes[0]
    at = [column.key for column in transfer.columns].index(TRANSFER[0])
    assert rows["lacking"][at].notes == (WHY,)
    assert [column.title for column in embedded.columns[3:]] == ["Questions"]
    assert {row.cells[3].value for row in embedded.rows} == {25.0}
