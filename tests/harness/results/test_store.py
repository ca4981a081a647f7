"""The work directory: damage is noticed and repaired, writes are atomic, and other versions are
refused.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from pathlib import Path
from shutil import copytree, rmtree

import pytest

from harness.api.result import Comparison
from harness.cli import main
from harness.commands.doctor import check_run
from harness.errors import InputError
from harness.files.locks import comparison_lock, run_lock
from harness.results.comparison import ComparisonFile, ListedRun
from harness.results.record import Record
from harness.results.store import (
    DamagedRecord,
    RunFolder,
    checked_workdir,
    comparison_file,
    read_comparison_file,
    read_records,
    write_comparison_file,
)
from harness.runs.due import find_finished
from harness.runs.execute import execute
from harness.runs.plan import Job
from harness.training import TrainedMethod
from tests.support import small_runs
from tests.support.errors import raises_input_error
from tests.support.small_runs import job_of

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def trained(small: Comparison, work: Path) -> tuple[Job, Record, RunFolder]:
    """A finished run: its job, record and folder."""
    job = job_of()
    folder = RunFolder(work, job.id)
    record = folder.read()
    assert record is not None
    return job, record, folder


def flip(file: Path) -> None:
    """Change one bit in the middle of a file."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:40])


def swap(file: Path) -> None:
    """Replace a file by that of another run."""
    other = next(f for f in file.parents[1].glob(f"*/{file.name}") if f.parent != file.parent)
    file.write_bytes(other.read_bytes())


def link_to_itself(file: Path) -> None:
    file.unlink()
    file.symlink_to(file.name)


def make_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def flip_a_score(file: Path) -> None:
    before = file.read_text()
    after = re.sub(
        r'("value": -?0\.\d)(\d)', lambda found: found[1] + str(9 - int(found[2])), before, count=1
    )
    assert after != before
    file.write_text(after)


@pytest.mark.parametrize("damage", [cut, swap, flip_a_score, link_to_itself, make_folder])
def test_a_damaged_record_is_noticed_and_its_run_is_executed_again(
    small: Comparison, work: Path, damage: Callable[[Path], None]
) -> None:
    job = job_of("cls")
    folder = RunFolder(work, job.id)
    before = folder.read()
    assert before is not None
    damage(folder.record_file)
    with raises_input_error(kind=DamagedRecord):
        folder.read()
    assert [fault.file for fault in check_run(folder)] == [f"runs/{job.id}/record.json"]
    with pytest.raises(InputError):
        read_records(work, "small")
    assert find_finished(job, work) is None
    assert execute(job, work).scores == before.scores
    assert check_run(folder) == []
    aside = folder.record_file.with_name("record.json.damaged")
    assert aside.exists() or aside.is_symlink()


def test_the_seeds_of_a_row_share_what_they_have_in_common(small: Comparison, work: Path) -> None:
    records = read_records(work, "small")
    first, second = (record for record in records if record.row == "SimCSE")
    assert first.seed != second.seed
    assert first.config is second.config
    assert first.spec.dev is second.spec.dev
    assert first.protocols is second.protocols
    for record in records:
        alone = RunFolder(work, record.id).read()
        assert alone is not None
        assert record == alone.limit_to(record.evaluation)


@pytest.mark.parametrize("damage", [cut, flip, swap, Path.unlink])
def test_damaged_examples_are_scored_again_without_training(
    trained: tuple[Job, Record, RunFolder],
    work: Path,
    monkeypatch: pytest.MonkeyPatch,
    damage: Callable[[Path], None],
) -> None:
    job, record, folder = trained
    damage(folder.examples_file)
    assert [fault.file for fault in check_run(folder)] == [f"runs/{job.id}/examples.parquet"]
    assert find_finished(job, work) is None
    monkeypatch.setattr(TrainedMethod, "fit", lambda *_: pytest.fail("trained again"))
    again = execute(job, work)
    assert (again.scores, again.files) == (record.scores, record.files)
    assert find_finished(job, work) == again


@pytest.mark.parametrize("lose_record", [False, True])
def test_damaged_weights_are_never_scored(
    trained: tuple[Job, Record, RunFolder], work: Path, lose_record: bool
) -> None:
    _, record, folder = trained
    flip(folder.model / "model.safetensors")
    if lose_record:
        folder.record_file.unlink()
        (folder.model / "modules.json").unlink()
    again = execute(job_of(suites=["Embedded-STS-contrast"]), work)
    assert again.files["model/model.safetensors"] == record.files["model/model.safetensors"]
    assert again.status == "finished"


