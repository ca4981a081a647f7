"""What a comparison's report says about its own certainty, and what it leaves out where the data
does not suffice.
"""

from __future__ import annotations

from pathlib import Path
from statistics import stdev

import pytest

from reports.comparison.comparison_document import describe
from reports.load import read_comparison
from reports.stats.significance import Significance
from reports.tables.suites import sts_tables
from tests.support import synthetic


def comparison(folder: Path, seeds: tuple[int, ...]) -> None:
    made = synthetic.Invented(folder, scale=0.05)
    made.add("mean", 0, noise=2.0, supervision="untrained", pooling="mean")
    for seed in seeds:
        made.add("SimCSE", seed, noise=0.98)
        made.add("SCD", seed, noise=1.27)
        tasks = ("STS12", "STS13", "STS14") if seed == 2 else tuple(made.gold)
        made.add("TSDAE", seed, noise=1.1, tasks=tasks)


def test_each_row_has_its_own_deviation_over_seeds(tmp_path: Path) -> None:
    comparison(tmp_path, (1, 2, 3))
    read = read_comparison(tmp_path, "invented")
    (table, *_) = sts_tables(read, Significance(read))
    assert table is not None
    place = [column.key for column in table.columns].index("STS12")
    shown = {line.cells[0].text: line.cells[place] for line in table.rows}
    for row in (row for row in read.rows if row.label in ("SimCSE", "SCD")):
        scores = [
            100 * score.value for _, score in row.scores("STS12", "senteval", "spearman", "all")
        ]
        assert shown[row.label].sd == pytest.approx(stdev(scores))
    assert shown["SimCSE"].sd != pytest.approx(shown["SCD"].sd)


def test_one_seed_pretends_nothing(tmp_path: Path) -> None:
    comparison(tmp_path, (1,))
    read = read_comparison(tmp_path, "invented")
    assert "certainty" not in {section.key for section in describe(read).sections}


@pytest.mark.parametrize("seeds", [2, 3])
def test_nothing_is_marked_beside_an_added_start_and_a_row_of_two_seeds(
    tmp_path: Path, seeds: int
) -> None:
    """The start is in no pair of the table, so that SimCSE would be compared with nothing."""
    made = synthetic.Invented(tmp_path, scale=0.05)
    runs = {"mean": {"added": True}}
    records = [made.add("mean", 0, noise=2.0, supervision="untrained", pooling="mean")]
    records += [made.add("SimCSE", seed, noise=0.98) for seed in (1, 2, 3)]
    records += [made.add("SCD", seed, noise=1.27) for seed in range(1, seeds + 1)]
    synthetic.write_comparison(tmp_path, records, runs)
    read = read_comparison(tmp_path, "invented")
    (table, *_) = sts_tables(read, Significance(read))
    ranks = {cell.rank for line in table.rows for cell in line.cells}
    assert (ranks != {0}) == (seeds == 3)
    assert any("Tested" in text for text in table.legend) == (seeds == 3)
