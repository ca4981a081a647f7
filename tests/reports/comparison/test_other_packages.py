"""What other packages bring to a comparison's report: tables by an entry point, suites that no
table of ours knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import registry
from harness.tasks.suite import Suite
from reports.comparison.comparison_document import describe
from reports.document.table import Table
from reports.load import RecordedResults, read_comparison
from tests.support import invented_runs as made
from tests.support.errors import raises_input_error


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """Make entry points known as an installed package's metadata does."""
    site = tmp_path / "site"
    folder = site / "theirs-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")

    def points(group: str, lines: dict[str, str]) -> Path:
        with (folder / "entry_points.txt").open("a") as file:
            file.write(
                f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in lines.items())
            )
        registry._read_entry_points.cache_clear()
        return site

    monkeypatch.syspath_prepend(str(site))
    yield points
    registry._read_entry_points.cache_clear()


def runs(workdir: Path) -> RecordedResults:
    for seed, value in ((1, 70.0), (2, 74.5)):
        scores = [
            *made.sts(value),
            made.score("word-order", value - 20, "accuracy", "", suite="mine", source="theirs"),
            made.score("word-order", value - 30, "f1", "", suite="mine", source="theirs"),
        ]
        made.run(workdir, "simcse", seed=seed, scores=scores)
    alone = [
        *made.sts(60),
        made.score("word-order", 55, "accuracy", "", suite="mine", source="theirs"),
    ]
    made.run(workdir, "pooling", row="mean", supervision="untrained", scores=alone)
    return read_comparison(workdir, "invented")


def test_a_section_of_their_own_stands_before_how_it_was_run(tmp_path: Path, install) -> None:
    site = install("harness.tables", {"own": "own_section:TABLE"})
    (site / "own_section.py").write_text(
        "from reports.document.blocks import Text\n"
        "from reports.tables.builder import TableBuilder\n"
        "TABLE = TableBuilder('Energy', lambda comparison, significance: Text(('2 kWh',)))\n"
    )
    titles = [section.title for section in describe(runs(tmp_path / "work")).sections]
    assert titles[titles.index("Energy") + 1] == "How it was run"


def test_what_is_no_builder_is_named(tmp_path: Path, install) -> None:
    site = install("harness.tables", {"wrong": "wrong_table:TABLE"})
    (site / "wrong_table.py").write_text("def TABLE(): ...\n")
    with raises_input_error(key="wrong"):
        describe(runs(tmp_path / "work"))


def suite_table(comparison: RecordedResults) -> Table:
    return next(table for table in describe(comparison).tables() if table.key == "suite-mine")


def test_a_suite_that_nothing_installed_knows_has_a_table_from_its_scores(tmp_path: Path) -> None:
    table = suite_table(runs(tmp_path))
    column = table.columns[3]
    assert (column.title, column.sub, column.better) == (
        "word-order",
        "accuracy · 10 examples",
        "higher",
    )
    assert [row.cells[3].text for row in table.rows] == ["55.00", "52.25"]
    assert [row.cells[3].spread for row in table.rows] == ["", "± 3.18"]  # 4.5 / sqrt(2)
    assert table.rows[1].cells[2].text == "2"
    assert not any(cell.rank for row in table.rows for cell in row.cells)


def test_a_registered_suite_says_its_metric_and_chance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = Suite(
        ("word-order",),
        "Whether vectors know the order of words.",
        metric="f1",
        chance=0.5,
        percent=False,
    )
    for module in ("reports.tables.suites", "reports.suite_targets"):
        monkeypatch.setattr(f"{module}.find_suite", {"mine": mine}.get)
    table = suite_table(runs(tmp_path))
    assert table.columns[3].sub == "f1 · chance 0.5000 · 10 examples"
    assert table.columns[3].better == "higher"
    assert [row.cells[3].text for row in table.rows] == ["n/a", "0.4225"]
    assert table.caption == mine.about
