"""`harness verdict` and `harness power`: their numbers, and what they refuse."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from harness.cli import main
from harness.errors import InputError
from harness.results.store import RunFolder, join_examples
from harness.tasks.senteval.transfer import TRANSFER
from reports.comparison.comparison_document import describe
from reports.comparison.terminal_summary import summary_table
from reports.decide.question import comparison_of, question_of
from reports.decide.verdict_answer import verdict
from reports.load import read_comparison
from tests.support import synthetic
from tests.support.invented_outcomes import add_transfer


@pytest.fixture(scope="module")
def workdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("work")
    made = synthetic.Invented(work, scale=0.1)
    made.add(
        "mean", 0, noise=3.0, supervision="untrained", tasks=("STS12", "STS-B"), geometry=False
    )
    for seed in (1, 2, 3):
        for label, noise in (("SimCSE", 1.0), ("SCD", 1.05), ("Barlow Twins", 4.0)):
            made.add(
                label, seed, noise=noise, tasks=("STS12", "STS-B"), curves=False, geometry=False
            )
    return work


@pytest.fixture(scope="module")
def transfer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three rows on transfer tasks; two of them and MR alone are a block of the file."""
    work = tmp_path_factory.mktemp("transfer")
    made = synthetic.Invented(work, scale=0.1)
    rights = {"SimCSE": 0.8, "SCD": 0.6, "Barlow Twins": 0.79}
    records = [
        add_transfer(made, label, seed, right)
        for seed in (1, 2, 3)
        for label, right in rights.items()
    ]
    of_blocks = {
        label: {"blocks": ["whole"] if label == "SCD" else ["whole", "small"]} for label in rights
    }
    tasks = {"whole": [f"senteval:{task}" for task in TRANSFER], "small": ["senteval:MR"]}
    blocks = [
        {"name": name, "title": name, "description": "", "tasks": own}
        for name, own in tasks.items()
    ]
    synthetic.write_comparison(work, records, of_blocks, blocks=blocks)
    return work


