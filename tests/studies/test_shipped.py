"""The records that ship with the package: what they are, and that the documentation's table is theirs."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from docs.make import REPOSITORY
from harness.comparison.beside import set_beside
from harness.comparison.experiment import read_experiment
from harness.comparison.plan import make_plan
from harness.results.elsewhere import opened
from harness.results.manifest import read_manifest, read_records
from studies import SHIPPED, SHIPPED_TABLE
from studies.shipped import NAME, table

PAGE = REPOSITORY / "docs" / "how-to" / "runs-of-others.md"


@pytest.fixture(scope="module")
def conditions() -> dict[str, object]:
    """The conditions that the page says a file needs."""
    text = PAGE.read_text(encoding="utf-8").partition("```toml\n")[2].partition("```")[0]
    return tomllib.loads(text)


def test_they_are_whole_rows_of_the_file_searched_or_not_and_small() -> None:
    asked = read_experiment("shipped")
    with opened(NAME) as folder:
        manifest = read_manifest(folder, NAME) or {}
        records = read_records(folder, NAME)
        seeds: dict[str, set[int]] = {}
        for cell in manifest["cells"]:
            if not cell.get("counterpart"):
                seeds.setdefault(cell["row"], set()).add(cell["seed"])
        named = {entry.name for entry in asked.methods}
        assert seeds.keys() == named | {found["label"] for found in manifest["tuned"]["rows"] if found["values"]}
        assert all(some in ({1}, set(asked.seeds)) for some in seeds.values())
        searched = {entry.name: entry for entry in asked.methods if entry.space}
        assert {f"{name} · tuned" for name in searched} == seeds.keys() - named
        assert len(records) == len(manifest["cells"])
        assert all(record.files.keys() >= {"pairs.parquet"} for record in records if record.status == "finished")
        assert not list(Path(folder).rglob("*.safetensors"))
    assert SHIPPED.stat().st_size < 4_000_000


def test_a_file_with_their_conditions_has_them_beside_its_rows(conditions: dict[str, object]) -> None:
    methods = [{"method": "simcse", "preset": "mini", "config": {"temperature": 0.1}}]
    plan = make_plan(read_experiment({"name": "mine", **conditions, "methods": methods}), "here", counterparts=True)
    found = set_beside(plan, [NAME], None)
    assert "SimCSE (shipped)" in [row.label for row in found.rows]
    assert len([row for row in found.rows if not row.cells[0].get("counterpart")]) >= 10


def test_the_page_has_the_table() -> None:
    assert SHIPPED_TABLE.read_text(encoding="utf-8") in PAGE.read_text(encoding="utf-8")


@pytest.mark.campaign
def test_the_table_is_that_of_the_records() -> None:
    assert table() == SHIPPED_TABLE.read_text(encoding="utf-8")
