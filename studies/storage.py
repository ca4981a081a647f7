"""The storage of trials: a journal file of the work directory, with the studies of all names.

One process runs a study at a time. A lock in the work directory ensures it; the lock ends with its
process.
"""

from __future__ import annotations

import json
import logging
import math
import os
import tempfile
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import optuna
from optuna.storages import BaseStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

from harness.errors import InputError
from harness.files.atomic import write_fault
from harness.files.hashing import content_id
from harness.files.links import real_path, refuse_link
from harness.files.locks import work_lock
from harness.files.reading import is_there, parse_json, require_ordinary
from studies.definition.study import Study
from studies.trials import SLOT, result_of

if TYPE_CHECKING:
    from filelock import FileLock

log = logging.getLogger(__name__)

JOURNAL = "studies.journal"
MEND = (
    "remove the file and give the same command again: runs that have a record are not trained again"
)
_LINE = "line"  # key of a line: its number, and the hash of both
DEFINITION = "definition"  # user attribute of an Optuna study: our study, as JSON
_CONTENT = "content"  # another one: hashes and versions of what the definition names


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
    refuse_link(workdir / JOURNAL, workdir)
    file = real_path(workdir / JOURNAL)
    # This lock is gone with its process: Optuna's own outlive a kill by 30 seconds.
    lock = FileLock(file.with_name(f".{file.name}.lock"))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with lock:
            if file.exists():
                require_ordinary(file)
                _remove_cut_line(file)
            damage = find_damage(file)
            journal = _NumberedJournal(file, lock)
    except OSError as error:
        message = f"cannot be opened ({error.strerror})"
        raise write_fault(error, message, file=file, remedy="name another --workdir") from None
    if damage:
        raise InputError(damage, file=file, remedy=MEND)
    return JournalStorage(journal)


class _NumberedJournal(JournalFileBackend):
    """Optuna's journal, each line of which also has its number and a hash: a line that was changed,
    lost or repeated would give values to other trials.
    """

    def __init__(self, file: Path, lock: FileLock) -> None:
        super().__init__(str(file), lock)  # type: ignore[arg-type]
        self._file = file
        self._own_lock = lock
        self._lines = self._bytes = 0  # that are counted

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Add lines, with their numbers."""
        with self._own_lock:
            with self._file.open("rb") as stream:
                stream.seek(self._bytes)
                new = stream.read()  # of other processes, and of this one
            self._lines += new.count(b"\n")
            self._bytes += len(new)
            first = self._lines + 1
            super().append_logs([_number(log, first + place) for place, log in enumerate(logs)])


def _number(log: dict[str, Any], number: int) -> dict[str, Any]:
    content = json.loads(json.dumps(log))
    return {**log, _LINE: [number, content_id([number, content])]}


def _remove_cut_line(journal: Path) -> None:
    """Remove a last line that a kill cut short: Optuna would extend it."""
    with journal.open("rb") as lines:
        for line in lines:
            if not line.endswith(b"\n"):
                os.truncate(journal, journal.stat().st_size - len(line))
                message = "%s: its last line was cut short and removed; it is computed again"
                log.warning(message, journal)


def find_damage(journal: Path) -> str:
    """Return what is wrong with a journal, as "line 7 is damaged"; "" where it is sound or absent.

    Lines of an earlier version, and of Optuna's dashboard, have no number and hash. What they say
    is checked as far as it can be replayed.
    """
    if not is_there(journal):
        return ""
    try:
        require_ordinary(journal)
    except InputError as error:
        return error.message.removeprefix(f"{journal}: ")
    with journal.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if damage := _describe_damage(line, number):
                return damage
    number = _find_line_that_fails(journal)
    if number:
        return f"line {number} is damaged"
    return ""


def _describe_damage(line: bytes, number: int) -> str:
    """Return what is wrong with the line of a journal that has this number; "" if nothing is."""
    try:
        log = dict(parse_json(line.decode()))
        signed = log.pop(_LINE, None)
        stated, digest = signed or (number, content_id([number, log]))
        is_whole = "op_code" in log and digest == content_id([stated, log])
    except (ValueError, TypeError, RecursionError):
        is_whole = False
    if not is_whole:
        return f"line {number} is damaged"
    if stated != number:
        return f"a line before line {number} was removed or repeated"
    return ""


def _find_line_that_fails(journal: Path) -> int:
    """Return the first line of a journal after which it cannot be replayed; 0 if there is none."""
    lines = journal.read_bytes().splitlines(keepends=True)
    if _can_be_replayed(lines):
        return 0
    sound = 0
    damaged = len(lines)
    while damaged - sound > 1:
        middle = (sound + damaged) // 2
        if _can_be_replayed(lines[:middle]):
            sound = middle
        else:
            damaged = middle
    return damaged


def _can_be_replayed(lines: Sequence[bytes]) -> bool:
    """True if Optuna makes studies of lines, with trials whose values are numbers."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, JOURNAL)
        file.write_bytes(b"".join(lines))
        try:
            storage = JournalStorage(JournalFileBackend(str(file)))
            for study in storage.get_all_studies():
                for trial in storage.get_all_trials(study._study_id, deepcopy=False):
                    _check_trial(trial)
        except Exception:  # Optuna checks little, so that damage ends in errors of all kinds
            return False
    return True


