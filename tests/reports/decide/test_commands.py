"""`harness verdict` and `harness power`: what they print, and what they refuse."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli import main
from harness.files.atomic import write_atomic
from harness.results.manifest import manifest_file
from harness.results.run_folder import RunFolder
from harness.tasks.senteval.transfer import TRANSFER
from reports.decide.question import comparison_of, question_of
from tests.support import synthetic
from tests.support.invented_outcomes import add_transfer


@pytest.fixture(scope="module")
def workdir(tmp_path_factory):
    work = tmp_path_factory.mktemp("work")
    made = synthetic.Invented(work, scale=0.1)
    made.add("mean", 0, noise=3.0, supervision="untrained", tasks=("STS12", "STS-B"), geometry=False)
    for seed in (1, 2, 3):
        for label, noise in (("SimCSE", 1.0), ("SCD", 1.05), ("Barlow Twins", 4.0)):
            made.add(label, seed, noise=noise, tasks=("STS12", "STS-B"), curves=False, geometry=False)
    return work


def called(capsys, *words):
    assert main([str(word) for word in words]) == 0
    return capsys.readouterr().out


def test_a_verdict_is_a_paragraph_and_its_numbers(workdir, capsys):
    text = called(capsys, "verdict", workdir, "SimCSE", "Barlow Twins")
    assert text.startswith("SimCSE is better than Barlow Twins on the average of 2 STS tasks (SentEval): ")
    assert text.count("\n") == 1
    numbers = json.loads(called(capsys, "verdict", workdir, "Barlow Twins", "SimCSE", "--on", "STS-B", "--json"))
    assert numbers["verdict"] == "worse"
    assert numbers["low"] < numbers["difference"] < numbers["high"] < 0
    assert numbers["tasks"] == ["senteval:STS-B"]
    assert numbers["p"] < 0.05
    assert numbers["corrected_for_rows"] == 4
    near = json.loads(called(capsys, "verdict", workdir, "SimCSE", "SCD", "--json"))
    assert near["verdict"] == "cannot tell yet"
    assert near["detectable"] > abs(near["difference"])
    alike = json.loads(called(capsys, "verdict", workdir, "SimCSE", "SCD", "--equivalence", 60, "--json"))
    assert alike["verdict"] == "no difference that matters"


def test_of_a_comparison_beside_a_study_no_name_is_asked_for():
    assert comparison_of(Path(__file__).parents[2] / "frozen" / "work", "").name == "frozen"


def test_what_a_design_can_find_goes_by_the_spread_of_rows_of_its_kind(workdir):
    question = question_of(comparison_of(workdir, ""), "")
    block = question.block(question.comparison.base_models)
    rows = {row.label: row for row in block.judged}
    pools = dict(zip(rows, block.design(rows["SimCSE"], rows["SCD"]).pools, strict=True))
    assert pools["SimCSE"] == pools["SCD"] == pools["Barlow Twins"] != pools["mean"]


def test_without_rows_all_pairs_and_groups(workdir, capsys):
    text = called(capsys, "verdict", workdir)
    assert "row minus column" in text
    (whole,) = json.loads(called(capsys, "verdict", workdir, "--json"))
    assert len(whole["pairs"]) == 6
    assert set(whole["rows"][:2]) == {"SimCSE", "SCD"}
    assert whole["groups"][0] == f"1-2: {', '.join(whole['rows'][:2])}"


def test_power_from_records_and_from_numbers(workdir, capsys):
    text = called(capsys, "power", workdir, "--difference", 30)
    assert "3 seeds can see differences from" in text
    (given,) = json.loads(called(capsys, "power", "--sd", 0.84, "--rows", 6, "--difference", 2, "--json"))
    least = list(given["seeds"].values())
    assert least == sorted(least, reverse=True)
    assert given["needed"] == 9
    (paired,) = json.loads(called(capsys, "power", "--sd", 0.84, "--correlation", 0.9, "--rows", 6, "--json"))
    assert paired["seeds"]["5"] < given["seeds"]["5"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("verdict", "{work}", "SimCSE"), "name two rows"),
        (("verdict", "{work}", "SimCSE", "SCE"), 'no row "SCE"'),
        (("verdict", "{work}", "SimCSE", "SimCSE"), "name two"),
        (("verdict", "{work}", "SimCSE", "SCD", "--on", "MR"), "--on MR: not known; known: STS, STS12, STS-B"),
        (("verdict", "{work}/none"), "no such folder"),
        (("power",), "give a work directory, or --sd"),
        (("power", "--sd", "-1"), "--sd -1: expected"),
    ],
)
def test_what_cannot_be_answered_is_one_line(workdir, capsys, words, said):
    assert main([word.replace("{work}", str(workdir)) for word in words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


@pytest.fixture(scope="module")
def transfer(tmp_path_factory):
    """Three rows on transfer tasks and STS-B; two of them and MR alone are a block of the file."""
    work = tmp_path_factory.mktemp("transfer")
    made = synthetic.Invented(work, scale=0.1)
    cells = []
    for seed in (1, 2, 3):
        for label, right in (("SimCSE", 0.8), ("SCD", 0.6), ("Barlow Twins", 0.79)):
            record = add_transfer(made, label, seed, right)
            blocks = ["whole", "small"] if label != "SCD" else ["whole"]
            cells.append(
                {"id": record.id, "row": label, "base_model": record.base_model, "seed": seed, "blocks": blocks}
            )
    asked = {"whole": [f"senteval:{task}" for task in TRANSFER], "small": ["senteval:MR"]}
    parts = [{"name": name, "title": name, "description": "", "tasks": tasks} for name, tasks in asked.items()]
    write_atomic(manifest_file(work, "invented"), json.dumps({"name": "invented", "cells": cells, "blocks": parts}))
    return work


def test_verdicts_on_tasks_suites_and_blocks(transfer, capsys):
    text = called(capsys, "verdict", transfer, "SimCSE", "SCD", "--on", "transfer")
    assert text.startswith("SimCSE is better than SCD on the average of the seven transfer tasks: ")
    assert called(capsys, "verdict", transfer, "SimCSE", "SCD") == text  # as the report goes
    task = json.loads(called(capsys, "verdict", transfer, "SCD", "SimCSE", "--on", "trec", "--json"))
    assert (task["verdict"], task["tasks"]) == ("worse", ["senteval:TREC"])
    for words in (("--block", "small"), ("--on", "small")):
        block = called(capsys, "verdict", transfer, *words)
        assert "MR (SentEval); row minus column in points, 2 rows judged" in block
        assert "SCD" not in block
    assert "2 rows; standard deviation" in called(capsys, "power", transfer, "--block", "small")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--block", "smal"), 'no block "smal" (did you mean "small"?); its blocks: whole, small'),
        (("--on", "STS-B"), "--on STS-B: not known; known: transfer, MR, CR"),
    ],
)
def test_what_is_not_there_is_named(transfer, capsys, words, said):
    assert main(["verdict", str(transfer), *words]) == 2
    assert said in capsys.readouterr().err


def test_runs_without_outcomes_are_told_how_to_get_them(tmp_path, capsys):
    made = synthetic.Invented(tmp_path, scale=0.1)
    for seed in (1, 2):
        for label in ("SimCSE", "SCD"):
            add_transfer(made, label, seed, 0.7, outcomes=False)
    assert main(["verdict", str(tmp_path), "SimCSE", "SCD", "--on", "MR"]) == 2
    error = capsys.readouterr().err
    assert "no run kept what each example of MR scored" in error
    assert "--rescore outcomes" in error


def test_a_suite_that_is_never_averaged_names_its_tasks(tmp_path, capsys):
    made = synthetic.Invented(tmp_path, scale=0.1)
    tasks = ("Embedded-Sentiment-natural", "Embedded-Sentiment-contrast")
    for label in ("SimCSE", "SCD"):
        record = made.add(label, 1, tasks=(), curves=False, geometry=False)
        made.extend(record, [synthetic.score(t, "embedded-transfer", "embedded", "accuracy", 0.6) for t in tasks])
    assert main(["verdict", str(tmp_path), "--on", "embedded-transfer"]) == 2
    assert f"its tasks are unlike, so there is no average; name a task: {', '.join(tasks)}" in capsys.readouterr().err


def test_rows_of_one_seed_that_were_trained_are_judged_without_torch(tmp_path):
    made = synthetic.Invented(tmp_path, scale=0.1)
    for label, noise in (("SimCSE", 1.0), ("Barlow Twins", 4.0)):
        record = made.add(label, 1, noise=noise, tasks=("STS-B",), curves=False, geometry=False)
        trained = record.model_copy(update={"method": "simcse", "training": {"steps": 20}})
        RunFolder(tmp_path, record.id).write(trained)
    ask = (
        "import sys; from harness.cli import main; "
        f"code = main(['verdict', {str(tmp_path)!r}, 'SimCSE', 'Barlow Twins']); print(code, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 False"
