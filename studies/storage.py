"""The storage of trials: a journal file of the work directory, with the studies of all names.

One process runs a study at a time. A lock in the work directory ensures it; the lock ends with its
process.
"""

from __future__ import annotations

import json
import logging
import os
import warnings
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import BaseStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend

from harness.errors import InputError
from harness.files.hashing import content_id
from harness.files.locks import work_lock
from studies.definition.study import Study

log = logging.getLogger(__name__)

JOURNAL = "studies.journal"
DEFINITION = "definition"  # user attribute of an Optuna study: our study, as JSON


def studies_in(workdir: Path) -> dict[str, optuna.Study]:
    """Name -> study of ours in a work directory.

    Raises:
        InputError: the storage is damaged.
    """
    if not (workdir / JOURNAL).exists():
        return {}
    storage = open_storage(workdir)
    found = {
        name: optuna.load_study(study_name=name, storage=storage)
        for name in optuna.get_all_study_names(storage)
    }
    return {name: stored for name, stored in found.items() if DEFINITION in stored.user_attrs}


def open_storage(workdir: Path) -> BaseStorage:
    """The journal of a work directory, created where there is none.

    Raises:
        InputError: a line of it is damaged, or it cannot be written.
    """
    from filelock import FileLock

    optuna.logging.set_verbosity(
        optuna.logging.ERROR
    )  # it logs every trial; the progress does that
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    file = (workdir / JOURNAL).resolve()
    lock = FileLock(file.with_name(f".{file.name}.lock"))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with lock:
            _check_lines(file)
    except OSError as error:
        raise InputError(
            f"{file}: cannot be opened ({error.strerror}); name another --workdir"
        ) from None
    # This lock is gone with its process: Optuna's own outlive a kill by 30 seconds.
    return JournalStorage(JournalFileBackend(str(file), lock))  # type: ignore[arg-type]


def _check_lines(journal: Path) -> None:
    """Find damage. A last line that a kill cut short is removed: Optuna would extend it."""
    for number, line in enumerate(journal.open("rb") if journal.exists() else (), 1):
        if not line.endswith(b"\n"):
            os.truncate(journal, journal.stat().st_size - len(line))
            log.warning(
                "%s: its last line was cut short and removed; its content is computed again",
                journal,
            )
        elif not is_sound(line):
            raise InputError(
                f"{journal}: line {number} is damaged; remove that line, or the whole file (runs that have a record "
                "are not trained again), and give the same command again"
            )


def is_sound(line: bytes) -> bool:
    """Is a line one of a journal?"""
    try:
        return "op_code" in dict(json.loads(line))
    except (ValueError, TypeError, RecursionError):
        return False


def create_or_resume(storage: BaseStorage, study: Study, where: str) -> optuna.Study:
    """The Optuna study of this name: created, or found with the same definition.

    Raises:
        InputError: it exists with another definition (the difference is shown).
    """
    stored = optuna.create_study(
        storage=storage, study_name=study.name, direction="maximize", load_if_exists=True
    )
    if DEFINITION in stored.user_attrs or stored.get_trials(deepcopy=False):
        check_same(definition_of(stored), study, where)
    stored.set_user_attr(DEFINITION, study.model_dump_json())
    stored.set_metric_names([study.objective_name])
    return stored


def check_same(earlier: Study, later: Study, where: str) -> None:
    """Raises:
    InputError: two studies of one name have another definition.
    """
    old, new = _flat(earlier.identity()), _flat(later.identity())
    if keys := [key for key in {**old, **new} if old.get(key) != new.get(key)]:
        texts = [
            f"{key}: {json.dumps(old.get(key)):.80} there, {json.dumps(new.get(key)):.80} here"
            for key in keys
        ]
        raise InputError(
            f'{where}: study "{later.name}" exists with another definition ({"; ".join(texts)}); choose '
            "another name (--set name=NAME); runs are reused"
        )


def _flat(tree: dict[str, Any]) -> dict[str, Any]:
    """The values of tables under their own keys, as "space.temperature"."""
    tables = {key: value if isinstance(value, dict) else {"": value} for key, value in tree.items()}
    return {
        f"{key}.{name}".rstrip("."): value
        for key, table in tables.items()
        for name, value in table.items()
    }


def definition_of(stored: optuna.Study) -> Study:
    """Our study behind an Optuna study.

    Raises:
        InputError: it is not one that `harness study` made.
    """
    text, where = stored.user_attrs.get(DEFINITION), f'study "{stored.study_name}"'
    if text is None:
        raise InputError(
            f"{where} was not made by harness study; choose another name (--set name=NAME)"
        )
    return Study.parse(json.loads(text), where)


def lock_study(workdir: Path, name: str) -> AbstractContextManager[None]:
    """Be the only process that runs the study of this name in a work directory, until the block
    ends.

    Raises:
        InputError: another one does.
    """
    return work_lock(workdir, f".study-{content_id(name)}", f'study "{name}" in {workdir}')
