"""From a cell of a report to the runs that made it, and to the same number again, without the work directory."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from harness.cli import main
from harness.results.manifest import manifest_file, read_records
from harness.results.run_folder import RunFolder
from harness.tasks.catalogue import resolve_tasks
from reports.build import build_comparison
from reports.read.provenance import provenance_of
from reports.reproduce.report_cells import read_report, references, split
from tests.support import invented_runs as made
from tests.support.synthetic import Invented

pytestmark = pytest.mark.usefixtures("few_pairs")

SMALL = ("STS-B", "Embedded-STS-natural")
EXPERIMENT = """
name = "tiny"
seeds = [1, 2]
suites = ["Embedded-STS-natural"]
dev = {task = "Embedded-STS-natural"}
corpus = {uri = "embedded:sentences", limit = 64}
max_steps = 2
[[methods]]
method = "pooling"
name = "mean"
[[methods]]
method = "simcse"
preset = "mini"
name = "SimCSE <b>"
config = {batch_size = 8, eval_every = 1, train_length = 8}
"""


@pytest.fixture(scope="module")
def tiny(few_pairs: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of two real runs of a row; their work directory is gone."""
    folder = tmp_path_factory.mktemp("tiny")
    (folder / "tiny.toml").write_text(EXPERIMENT)
    work = folder / "work"
    assert main(["compare", str(folder / "tiny.toml"), "--workdir", str(work), "--no-tracking", "--quiet"]) == 0
    shutil.move(work / "reports" / "tiny", folder / "report")
    shutil.rmtree(work)
    return folder / "report"


NAME = "scores-embedded:SimCSE <b>:Embedded-STS-natural"


