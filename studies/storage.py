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
    """Return the studies of a work directory by name.

    Raises:
        InputError: the storage is damaged.
    """
    if not (workdir / JOURNAL).exists():
        return {}
    storage = open_storage(workdir)
    studies = {}
    for name in optuna.get_all_study_names(storage):
        stored = optuna.load_study(study_name=name, storage=storage)
        if DEFINITION in stored.user_attrs:
            studies[name] = stored
    return studies


def open_storage(workdir: Path) -> BaseStorage:
    """Open the journal of a work directory; it is created where there is none.

    Raises:
        InputError: a line of it is damaged, or it cannot be written.
    """
    from filelock import FileLock

    optuna.logging.set_verbosity(optuna.logging.ERROR)  # the progress shows every trial
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    file = (workdir / JOURNAL).resolve()
    lock = FileLock(file.with_name(f".{file.name}.lock"))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with lock:
            _check_lines(file)
    except OSError as error:
        message = f"cannot be opened ({error.strerror})"
        raise InputError(message, file=file, remedy="name another --workdir") from None
    # This lock is gone with its process: Optuna's own outlive a kill by 30 seconds.
    return JournalStorage(JournalFileBackend(str(file), lock))  # type: ignore[arg-type]


def _check_lines(journal: Path) -> None:
    """Find damage. A last line that a kill cut short is removed: Optuna would extend it."""
    if not journal.exists():
        return
    with journal.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith(b"\n"):
                os.truncate(journal, journal.stat().st_size - len(line))
                message = "%s: its last line was cut short and removed; it is computed again"
                log.warning(message, journal)
            elif not is_sound(line):
                raise InputError(
                    f"line {number} is damaged",
                    file=journal,
                    remedy="remove that line, or the whole file (runs that have a record are not "
                    "trained again), and give the same command again",
                )


def is_sound(line: bytes) -> bool:
    """True if a line is one of a journal."""
    try:
        return "op_code" in dict(json.loads(line))
    except (ValueError, TypeError, RecursionError):
        return False


def create_or_resume(storage: BaseStorage, study: Study, where: str) -> optuna.Study:
    """Return the Optuna study of this name: a new one, or that with the same definition.

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
    """Check that two studies of one name have the same definition.

    Raises:
        InputError: they have not.
    """
    old = _flatten(earlier.identity())
    new = _flatten(later.identity())
    differences = []
    for key in {**old, **new}:
        if old.get(key) != new.get(key):
            there = json.dumps(old.get(key))
            here = json.dumps(new.get(key))
            differences.append(f"{key}: {there:.80} there, {here:.80} here")
    if differences:
        raise InputError(
            f'study "{later.name}" exists with another definition ({"; ".join(differences)})',
            file=where,
            remedy="choose another name (--set name=NAME); runs are reused",
        )


def _flatten(tree: dict[str, Any]) -> dict[str, Any]:
    """Return the tree with the values of tables under their own keys, as "space.temperature"."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            flat |= {f"{key}.{name}": inner for name, inner in value.items()}
        else:
            flat[key] = value
    return flat


def definition_of(stored: optuna.Study) -> Study:
    """Return our definition of an Optuna study.

    Raises:
        InputError: it is not one that `harness study` made.
    """
    text = stored.user_attrs.get(DEFINITION)
    where = f'study "{stored.study_name}"'
    if text is None:
        remedy = "choose another name (--set name=NAME)"
        raise InputError(f"{where} was not made by harness study", remedy=remedy)
    return Study.parse(json.loads(text), where)


def lock_study(workdir: Path, name: str) -> AbstractContextManager[None]:
    """Hold the lock of a study: no other process runs it until the block ends.

    Raises:
        InputError: another one does.
    """
    return work_lock(workdir, f".study-{content_id(name)}", f'study "{name}" in {workdir}')
