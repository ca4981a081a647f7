"""Where the spread of a row comes from: each stream's runs apart from the row's seeds, and
intervals that hold.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from harness.results.spec import RunSpec
from harness.results.store import RunFolder
from harness.seeds import PartSeed, Stream
from reports.comparison.comparison_document import describe
from reports.document.table import Table
from reports.load import read_comparison
from reports.stats.significance import Significance
from reports.stats.spread_sources import (
    Decomposition,
    SpreadSource,
    decomposition,
    share_of,
    variance_interval,
)
from reports.tables.certainty import spread_table
from tests.support import synthetic
from tests.support.simulated_streams import coverage


@pytest.fixture
def made(tmp_path: Path) -> synthetic.Invented:
    return synthetic.Invented(tmp_path, scale=0.1)


def add(
    made: synthetic.Invented,
    seeds: tuple[int, ...],
    vary: tuple[Stream, ...] = (),
    noise: float = 1.0,
    held: int = 1,
) -> None:
    """SimCSE's runs; of a PartSeed where some streams are named."""
    for seed in seeds:
        spec = {"vary": vary, "held": held} if vary else {}
        made.add(
            "SimCSE", seed, noise=noise, tasks=("STS-B",), curves=False, geometry=False, spec=spec
        )


def of(made: synthetic.Invented) -> Decomposition:
    comparison = read_comparison(made.workdir, "invented")
    significance = Significance(comparison)
    (target,) = significance.targets
    found = decomposition(comparison.rows[0], significance, target)
    assert found is not None
    return found


def table_of(made: synthetic.Invented) -> Table:
    comparison = read_comparison(made.workdir, "invented")
    table = spread_table(comparison, Significance(comparison))
    assert table is not None
    return table


def test_runs_that_share_streams_are_no_seeds_of_the_row(made: synthetic.Invented) -> None:
    add(made, (1, 2, 3))
    add(made, (2, 3), ("init",))
    (row,) = read_comparison(made.workdir, "invented").rows
    assert [r.seed for r in row.records] == [1, 2, 3]
    assert [r.random_seed for r in row.partial_seed_runs] == [
        PartSeed(2, ("init",), 1),
        PartSeed(3, ("init",), 1),
    ]


def test_a_row_of_such_runs_alone_stands_with_one_and_is_not_judged(
    made: synthetic.Invented,
) -> None:
    add(made, (2, 3, 4), ("init",))
    comparison = read_comparison(made.workdir, "invented")
    (row,) = comparison.rows
    assert len(row.records) == 1
    assert not Significance(comparison).judged(row, Significance(comparison).targets[0])


def test_the_first_run_belongs_to_every_stream(made: synthetic.Invented) -> None:
    add(made, (1, 2, 3, 4))
    add(made, (2, 3, 4), ("data_order",), 1.2)
    add(made, (2, 3), ("init",), 1.1)
    found = of(made)
    comparison = read_comparison(made.workdir, "invented")
    values = {
        r.id: 100 * r.scores[0].value
        for r in [*comparison.rows[0].records, *comparison.rows[0].partial_seed_runs]
    }
    first = comparison.rows[0].records[0].id
    assert found.whole is not None
    assert [source.name for source in found.sources] == [
        "all streams",
        "initialisation",
        "data order",
        "test pairs",
    ]
    assert [len(source.scores) for source in found.parts] == [3, 4]
    assert first in found.parts[1].records
    for source in (found.whole, *found.parts):
        assert source.deviation == pytest.approx(
            np.std([values[run] for run in source.records], ddof=1)
        )
    assert found.unvaried == ("dropout", "views")


def test_the_interval_of_a_deviation_is_the_textbook_s() -> None:
    # variance 4 of five values: chi^2 with 4 degrees of freedom has its 2.5 and 97.5 % points at
    # 0.48442 and 11.14329
    assert variance_interval(4.0, 4) == pytest.approx((16 / 11.14329, 16 / 0.48442), rel=1e-4)


def test_the_interval_of_a_share_is_where_the_test_of_pitman_and_morgan_turns() -> None:
    """Variances of x and y are in the ratio q where x + sqrt(q) y and x - sqrt(q) y are
    uncorrelated.
    """
    x, y = (3.1, 4.0, 5.2, 4.4, 6.0), (2.0, 5.1, 6.3, 3.9, 7.7)
    seeds = (1, 2, 3, 4, 5)
    share = share_of(
        SpreadSource("", (), x, 0.0, 4.0, (), seeds), SpreadSource("", (), y, 0.0, 4.0, (), seeds)
    )
    assert share is not None
    assert share.value == pytest.approx(np.var(x) / np.var(y))
    for bound in (share.low, share.high):
        turned = np.sqrt(bound) * np.array(y)
        assert stats.pearsonr(np.array(x) + turned, np.array(x) - turned).pvalue == pytest.approx(
            0.05
        )


def test_a_share_is_by_the_seeds_of_both() -> None:
    part = SpreadSource("", (), (1.0, 2.0, 4.0, 3.0, 50.0), 0.0, 4.0, (), (1, 2, 3, 4, 9))
    whole = SpreadSource("", (), (2.0, 4.0, 8.0, 6.0), 0.0, 3.0, (), (1, 2, 3, 4))
    share = share_of(part, whole)
    assert share is not None
    assert (share.value, share.low, share.high) == pytest.approx((0.25, 0.25, 0.25), rel=1e-6)
    assert share_of(replace(part, seeds=(1, 2, 3, 7, 9)), whole) is None


@pytest.mark.parametrize("spreads", [(0.71, 0.71, 0.0), (0.0, 0.0, 1.0), (0.5, 0.71, 0.5)])
def test_intervals_hold_the_truth(spreads: tuple[float, float, float]) -> None:
    deviation, share = coverage(*spreads, runs=5, trials=1000)
    assert 0.93 < deviation < 0.97
    assert 0.93 < share < 0.97


def test_without_seeds_of_the_whole_row_there_are_no_shares(made: synthetic.Invented) -> None:
    add(made, (1,))
    add(made, (2, 3), ("init",))
    table = table_of(made)
    assert [row.cells[1].text for row in table.rows] == ["initialisation", "test pairs"]
    assert all(
        row.cells[4].value is None for row in table.rows
    )  # without runs of other seeds, no share


def test_a_stream_that_is_not_drawn_from_brings_nothing(made: synthetic.Invented) -> None:
    add(made, (1, 2, 3, 4))
    records = read_comparison(made.workdir, "invented").records
    for seed in (2, 3, 4):
        spec = RunSpec(**{**dict(records[0].spec), "seed": seed, "vary": ("views",), "held": 1})
        again = records[0].model_copy(update={"id": spec.id, "spec": spec})
        RunFolder(made.workdir, again.id).write(again)
    (line,) = [row for row in table_of(made).rows if row.cells[1].text == "views"]
    assert (line.cells[3].text, line.cells[4].text) == ("0", "0")


def test_the_page_has_the_table_and_names_the_runs(made: synthetic.Invented) -> None:
    add(made, (1, 2, 3))
    add(made, (2, 3), ("dropout",))
    document = describe(read_comparison(made.workdir, "invented"))
    assert "spread" in [table.key for table in document.tables()]
    held = [run for run in document.origin["runs"].values() if "vary" in run]
    assert sorted((run["seed"], run["vary"], run["held"]) for run in held) == [
        (2, ["dropout"], 1),
        (3, ["dropout"], 1),
    ]