def test_a_foreign_run_in_a_folder_is_no_run_of_it(
    trained: tuple[Job, Record, RunFolder], work: Path
) -> None:
    job, _, folder = trained
    other = job_of("cls")
    rmtree(folder.path)
    copytree(RunFolder(work, other.id).path, folder.path)
    with pytest.raises(DamagedRecord):
        folder.read()
    assert find_finished(job, work) is None


def test_what_kills_have_left_is_removed_unless_another_process_works_there(
    trained: tuple[Job, Record, RunFolder],
) -> None:
    _, record, folder = trained
    left = folder.path / ".model.abcd"
    for place in (left, folder.checkpoint):
        place.mkdir()
        (place / "state.pt").write_bytes(b"much")
    (folder.path / ".record.json.17.abcd").write_text("{")
    with run_lock(folder.path):
        folder.tidy()
        assert left.exists()
    folder.tidy()
    assert not left.exists()
    assert not folder.checkpoint.exists()
    assert folder.read() == record


def test_a_comparison_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    left, another = (
        tmp_path / "comparisons" / name for name in (".a.json.17.00ff00ff", ".b.json.17.00ff00ff")
    )
    left.parent.mkdir()
    for file in (left, another):
        file.write_text("{")
    write_comparison_file(tmp_path, ComparisonFile(name="a", runs=()))
    assert [left.exists(), another.exists()] == [False, True]
    file = read_comparison_file(tmp_path, "a")
    assert file is not None
    assert (file.name, file.runs) == ("a", ())
    assert read_comparison_file(tmp_path, "../a") is None


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"schema": 1}', '{"schema": 3, "runs": []}', '{"schema": 1, "runs": [{}]}']
)
def test_a_damaged_comparison_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "comparisons").mkdir()
    (tmp_path / "comparisons" / "a.json").write_text(text)
    with raises_input_error(file=tmp_path / "comparisons/a.json"):
        read_comparison_file(tmp_path, "a")


RUNS = [
    {"id": run, "row": row, "base_model": "b", "seed": seed}
    for run, row, seed in (("r1", "SimCSE", 1), ("r2", "SCD", 1), ("r3", "SCD", 2))
]
LISTED = tuple(ListedRun.model_validate(run) for run in RUNS)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("SimCSE", "x").replace("SCD", "SimCSE").replace('"x"', '"SCD"'),
        lambda text: text.replace('"seed": 2', '"seed": 3'),
        lambda text: json.dumps({**json.loads(text), "runs": json.loads(text)["runs"][:-1]}),
        lambda text: json.dumps({**json.loads(text), "only": ["SCD"]}),
        lambda text: json.dumps({k: v for k, v in json.loads(text).items() if k != "sha256"}),
    ],
)
def test_a_comparison_file_that_was_changed_is_refused(
    tmp_path: Path, change: Callable[[str], str]
) -> None:
    write_comparison_file(tmp_path, ComparisonFile(name="a", runs=LISTED))
    file = comparison_file(tmp_path, "a")
    whole = file.read_text()
    assert change(whole) != whole
    file.write_text(change(whole))
    with raises_input_error(file=file) as caught:
        read_comparison_file(tmp_path, "a")
    assert caught.value.file == str(file)


def test_a_comparison_file_without_a_hash_is_read_and_doctor_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "comparisons").mkdir()
    (tmp_path / "runs").mkdir()
    old = {"schema": 1, "name": "a", "runs": RUNS}
    comparison_file(tmp_path, "a").write_text(json.dumps(old))
    file = read_comparison_file(tmp_path, "a")
    assert file is not None
    assert (file.runs, file.sha256) == (LISTED, "")
    assert main(["doctor", "--workdir", str(tmp_path)]) == 0
    assert "a.json has no hash" in " ".join(capsys.readouterr().out.split())


def test_a_folder_in_place_of_a_comparison_file_is_named_and_replaced(tmp_path: Path) -> None:
    comparison_file(tmp_path, "c").mkdir(parents=True)
    with raises_input_error(file=tmp_path / "comparisons/c.json"):
        read_comparison_file(tmp_path, "c")
    write_comparison_file(tmp_path, ComparisonFile(name="c", runs=()))
    file = read_comparison_file(tmp_path, "c")
    assert file is not None
    assert file.runs == ()