def _check_trial(trial: FrozenTrial) -> None:
    """Raises:
    ValueError, TypeError: something of a trial is not of its kind.
    """
    numbers = [*(trial.values or ()), *trial.intermediate_values.values()]
    if not all(math.isfinite(number) for number in numbers):
        raise ValueError("a value that is no number")
    if trial.state == TrialState.COMPLETE and not trial.values:
        raise ValueError("no value")
    if not isinstance(trial.user_attrs.get(SLOT, 0), int):
        raise TypeError("slot")
    result_of(trial)


def create_or_resume(
    storage: BaseStorage,
    study: Study,
    content: dict[str, Any],
    where: str,
) -> optuna.Study:
    """Return the Optuna study of this name: a new one, or that with the same definition.

    Args:
        content: as `check_content` compares it.

    Raises:
        InputError: it exists with another definition (the difference is shown), or as
            `check_content`.
    """
    stored = optuna.create_study(
        storage=storage,
        study_name=study.name,
        direction="maximize",
        load_if_exists=True,
    )
    if DEFINITION in stored.user_attrs or stored.get_trials(deepcopy=False):
        check_same(definition_of(stored), study, where)
        check_content(stored, content, where)
    stored.set_user_attr(DEFINITION, study.model_dump_json())
    stored.set_user_attr(_CONTENT, content)
    stored.set_metric_names([study.objective_name])
    return stored


def check_content(stored: optuna.Study, content: dict[str, Any], where: str) -> None:
    """Check that further trials learn from, and are judged by, what those that have a score were.

    Args:
        content: a phrase -> a hash or version of what it names.

    Raises:
        InputError: a file, a model or code that the study names has changed since.
    """
    earlier = stored.user_attrs.get(_CONTENT)  # a study of an earlier version has none
    scored = stored.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED))
    if earlier is None or not scored:
        return
    changed = [key for key in {**earlier, **content} if earlier.get(key) != content.get(key)]
    if changed:
        raise InputError(
            f'study "{stored.study_name}": {" and ".join(changed)} changed after its first trials, '
            "so that further ones are not comparable with them",
            file=where,
            remedy="choose another name (--set name=NAME); runs that are the same are reused",
        )


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
        raise InputError(f"{where} was not made by harness study", file=where, remedy=remedy)
    try:
        tree = parse_json(text)
    except (ValueError, TypeError, RecursionError):
        raise InputError("its definition is damaged", file=where, remedy=MEND) from None
    return Study.parse(tree, where)


def lock_study(workdir: Path, name: str) -> AbstractContextManager[None]:
    """Hold the lock of a study: no other process runs it until the block ends.

    Raises:
        InputError: another one does.
    """
    return work_lock(workdir, f".study-{content_id(name)}", f'study "{name}" in {workdir}')
