"""Runs of another work directory: what may stand beside a comparison, what may not and why, and what a merge takes."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from harness import api
from harness.cli import main
from harness.commands.workdir_check import of_run
from harness.comparison.beside import set_beside
from harness.comparison.comparison_result import Comparison
from harness.comparison.experiment import read_experiment
from harness.comparison.plan import make_plan
from harness.errors import InputError
from harness.results.elsewhere import pack
from harness.results.manifest import read_manifest, read_records, write_manifest
from harness.results.merging import merge
from harness.results.run_folder import RunFolder
from reports.read.comparison_runs import comparisons, read_comparison
from reports.stats.significance import Significance
from tests.support import short_runs

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("few_pairs")]

NATURAL, CONTRAST = "Embedded-STS-natural", "Embedded-STS-contrast"
SMALL = {"batch_size": 8, "train_length": 12}
EXPERIMENT = {
    "seeds": [1, 2],
    "suites": [NATURAL],
    "max_steps": 2,
    "precision": "fp32",
    "corpus": {"uri": "embedded:sentences", "limit": 40},
    "dev": {"task": NATURAL},
}
THEIRS = {**EXPERIMENT, "name": "theirs", "methods": [{"method": "simcse", "preset": "mini", "config": SMALL}]}
OURS = {**EXPERIMENT, "name": "ours", "methods": [{"method": "mixcse", "preset": "mini", "config": SMALL}]}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory, few_pairs: None, no_report: None) -> Path:
    """A work directory with two seeds of SimCSE and its untrained start."""
    folder = tmp_path_factory.mktemp("of") / "theirs"
    api.compare(THEIRS, workdir=folder, tracked=False)
    return folder


@pytest.fixture(scope="module")
def beside(theirs: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Comparison, list[str]]:
    """One seed of MixCSE beside them, and what was told."""
    said: list[str] = []
    folder = tmp_path_factory.mktemp("ours")
    with pytest.MonkeyPatch.context() as patch:
        short_runs.no_report(patch)
        found = api.compare(OURS, workdir=folder, tracked=False, say=said.append, against=[theirs])
    return found, said


def test_rows_made_elsewhere_stand_in_the_comparison_as_its_own_do(beside: tuple[Comparison, list[str]]) -> None:
    found, _ = beside
    assert "simcse (theirs)" in found.rows
    read = read_comparison(found.workdir, "ours")
    row = next(row for row in read.rows if row.label == "simcse (theirs)")
    own = next(row for row in read.rows if row.label == "mixcse")
    assert (row.elsewhere, own.elsewhere, len(row.finished)) == ("theirs", "", 2)
    assert row.start == own.start  # one untrained start for both: theirs is the same run as ours
    judged = Significance(read)
    assert judged.first is not None
    assert judged.differences([(own, row)], judged.first)[0] is not None  # their pairs came too
    assert comparisons(found.workdir) == {"ours": 3}  # no comparison of its own: a verdict needs no name
    assert all(of_run(RunFolder(found.workdir, record.id)) == [] for record in found.records)


def test_nothing_of_them_is_trained(beside: tuple[Comparison, list[str]], theirs: Path) -> None:
    found, _ = beside
    of_theirs = {record.id: record for record in read_records(theirs)}
    taken = [RunFolder(found.workdir, r.id) for r in found.records if r.row == "simcse (theirs)"]
    for folder in taken:
        record = folder.read()
        assert record is not None
        assert record.finished == of_theirs[record.id].finished
        assert (folder.model.exists(), bool(record.removed)) == (False, True)


def test_without_the_option_they_are_gone_again(beside: tuple[Comparison, list[str]], tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(beside[0].workdir, folder)
    with pytest.MonkeyPatch.context() as patch:
        short_runs.no_report(patch)
        assert "simcse (theirs)" not in api.compare(OURS, workdir=folder, tracked=False).rows
    assert not [cell for cell in (read_manifest(folder, "ours") or {})["cells"] if "against" in cell]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"max_steps": 3}, "another budget: 2 updates (yours: 3)"),
        ({"corpus": {"uri": "embedded:sentences", "limit": 41}}, "trained on other text (embedded:sentences, 40"),
        ({"dev": {"task": CONTRAST}}, "selected on another set (Embedded-STS-natural)"),
        ({"suites": [CONTRAST]}, "scored on none of your tasks"),
        ({"methods": THEIRS["methods"]}, 'the same run as your row "simcse"'),
        ({}, ""),
    ],
)
def test_what_may_not_stand_beside_is_named_with_its_reason(theirs: Path, changed: dict[str, object], why: str) -> None:
    plan = make_plan(read_experiment({**OURS, **changed}), "here")
    found = set_beside(plan, [str(theirs)], None)
    said = [reason for _, row, reason in found.left_out if row == "simcse"]
    assert [row.label for row in found.rows if row.label.startswith("simcse")] == ([] if why else ["simcse (theirs)"])
    assert len(said) == bool(why)
    assert all(why in reason for reason in said)
    assert bool(why) == any("not beside yours: simcse" in line for line in found.told())


def test_a_row_whose_protocols_are_others_does_not_stay(beside: tuple[Comparison, list[str]]) -> None:
    from harness.comparison.beside import Beside, OtherRow, under_protocols

    own = [r for r in beside[0].records if r.row == "mixcse"]
    other = own[0].model_copy(
        update={"scores": [s.model_copy(update={"comparable": "another"}) for s in own[0].scores]}
    )
    rows = [OtherRow("theirs", "row (theirs)", (other,), ({"id": other.id},), (f"embedded:{NATURAL}",))]
    found = under_protocols(Beside(rows), own)
    assert found.rows == []
    assert found.left_out == [("theirs", "row (theirs)", f"scored under another protocol: embedded:{NATURAL}")]


def test_a_merge_takes_runs_and_comparisons_once(theirs: Path, tmp_path: Path) -> None:
    first, again = merge(tmp_path, theirs), merge(tmp_path, theirs)
    assert (len(first.taken), first.comparisons, first.refused) == (3, ["theirs"], {})
    assert (again.taken, len(again.there), again.kept) == ([], 3, {})
    with pytest.MonkeyPatch.context() as patch:
        short_runs.no_report(patch)
        kept = api.compare(THEIRS, workdir=tmp_path, tracked=False)
    assert [r.finished for r in kept.records] == [r.finished for r in read_records(theirs, "theirs")]
    assert not RunFolder(tmp_path, kept.records[0].id).model.exists()


def test_weights_come_where_they_are_asked_for(theirs: Path, tmp_path: Path) -> None:
    merge(tmp_path, theirs, weights=True)
    trained = next(record for record in read_records(tmp_path) if record.row == "simcse")
    assert of_run(RunFolder(tmp_path, trained.id)) == []
    assert RunFolder(tmp_path, trained.id).fitted_file.is_file()
    assert not trained.removed


def test_no_file_comes_from_or_goes_outside_of_a_run(theirs: Path, tmp_path: Path) -> None:
    there = shutil.copytree(theirs, tmp_path / "there")
    trained = next(record for record in read_records(there) if record.row == "simcse")
    name = "model/../../../planted"
    (there / "planted").write_text("")
    RunFolder(there, trained.id).write(
        trained.model_copy(update={"files": {**trained.files, name: hashlib.sha256(b"").hexdigest()}})
    )
    merged = merge(tmp_path / "here", there, weights=True)
    assert f"names a file outside of its folder ({name})" in merged.refused[trained.id]
    assert not (tmp_path / "here" / "planted").exists()


def test_what_differs_here_stays_and_is_told(theirs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        shutil.copytree(theirs, folder)
    runs = [record for record in read_records(here) if record.row == "simcse"]
    own = RunFolder(here, runs[0].id)
    other = runs[0].model_copy(update={"scores": [s.model_copy(update={"value": 0.5}) for s in runs[0].scores]})
    own.write(other)
    RunFolder(there, runs[1].id).pairs_file.write_bytes(b"cut")
    shutil.rmtree(RunFolder(here, runs[1].id).path)
    write_manifest(here, {**(read_manifest(here, "theirs") or {}), "cells": []})
    assert main(["merge", str(here), str(there)]) == 1
    told = capsys.readouterr().out
    assert f"run {runs[0].id}: is here with other results" in told
    assert f"run {runs[1].id}: pairs.parquet: not as its record says" in told
    assert "comparison theirs: one of that name is here" in told
    assert own.read() == other
    assert not RunFolder(here, runs[1].id).path.exists()


def test_an_archive_is_a_work_directory_without_weights(theirs: Path, tmp_path: Path) -> None:
    archive = tmp_path / "theirs.tar.xz"
    assert pack(theirs, "theirs", archive) == []
    first = archive.read_bytes()
    pack(theirs, "theirs", archive)
    assert archive.read_bytes() == first
    plan = make_plan(read_experiment(OURS), "here", counterparts=True)
    found = set_beside(plan, [str(archive)], tmp_path / "work")
    assert [row.label for row in found.rows] == ["simcse (theirs)"]  # its start is the same run as that of ours
    assert all(of_run(RunFolder(tmp_path / "work", r.id)) == [] for row in found.rows for r in row.records)


@pytest.mark.parametrize("more", [{"until": "decided"}, {"rehearse": True}])
def test_what_does_not_go_with_it_is_refused(theirs: Path, tmp_path: Path, more: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"--until|--against"):
        api.compare({**OURS, "seeds": [1, 2, 3]}, workdir=tmp_path, tracked=False, against=[theirs], **more)


def test_a_source_that_is_none_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r'no work directory, no archive of one .did you mean "shipped"'):
        api.compare(OURS, workdir=tmp_path, tracked=False, against=["shiped"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no runs"):
        api.compare(OURS, workdir=tmp_path, tracked=False, against=[tmp_path / "empty"])
