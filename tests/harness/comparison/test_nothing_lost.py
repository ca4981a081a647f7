"""Disks that fail, and files that were damaged afterwards: what was computed is kept, noticed, or made again."""

from __future__ import annotations

import errno
import json
import logging
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.commands.workdir_check import of_run
from harness.comparison.cell import run_cell
from harness.comparison.experiment import read_experiment
from harness.comparison.kept_results import finished, tidy
from harness.comparison.measured_precision import precision_of
from harness.comparison.plan import Plan, make_plan
from harness.encoder.precision import Precision
from harness.files.faults import refusal, storage_fault
from harness.files.locks import comparison_lock, run_lock
from harness.method import FitContext
from harness.results.record import Record
from harness.results.run_folder import RunFolder
from harness.training import Trainer
from tests.support import short_runs

pytestmark = [pytest.mark.timeout(240)]

EXPERIMENT = """
name = "small"
seeds = [1]
suites = ["Embedded-STS-natural"]
precision = "fp32"
max_steps = 2
[dev]
task = "Embedded-STS-natural"
[[methods]]
method = "simcse"
config = { max_length = 8, batch_size = 4 }
"""


def plan_of(folder: Path, text: str = EXPERIMENT) -> Plan:
    file = folder / "small.toml"
    file.write_text(text)
    return make_plan(read_experiment(str(file), []), str(file))


@pytest.fixture(scope="module")
def few() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        short_runs.few_pairs(patch)
        yield patch


def run(plan: Plan, work: Path) -> Record:
    return run_cell(plan.cells[0], plan, work, command="")


def never_trained_again(patch: pytest.MonkeyPatch) -> None:
    def training(self: Trainer) -> None:
        raise AssertionError("trained again")

    patch.setattr(Trainer, "_update", training)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("code", [errno.EIO, errno.EDQUOT, errno.ESTALE, errno.EROFS, errno.EACCES])
def test_a_disk_that_fails_after_the_training_does_not_lose_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    plan, work, replace = plan_of(tmp_path), tmp_path / "work", os.replace

    def fails(source: Any, target: Any, **rest: Any) -> None:
        if Path(target).name == "record.json":
            raise OSError(code, os.strerror(code), str(target))
        replace(source, target, **rest)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fails)
        with pytest.raises(OSError) as told:
            run(plan, work)
    assert storage_fault(told.value, work) is told.value
    assert "finished runs and the last checkpoint are kept" in str(refusal(told.value))
    never_trained_again(monkeypatch)
    assert run(plan, work).status == "finished"


@pytest.mark.usefixtures("few")
def test_a_disk_that_fails_in_a_checkpoint_ends_the_run_and_leaves_the_checkpoint_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, work, replace = plan_of(tmp_path), tmp_path / "work", os.replace
    defaults = FitContext.__init__.__defaults__ or ()
    every_update = tuple(0.0 if default == 30.0 else default for default in defaults)
    monkeypatch.setattr(FitContext.__init__, "__defaults__", every_update)
    states = []

    def fails(source: Any, target: Any, **rest: Any) -> None:
        if Path(target).name == "state.pt":
            states.append(target)
            if len(states) == 2:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
        replace(source, target, **rest)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fails)
        with pytest.raises(OSError, match="Input/output error"):
            run(plan, work)
    folder = RunFolder(work, plan.cells[0].id)
    assert (folder.checkpoint / "state.pt").is_file()
    updates = []
    update = Trainer._update
    monkeypatch.setattr(Trainer, "_update", lambda self: (updates.append(self.step), update(self)))
    assert run(plan, work).status == "finished"
    assert updates == [1]  # the first of the two is in the checkpoint
    assert not folder.checkpoint.exists()


def test_permission_is_a_fault_of_storage_below_the_work_directory_alone(tmp_path: Path) -> None:
    for place, ours in ((tmp_path / "work" / "x", True), (tmp_path / "vectors.txt", False)):
        error = PermissionError(errno.EACCES, "Permission denied", str(place))
        assert (storage_fault(error, tmp_path / "work") is error) == ours
    assert storage_fault(ValueError("no luck"), tmp_path) is None


