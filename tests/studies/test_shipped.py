"""The records that ship with the package: what they are, and that the documentation's table is
theirs.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from pathlib import Path

import pytest

from docs.make import REPOSITORY
from harness.api.experiments import sources_of
from harness.results.elsewhere import open_workdir
from harness.results.store import comparison_file, read_comparison_file, read_records
from harness.runs.against import find_other_rows
from harness.runs.experiment import read_experiment
from harness.runs.plan import make_plan
from studies import SHIPPED, SHIPPED_TABLE
from tools.shipped import NAME, table

PAGE = REPOSITORY / "docs" / "how-to" / "runs-of-others.md"


@pytest.fixture(scope="module")
def conditions() -> dict[str, object]:
    """The conditions that the page says a file needs."""
    text = PAGE.read_text(encoding="utf-8").partition("```toml\n")[2].partition("```")[0]
    return tomllib.loads(text)


def test_they_are_whole_rows_of_the_file_and_small() -> None:
    experiment = read_experiment("shipped")
    with open_workdir(SHIPPED) as folder:
        file = read_comparison_file(folder, NAME)
        assert file is not None
        records = read_records(folder, NAME)
        seeds: dict[str, set[int]] = {}
        for run in file.runs:
            if not run.row.startswith("untrained "):
                seeds.setdefault(run.row, set()).add(run.seed)
        assert seeds.keys() == {entry.name for entry in experiment.methods}
        assert all(some in ({1}, set(experiment.seeds)) for some in seeds.values())
        assert len(records) == len(file.runs)
        assert not list(Path(folder).rglob("*.safetensors"))
    assert SHIPPED.stat().st_size < 3_000_000


def test_their_comparison_file_is_written_as_it_was_read_with_a_hash() -> None:
    with open_workdir(SHIPPED) as folder:
        text = comparison_file(folder, NAME).read_text(encoding="utf-8")
        file = read_comparison_file(folder, NAME)
    assert file is not None
    assert file.sha256 == ""  # an earlier version wrote it
    expected = {**json.loads(text), "schema": 2}
    canonical = json.dumps(expected, sort_keys=True, separators=(",", ":"))
    expected["sha256"] = hashlib.sha256(canonical.encode()).hexdigest()
    assert file.to_text() == json.dumps(expected, indent=1) + "\n"


def test_a_file_with_their_conditions_is_compared_with_them(conditions: dict[str, object]) -> None:
    methods = [{"method": "simcse", "preset": "mini", "config": {"temperature": 0.1}}]
    plan = make_plan(read_experiment({"name": "mine", **conditions, "methods": methods}), "here")
    found = find_other_rows(plan, sources_of([NAME]), None)
    assert any(line.startswith("compared with") for line in found.summary())


def test_the_page_has_numbers_of_the_table() -> None:
    of_table = {
        cells[2].strip(): cells[3:5]
        for line in SHIPPED_TABLE.read_text(encoding="utf-8").splitlines()
        if len(cells := line.split("|")) > 5
    }
    rows = re.findall(
        r"^\| (.+?)(?: \(untrained\))? \|( \d.*? )\|(.*?)\|$",
        PAGE.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert len(rows) == 7
    assert all(of_table[name] == [score, deviation] for name, score, deviation in rows)


@pytest.mark.campaign
def test_the_table_is_that_of_the_records() -> None:
    assert table() == SHIPPED_TABLE.read_text(encoding="utf-8")
