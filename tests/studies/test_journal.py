"""The journal of studies after damage to it."""

from __future__ import annotations

from pathlib import Path

import optuna
import pytest

from harness.errors import InputError
from studies.storage import open_storage


@pytest.mark.parametrize("bad", [b"garbage\n", b"[1]\n", b"\xff\xfe\n"])
def test_a_damaged_line_of_a_journal_is_named(tmp_path: Path, bad: bytes) -> None:
    journal = tmp_path / "studies.journal"
    study = optuna.create_study(storage=open_storage(tmp_path), study_name="some")
    study.optimize(lambda trial: trial.suggest_float("a", 0, 1), n_trials=2)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:-1], bad, lines[-1]]))
    with pytest.raises(InputError, match=f"line {len(lines)} "):
        open_storage(tmp_path)
    journal.write_bytes(b"".join(lines))
    assert len(optuna.load_study(storage=open_storage(tmp_path), study_name="some").trials) == 2
    journal.write_bytes(
        b"".join([*lines, bad])
    )  # at the end, where Optuna notices it with the next line alone
    with pytest.raises(InputError, match=f"line {len(lines) + 1} "):
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