@pytest.mark.parametrize(
    "name", ["precision.json", "live/x", "runs/abc/fitted.json", "runs/abc/pairs.parquet"]
)
def test_a_work_directory_of_version_0_1_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    file = tmp_path / "old" / name
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    with raises_input_error(key="--workdir"):
        checked_workdir(tmp_path / "old")
    assert main(["compare", "demo", "--workdir", str(tmp_path / "old"), "--tracking-uri=none"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "old" in line
    assert [f for f in (tmp_path / "old").rglob("*") if f.is_file()] == [file]


def test_a_record_of_another_schema_is_refused(trained: tuple[Job, Record, RunFolder]) -> None:
    _, _, folder = trained
    tree = json.loads(folder.record_file.read_text())
    folder.record_file.write_text(json.dumps({**tree, "schema_version": 2}))
    with raises_input_error(key=f"record {tree['id']}"):
        folder.read()


def test_a_record_holds_scores_that_are_not_finite(small: Comparison) -> None:
    record = small.records[0]
    odd = record.model_copy(
        update={"scores": [record.scores[0].model_copy(update={"value": float("nan")})]}
    )
    back = Record.model_validate_json(odd.model_dump_json())
    assert back.scores[0].value != back.scores[0].value


def test_two_comparisons_of_a_work_directory_wait_for_each_others_run(
    trained: tuple[Job, Record, RunFolder], work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, record, folder = trained
    text = folder.record_file.read_bytes()
    folder.record_file.unlink()
    monkeypatch.setattr(TrainedMethod, "fit", lambda *_: pytest.fail("trained again"))
    waiting: list[Record] = []
    with comparison_lock(work, "other"), run_lock(folder.path):
        other = threading.Thread(target=lambda: waiting.append(execute(job, work)))
        other.start()
        other.join(0.2)
        assert other.is_alive()
        folder.record_file.write_bytes(text)  # the other comparison has finished it meanwhile
    other.join(60)
    assert waiting == [record]


def test_the_doctor_names_what_is_damaged_and_what_it_costs(
    trained: tuple[Job, Record, RunFolder], work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, record, folder = trained
    assert main(["doctor", "--workdir", str(work)]) == 0
    flip(folder.model / "model.safetensors")
    flip(folder.curves_file)
    capsys.readouterr()
    assert main(["doctor", "--workdir", str(work), "--json"]) == 1
    faults = json.loads(capsys.readouterr().out)["faults"]
    assert {fault["file"] for fault in faults} == {
        f"runs/{record.id}/model/model.safetensors",
        f"runs/{record.id}/curves.jsonl",
    }
    assert main(["doctor", "--workdir", str(work / "none")]) == 2
    assert small_runs.NATURAL in record.scores[0].task


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e308])
def test_a_record_whose_costs_are_no_amounts_is_damaged(small: Comparison, value: float) -> None:
    record = small.records[0]
    sound = record.model_copy(update={"cost": {**record.cost, "parameters": 7.0}})
    assert Record.from_json(sound.to_json()).cost["parameters"] == 7.0
    odd = record.model_copy(update={"cost": {**record.cost, "parameters": value}})
    with pytest.raises(ValueError, match="parameters"):
        Record.from_json(odd.to_json())


def test_weights_that_were_removed_as_a_whole_are_no_damage(
    trained: tuple[Job, Record, RunFolder], work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, record, folder = trained
    rmtree(folder.model)
    assert main(["doctor", "--workdir", str(work)]) == 0
    assert record.id in capsys.readouterr().out
    folder.model.mkdir()  # a part of them is damage
    assert main(["doctor", "--workdir", str(work)]) == 1


def test_a_run_whose_folder_is_a_link_is_read_and_never_written(
    trained: tuple[Job, Record, RunFolder], work: Path, tmp_path: Path
) -> None:
    job, record, folder = trained
    elsewhere = tmp_path / "elsewhere"
    folder.path.rename(elsewhere)
    (elsewhere / ".hidden").write_text("precious")
    folder.path.symlink_to(elsewhere)
    assert find_finished(job, work) is not None
    folder.tidy()
    (elsewhere / "record.json").unlink()
    with pytest.raises(InputError) as refused:
        small_runs.compare(work)
    assert refused.value.file == str(folder.path)
    assert (elsewhere / ".hidden").read_text() == "precious"
    assert record.id == folder.path.name


@pytest.mark.parametrize("place", ["checkpoint", "model/checkpoint"])
def test_leftovers_are_not_removed_through_a_link(tmp_path: Path, place: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / ".hidden").write_text("precious")
    folder = RunFolder(tmp_path / "work", "0" * 16)
    link = folder.path / place
    link.parent.mkdir(parents=True)
    link.symlink_to(outside)
    folder.tidy()
    folder.remove_leftovers()
    assert (outside / ".hidden").read_text() == "precious"
