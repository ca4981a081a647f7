"""A run that several comparisons share keeps the scores of each, and is scored on nothing twice."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.cli import main
from harness.comparison.experiment import read_experiment
from harness.comparison.plan import make_plan
from harness.comparison.rescoring import due, merged
from harness.evaluation import scoring
from harness.results.manifest import read_records
from harness.results.missing import Missing
from harness.results.outcomes import value_of
from harness.results.record import Record
from harness.results.run_folder import RunFolder
from harness.tasks.base import task_key

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("few_pairs", "no_report")]

NATURAL, CONTRAST = "Embedded-STS-natural", "Embedded-STS-contrast"
EXPERIMENT = """
name = "{name}"
seeds = [1]
suites = {suites}
max_steps = 2
precision = "fp32"
[corpus]
uri = "embedded:sentences"
limit = 64
[dev]
task = "Embedded-STS-natural"
[[methods]]
name = "{row}"
method = "simcse"
preset = "mini"
"""


def experiment(folder: Path, name: str, suites: list[str], row: str = "SimCSE") -> Path:
    file = folder / f"{name}.toml"
    file.write_text(EXPERIMENT.format(name=name, suites=json.dumps(suites), row=row))
    return file


def compared(folder: Path, name: str, suites: list[str], row: str = "SimCSE") -> Record:
    """The record, after `harness compare` of one SimCSE run in `folder`/work."""
    file = experiment(folder, name, suites, row)
    assert main(["compare", str(file), "--workdir", str(folder / "work"), "--no-tracking", "--quiet"]) == 0
    (record,) = [record for record in read_records(folder / "work") if record.method == "simcse"]
    return record


@pytest.fixture(scope="module")
def trained(few_pairs: None, no_report: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Record]:
    """A work directory with one run, scored on NATURAL and its geometry: trained once for all tests."""
    folder = tmp_path_factory.mktemp("rescoring")
    return folder / "work", compared(folder, "one", [NATURAL, f"geometry:{NATURAL}"])


@pytest.fixture
def one(trained: tuple[Path, Record], tmp_path: Path) -> Record:
    """The record of that run, whose work directory is copied to `tmp_path`."""
    shutil.copytree(trained[0], tmp_path / "work")
    return trained[1]


def test_a_second_comparison_adds_its_tasks(one: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunFolder(tmp_path / "work", one.id)
    alone, spectrum = folder.pairs(), folder.figures()

    def never(*args: object, **kwargs: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr("methods.simcse.SimCSE.fit", never)
    scored: list[str] = []
    real = scoring.evaluate

    def watched(encode: Any, tasks: Any, **rest: Any) -> Any:
        scored.extend(task.name for task in tasks)
        return real(encode, tasks, **rest)

    monkeypatch.setattr("harness.evaluation.scoring.evaluate", watched)
    two = compared(tmp_path, "two", [NATURAL, CONTRAST], row="the same")
    assert scored == [CONTRAST, CONTRAST]  # the run and its untrained start
    assert two.id == one.id
    assert two.scores[: len(one.scores)] == one.scores
    assert {s.task for s in two.scores} == {NATURAL, CONTRAST, f"geometry:{NATURAL}"}
    assert {i for s in two.scores for i in (s.protocol, s.comparable)} == set(two.protocols)
    assert {task: kept for task, kept in folder.figures().items() if task != CONTRAST} == spectrum
    pairs = folder.pairs()
    assert pairs[pairs["task"] == NATURAL].reset_index(drop=True).equals(alone.reset_index(drop=True))
    assert set(pairs["task"]) == {NATURAL, CONTRAST}
    assert two.cost["train_seconds"] == one.cost["train_seconds"]
    assert two.cost["sentences"] > one.cost["sentences"]
    assert two.cost["peak_memory_bytes"] >= one.cost["peak_memory_bytes"]
    # Each comparison reads its own tasks and label, whichever ran last; and running the first again does nothing.
    (first, *_), (second, *_) = (read_records(tmp_path / "work", name) for name in ("one", "two"))
    assert {s.task for s in first.scores} == {NATURAL, f"geometry:{NATURAL}"}
    assert first.scores == one.scores
    assert {s.task for s in second.scores} == {NATURAL, CONTRAST}
    assert (first.row, second.row) == ("SimCSE", "the same")
    scored.clear()
    assert compared(tmp_path, "one", [NATURAL, f"geometry:{NATURAL}"]) == two
    assert scored == []


def test_a_dry_run_tells_scoring_from_training(one: Record, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    for suites, state in (([NATURAL], "finished"), ([CONTRAST], "to score")):
        file = experiment(tmp_path, "two", suites)
        assert main(["compare", str(file), "--workdir", str(tmp_path / "work"), "--dry-run"]) == 0
        assert f" {state} " in capsys.readouterr().out


def test_an_evaluation_that_fails_takes_nothing_away(
    one: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = f"geometry:{CONTRAST}"
    with monkeypatch.context() as patch:
        patch.setattr("harness.tasks.geometry.alignment_uniformity.GeometryTask.evaluate", lambda *args, **rest: 1 / 0)
        two = compared(tmp_path, "two", [NATURAL, added])
        assert two.status == "finished"
        assert two.scores == one.scores
        assert two.missing == {added: Missing("failed", "failed: ZeroDivisionError: division by zero")}
        assert any(note.startswith(f"{added}: no scores") for note in two.training["notes"])
    errors = RunFolder(tmp_path / "work", one.id).path / "errors"
    assert compared(tmp_path, "other", [CONTRAST]).missing == two.missing
    assert "ZeroDivisionError" in "".join(file.read_text() for file in errors.iterdir())  # another task's stays
    three = compared(tmp_path, "two", [NATURAL, added])
    assert (three.missing, three.training.get("notes")) == ({}, None)
    assert not list(errors.iterdir())
    assert three.score(added, "uniformity", "", "all") is not None


@pytest.mark.parametrize("file", ["pairs.parquet", "figures.json"])
def test_damaged_pairs_and_figures_are_made_anew(one: Record, tmp_path: Path, file: str) -> None:
    folder = RunFolder(tmp_path / "work", one.id)
    pairs, figures = folder.pairs(), folder.figures()
    whole = (folder.path / file).read_bytes()
    (folder.path / file).write_bytes(whole[: len(whole) // 2])
    two = compared(tmp_path, "two", [NATURAL, f"geometry:{NATURAL}", CONTRAST])
    assert two.scores[: len(one.scores)] == one.scores
    assert folder.figures().items() >= figures.items()
    again = folder.pairs()
    assert again[again["task"] == NATURAL].reset_index(drop=True).equals(pairs)
    assert set(again["task"]) == {NATURAL, CONTRAST}


def test_outcomes_are_kept_beside_those_of_other_tasks(one: Record, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "work", one.id)
    assert not len(folder.outcomes())
    retrieval = "Embedded-Retrieval-natural"
    two = compared(tmp_path, "two", [retrieval])
    first = folder.outcomes()
    assert "outcomes.parquet" in two.files
    compared(tmp_path, "three", [NATURAL, "Embedded-Clustering"])
    both = folder.outcomes()
    assert both[both["task"] == retrieval].reset_index(drop=True).equals(first)
    assert set(both["task"]) == {retrieval, "Embedded-Clustering"}
    assert folder.facts()[retrieval].unit.startswith("the query")
    (score,) = (score for score in two.scores if score.task == retrieval)
    assert value_of(first) == pytest.approx(score.value, abs=1e-5)  # mteb rounds to five digits


def test_runs_of_before_are_scored_for_their_outcomes_when_asked_alone(
    one: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = RunFolder(tmp_path / "work", one.id)
    file = experiment(tmp_path, "one", [NATURAL, f"geometry:{NATURAL}"])
    call = ["compare", str(file), "--workdir", str(tmp_path / "work"), "--no-tracking"]
    figures = folder.figures()
    del figures[NATURAL]["facts"]
    old = folder.pairs().drop(columns=["text1", "text2"])
    folder.figures_file.write_text(json.dumps(figures))
    old.to_parquet(folder.pairs_file, index=False)
    hashes = {name: digest for name, digest in one.files.items() if name not in ("figures.json", "pairs.parquet")}
    folder.write(one.model_copy(update={"files": hashes}))
    assert main(call) == 0
    assert NATURAL not in folder.facts()  # nothing by itself
    assert main([*call, "--rescore", "outcomes"]) == 0
    assert "scored again for the outcomes of their examples: 1 runs" in capsys.readouterr().out
    assert folder.facts()[NATURAL].unit.startswith("the pair")
    pairs = folder.pairs()
    assert pairs["text1"].dtype == "int64"
    assert pairs.drop(columns=["text1", "text2"]).equals(old)
    again = folder.read()
    assert again is not None
    assert sorted(again.scores, key=str) == sorted(one.scores, key=str)
    assert again.training == one.training


def test_new_weights_have_no_old_scores(one: Record, tmp_path: Path) -> None:
    (RunFolder(tmp_path / "work", one.id).path / "fitted.json").unlink()
    two = compared(tmp_path, "two", [CONTRAST])
    assert {s.task for s in two.scores} == {CONTRAST}


def test_a_record_of_an_older_version_is_scored_anew(one: Record, tmp_path: Path) -> None:
    file = RunFolder(tmp_path / "work", one.id).record_file
    data = json.loads(file.read_text())
    file.write_text(json.dumps({**data, "schema_version": 1, "evaluation": "0123456789abcdef"}))
    record = RunFolder(tmp_path / "work", one.id).read()
    path = str(experiment(tmp_path, "one", [NATURAL]))
    plan = make_plan(read_experiment(path, []), path)
    assert [task.name for task in due(record, plan.cells[0], plan)] == [NATURAL]
    assert due(one, plan.cells[0], plan) == []
    again, before = ([s for s in r.scores if s.task == NATURAL] for r in (compared(tmp_path, "one", [NATURAL]), one))
    assert again == before


@pytest.mark.parametrize("suite", ["embedded", "embedded-transfer", "embedded-layers", "embedded-efficiency"])
def test_scores_name_the_task_that_gave_them(suite: str) -> None:
    from harness.encoder import Encoder
    from harness.evaluation.scoring import evaluate
    from harness.sources import resolve_model
    from harness.tasks.catalogue import resolve_tasks

    encoder = Encoder.load(resolve_model("embedded:mini-bert"))
    tasks = resolve_tasks([suite])
    result = evaluate(encoder.encode, tasks, pooling="mean", model=encoder)
    assert {s.made_by for s in result.scores} == {task_key(task) for task in tasks}
    assert set(result.figures) <= {task.name for task in tasks}


def test_notes_of_a_task_and_of_its_subsets_are_replaced(one: Record) -> None:
    told = ["STS12 MSRpar: all 2 pairs have the same similarity", "STS12: examples: few", "STS1: examples: few"]
    other = ["dev set STS12 dev: examples: few", "geometry:STS12: examples: few"]
    old = one.model_copy(update={"training": {"notes": [*told, *other]}})
    new = one.model_copy(update={"training": {"notes": ["STS12: now"]}})
    scored: Any = [SimpleNamespace(name="STS12", source="senteval", suite="sts")]
    assert merged(old, new, scored).training["notes"] == ["STS1: examples: few", *other, "STS12: now"]
