"""The journal that studies are kept in, after damage to it."""

from __future__ import annotations

from pathlib import Path

import optuna
import pytest

from harness.errors import InputError
from studies.run.storage import open_storage


@pytest.mark.parametrize("bad", [b"garbage\n", b"[1]\n", b"\xff\xfe\n"])
def test_a_damaged_line_of_a_journal_is_named(tmp_path: Path, bad: bytes) -> None:
    journal = tmp_path / "studies.journal"
    study = optuna.create_study(storage=open_storage(str(journal)), study_name="some")
    study.optimize(lambda trial: trial.suggest_float("a", 0, 1), n_trials=2)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:-1], bad, lines[-1]]))
    with pytest.raises(InputError, match=f"line {len(lines)} is damaged; remove that line"):
        open_storage(str(journal))
    journal.write_bytes(b"".join(lines))
    assert len(optuna.load_study(storage=open_storage(str(journal)), study_name="some").trials) == 2
