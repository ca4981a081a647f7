"""Files with parts: which cells there are, what each is evaluated on, and what --only makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.comparison.experiment import read_experiment
from harness.comparison.part import part_of
from harness.comparison.plan import make_plan
from harness.comparison.rows import resolve_rows
from harness.errors import InputError

FILE = """
title = "A paper"
base_models = ["embedded:mini-bert", "other"]
seeds = [1, 2]
max_steps = 2
suites = ["Embedded-STS-natural"]
corpus = { uri = "embedded:sentences", limit = 64 }
dev = { task = "Embedded-STS-natural" }
[blocks.table-1]
title = "Table 1"
[blocks.ablation]
base_models = ["embedded:mini-bert"]
seeds = [1, 3]
suites = ["Embedded-STS-contrast"]
[[methods]]
name = "SimCSE"
method = "simcse"
[[methods]]
name = "SimCSE at {temperature}"
method = "simcse"
grid = { temperature = [0.05, 0.1], pooling = ["cls", "mean"] }
blocks = ["ablation"]
[[methods]]
name = "CLS"
method = "pooling"
base_models = ["embedded:mini-bert"]
seeds = [7, 8]
max_steps = 5
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "paper.toml"
    path.write_text(FILE)
    return str(path)


def test_a_row_has_the_base_models_and_seeds_of_its_blocks_and_its_own_before_them(file: str) -> None:
    rows = {(row.label, row.base_model): row for row in resolve_rows(read_experiment(file), file)}
    both, one = ("table-1", "ablation"), ("table-1",)
    assert rows["SimCSE", "embedded:mini-bert"].seeds == {1: both, 2: one, 3: ("ablation",)}
    assert rows["SimCSE", "other"].seeds == {1: one, 2: one}
    assert rows["CLS", "embedded:mini-bert"].seeds == {7: both, 8: both}
    assert (rows["CLS", "embedded:mini-bert"].max_steps, rows["SimCSE", "other"].max_steps) == (5, 2)
    assert ("CLS", "other") not in rows


def test_a_grid_is_a_row_for_each_combination_and_names_what_it_varies(file: str) -> None:
    rows = [row for row in resolve_rows(read_experiment(file), file) if row.label.startswith("SimCSE at")]
    assert [(row.label, row.config.temperature, row.config.pooling) for row in rows] == [  # type: ignore[attr-defined]
        ("SimCSE at 0.05 · pooling cls", 0.05, "cls"),
        ("SimCSE at 0.05 · pooling mean", 0.05, "mean"),
        ("SimCSE at 0.1 · pooling cls", 0.1, "cls"),
        ("SimCSE at 0.1 · pooling mean", 0.1, "mean"),
    ]


@pytest.mark.parametrize("entry", ['config = "cls"', "config = [1]", "corpus = 3", "corpus = [1]"])
def test_a_grid_over_what_is_no_table_is_told_as_without_one(entry: str, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.toml"
    grid = 'grid = { temperature = [0.1, 0.2], "corpus.limit" = [2, 3] }'
    wrong.write_text(f'[[methods]]\nmethod = "simcse"\n{grid}\n{entry}\n')
    with pytest.raises(InputError, match=rf'methods\[1\]: key "{entry.split()[0]}'):
        read_experiment(str(wrong))


def test_a_run_in_two_blocks_is_one_cell_evaluated_on_the_tasks_of_both(file: str) -> None:
    plan = make_plan(read_experiment(file, ['base_models=["embedded:mini-bert"]']), file)
    cells = {(cell.row.label, cell.seed): cell for cell in plan.cells}
    natural, contrast = "Embedded-STS-natural", "Embedded-STS-contrast"
    assert [task.name for task in cells["SimCSE", 1].tasks] == [natural, contrast]
    assert [task.name for task in cells["SimCSE", 2].tasks] == [natural]
    assert [task.name for task in cells["SimCSE", 3].tasks] == [contrast]
    assert len([cell for cell in plan.cells if cell.row.label == "CLS"]) == 1  # deterministic


def test_a_row_that_cannot_be_had_keeps_its_reason_and_the_others_run(file: str) -> None:
    plan = make_plan(
        read_experiment(file, ['blocks.table-1.base_models=["embedded:mini-bert", "no/folder/here"]']), file
    )
    faults = {(cell.row.label, cell.base_model): cell.fault for cell in plan.cells}
    assert "no/folder/here" in faults["SimCSE", "no/folder/here"]
    assert faults["SimCSE", "embedded:mini-bert"] == ""


def test_seeds_of_the_command_line_are_those_of_all_runs(file: str) -> None:
    rows = resolve_rows(read_experiment(file, ["seeds=[9]", 'base_models=["embedded:mini-bert"]']), file)
    assert {row.base_model for row in rows} == {"embedded:mini-bert"}
    assert {seed for row in rows for seed in row.seeds} == {9}


def only(file: str, *wanted: str) -> tuple[list[str], list[str], str]:
    part = part_of(read_experiment(file), wanted)
    return list(part.blocks), [entry.name for entry in part.methods], part.name


def test_only_takes_blocks_rows_and_rows_of_blocks(file: str) -> None:
    assert only(file, "table-1") == (["table-1"], ["SimCSE", "CLS"], "paper--table-1")
    assert only(file, "Table1")[0] == ["table-1"]
    blocks, rows, name = only(file, "SimCSE at 0.1*")
    assert (blocks, len(rows)) == (["ablation"], 2)
    assert name.startswith("paper--SimCSE-at-0.1-")
    assert only(file, "ablation", "CLS")[:2] == (["ablation"], ["CLS"])
    assert only(file) == (["table-1", "ablation"], [e.name for e in read_experiment(file).methods], "paper")


def test_what_is_wrong_with_parts_is_named(file: str) -> None:
    def bad(old: str, new: str, *wanted: str) -> str:
        Path(file).write_text(FILE.replace(old, new))
        with pytest.raises(InputError) as error:
            resolve_rows(part_of(read_experiment(file), wanted), file)
        return str(error.value)

    assert '--only "tabel-1": no block and no row (did you mean "table-1"?)' in bad("", "", "tabel-1")
    assert "no row of SimCSE at 0.05 · pooling cls stands in table-1" in bad(
        "", "", "table-1", "SimCSE at 0.05 · p*cls"
    )
    assert '(did you mean "ablation"?)' in bad('blocks = ["ablation"]', 'blocks = ["ablations"]')
    assert "expected a list of values" in bad("temperature = [0.05, 0.1]", "temperature = 0.05")
    assert "bound the updates differently (2, 4)" in bad("seeds = [1, 3]", "seeds = [1, 3]\nmax_steps = 4")


def test_a_base_model_that_cannot_be_had_fails_its_rows_alone(tmp_path: Path) -> None:
    """SimCSE's recipe depends on the base model, whose configuration is not there to tell its family."""
    file = tmp_path / "paper.toml"
    file.write_text(
        FILE.replace('"other"', '"nobody/nothing"').replace('method = "simcse"', 'method = "simcse"\npreset = "paper"')
    )
    rows = resolve_rows(read_experiment(str(file)), "paper.toml")
    assert {row.base_model for row in rows if row.fault} == {"nobody/nothing"}
    assert all("nobody/nothing" in row.fault for row in rows if row.fault)
    assert any(not row.fault for row in rows)
    file.write_text(file.read_text().replace('"paper"', '"papr"'))
    with pytest.raises(InputError, match='unknown preset "papr"'):
        resolve_rows(read_experiment(str(file)), "paper.toml")