def flip(file: Path) -> None:
    """One bit in the middle of a file."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


@pytest.fixture
def done(few: Any, tmp_path: Path) -> tuple[Plan, Record, RunFolder]:
    plan = plan_of(tmp_path)
    record = run(plan, tmp_path / "work")
    assert record.status == "finished"
    return plan, record, RunFolder(tmp_path / "work", record.id)


def test_damaged_weights_are_not_scored(
    done: tuple[Plan, Record, RunFolder], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _, record, folder = done
    flip(folder.model / "model.safetensors")
    more = plan_of(tmp_path, EXPERIMENT.replace('natural"]', 'natural", "Embedded-STS-contrast"]'))
    with caplog.at_level(logging.WARNING):
        again = run(more, tmp_path / "work")
    assert "trained again" in caplog.text
    assert again.score("Embedded-STS-natural") == record.score("Embedded-STS-natural")
    assert again.files["model/model.safetensors"] == record.files["model/model.safetensors"]


@pytest.mark.parametrize("name", ["record.json", "fitted.json", "pairs.parquet"])
def test_other_damage_is_mended_without_a_training(
    done: tuple[Plan, Record, RunFolder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    _, record, folder = done
    more = plan_of(tmp_path, EXPERIMENT.replace('natural"]', 'natural", "Embedded-STS-contrast"]'))
    file = folder.path / name
    file.write_bytes(file.read_bytes()[:40])
    assert finished(more.cells[0], more, tmp_path / "work") is None
    never_trained_again(monkeypatch)
    again = run(more, tmp_path / "work")
    assert again.score("Embedded-STS-natural") == record.score("Embedded-STS-natural")
    assert again.training["steps"] == record.training["steps"]
    assert run(more, tmp_path / "work") == again


def test_a_manifest_that_a_kill_left_half_written_is_swept(tmp_path: Path) -> None:
    from harness.results.manifest import write_manifest

    left, another = (tmp_path / "comparisons" / name for name in (".a.json.17.00ff00ff", ".b.json.17.00ff00ff"))
    left.parent.mkdir()
    for file in (left, another):
        file.write_text("{")
    write_manifest(tmp_path, {"name": "a"})
    assert [left.exists(), another.exists()] == [False, True]


def test_a_precision_that_a_kill_left_half_written_is_measured_and_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.encoder.precision.choose_precision", lambda device: Precision("bf16", {"faster": 2.0}))
    plan = plan_of(tmp_path, EXPERIMENT.replace("fp32", "auto"))
    left = tmp_path / ".precision.json.17.00ff00ff"
    left.write_text("{")
    assert precision_of(plan, tmp_path) == {"choice": "bf16", "faster": 2.0}
    assert json.loads((tmp_path / "precision.json").read_text()) == {plan.device_name: precision_of(plan, tmp_path)}
    assert not left.exists()


def test_a_record_that_is_no_file_is_named_and_put_aside(done: tuple[Plan, Record, RunFolder], tmp_path: Path) -> None:
    plan, record, folder = done
    aside = folder.record_file.with_name("record.json.damaged")
    folder.record_file.unlink()
    folder.record_file.symlink_to(folder.record_file.name)
    assert [fault.what for fault in of_run(folder)] == ["damaged record (it is a link that leads nowhere)"]
    assert run(plan, tmp_path / "work").scores == record.scores
    assert aside.is_symlink()
    folder.record_file.unlink()
    folder.record_file.mkdir()
    assert run(plan, tmp_path / "work").scores == record.scores
    assert aside.is_dir()


@pytest.mark.parametrize("kind", ["bytes", "a folder"])
def test_a_checkpoint_that_is_no_checkpoint_costs_its_training_only(
    done: tuple[Plan, Record, RunFolder], tmp_path: Path, kind: str
) -> None:
    plan, record, folder = done
    for file in (folder.record_file, folder.fitted_file):
        file.unlink()
    folder.checkpoint.mkdir()
    if kind == "bytes":
        (folder.checkpoint / "state.pt").write_bytes(os.urandom(5000))
    else:
        (folder.checkpoint / "state.pt" / "more").mkdir(parents=True)
        folder.curves_file.unlink()
        (folder.curves_file / "more").mkdir(parents=True)
    (tmp_path / "work" / "precision.json").write_text("{")
    assert run(plan, tmp_path / "work").scores == record.scores


def test_weights_cut_before_their_record_was_written_are_trained_again(
    done: tuple[Plan, Record, RunFolder], tmp_path: Path
) -> None:
    plan, record, folder = done
    folder.record_file.unlink()
    weights = folder.model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    (folder.model / "modules.json").unlink()  # so that the folder does not even look like a saved model
    assert json.loads(folder.fitted_file.read_text())["weights"]
    again = run(plan, tmp_path / "work")
    assert (again.status, again.scores) == ("finished", record.scores)


def test_the_doctor_names_what_is_damaged_and_what_it_costs(
    done: tuple[Plan, Record, RunFolder], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, record, folder = done
    work = str(tmp_path / "work")
    assert main(["doctor", "--workdir", work]) == 0
    assert "1 runs checked, no files damaged" in capsys.readouterr().out
    flip(folder.model / "model.safetensors")
    flip(folder.curves_file)
    (tmp_path / "work" / "precision.json").write_text("[")
    assert main(["doctor", "--workdir", work, "--json"]) == 1
    faults = {fault["file"]: fault["costs"] for fault in json.loads(capsys.readouterr().out)["faults"]}
    assert faults.keys() == {
        f"runs/{record.id}/model/model.safetensors", f"runs/{record.id}/curves.jsonl", "precision.json",
    }  # fmt: skip
    assert "trains it again" in faults[f"runs/{record.id}/model/model.safetensors"]
    folder.record_file.write_bytes(folder.record_file.read_bytes()[:50])
    assert main(["doctor", "--workdir", work]) == 1
    assert "record.json" in capsys.readouterr().out
    assert main(["doctor", "--workdir", str(tmp_path / "none")]) == 2


def test_two_comparisons_share_a_work_directory_and_wait_for_each_others_run(
    done: tuple[Plan, Record, RunFolder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, record, folder = done
    text = folder.record_file.read_bytes()
    folder.record_file.unlink()
    never_trained_again(monkeypatch)
    waiting: list[Record] = []
    with comparison_lock(tmp_path / "work", "other"), run_lock(folder.path):
        other = threading.Thread(target=lambda: waiting.append(run(plan, tmp_path / "work")))
        other.start()
        other.join(1.0)
        assert other.is_alive()
        folder.record_file.write_bytes(text)  # the other comparison's, which has made it meanwhile
    other.join(60)
    assert waiting == [record]


def test_what_kills_left_is_swept_where_the_lock_can_be_had(done: tuple[Plan, Record, RunFolder]) -> None:
    _, _, folder = done
    left = folder.path / ".model.abcd"
    for place in (left, folder.checkpoint):
        place.mkdir()
        (place / "state.pt").write_bytes(b"much")
    (folder.path / ".record.json.17.abcd").write_text("{")
    with run_lock(folder.path):
        tidy(folder)
        assert left.exists()
    tidy(folder)
    assert not left.exists()
    assert not folder.checkpoint.exists()
    assert not folder.leftovers()
    assert folder.read() is not None
