"""From a cell of a report to the runs and commands behind it, and to the same number again."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
from pathlib import Path

import pytest

from harness.cli import main
from harness.commands import reproduce
from harness.commands.reproduce import find_cells, read_report, split_name
from harness.results.store import read_records
from reports.build import build_comparison
from tests.support import short_runs
from tests.support.bases import narrow_bert
from tests.support.synthetic import Invented

pytestmark = pytest.mark.usefixtures("few_pairs")

SMALL = ("STS-B", "Embedded-STS-natural")
EXPERIMENT = """
name = "tiny"
base_models = ["BASE"]
seeds = [1, 2]
suites = ["Embedded-STS-natural"]
dev = {task = "Embedded-STS-natural"}
corpus = {uri = "embedded:sentences", limit = 64}
max_steps = 2
precision = "fp32"
[[methods]]
method = "simcse"
preset = "mini"
name = "SimCSE <b>"
config = {batch_size = 8, eval_every = 1, train_length = 8}
[[methods]]
method = "pooling"
config = {pooling = "mean"}
"""  # two rows: the command of a run selects its row with --only


@pytest.fixture(scope="module")
def tiny(few_pairs: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of two real runs of a row; their work directory is gone."""
    folder = tmp_path_factory.mktemp("tiny")
    (folder / "tiny.toml").write_text(EXPERIMENT.replace("BASE", narrow_bert()))
    work = folder / "work"
    assert (
        main(
            [
                "compare",
                str(folder / "tiny.toml"),
                "--workdir",
                str(work),
                "--tracking-uri=none",
                "--format=html",
                "--quiet",
            ]
        )
        == 0
    )
    shutil.move(work / "reports" / "tiny", folder / "report")
    shutil.rmtree(work)
    return folder / "report"


NAME = "scores-embedded:SimCSE <b>:Embedded-STS-natural"


def test_lists_cells_and_prints_the_runs_and_commands_of_one(
    tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", str(tiny)]) == 0
    assert NAME in capsys.readouterr().out
    records = find_cells(read_report(tiny))[NAME]["records"]
    for report in (tiny, tiny / "data.json", tiny / "index.html"):
        assert main(["reproduce", f"{report}#{NAME}"]) == 0
        printed = capsys.readouterr().out
        assert all(
            part in printed
            for part in (*records, "--set 'seeds=[1]'", "--set 'seeds=[2]'", "tiny.toml")
        )


def test_the_commands_give_the_same_runs_and_the_same_number(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    short_runs.no_report(monkeypatch)
    assert main(["reproduce", f"{tiny}#{NAME}", "--run", str(tmp_path / "new")]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("equal")
    data = read_report(tiny)
    assert {r.id for r in read_records(tmp_path / "new")} <= set(data["runs"])
    row = next(
        row for row in data["tables"]["scores-embedded"]["rows"] if row["name"] == "SimCSE <b>"
    )
    cell = row["cells"]["Embedded-STS-natural"]
    cell["value"], cell["text"] = cell["value"] - 0.5, "0.00"
    (tmp_path / "data.json").write_text(json.dumps(data))

    def same_again(words: list[str], workdir: Path) -> int:
        shutil.copytree(tmp_path / "new", workdir, dirs_exist_ok=True)
        return 0

    monkeypatch.setattr(reproduce, "run_command", same_again)
    assert main(["reproduce", f"{tmp_path}#{NAME}", "--run", str(tmp_path / "again")]) == 1
    assert "differ by +0.5" in capsys.readouterr().out


def test_a_report_chooses_neither_the_executor_nor_the_tracking_server(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short_runs.no_report(monkeypatch)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        options = [f"--tracking-uri=http://127.0.0.1:{server.getsockname()[1]}"]
        options += ["--executor=slurm", "--workers=3", "--set", "executor.slurm.comment='x'"]
        options += ["--set", "executor={name='slurm'}"]
        data = read_report(tiny)
        for entry in data["runs"].values():
            entry["command"] = f"{entry['command']} {shlex.join(options)}"
        (tmp_path / "data.json").write_text(json.dumps(data))

        assert main(["reproduce", f"{tmp_path}#{NAME}", "--run", str(tmp_path / "new")]) == 0
        with pytest.raises(BlockingIOError):  # nobody has connected
            server.accept()


def test_only_commands_of_the_harness_are_run(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = read_report(tiny)
    for command in (
        "touch made",
        "harness track sync",
        "harness compare x.toml; touch made",
        "harness compare x.toml --no-such-option",
        "",
        "harness.compare({}, workdir='NEW_FOLDER')",
    ):
        changed = {run: entry | {"command": command} for run, entry in data["runs"].items()}
        (tmp_path / "data.json").write_text(json.dumps(data | {"runs": changed}))
        assert main(["reproduce", f"{tmp_path}#{NAME}", "--run", str(tmp_path / "new")]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("harness: ")
        assert not (tmp_path / "new").exists()


def test_wrong_input_is_one_line(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data.json").write_text('{"tables": 3}')
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("")
    for arguments, named in (
        (["/no/report#a:b:c"], "/no/report"),
        ([str(tmp_path)], "data.json"),
        ([f"{tiny}#scores-embedded:SimCSE:x"], "scores-embedded:SimCSE:x"),
        ([f"{tiny}#{NAME}x"], NAME),
        ([str(tiny), "--run", "x"], "--run"),
        ([f"{tiny}#{NAME}", "--run", str(tmp_path / "full")], "full"),
    ):
        assert main(["reproduce", *arguments]) == 2, arguments
        (line,) = capsys.readouterr().err.splitlines()
        assert named in line


def test_a_path_may_contain_the_sign(tmp_path: Path) -> None:
    (tmp_path / "a#b").mkdir()
    assert split_name(f"{tmp_path}/a#b") == (tmp_path / "a#b", None)
    assert split_name(f"{tmp_path}/a#b#t:r#1:c") == (tmp_path / "a#b", "t:r#1:c")


def test_every_measured_cell_names_runs_that_the_report_describes(tmp_path: Path) -> None:
    made = Invented(tmp_path, scale=0.03)
    made.add("mean", 0, supervision="untrained", tasks=SMALL)
    for seed in (1, 2):
        made.add("a", seed, tasks=SMALL)
        made.add("b", seed, status="collapsed", reason="std 0")
    data = read_report(build_comparison(tmp_path, "invented", formats=["html"])["html"])
    cells = find_cells(data)
    for table in ("scores-sts-senteval", "scores-embedded", "against-base", "cost"):
        names = {column["key"] for column in data["tables"][table]["columns"]}
        for row in data["tables"][table]["rows"]:
            for column in names - {"row", "supervision", "seeds", "base", "status"}:
                cell = row["cells"][column]
                if "value" in cell or cell.get("state") == "collapsed":
                    assert set(cell["records"]) <= set(data["runs"])
                    assert f"{table}:{row['name']}:{column}" in cells


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", ["pipe", "zeros", "long", "empty"])
def test_what_is_neither_report_nor_archive_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "x.zip"
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "zeros":
        place.symlink_to("/dev/zero")
    elif kind == "long":
        place = tmp_path / ("n" * 300)
    else:
        place.write_bytes(b"")
    assert main(["reproduce", str(place)]) == 2
    assert main(["reproduce", str(place), "--run", str(tmp_path / "new")]) == 2
    assert not (tmp_path / "new").exists()
