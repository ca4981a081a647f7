"""The records that ship with the package: what they are, and that the documentation's tables are
theirs.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from docs.census import describe_rank, read_blocks, table
from harness.results.elsewhere import open_workdir
from harness.results.store import read_comparison_file, read_records
from harness.runs.experiment import read_experiment
from studies import CENSUS, CENSUS_NAME, CENSUS_TABLE
from tools.census import rank_rows


def test_they_are_whole_rows_of_the_file_and_small() -> None:
    experiment = read_experiment(CENSUS_NAME)
    with open_workdir(CENSUS) as folder:
        file = read_comparison_file(folder, CENSUS_NAME)
        assert file is not None
        records = read_records(folder, CENSUS_NAME)
        seeds: dict[str, set[int]] = {}
        for run in file.runs:
            if not run.row.startswith("untrained "):
                seeds.setdefault(run.row, set()).add(run.seed)
        assert seeds.keys() <= {entry.name for entry in experiment.methods}
        assert all(some in ({1}, set(experiment.seeds)) for some in seeds.values())
        assert len(records) == len({run.id for run in file.runs})
        assert not list(Path(folder).rglob("*.safetensors"))
    assert CENSUS.stat().st_size < 5_000_000


def test_rows_of_a_block_are_ranked_best_first_and_their_ranges_hold_their_places() -> None:
    for lines in read_blocks().values():
        scores = [float(line["score"]) for line in lines]
        assert scores == sorted(scores, reverse=True)
        for line in lines:
            if line["first rank"]:
                assert int(line["first rank"]) <= int(line["place"]) <= int(line["last rank"])
            assert float(line["low"]) <= float(line["score"]) <= float(line["high"])


def test_a_line_of_the_table_says_what_is_not_known() -> None:
    line = {
        "place": "1",
        "row": "a | b",
        "score": "60.00",
        "deviation": "",
        "first rank": "",
        "last rank": "",
        "group": "",
        "start": "",
        "STS-B": "40.00",
        "Embedded-Phenomena": "",
    }
    assert table([line]).splitlines()[-1] == "| 1 | a \\| b | 60.00 | – | – |  | – | 40.00 | – |"
    assert describe_rank({"first rank": "2", "last rank": "2"}) == "2"
    assert describe_rank({"first rank": "2", "last rank": "5"}) == "2 to 5"


@pytest.mark.campaign
def test_the_table_is_that_of_the_records() -> None:
    with CENSUS_TABLE.open(encoding="utf-8", newline="") as file:
        written = list(csv.DictReader(file))
    with open_workdir(CENSUS) as folder:
        assert rank_rows(folder) == written
