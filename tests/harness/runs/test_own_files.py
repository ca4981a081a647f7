"""A comparison that is scored and selected on a user's file."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from harness.errors import InputError
from harness.results.store import RunFolder, read_comparison_file
from harness.runs.conditions import DevSettings
from harness.runs.experiment import read_experiment
from harness.runs.inputs import forget_loaded
from harness.runs.own_data import write_experiment
from harness.runs.plan import make_plan
from harness.tasks.own.data import draw_groups
from reports.explore.examples import read_tasks
from reports.load import read_comparison
from tests.support import own_files, small_runs


def test_groups_are_drawn_whole_and_new_lines_move_no_other_group() -> None:
    rng = np.random.default_rng(0)
    left = [f"text {n}" for n in rng.integers(0, 300, 400)]
    right = [f"other {n}" for n in rng.integers(0, 300, 400)]
    drawn = draw_groups([left, right], 0.5)
    assert 0 < drawn.sum() < 400
    of_dev = {t for side in (left, right) for t, one in zip(side, drawn, strict=True) if one}
    of_test = {t for side in (left, right) for t, one in zip(side, drawn, strict=True) if not one}
    assert not of_dev & of_test
    new = [f"new {n}" for n in range(100)]
    longer = draw_groups([left + new, right + [f"{text}!" for text in new]], 0.5)
    assert longer[:400].tolist() == drawn.tolist()


def test_a_share_is_met_by_pairs_that_share_nothing() -> None:
    n = 4000
    texts = [[f"left {i}" for i in range(n)], [f"right {i}" for i in range(n)]]
    for share in (0.2, 0.5):
        spread = np.sqrt(share * (1 - share) / n)
        assert abs(draw_groups(texts, share).mean() - share) < 5 * spread


def test_one_file_selects_and_tests_with_different_pairs(tmp_path: Path) -> None:
    file = own_files.pairs_file(tmp_path / "pairs.csv", 120)
    found = small_runs.compare(
        tmp_path / "work", suites=[str(file)], dev=str(file), seeds=[1], max_steps=2
    )
    tree = read_comparison_file(tmp_path / "work", "small")
    assert tree is not None
    counts = tree.files["file:pairs.csv"].examples
    assert counts["dev"] + counts["test"] == 120
    trained = next(record for record in found.records if record.row == "SimCSE")
    scored = RunFolder(found.workdir, trained.id).pairs()
    assert len(scored) == counts["test"]
    with (tmp_path / "work" / "splits" / "small" / "pairs.csv").open() as stream:
        parts = [row["split"] for row in csv.DictReader(stream)]
    assert parts.count("dev") == counts["dev"]
    # Selected on the dev part: its score at the chosen step is that of the file's dev part alone.
    with_split = [
        (*pair, part) for pair, part in zip(own_files.embedded_pairs()[:120], parts, strict=True)
    ]
    header = ("sentence1", "sentence2", "score", "split")
    own_files.write_table(tmp_path / "split.csv", header, with_split)
    stated = DevSettings(task=str(tmp_path / "split.csv")).load()
    assert trained.spec.dev is not None
    assert stated.sha256 == trained.spec.dev["sha256"]
    # Texts of examples are found again from the file that the comparison names.
    (task,) = read_tasks(read_comparison(found.workdir, "small"))
    texts, _, why = task.known
    assert not why
    assert all(len(pair) == 2 for pair in texts)


def test_a_renamed_file_keeps_the_runs_and_a_changed_one_is_scored_again(tmp_path: Path) -> None:
    file = own_files.pairs_file(tmp_path / "pairs.csv", 60)
    keys = {"seeds": [1], "max_steps": 2}
    first = small_runs.compare(tmp_path / "work", suites=[str(file)], **keys)
    moved = file.rename(tmp_path / "moved.csv")
    again = small_runs.compare(tmp_path / "work", suites=[str(moved)], **keys)
    assert [r.id for r in first.records] == [r.id for r in again.records]
    protocols = [{s.protocol for s in found.records[0].scores} for found in (first, again)]
    assert protocols[0] == protocols[1]
    own_files.pairs_file(moved, 61)
    changed = small_runs.compare(tmp_path / "work", suites=[str(moved)], **keys)
    assert [r.id for r in first.records] == [r.id for r in changed.records]
    assert {s.n for s in changed.records[0].scores} == {61}


def test_worker_processes_find_the_file_and_refuse_one_that_has_changed(tmp_path: Path) -> None:
    from harness.runs.execute import execute

    file = own_files.pairs_file(tmp_path / "pairs.csv", 60)
    found = small_runs.compare(
        tmp_path / "work",
        suites=[str(file)],
        seeds=[1],
        dev=None,
        methods=[small_runs.CLS],
        executor={"name": "processes", "workers": 1},
    )
    assert {r.status for r in found.records} == {"finished"}
    assert all(r.score("pairs.csv") is not None for r in found.records)

    keys = {**small_runs.EXPERIMENT, "suites": [str(file)], "seeds": [1]}
    job = make_plan(read_experiment(keys), "test").jobs[0]
    forget_loaded()
    own_files.pairs_file(file, 61)
    with pytest.raises(InputError) as error:
        execute(job, tmp_path / "other")
    assert error.value.file == str(file)


def test_a_dev_file_of_another_kind_is_refused_before_anything_runs(tmp_path: Path) -> None:
    texts = own_files.texts_file(tmp_path / "texts.csv", 40)
    with pytest.raises(InputError) as error:
        small_runs.compare(tmp_path / "work", dev=str(texts))
    assert "texts.csv" in str(error.value.file)
    assert not (tmp_path / "work" / "runs").exists()


def test_shares_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    file = str(own_files.pairs_file(tmp_path / "pairs.csv", 60))
    keys = {"suites": [{"task": file, "share": 0.2}], "dev": {"task": file, "share": 0.5}}
    with pytest.raises(InputError) as error:
        small_runs.compare(tmp_path / "work", **keys)
    assert error.value.key == "share"


def test_examples_of_a_comparison_are_those_of_its_own_source(tmp_path: Path) -> None:
    """Another comparison may score the same runs on a task of the same name."""
    file = own_files.pairs_file(tmp_path / "pairs.csv", 60)
    rows = [small_runs.CLS]
    keys = {"methods": rows, "seeds": [1]}
    first = small_runs.compare(tmp_path / "work", suites=[own_files.NATURAL], **keys)
    before = first.pairs()
    mine = {"task": str(file), "name": own_files.NATURAL}
    second = small_runs.compare(tmp_path / "work", name="other", suites=[mine], **keys)
    assert second.records[0].id == first.records[0].id
    assert len(second.pairs()) == 60
    assert first.pairs().equals(before)


def test_the_stored_experiment_finds_all_of_its_files_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    own_files.pairs_file(tmp_path / "pairs.csv", 40)
    for name in ("a.txt", "b.txt"):
        own_files.texts_file(tmp_path / name, 20)
    row = {**small_runs.SIMCSE, "corpus": "a.txt"}
    block = {"suites": ["pairs.csv"]}
    corpora = {"documents": "b.txt"}
    tree = {**small_runs.EXPERIMENT, "blocks": {"one": block}, "corpora": corpora, "methods": [row]}
    file = write_experiment(make_plan(read_experiment(tree), "x", starts=False), tmp_path / "work")
    monkeypatch.chdir("/")
    again = read_experiment(str(file))
    assert again.blocks["one"].suites == [str(tmp_path / "pairs.csv")]
    assert again.corpora["documents"].uri == str(tmp_path / "b.txt")
    assert again.methods[0].corpus is not None
    assert again.methods[0].corpus.uri == str(tmp_path / "a.txt")
