"""Rows of another work directory: which are comparable, why others are not, and that nothing of
them is trained.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from harness.api.experiments import sources_of
from harness.api.result import Comparison
from harness.commands.doctor import check_run
from harness.machine.progress import Reporter
from harness.results.elsewhere import copy_run, open_workdir
from harness.results.store import RunFolder, read_comparison_file, read_records
from harness.runs import runner
from harness.runs.against import find_other_rows
from tests.support import small_runs
from tests.support.errors import raises_input_error
from tests.support.small_runs import CLS, CONTRAST, NATURAL, SIMCSE, plan_of
from tools.shipped import pack

OURS = {**SIMCSE, "name": "ours", "config": {**SIMCSE["config"], "temperature": 0.2}}


@pytest.fixture
def archive(small: Comparison, tmp_path: Path) -> Path:
    file = tmp_path / "theirs.tar.xz"
    assert pack(small.workdir, "small", file) == []
    return file


def test_rows_of_an_archive_are_shown_with_the_own_ones_and_nothing_of_them_runs(
    small: Comparison,
    archive: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    executed, execute = [], runner.execute
    monkeypatch.setattr(
        runner, "execute", lambda job, *a, **k: executed.append(job.row) or execute(job, *a, **k)
    )
    work = tmp_path / "work"
    found = small_runs.compare(
        work, name="ours", seeds=[1], methods=[CLS, OURS], against=[archive], progress=Reporter()
    )
    assert executed == ["cls", "ours"]
    theirs = [r for r in found.records if r.row == "SimCSE (theirs)"]
    assert [(r.id, r.scores) for r in theirs] == [(r.id, r.scores) for r in small.records[1:]]
    assert read_records(work, "ours") == found.records
    assert all(check_run(RunFolder(work, r.id)) == [] for r in theirs)
    file = read_comparison_file(work, "ours")
    assert file is not None
    assert {run.row for run in file.runs if run.source == "theirs"} == {"SimCSE (theirs)"}
    assert [one.row for one in file.left_out] == ["cls"]  # it is the same run
    assert "theirs" in capsys.readouterr().err
    alone = small_runs.compare(work, name="ours", seeds=[1], methods=[CLS, OURS])
    assert alone.rows == ["cls", "ours"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"max_steps": 3}, "training steps"),
        ({"corpus": {"uri": "embedded:sentences", "limit": 65}}, "text"),
        ({"dev": {"task": NATURAL, "pairs": 12}}, "selected"),
        ({"dev": "none"}, "selected"),
        ({"suites": [CONTRAST]}, "none of your tasks"),
    ],
)
def test_rows_under_other_conditions_are_left_out_with_the_reason(
    small: Comparison, change: dict[str, Any], reason: str
) -> None:
    plan = plan_of(**{"methods": [OURS], **change})
    found = find_other_rows(plan, {"theirs": small.workdir}, None)
    assert [row.label for row in found.rows] in ([], ["cls (theirs)"])
    assert any(reason in one.why for one in found.left_out if one.row == "SimCSE"), found.left_out


def test_a_row_that_was_not_selected_is_not_compared_with_one_that_is(tmp_path: Path) -> None:
    """The last weights of one, and the best of several of the other, have unlike means."""
    methods = [{**SIMCSE, "name": "last"}]
    last = small_runs.compare(tmp_path / "last", seeds=[1], methods=methods, dev="none")
    found = find_other_rows(plan_of(methods=[OURS]), {"last": last.workdir}, None)
    (omitted,) = [one for one in found.left_out if one.row == "last"]
    assert "selected" in omitted.why


def test_two_sources_of_one_name_are_both_compared(tmp_path: Path) -> None:
    sources = [tmp_path / "ann/work", tmp_path / "bob/work", tmp_path / "cleo"]
    named = sources_of(sources)
    assert list(named.values()) == sources
    assert list(named)[2] == "cleo"
    assert sources_of([sources[0], sources[0]]) == {"work": sources[0]}


def test_rows_of_other_code_are_left_out(
    small: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.runs.against.method_version", lambda kind: "another")
    found = find_other_rows(plan_of(methods=[OURS]), {"theirs": small.workdir}, None)
    assert "SimCSE" in {one.row for one in found.left_out}


def test_an_archive_is_a_work_directory_without_weights_and_equal_runs_give_equal_bytes(
    small: Comparison, archive: Path, tmp_path: Path
) -> None:
    again = tmp_path / "again.tar.xz"
    pack(small.workdir, "small", again)
    assert again.read_bytes() == archive.read_bytes()
    with open_workdir(archive) as place:
        assert [r.scores for r in read_records(place, "small")] == [r.scores for r in small.records]
        assert not list(place.rglob("*.safetensors"))


def test_an_archive_is_read_without_waiting_for_the_disk(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are soon removed, and each would take milliseconds."""

    def wait(handle: int) -> None:
        raise AssertionError("a file is written to the disk")

    monkeypatch.setattr(os, "fsync", wait)
    with open_workdir(archive) as place:
        assert read_records(place, "small")


def test_an_archive_with_a_link_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.tar"
    link = tarfile.TarInfo("runs/record.json")
    link.type = tarfile.SYMTYPE
    link.linkname = "nowhere.json"
    with tarfile.open(file, "w") as tar:
        tar.addfile(link)
    with raises_input_error(file=file), open_workdir(file):
        pass


def test_a_damaged_or_different_run_is_not_copied(
    small: Comparison, work: Path, tmp_path: Path
) -> None:
    record, source = small.records[1], RunFolder(work, small.records[1].id)
    target = tmp_path / "target"
    assert copy_run(record, source, target)
    assert not copy_run(record, source, target)
    other = record.model_copy(update={"scores": []})
    with raises_input_error(key=f"run {record.id}"):
        copy_run(other, source, target)
    shutil.rmtree(target)
    source.examples_file.write_bytes(b"cut")
    with raises_input_error(file="examples.parquet"):
        copy_run(record, source, target)
    assert RunFolder(target, record.id).read() is None


@pytest.mark.parametrize("name", ["nowhere", "empty", "file.txt"])
def test_a_source_that_is_no_work_directory_is_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.txt").write_text("no archive")
    with raises_input_error(file=tmp_path / name), open_workdir(tmp_path / name):
        pass


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04" + b"\0" * 50])
def test_nobody_is_advised_to_delete_an_archive_of_their_own(
    tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "mine.zip"
    file.write_bytes(content)
    with raises_input_error(file=file) as refused, open_workdir(file):
        pass
    assert "delete" not in (refused.value.remedy or "")
