"""What a file asks of a machine: two updates of each row, the disk, and the dry run that says both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli import main
from harness.comparison.disk import architecture, disk_of
from harness.comparison.experiment import read_experiment
from harness.comparison.plan import make_plan
from harness.comparison.two_updates import Measured
from harness.sources.embedded import FOLDER

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("few_pairs")]

FILE = """
seeds = [1, 2, 3]
max_steps = 10
suites = ["Embedded-STS-natural"]
precision = "fp32"
keep = "selected"
corpus = "embedded:sentences"
dev = { task = "Embedded-STS-natural" }
[blocks.table-1]
title = "Table 1"
[blocks.table-2]
[[methods]]
name = "SimCSE"
method = "simcse"
preset = "mini"
config = { batch_size = 8, eval_every = 5, train_length = 12 }
[[methods]]
name = "theirs"
method = "pretrained"
config = { model = "./nowhere" }
blocks = ["table-2"]
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "paper.toml"
    path.write_text(FILE)
    return str(path)


def test_parameters_are_known_without_the_weights() -> None:
    from safetensors.torch import load_file

    held = sum(tensor.numel() for tensor in load_file(FOLDER / "model" / "model.safetensors").values())
    parameters, width = architecture("embedded:mini-bert")
    assert width == 256
    assert parameters == pytest.approx(held, rel=0.02)  # a pooler more or less


def test_disk_is_that_of_the_weights_that_stay_and_of_the_run_at_work(file: str) -> None:
    def asked(*overrides: str) -> tuple[int, int]:
        plan = make_plan(read_experiment(file, overrides), file)
        disk = disk_of(plan, plan.cells)
        model = 4 * architecture("embedded:mini-bert")[0]
        return round(disk.models / model), round(disk.passing / model)

    assert asked() == (1, 7)  # three seeds until the best is known; a checkpoint has four numbers a parameter
    assert asked('keep="all"') == (3, 5)
    assert asked('keep="none"') == (0, 5)


def test_a_row_is_measured_once_and_the_dry_run_knows_it(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    work = str(tmp_path / "work")
    assert main(["compare", file, "--workdir", work, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "Table 1" in said
    assert "2 rows without a time" in said
    assert "1 of them added, the untrained starts that the file does not hold: untrained (cls)" in said
    assert "5 runs: 4 to do, 1 that cannot be run" in said
    assert main(["compare", file, "--workdir", work, "--rehearse=full-size"]) == 1  # for the model that is not there
    said = capsys.readouterr().out
    assert "s an update" in said
    assert "cannot be run: theirs" in said
    assert "about " in said
    assert "s of scoring with vectors of 256 numbers" in said
    assert "of scoring, timed on random vectors" in said
    kept, _ = json.loads((tmp_path / "work/full-size.json").read_text()).values()
    assert (kept["row"], kept["base_model"]) == ("SimCSE", "embedded:mini-bert")
    assert kept["update"] > 0
    assert kept["memory"] > 100e6
    assert not (tmp_path / "work/runs").exists()  # no run, no weights

    def never(*args: object) -> Measured:
        raise AssertionError("measured again")

    monkeypatch.setattr("harness.comparison.full_size.measured_or_extrapolated", never)
    assert main(["compare", file, "--workdir", work, "--rehearse=full-size"]) == 1
    said = capsys.readouterr().out
    assert "(known)" in said
    assert "scoring with vectors" not in said
