"""`harness doctor --workdir`: the stores beside the runs; the files of runs are damaged where
nothing may get lost.
"""

from __future__ import annotations

import json
from pathlib import Path

import optuna
import pytest

from harness.cli import main
from studies.storage import open_storage


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A work directory with a journal of three lines."""
    (tmp_path / "runs").mkdir()
    optuna.create_study(storage=open_storage(tmp_path), study_name="a", direction="maximize")
    optuna.create_study(storage=open_storage(tmp_path), study_name="b", direction="maximize")
    optuna.create_study(storage=open_storage(tmp_path), study_name="c", direction="maximize")
    return tmp_path


def faults(work: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    main(["doctor", "--workdir", str(work), "--json"])
    return {fault["file"]: fault["what"] for fault in json.loads(capsys.readouterr().out)["faults"]}


def test_sound_stores(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert faults(work, capsys) == {}


@pytest.mark.parametrize("line", ['{"op_code": ', "3", "\x00\x00"])
def test_a_damaged_line_of_a_journal_has_its_number(
    work: Path, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    journal = work / "studies.journal"
    lines = journal.read_text().splitlines()
    journal.write_text("\n".join([*lines[:2], line, *lines[2:]]) + "\n")
    assert faults(work, capsys) == {"studies.journal": "line 3 is damaged"}
