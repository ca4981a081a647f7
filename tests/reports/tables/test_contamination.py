"""Overlap with the training text in a report, and scores without it, against scipy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scipy.stats import spearmanr

from harness.cli import main
from harness.contamination.check import Overlap, TaskOverlap, write_overlap
from harness.results.store import RunFolder, read_records
from reports.document.blocks import Text
from reports.document.table import Table
from reports.load import read_comparison
from reports.read.examples import ExampleReader
from reports.records.overlap import without_overlap
from reports.stats.significance import Significance
from reports.tables.contamination import contamination, remarks
from tests.support import synthetic
from tests.support.errors import raises_input_error
from tests.support.invented_outcomes import EXAMPLES, add_transfer

DATA = "0123abcd" * 8
TRAINING = {"uri": "embedded:sentences", "kind": "sentences", "sha256": "ab" * 32}
SELECTION = {
    "task": "Embedded-STS-natural",
    "split": "dev",
    "sha256": "cd" * 32,
    "kind": "selection",
}


@pytest.fixture
def made(tmp_path: Path) -> synthetic.Invented:
    """Two rows on three tasks: STS-B wholly in the training text, STS12 in part, STS13 not at all."""
    made = synthetic.Invented(tmp_path, scale=0.05)
    tasks = ("STS12", "STS13", "STS-B")
    for seed in (1, 2):
        made.add("SimCSE", seed, tasks=tasks, geometry=False)
    made.add("mean", supervision="untrained", tasks=tasks, geometry=False)
    counts = {task: len(made.gold[task]) for task in tasks}

    def found(task: str, equal: int, near: int, touched: range) -> TaskOverlap:
        return TaskOverlap(
            data=DATA,
            suite="sts",
            texts=200,
            equal=equal,
            near=near,
            pairs=counts[task],
            touched={"x": list(touched)} if touched else {},
        )

    parts = {
        "senteval:STS12": found("STS12", 60, 10, range(0, counts["STS12"], 3)),
        "senteval:STS13": found("STS13", 0, 0, range(0)),
        "senteval:STS-B": found("STS-B", 200, 0, range(counts["STS-B"])),
    }
    write_overlap(tmp_path, Overlap(rule="r", text=TRAINING, tasks=parts))
    return made


def test_the_table_has_the_share_of_each_task_and_what_was_not_compared(
    made: synthetic.Invented,
) -> None:
    comparison = read_comparison(made.workdir, "invented")
    table, said = contamination(comparison)
    assert isinstance(table, Table)
    assert isinstance(said, Text)
    assert [[c.text for c in line.cells] for line in table.rows] == [
        ["STS-B", "200", "100", "100", "100"],
        ["STS12", "200", "30.0", "35.0", "33.5"],  # 52 of 155 pairs
    ]
    assert {line.block for line in table.rows} == {"embedded:sentences, training text of SimCSE"}
    assert any("STS13" in item and "STS12" not in item for item in said.items)  # no overlap
    assert any(
        "STS12, STS13, STS-B" in item for item in said.items
    )  # not compared with the dev set
    (remark,) = remarks(comparison)
    assert "STS-B 100 %, STS12 35.0 %" in remark


def test_two_tasks_of_one_name_have_a_line_each(made: synthetic.Invented) -> None:
    (record,) = (r for r in read_records(made.workdir) if r.row == "SimCSE" and r.seed == 1)
    own = [s for s in record.scores if s.task == "STS12"]
    scores = [*record.scores, *(s.model_copy(update={"source": "file"}) for s in own)]
    RunFolder(made.workdir, record.id).write(record.model_copy(update={"scores": scores}))
    (file,) = (made.workdir / "cache" / "overlaps").glob("*.json")
    found = json.loads(file.read_text())
    found["tasks"]["file:STS12"] = {**found["tasks"]["senteval:STS12"], "equal": 20, "near": 0}
    file.write_text(json.dumps(found))
    table, _ = contamination(read_comparison(made.workdir, "invented"))
    assert isinstance(table, Table)
    lines = [[cell.text for cell in line.cells][:3] for line in table.rows]
    assert lines[1:] == [["STS12", "200", "30.0"], ["STS12", "200", "10.0"]]


def test_what_was_found_in_other_data_counts_as_not_checked(made: synthetic.Invented) -> None:
    file = next((made.workdir / "cache" / "overlaps").glob("*.json"))
    file.write_text(file.read_text().replace(DATA, "f" * 64))
    (said,) = contamination(read_comparison(made.workdir, "invented"))
    assert isinstance(said, Text)
    assert all("STS12, STS13, STS-B" in item for item in said.items if "STS13" in item)


def test_scores_without_the_overlap_are_those_of_the_other_pairs_for_all_rows(
    made: synthetic.Invented,
) -> None:
    whole = read_comparison(made.workdir, "invented")
    fewer = without_overlap(whole)[0]
    significance = Significance(fewer)
    for before, row in zip(whole.rows, fewer.rows, strict=True):
        for record in row.records:
            folder = RunFolder(made.workdir, record.id)
            frame = folder.pairs()
            frame = frame[(frame["task"] == "STS12") & (frame["pair"] % 3 > 0)]
            expected = spearmanr(frame["gold"], frame["score"]).statistic
            assert record.score("STS12") == pytest.approx(expected)
            assert record.score("STS-B") is None
            every = ExampleReader(fewer.left_out).read(folder)
            (kept,) = [e for e in every if e.score[0] == "STS12"]
            assert kept.target.tolist() == frame["gold"].tolist()
        assert [r.score("STS13") for r in row.records] == [r.score("STS13") for r in before.records]
    (target,) = significance.targets
    assert [task for task, _ in target.tasks] == ["STS12", "STS13"]
    assert significance.by_seed(fewer.rows[0], target) is not None
    assert all(text in fewer.description for text in ("103 of 155", "68 of its 68"))
    assert fewer.warnings == []  # stored pairs and scores agree


def test_a_score_of_fewer_pairs_is_another_protocol(made: synthetic.Invented) -> None:
    whole = read_comparison(made.workdir, "invented")
    ids = [
        {s.comparable for r in c.records for s in r.scores}
        for c in (whole, without_overlap(whole)[0])
    ]
    assert {s.comparable for r in whole.records for s in r.scores if s.task == "STS13"} == ids[
        0
    ] & ids[1]


def test_without_a_check_there_are_no_scores_without_overlap(
    made: synthetic.Invented, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in (made.workdir / "cache" / "overlaps").glob("*.json"):
        file.unlink()
    with raises_input_error(file="invented"):
        without_overlap(read_comparison(made.workdir, "invented"))
    assert (
        main(["verdict", "--workdir", str(made.workdir), "SimCSE", "mean", "--without-overlap"])
        == 2
    )
    assert (
        main(["report", "build", "scd", "--workdir", str(made.workdir), "--without-overlap"]) == 2
    )
    assert "--without-overlap" in capsys.readouterr().err


def test_a_verdict_may_leave_the_overlap_out(
    made: synthetic.Invented, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["verdict", "--workdir", str(made.workdir), "SimCSE", "mean", "--without-overlap"])
        == 0
    )
    assert "103 of 155" in capsys.readouterr().out
    assert (
        main(
            [
                "verdict",
                "--workdir",
                str(made.workdir),
                "SimCSE",
                "mean",
                "--without-overlap",
                "--on",
                "STS-B",
            ]
        )
        == 2
    )
    assert "--on STS-B" in capsys.readouterr().err


def transfer(folder: Path, *, outcomes: bool = True) -> synthetic.Invented:
    """A row on three tasks: MR in the training text in part, CR in part though none is judged by
    itself, TREC not.
    """
    made = synthetic.Invented(folder)
    facts = {"MR": (0.5, 0.6)}
    add_transfer(made, "SimCSE", 1, 0.7, tasks=("MR", "CR", "TREC"), outcomes=outcomes, facts=facts)
    found = {
        "MR": {
            "texts": 300,
            "equal": 75,
            "pairs": EXAMPLES,
            "touched": {"": list(range(0, EXAMPLES, 4))},
        },
        "CR": {"texts": 300, "equal": 1},
        "TREC": {"texts": 300, "pairs": EXAMPLES},
    }
    parts = {
        f"senteval:{name}": TaskOverlap(suite="transfer", **one) for name, one in found.items()
    }  # type: ignore[arg-type]
    write_overlap(folder, Overlap(rule="r", text=TRAINING, tasks=parts))
    return made


def test_scores_of_examples_without_those_that_were_trained_on(tmp_path: Path) -> None:
    made = transfer(tmp_path)
    fewer = without_overlap(read_comparison(made.workdir, "invented"))[0]
    (record,) = fewer.rows[0].records
    frame = RunFolder(made.workdir, record.id).outcomes()
    kept = frame[(frame["task"] == "MR") & (frame["example"] % 4 > 0)]
    (score,) = [s for s in record.scores if s.task == "MR"]
    assert (score.value, score.n) == (pytest.approx(kept["outcome"].mean()), 225)
    every = ExampleReader(fewer.left_out).read(RunFolder(made.workdir, record.id))
    (examples,) = [e for e in every if e.score[0] == "MR"]
    assert examples.outcome.tolist() == kept["outcome"].tolist()
    assert {s.task for s in record.scores} == {"MR", "TREC"}
    assert all(text in fewer.description for text in ("225 of 300", "CR: left out"))
    assert (fewer.facts["MR"].chance, fewer.facts["MR"].majority) == (
        0.5,
        None,
    )  # 0.6 is that of all examples


def test_a_task_without_the_scores_of_its_examples_is_left_out(tmp_path: Path) -> None:
    fewer = without_overlap(
        read_comparison(transfer(tmp_path, outcomes=False).workdir, "invented")
    )[0]
    assert "MR: left out" in fewer.description
    assert {s.task for r in fewer.records for s in r.scores} == {"TREC"}