def test_lists_cells_and_explains_one(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", str(tiny)]) == 0
    assert NAME in capsys.readouterr().out
    for report in (tiny, tiny / "data.json", tiny / "index.html"):
        assert main(["reproduce", f"{report}#{NAME}"]) == 0
        said = capsys.readouterr().out
        cell = json.loads((tiny / "data.json").read_text())["tables"]["scores-embedded"]["rows"]
        (records,) = [row["cells"]["Embedded-STS-natural"]["records"] for row in cell if row["name"] == "SimCSE <b>"]
        for part in (*records, "batch_size = 8", "count 64", "max_steps 2", "embedded:mini-bert", "--set 'seeds=[2]'"):
            assert part in said


def test_runs_it_again_and_finds_it_equal(tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", f"{tiny}#{NAME}", "--run", "--workdir", str(tmp_path / "new")]) == 0
    assert "equal to the last digit" in capsys.readouterr().out
    records = read_records(tmp_path / "new")
    assert [(r.row, r.seed, r.config["batch_size"]) for r in records] == [("SimCSE <b>", 1, 8), ("SimCSE <b>", 2, 8)]
    data = json.loads((tiny / "data.json").read_text())
    assert {r.id for r in records} <= set(data["runs"])  # the same runs, by the hash of all that they depend on


def test_says_how_far_off_another_number_is(tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads((tiny / "data.json").read_text())
    (row,) = [row for row in data["tables"]["scores-embedded"]["rows"] if row["name"] == "mean"]
    cell = row["cells"]["Embedded-STS-natural"]
    cell["value"], cell["text"] = cell["value"] - 0.5, "0.00"
    (tmp_path / "data.json").write_text(json.dumps(data))
    assert main(["reproduce", f"{tmp_path}#scores-embedded:mean:Embedded-STS-natural", "--run"]) == 1
    assert "differs by +0.5" in capsys.readouterr().out


def test_what_is_not_there_is_one_line(tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads((tiny / "data.json").read_text())
    for change, said in (
        ({"corpus": {"uri": "/no/where.txt", "kind": "sentences", "count": 64, "sha256": "0"}}, "/no/where.txt"),
        ({"corpus": {"uri": "embedded:sentences", "kind": "sentences", "count": 60, "sha256": "0"}}, "other text now"),
        ({"base_model": "/no/model"}, "/no/model"),
        ({"method": "sim-cse"}, 'unknown method "sim-cse"'),
    ):
        changed = data | {"setups": [setup | change if "corpus" in setup else setup for setup in data["setups"]]}
        (tmp_path / "data.json").write_text(json.dumps(changed))
        assert main(["reproduce", f"{tmp_path}#{NAME}", "--run"]) == 2
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 1
        assert said in lines[0]


def test_bad_input_is_one_line(tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "data.json").write_text('{"tables": 3}')
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "data.json").write_text('{"tables": {}}')
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("")
    for arguments, said in (
        (["/no/report#a:b:c"], "no such report"),
        ([str(tmp_path)], "not the data of a report"),
        ([str(tmp_path / "old")], "does not say which runs"),
        ([f"{tiny}#scores-embedded:SimCSE:x"], "no cell"),
        ([f"{tiny}#{NAME}x"], "did you mean"),
        ([str(tiny), "--run"], "name one cell"),
        ([f"{tiny}#{NAME}", "--workdir", "x"], "add --run"),
        ([f"{tiny}#{NAME}", "--run", "--workdir", str(tmp_path / "full")], "holds other things"),
    ):
        assert main(["reproduce", *arguments]) == 2, arguments
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 1
        assert said in lines[0]


def test_a_path_may_hold_the_sign(tmp_path: Path) -> None:
    (tmp_path / "a#b").mkdir()
    assert split(f"{tmp_path}/a#b") == (tmp_path / "a#b", None)
    assert split(f"{tmp_path}/a#b#t:r#1:c") == (tmp_path / "a#b", "t:r#1:c")


def test_every_measured_cell_names_runs_that_the_report_describes(tmp_path: Path) -> None:
    made = Invented(tmp_path, scale=0.03)
    made.add("mean", 0, supervision="untrained", tasks=SMALL)
    for seed in (1, 2):
        made.add("a", seed, tasks=SMALL)
        made.add("b", seed, status="collapsed", reason="std 0")
    data = read_report(build_comparison(tmp_path, "invented", formats=["html"])["html"])
    cells = references(data)
    for table in ("scores-sts-senteval", "scores-embedded", "against-base", "cost"):
        names = {column["key"] for column in data["tables"][table]["columns"]}
        for row in data["tables"][table]["rows"]:
            for column in names - {"row", "supervision", "seeds", "base", "status"}:
                cell = row["cells"][column]
                if "value" in cell or cell.get("state") == "collapsed":
                    assert set(cell["records"]) <= set(data["runs"])
                    assert f"{table}:{row['name']}:{column}" in cells


def test_names_of_rows_are_unlike(tmp_path: Path) -> None:
    made = Invented(tmp_path, scale=0.03)
    for base in ("one", "two"):
        made.add("a", tasks=SMALL, base=base)
    data = json.loads(build_comparison(tmp_path, "invented", formats=["md"])["json"].read_text())
    assert [row["name"] for row in data["tables"]["scores-embedded"]["rows"]] == ["a (one)", "a (two)"]


def test_runs_name_their_mlflow_run(tmp_path: Path) -> None:
    made = Invented(tmp_path, scale=0.03)
    record = made.add("a", tasks=SMALL)
    with sqlite3.connect(tmp_path / "mlflow.db") as store:  # as MLflow lays its tables out
        store.executescript(
            "CREATE TABLE experiments (experiment_id INTEGER, name TEXT);"
            "CREATE TABLE runs (run_uuid TEXT, experiment_id INTEGER, lifecycle_stage TEXT, start_time INTEGER);"
            "CREATE TABLE tags (key TEXT, value TEXT, run_uuid TEXT);"
            "INSERT INTO experiments VALUES (1, 'invented');"
            "INSERT INTO runs VALUES ('gone', 1, 'deleted', 1), ('shown', 1, 'active', 2);"
        )
        for run in ("gone", "shown"):
            store.execute("INSERT INTO tags VALUES ('harness.id', ?, ?)", (record.id, run))
            store.execute("INSERT INTO tags VALUES ('harness.row', 'a', ?)", (run,))
    written = build_comparison(tmp_path, "invented", formats=["md"])
    assert json.loads(written["json"].read_text())["runs"][record.id]["mlflow"] == "shown"
    assert "MLflow run shown" in written["md"].read_text()
    (tmp_path / "mlflow.db").write_bytes(b"not a database")
    assert "mlflow" not in json.loads(build_comparison(tmp_path, "invented")["json"].read_text())["runs"][record.id]


def test_a_row_whose_only_record_is_damaged_says_so(tmp_path: Path) -> None:
    made = Invented(tmp_path, scale=0.03)
    records = [made.add(row, tasks=SMALL) for row in ("a", "b")]
    cells = [{"id": r.id, "row": r.row, "base_model": r.base_model, "seed": r.seed} for r in records]
    methods = [{"method": "simcse", "name": "a"}, {"method": "none of ours", "name": "b"}]
    manifest = {"name": "invented", "cells": cells, "experiment": {"methods": methods}}
    manifest_file(tmp_path, "invented").parent.mkdir()
    manifest_file(tmp_path, "invented").write_text(json.dumps(manifest))
    RunFolder(tmp_path, records[0].id).record_file.write_text("{")
    written = build_comparison(tmp_path, "invented")
    rows = {r["name"]: r["cells"] for r in json.loads(written["json"].read_text())["tables"]["scores-embedded"]["rows"]}
    assert rows["a"]["Embedded-STS-natural"]["state"] == "failed"
    assert "damaged record" in rows["a"]["seeds"]["notes"][0]
    assert rows["b"]["Embedded-STS-natural"]["state"] == "value"


def test_a_record_of_an_older_version_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    made = Invented(tmp_path, scale=0.03)
    old, new = made.add("old", tasks=SMALL), made.add("new", tasks=SMALL)
    file = RunFolder(tmp_path, old.id).record_file
    whole = json.loads(file.read_text())
    for field in ("missing", "unfit", "inputs", "protocols", "evaluation", "cost", "environment", "command", "dev"):
        del whole[field]  # fields that came later
    file.write_text(json.dumps(whole | {"schema_version": 0}))
    written = build_comparison(tmp_path, "invented")
    rows = {r["name"]: r["cells"] for r in json.loads(written["json"].read_text())["tables"]["scores-embedded"]["rows"]}
    assert rows["old"]["Embedded-STS-natural"]["value"] == pytest.approx(100 * (old.score("Embedded-STS-natural") or 0))
    assert rows["new"]["Embedded-STS-natural"]["records"] == [new.id]


def test_a_damaged_manifest_is_one_line(tmp_path: Path) -> None:
    from harness.errors import InputError

    Invented(tmp_path, scale=0.03).add("a", tasks=SMALL)
    manifest_file(tmp_path, "invented").parent.mkdir()
    manifest_file(tmp_path, "invented").write_text("{")
    with pytest.raises(InputError, match="damaged"):
        build_comparison(tmp_path, "invented")


def test_scores_of_layers_are_repeated_by_the_task_that_gives_them(tmp_path: Path) -> None:
    scores = [made.score("STS-B", 40), made.score("STS-B@layer:1:max", 50, suite="layers"), *made.sts(45)]
    record = made.run(tmp_path, "pooling", {"pooling": "cls"}, scores=scores)
    suites = provenance_of([record], tmp_path)["experiments"]["invented"]["suites"]
    assert suites[:2] == ["STS-B", "layers:STS-B"]
    assert {task.name for task in resolve_tasks(suites)} >= {"STS-B", "layers:STS-B"}