def called(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert main([str(word) for word in words]) == 0
    return capsys.readouterr().out


def numbers(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    return json.loads(called(capsys, *words, "--json"))


def test_a_verdict_is_one_line_or_its_numbers(
    workdir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        called(capsys, "verdict", "--workdir", workdir, "SimCSE", "Barlow Twins").count("\n") == 1
    )
    worse = numbers(
        capsys, "verdict", "--workdir", workdir, "Barlow Twins", "SimCSE", "--on", "STS-B"
    )
    assert (worse["verdict"], worse["tasks"]) == ("worse", ["senteval:STS-B"])
    assert worse["family"] == "all 6 pairs of 4 rows"
    start = numbers(capsys, "verdict", "--workdir", workdir, "mean", "SimCSE")
    assert (start["verdict"], start["family"]) == ("worse", "3 rows against their untrained start")
    assert worse["low"] < worse["difference"] < worse["high"] < 0
    assert worse["p"] < 0.05
    near = numbers(capsys, "verdict", "--workdir", workdir, "SimCSE", "SCD")
    assert near["verdict"] == "cannot tell yet"
    assert near["detectable"] > abs(near["difference"])
    alike = numbers(capsys, "verdict", "--workdir", workdir, "SimCSE", "SCD", "--equivalence", 60)
    assert alike["verdict"] == "no difference that matters"


def test_the_power_of_a_design_goes_by_the_spread_of_rows_of_its_kind(workdir: Path) -> None:
    (block,) = question_of(comparison_of(workdir, ""), "").blocks().values()
    assert len(block.contenders) == 4
    design = block.design()
    assert design is not None
    trained = [block.runs(row) for row in block.contenders if row.label != "mean"]
    pooled = sum(100**2 * float(scores.var(ddof=1)) for scores in trained) / 3
    assert design[:2] == (3, pytest.approx(pooled**0.5))


def test_without_rows_all_pairs_and_groups(
    workdir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert all(
        row in called(capsys, "verdict", "--workdir", workdir)
        for row in ("SimCSE", "SCD", "Barlow Twins", "mean")
    )
    (whole,) = numbers(capsys, "verdict", "--workdir", workdir)
    assert len(whole["pairs"]) == 6
    assert set(whole["rows"][:2]) == {"SimCSE", "SCD"}
    assert whole["groups"][0] == f"1, 2: {', '.join(whole['rows'][:2])}"


def test_power_from_records_and_from_numbers(
    workdir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(capsys, "power", "--workdir", workdir, "--difference", 30)
    (given,) = numbers(capsys, "power", "--sd", 0.84, "--rows", 6, "--difference", 3)
    least = list(given["seeds"].values())
    assert least == sorted(least, reverse=True)
    assert given["needed"] > given["needed_planned"]
    assert given["planned"]["5"] < given["seeds"]["5"]
    assert given["examples"]["75400"]["5"] < given["seeds"]["5"]  # four times the pairs of STS


def test_verdicts_on_tasks_suites_and_blocks(
    transfer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = numbers(capsys, "verdict", "--workdir", transfer, "SimCSE", "SCD", "--on", "transfer")
    assert (whole["verdict"], len(whole["tasks"])) == ("better", 7)
    assert numbers(capsys, "verdict", "--workdir", transfer, "SimCSE", "SCD") == whole
    task = numbers(capsys, "verdict", "--workdir", transfer, "SCD", "SimCSE", "--on", "trec")
    assert (task["verdict"], task["tasks"]) == ("worse", ["senteval:TREC"])
    for words in (("--block", "small"), ("--on", "small")):
        (block,) = numbers(capsys, "verdict", "--workdir", transfer, *words)
        assert set(block["rows"]) == {"SimCSE", "Barlow Twins"}
        assert {tuple(pair["tasks"]) for pair in block["pairs"]} == {("senteval:MR",)}


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("verdict", "--workdir", "{work}", "SimCSE"), "name two or none"),
        (("verdict", "--workdir", "{work}", "SimCSE", "SCE"), '"SCE"'),
        (("verdict", "--workdir", "{work}", "SimCSE", "SimCSE"), "name two"),
        (("verdict", "--workdir", "{work}", "SimCSE", "SCD", "--on", "MR"), "--on MR"),
        (("verdict", "--workdir", "{work}/none"), "none"),
        (("power", "--workdir", "{work}/none"), "none"),
        (("power", "--sd", "-1"), "--sd -1"),
        (("verdict", "--workdir", "{transfer}", "--block", "smal"), '"small"'),
        (("verdict", "--workdir", "{transfer}", "--on", "STS-B"), "--on STS-B"),
    ],
)
def test_wrong_input_is_one_line(
    workdir: Path,
    transfer: Path,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    named: str,
) -> None:
    assert main([word.format(work=workdir, transfer=transfer) for word in words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert named in line


def test_runs_without_outcomes_name_the_option_that_stores_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = synthetic.Invented(tmp_path, scale=0.1)
    for seed in (1, 2):
        for label in ("SimCSE", "SCD"):
            add_transfer(made, label, seed, 0.7, outcomes=False)
    assert main(["verdict", "--workdir", str(tmp_path), "SimCSE", "SCD", "--on", "MR"]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_a_suite_that_is_never_averaged_names_its_tasks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = synthetic.Invented(tmp_path, scale=0.1)
    tasks = ("Embedded-Sentiment-natural", "Embedded-Sentiment-contrast")
    for label in ("SimCSE", "SCD"):
        record = made.add(label, 1, tasks=(), curves=False, geometry=False)
        made.extend(
            record,
            [synthetic.score(t, "embedded-transfer", "embedded", "accuracy", 0.6) for t in tasks],
        )
    assert main(["verdict", "--workdir", str(tmp_path), "--on", "embedded-transfer"]) == 2
    assert ", ".join(tasks) in capsys.readouterr().err


def test_a_verdict_imports_no_torch(tmp_path: Path) -> None:
    made = synthetic.Invented(tmp_path, scale=0.1)
    for label, noise in (("SimCSE", 1.0), ("Barlow Twins", 4.0)):
        record = made.add(label, 1, noise=noise, tasks=("STS-B",), curves=False, geometry=False)
        RunFolder(tmp_path, record.id).write(record.model_copy(update={"training": {"steps": 20}}))
    code = (
        "import sys, harness; from harness.cli import main; harness.verdict; "
        f"code = main(['verdict', '--workdir', {str(tmp_path)!r}, 'SimCSE', 'Barlow Twins']); "
        "print(code, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 False"


def test_a_comparison_on_mteb_alone_has_scores_a_verdict_and_no_empty_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made, generator = synthetic.Invented(tmp_path, scale=0.1), np.random.default_rng(0)
    gold = generator.uniform(0, 5, 200)
    for label, noise in (("model A", 0.5), ("model B", 5.0)):
        cosine = gold + noise * generator.normal(size=200)
        about = {"task": "mteb:STSBenchmark", "source": "mteb", "split": "test", "subset": ""}
        pairs = pd.DataFrame(
            {"pair": np.arange(200), "gold": gold, "score": cosine.astype(np.float32)}
        )
        pairs = pairs.assign(**about, text1=np.arange(200), text2=np.arange(200) + 1000)
        record = made.add(
            label, 0, base=f"org/{label[-1]}", supervision="supervised", tasks=(), geometry=False
        )
        value = synthetic.spearman(gold, pairs["score"].to_numpy())
        made.extend(
            record, [synthetic.score("mteb:STSBenchmark", "mteb", "mteb", "cosine_spearman", value)]
        )
        RunFolder(tmp_path, record.id).write_examples(join_examples(pairs, None))  # type: ignore[arg-type]
    found = numbers(
        capsys, "verdict", "model A", "model B", "--workdir", tmp_path, "--on", "mteb:STSBenchmark"
    )
    assert (found["verdict"], found["family"]) == ("better", "the only pair of rows")
    columns, rows, _ = summary_table(tmp_path, "invented")
    assert len(columns) == 3
    assert rows[0][2].endswith("*")
    comparison = read_comparison(tmp_path, "invented")
    first = describe(comparison).tables()[0]
    assert (first.key, [row.cells[3].worse for row in first.rows]) == ("mteb-tasks", [False, True])


def test_the_only_row_is_the_reason_why_there_is_no_verdict(tmp_path: Path) -> None:
    made = synthetic.Invented(tmp_path, scale=0.1)
    for seed in (1, 2, 3):
        made.add("SimCSE", seed, tasks=("STS-B",), curves=False, geometry=False)
    with pytest.raises(InputError) as error:
        verdict(tmp_path)
    assert '"SimCSE" is the only row' in str(error.value)
    assert "examples" not in str(error.value)


def test_runs_that_are_all_damaged_are_not_called_missing(tmp_path: Path) -> None:
    made = synthetic.Invented(tmp_path, scale=0.1)
    records = [
        made.add("SimCSE", seed, tasks=("STS-B",), curves=False, geometry=False)
        for seed in (1, 2, 3)
    ]
    synthetic.write_comparison(tmp_path, records)
    for record in (tmp_path / "runs").glob("*/record.json"):
        record.write_text("{")
    with pytest.raises(InputError) as error:
        verdict(tmp_path)
    assert "3 records are damaged" in str(error.value)
