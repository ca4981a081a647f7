"""A comparison in which the data of one task is missing: the cells finish, say so, and catch up when it comes."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli import main
from harness.comparison.cell import run_cell
from harness.comparison.estimate import estimate_seconds
from harness.comparison.experiment import read_experiment
from harness.comparison.plan import Plan, make_plan
from harness.results.record import Record
from harness.results.run_folder import RunFolder
from harness.tasks.catalogue import tasks_of

pytestmark = pytest.mark.timeout(240)

GEOMETRY = "geometry:Embedded-STS-natural"
EXPERIMENT = """
name = "small"
seeds = [1]
suites = ["Embedded-STS-natural", "lbfgs:CR"]
precision = "fp32"
[dev]
task = "Embedded-STS-natural"
[[methods]]
method = "pooling"
config = { pooling = "cls", max_length = 6 }
[[methods]]
name = "refused"
method = "whitening"
config = { fit_on = "task", k = 60, max_length = 6 }
"""


@pytest.fixture
def nothing_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty SentEval folder."""
    root = tmp_path / "senteval"
    (root / "downstream").mkdir(parents=True)
    monkeypatch.setenv("HARNESS_SENTEVAL", str(root))
    return root / "downstream"


def plan_of(folder: Path) -> Plan:
    file = folder / "small.toml"
    file.write_text(EXPERIMENT)
    return make_plan(read_experiment(str(file), []), str(file))


def test_cells_finish_without_the_task_and_catch_up_later(
    nothing_there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    plan = plan_of(tmp_path)
    assert estimate_seconds(plan.cells[0], plan, True, plan.tasks) > 0
    for cell in plan.cells:
        record = run_cell(cell, plan, work, command="")
        assert record.status == "finished", record.reason
        assert {s.task for s in record.scores} == {"Embedded-STS-natural"}
        assert set(record.missing) == {"lbfgs:CR"}
        assert "custrev.pos: no such file" in record.missing["lbfgs:CR"].text
        assert f"lbfgs:CR: no scores: {record.missing['lbfgs:CR']}" in record.training["notes"]
    assert Record.model_validate_json(RunFolder(work, cell.id).record_file.read_bytes()) == record

    def never(*args: object, **kwargs: object) -> None:
        raise AssertionError("a finished cell was evaluated again")

    with monkeypatch.context() as patch:
        patch.setattr("harness.comparison.cell._evaluate", never)
        run_cell(plan.cells[0], plan_of(tmp_path), work, command="")

    (nothing_there / "CR").mkdir()
    for name, word in (("pos", "good"), ("neg", "bad")):
        lines = "\n".join(f"{word} thing number {i}" for i in range(20))
        (nothing_there / "CR" / f"custrev.{name}").write_text(lines + "\n")
    plan = plan_of(tmp_path)
    for cell in plan.cells:
        record = run_cell(cell, plan, work, command="")
        if cell.row.label == "refused":
            assert record.unfit == list(record.missing) == ["lbfgs:CR"]
            assert "vectors span 39 dimensions" in record.missing["lbfgs:CR"].text
        else:
            assert (record.missing, record.unfit) == ({}, [])
            assert record.score("lbfgs:CR", "accuracy", "") is not None
    with monkeypatch.context() as patch:
        patch.setattr(
            "harness.comparison.cell._evaluate", never
        )  # also of the refused one, which would be refused again
        cached, *_ = [run_cell(cell, plan, work, command="") for cell in plan.cells]
    assert "sentences_cached" not in cached.cost  # only the new task was scored, and its 40 sentences encoded
    assert cached.cost["sentences"] == 480 + 40


def test_a_second_evaluation_of_a_cell_encodes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "EXPERIMENT", EXPERIMENT.replace("lbfgs:CR", GEOMETRY))
    plan, work = plan_of(tmp_path), tmp_path / "work"
    cell = plan.cells[0]
    first = run_cell(cell, plan, work, command="")
    assert RunFolder(work, cell.id).figures()[GEOMETRY]["spectrum"][0] > 0
    RunFolder(work, cell.id).record_file.unlink()

    def never(*args: object, **kwargs: object) -> None:
        raise AssertionError("encoded again")

    monkeypatch.setattr("harness.method.Method.encode", never)
    second = run_cell(cell, plan, work, command="")
    assert second.scores == first.scores
    assert "sentences_per_second" in first.cost
    assert not {"sentences_per_second", "encode_seconds"} & set(second.cost)


def test_the_code_of_the_tasks_in_use_is_part_of_what_is_evaluated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def code(module: str) -> None:
        monkeypatch.setattr(
            "harness.comparison.plan.evaluation_ids", lambda kind: ("new" if kind.__module__ == module else "old",)
        )

    before = plan_of(tmp_path).evaluation
    assert plan_of(tmp_path).evaluation == before
    code("none")
    old = plan_of(tmp_path).evaluation
    code("harness.tasks.senteval.transfer")
    assert plan_of(tmp_path).evaluation != old
    code("harness.tasks.senteval.caption_retrieval")
    assert plan_of(tmp_path).evaluation == old  # a task that is not in use does not count


def test_evaluate_says_what_is_missing_and_keeps_vectors_unless_told(
    nothing_there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    argv = ["evaluate", "embedded:mini-bert", "--suite", "Embedded-STS-natural,transfer-lbfgs"]
    assert main([*argv, "--no-cache"]) == 1
    said = capsys.readouterr().out
    assert "note: lbfgs:MR: no scores: " in said
    assert not (tmp_path / "cache").exists()
    assert main(argv) == 1
    assert "from the cache" not in capsys.readouterr().out
    assert main([*argv[:3], "Embedded-STS-natural"]) == 0
    assert "480 of them from the cache" in capsys.readouterr().out


def test_a_paper_s_suite_with_little_of_its_data_tells_a_line_a_task(
    nothing_there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """DeCLUTR's 28 tasks where only CR is there: no STS, no captions, no probing files."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    (nothing_there / "STS").mkdir()
    (nothing_there / "CR").mkdir()
    for name, word in (("pos", "good"), ("neg", "bad")):
        lines = "\n".join(f"{word} thing number {i}" for i in range(15))
        (nothing_there / "CR" / f"custrev.{name}").write_text(lines + "\n")
    assert main(["evaluate", "embedded:mini-bert", "--suite", "paper-declutr", "--no-cache"]) == 1
    said = capsys.readouterr().out.splitlines()
    notes = [line.removeprefix("note: ") for line in said if line.startswith("note: ")]
    tasks = [note.partition(": no scores: ")[0] for note in notes if ": no scores: " in note]
    assert set(tasks) == {task for task in tasks_of("paper-declutr") if task != "CR"}
    assert len(tasks) == 27
    assert "DeCLUTR, downstream tasks, test: incomplete (1 of 18; missing: MR, MPQA, SUBJ, ...)" in said
    assert any(line.startswith("DeCLUTR, probing tasks, dev: incomplete (0 of 10; ") for line in said)
    assert any(
        line.startswith("DeCLUTR, half downstream and half probing (table 1), test: incomplete") for line in said
    )
