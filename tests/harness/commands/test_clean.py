"""`harness clean`: what it lists and removes, and what stays."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.cli import main
from harness.files.locks import run_lock
from harness.results.store import RunFolder, read_records
from tests.support import small_runs


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work directory with one trained run, one run without training and their vectors."""
    work = tmp_path_factory.mktemp("clean") / "w"
    small_runs.compare(work, seeds=[1])
    return work


@pytest.fixture
def work(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "shared"))
    (tmp_path / "shared" / "corpora").mkdir(parents=True)
    (tmp_path / "shared" / "corpora" / "text").write_bytes(b"x" * 2**20)
    return shutil.copytree(finished, tmp_path / "w")


def trained_run(work: Path) -> RunFolder:
    (record,) = [record for record in read_records(work) if record.row == "SimCSE"]
    return RunFolder(work, record.id)


def files_of(folder: Path) -> set[str]:
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}


def test_the_list_names_each_kind_and_removes_nothing(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files_of(work)
    assert main(["clean", "--workdir", str(work)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:4]] == [
        "models",
        "checkpoints",
        "cache",
        "shared-cache",
    ]
    assert lines[3].split()[1:5] == ["1", "folders", "0.001", "GiB"]
    assert main(["clean", "models", "cache", "--dry-run", "--workdir", str(work)]) == 0
    assert str(trained_run(work).model) in capsys.readouterr().out
    assert files_of(work) == before


def test_removed_models_leave_scores_that_hold_and_are_reused(work: Path) -> None:
    run = trained_run(work)
    scores = run.read().scores  # type: ignore[union-attr]
    assert main(["clean", "models", "--workdir", str(work)]) == 0
    assert not run.model.exists()
    again = small_runs.compare(work, seeds=[1])
    assert run.read().scores == scores  # type: ignore[union-attr]
    assert {record.id for record in again.records} == {r.id for r in read_records(work)}
    assert not run.model.exists()  # nothing was trained
    assert main(["doctor", "--workdir", str(work)]) == 0


def test_caches_and_checkpoints_go_by_name_alone(work: Path, tmp_path: Path) -> None:
    run = trained_run(work)
    run.checkpoint.mkdir()
    (run.checkpoint / "state.safetensors").write_bytes(b"x")
    assert main(["clean", "checkpoints", "--workdir", str(work)]) == 0
    assert not run.checkpoint.exists()
    assert any((work / "cache").rglob("*"))
    assert main(["clean", "cache", "--workdir", str(work)]) == 0
    assert not any(file.is_file() for file in (work / "cache" / "embeddings").rglob("*"))
    assert (tmp_path / "shared" / "corpora" / "text").exists()
    assert main(["clean", "shared-cache", "--workdir", str(work)]) == 0
    assert not (tmp_path / "shared" / "corpora").exists()
    assert run.model.is_dir()


def test_a_run_in_use_keeps_its_model(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = trained_run(work)
    with run_lock(run.path):
        assert main(["clean", "models", "--workdir", str(work)]) == 1
    assert run.model.is_dir()
    assert str(run.model) in capsys.readouterr().out


def test_links_out_of_the_work_directory_are_refused(work: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "weights").write_bytes(b"x")
    (work / "cache" / "mteb").symlink_to(outside)
    main(["clean", "cache", "--workdir", str(work)])
    assert (outside / "weights").exists()


@pytest.mark.parametrize("words", [["weights"], ["models", "nothing"]])
def test_an_unknown_kind_is_an_error(work: Path, words: list[str]) -> None:
    before = files_of(work)
    with pytest.raises(SystemExit) as ended:
        main(["clean", *words, "--workdir", str(work)])
    assert ended.value.code == 2
    assert files_of(work) == before


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    assert main(["clean", "--workdir", str(tmp_path / "none")]) == 2
