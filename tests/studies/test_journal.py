"""The journal of studies after damage to it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from harness.cli import main
from harness.errors import InputError
from studies.storage import open_storage
from tests.support.errors import raises_input_error


@pytest.mark.parametrize("bad", [b"garbage\n", b"[1]\n", b"\xff\xfe\n"])
def test_a_damaged_line_of_a_journal_is_named(tmp_path: Path, bad: bytes) -> None:
    journal = tmp_path / "studies.journal"
    study = optuna.create_study(storage=open_storage(tmp_path), study_name="some")
    study.optimize(lambda trial: trial.suggest_float("a", 0, 1), n_trials=2)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:-1], bad, lines[-1]]))
    with raises_input_error(file=journal):
        open_storage(tmp_path)
    journal.write_bytes(b"".join(lines))
    assert len(optuna.load_study(storage=open_storage(tmp_path), study_name="some").trials) == 2
    journal.write_bytes(
        b"".join([*lines, bad])
    )  # at the end, where Optuna notices it with the next line alone
    with raises_input_error(file=journal):
        open_storage(tmp_path)


def test_a_last_line_that_a_kill_cut_short_is_removed_and_the_study_resumes(tmp_path: Path) -> None:
    journal = tmp_path / "studies.journal"
    study = optuna.create_study(storage=open_storage(tmp_path), study_name="some")
    study.optimize(lambda trial: trial.suggest_float("a", 0, 1), n_trials=2)
    journal.write_bytes(journal.read_bytes()[:-9])
    again = optuna.load_study(storage=open_storage(tmp_path), study_name="some")
    again.optimize(lambda trial: trial.suggest_float("a", 0, 1), n_trials=1)
    stored = optuna.load_study(storage=open_storage(tmp_path), study_name="some")
    assert [trial.state.name for trial in stored.trials] == ["COMPLETE", "RUNNING", "COMPLETE"]


def _change(number: int, **values: Any) -> Callable[[list[dict[str, Any]]], list[dict[str, Any]]]:
    def change(logs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        changed = [dict(log) for log in logs]
        changed[number - 1 if number > 0 else number].update(values)
        return changed

    return change


def _drop_key(key: str) -> Callable[[list[dict[str, Any]]], list[dict[str, Any]]]:
    return lambda logs: [{k: v for k, v in log.items() if k != key} for log in logs]


DAMAGES = {
    "unknown operation": _change(3, op_code=99),
    "operation is a text": _change(3, op_code="4"),
    "no study": _drop_key("study_id"),
    "no trial": _drop_key("trial_id"),
    "a state that there is not": _change(-1, state=9),
    "values are texts": _change(-1, values=["abc"]),
    "values are infinite": _change(-1, values=[float("inf")]),
    "values are missing": _change(-1, values=None),
}
"""Of lines without a number, as an earlier version wrote them."""
LOSSES: dict[str, Callable[[list[dict[str, Any]]], list[dict[str, Any]]]] = {
    "a line removed": lambda logs: [*logs[:3], *logs[4:]],
    "the first line removed": lambda logs: logs[1:],
    "a line repeated": lambda logs: [*logs[:4], *logs[3:]],
    "two lines exchanged": lambda logs: [*logs[:3], logs[4], logs[3], *logs[5:]],
    "another value": _change(-1, values=[0.9]),
    "another study": _change(2, study_id=7),
    "another number": _change(4, line=[9, "0" * 16]),
}


def _written(tmp_path: Path) -> tuple[Path, list[dict[str, Any]]]:
    study = optuna.create_study(storage=open_storage(tmp_path), study_name="some")
    study.optimize(lambda trial: trial.suggest_float("a", 0, 1), n_trials=2)
    journal = tmp_path / "studies.journal"
    logs = [json.loads(line) for line in journal.read_text().splitlines()]
    place = max(n for n, log in enumerate(logs) if log.get("values"))
    return journal, logs[: place + 1]  # the last line has the value of a trial


@pytest.mark.parametrize("name", [*DAMAGES, *LOSSES])
def test_damage_is_one_error_of_the_journal_and_doctor_finds_it(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    journal, logs = _written(tmp_path)
    if name in DAMAGES:
        logs = [{key: value for key, value in log.items() if key != "line"} for log in logs]
    change = {**DAMAGES, **LOSSES}[name]
    journal.write_text("".join(json.dumps(log) + "\n" for log in logs))
    open_storage(tmp_path)  # sound
    journal.write_text("".join(json.dumps(log) + "\n" for log in change(logs)))
    with pytest.raises(InputError) as refused:
        open_storage(tmp_path)
    assert refused.value.file == str(journal)
    (tmp_path / "runs").mkdir()
    assert main(["doctor", "--workdir", str(tmp_path)]) == 1
    assert "studies.journal" in capsys.readouterr().out


def test_lines_of_other_programs_are_read_and_processes_number_lines_together(
    tmp_path: Path,
) -> None:
    journal, _ = _written(tmp_path)
    plain = JournalStorage(JournalFileBackend(str(journal)))  # as Optuna's dashboard writes
    optuna.load_study(storage=plain, study_name="some").set_user_attr("note", "mine")
    first, second = open_storage(tmp_path), open_storage(tmp_path)
    for number, storage in enumerate((first, second, first)):
        optuna.load_study(storage=storage, study_name="some").set_user_attr(f"n{number}", number)
    again = optuna.load_study(storage=open_storage(tmp_path), study_name="some")
    assert again.user_attrs == {"note": "mine", "n0": 0, "n1": 1, "n2": 2}


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_journal_that_is_no_file_is_refused(tmp_path: Path, kind: str) -> None:
    journal = tmp_path / "studies.journal"
    if kind == "pipe":
        os.mkfifo(journal)
    elif kind == "device":
        journal.symlink_to("/dev/zero")
    else:
        journal.mkdir()
    with pytest.raises(InputError):
        open_storage(tmp_path)
