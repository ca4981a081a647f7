"""The command line: fast help, exit codes, and one line for input that cannot be used, with nothing
written.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli import main
from harness.files.locks import comparison_lock
from harness.runs.experiment import read_experiment

BASE = """
seeds = [1]
suites = ["Embedded-STS-natural"]
max_steps = 2
{top}
[dev]
task = "Embedded-STS-natural"
[corpus]
uri = "{corpus}"
{columns}
[[methods]]
method = "{method}"
config = {{ {config} }}
"""


def experiment(
    folder: Path,
    *,
    corpus: str = "embedded:sentences",
    method: str = "simcse",
    config: str = "",
    top: str = "",
    columns: str = "",
) -> str:
    file = folder / "mine.toml"
    file.write_text(
        BASE.format(corpus=corpus, method=method, config=config, top=top, columns=columns)
    )
    return str(file)


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """The one line of a command that must end with exit code 2."""
    assert main(argv) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


def compare(tmp_path: Path, capsys: pytest.CaptureFixture[str], **parts: str) -> str:
    work = tmp_path / "work"
    line = refused(
        capsys,
        "compare",
        experiment(tmp_path, **parts),
        "--workdir",
        str(work),
        "--tracking-uri=none",
    )
    assert not work.exists(), "nothing may be written"
    return line


def test_help_answers_quickly() -> None:
    command = [sys.executable, "-c", "from harness.cli import main; main(['--help'])"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    assert "harness compare demo" in done.stdout
    assert seconds < 1.5  # of the processor; 0.3 s on an idle machine
    slow = "{'torch', 'pandas', 'mlflow', 'scipy', 'transformers', 'matplotlib'}"
    ask = f"import sys, harness.cli as c; c.build_parser(); print({slow} & set(sys.modules))"
    assert (
        subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True).stdout.strip()
        == "set()"
    )


def test_methods_are_listed_without_the_models_of_transformers() -> None:
    ask = "import sys; from harness.cli import main; main(['list', 'methods']); print('transformers' in sys.modules)"
    assert subprocess.run(
        [sys.executable, "-c", ask], capture_output=True, text=True
    ).stdout.endswith("False\n")


def test_a_value_out_of_range_names_key_and_bound(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = compare(tmp_path, capsys, config="temperature = 0")
    assert 'methods[1] (simcse): key "temperature"' in line
    assert 'key "pooling"' in compare(tmp_path, capsys, config='pooling = "middle"')


@pytest.mark.parametrize("content", [b"", b"only one\n"])
def test_a_corpus_with_too_little_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    text = tmp_path / "text.txt"
    text.write_bytes(content)
    line = compare(tmp_path, capsys, corpus=str(text))
    assert str(text) in line


def test_a_csv_without_the_named_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "text.csv"
    table.write_text("id,sentence\n1,a\n2,b\n")
    line = compare(tmp_path, capsys, corpus=str(table), columns='columns = { text = "phrase" }')
    assert str(table) in line
    assert "phrase" in line
    assert "sentence" in line


def test_a_file_that_is_not_utf8_names_the_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text.txt"
    text.write_bytes(b"fine\nalso fine\ncaf\xe9\n")
    line = compare(tmp_path, capsys, corpus=str(text))
    assert "3" in line
    assert "UTF-8" in line


def test_a_base_model_that_does_not_exist(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no-such-model" in compare(tmp_path, capsys, top='base_models = ["./no-such-model"]')
    assert "embedded:mini-bert" in compare(
        tmp_path, capsys, top='base_models = ["embedded:mini-bart"]'
    )


def test_a_comparison_that_another_process_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = experiment(tmp_path, method="pooling")
    with comparison_lock(tmp_path / "work", read_experiment(file).name):
        before = sorted(p.name for p in (tmp_path / "work").rglob("*"))
        line = refused(capsys, "compare", file, "--workdir", str(tmp_path / "work"))
        assert str(os.getpid()) in line
        after = sorted(p.name for p in (tmp_path / "work").rglob("*") if p.name != "runs")
    assert after == before


def test_a_full_disk_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device", "record.json")

    monkeypatch.setattr("harness.runs.runner.execute", full)
    work = tmp_path / "work"
    command = ["compare", experiment(tmp_path, method="pooling"), "--workdir", str(work)]
    assert main([*command, "--tracking-uri=none", "--quiet"]) == 1
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "record.json" in line


def test_lists_are_readable_by_machines(capsys: pytest.CaptureFixture[str]) -> None:
    for what in ("methods", "tasks", "suites", "presets"):
        assert main(["list", what, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)
    assert main(["list", "methods", "simcse"]) == 0
    assert "default: 0.05" in capsys.readouterr().out
