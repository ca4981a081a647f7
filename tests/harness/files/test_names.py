"""What a user may call a comparison or a study, whose name becomes a file's."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli import main
from harness.files.printable import name_fault
from harness.results.store import RunFolder, comparison_file
from harness.runs.experiment import read_experiment
from studies.definition.study import read_study
from tests.support.errors import raises_input_error

LEADING_OUT = [
    "../../evil",
    "/tmp/evil",
    "a/b",
    "a\\b",
    "..",
    ".hidden",
    "a\0b",
    "a\nb",
    "",
    " ",
    "x" * 400,
    "-rf",
    "ö" * 60,
]
METHODS = [{"method": "untrained"}]


@pytest.mark.parametrize("name", LEADING_OUT)
def test_a_name_that_cannot_be_a_file_is_refused_wherever_one_is_given(
    name: str, tmp_path: Path
) -> None:
    with raises_input_error(file="experiment", key="name") as refused:
        read_experiment({"name": name, "methods": METHODS})
    assert not set("\n\0") & set(str(refused.value))
    assert len(str(refused.value)) < 300
    with raises_input_error(key="comparison"):
        comparison_file(tmp_path, name)
    with raises_input_error(key="id of a run"):
        RunFolder(tmp_path, name)


@pytest.mark.parametrize(
    "name", ["all-methods", "Barlow Twins (dropout 0.05)", "größe_2", "比較", "v1.2+b", "3"]
)
def test_ordinary_names_of_any_script_are_allowed(name: str) -> None:
    assert name_fault(name) is None


def test_nothing_is_written_outside_of_the_work_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "experiment.toml"
    file.write_text('name = "../../../evil"\n[[methods]]\nmethod = "untrained"\n')
    assert main(["compare", str(file), "--workdir", str(tmp_path / "a" / "b" / "work")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert [path.name for path in tmp_path.rglob("*")] == ["experiment.toml"]


def test_a_study_is_named_like_a_file_too(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text('name = "../evil"\nmethod = "simcse"\nsteps = 2\ntrials = 2\n')
    with raises_input_error(file=file, key="name"):
        read_study(str(file))
    with raises_input_error(file=file, key="name"):
        read_study(str(file), name="x" * 400)


def test_a_label_may_hold_what_a_name_may_not() -> None:
    rows = read_experiment(
        {"name": "x", "methods": [{"method": "untrained", "name": "🙂 a/b"}]}
    ).methods
    assert rows[0].name == "🙂 a/b"
