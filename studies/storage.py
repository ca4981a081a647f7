"""The storage of trials: a journal file by default, or any database that Optuna opens, by URL.

One process runs a study at a time. A lock next to a file, or an advisory lock of PostgreSQL or MySQL, ensures it; the
lock ends with its process.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import BaseStorage

from harness.config import nearest
from harness.errors import InputError
from harness.files.locks import work_lock
from harness.files.names import LONGEST
from harness.files.redaction import redacted
from studies.definition.study import Study

log = logging.getLogger(__name__)

JOURNAL = "journal:"
DEFINITION = "definition"  # user attribute of an Optuna study: our study, as JSON
COPY = "copy"  # user attribute: true where it is a copy of a study in another storage

# What Optuna, a driver or the file system raises where a storage cannot be used.
_FAULTS = (ImportError, OSError, RuntimeError, ValueError, TypeError, LookupError, AssertionError)
_TRY_LOCK = {
    "postgresql": "SELECT pg_try_advisory_lock(:key)",
    "mysql": "SELECT GET_LOCK(CAST(:key AS CHAR), 0)",
    "mariadb": "SELECT GET_LOCK(CAST(:key AS CHAR), 0)",
}


def default_url(workdir: Path) -> str:
    """A journal file of the work directory: several processes write it safely, several times faster than sqlite."""
    return f"{JOURNAL}{(workdir / 'studies.journal').resolve()}"


def file_name(name: str) -> str:
    """A name of a study as a part of a file name. That of `--tune` holds the label of a row, which may be any text."""
    safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in name).lstrip(".") or "study"
    if len(safe.encode()) > LONGEST:
        safe = f"{safe.encode()[: LONGEST - 9].decode(errors='ignore')}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return safe


def studies_in(workdir: Path) -> dict[str, optuna.Study]:
    """Name -> study of ours in a work directory's own storage, or copied to it.

    Raises:
        InputError: the storage is damaged.
    """
    if not (workdir / "studies.journal").exists():
        return {}
    storage = open_storage(default_url(workdir), create=False)
    names = optuna.get_all_study_names(storage)
    found = (optuna.load_study(study_name=name, storage=storage) for name in names)
    return {stored.study_name: stored for stored in found if DEFINITION in stored.user_attrs}


def open_storage(url: str, *, create: bool = True) -> BaseStorage:
    """The storage behind `journal:FILE`, a path, `sqlite:///FILE`, `postgresql://...` or `mysql://...`.

    Raises:
        InputError: it cannot be reached or opened (the message has no password in it).
    """
    from sqlalchemy.exc import SQLAlchemyError

    optuna.logging.set_verbosity(optuna.logging.ERROR)  # it logs every trial; the progress does that
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    shown, file = redacted(url), _file_of(url)
    if url in ("sqlite://", "sqlite:///", "sqlite:///:memory:"):
        raise InputError(f"storage {shown}: stores nothing; name a file, as sqlite:///trials.db")
    if file is not None and not create and not file.exists():
        raise InputError(f"storage {shown}: no such file")
    try:
        if file is not None and "://" not in url:
            return _open_journal(file)
        options: dict[str, Any] = {"pool_pre_ping": True}  # a connection that the server has closed is opened again
        if url.startswith("postgresql"):
            options["connect_args"] = {"connect_timeout": 10}
        return optuna.storages.RDBStorage(url, engine_kwargs=options)
    except (
        SQLAlchemyError,
        ImportError,
        OSError,
        RuntimeError,
        ValueError,
        TypeError,
        KeyError,
        AssertionError,
    ) as error:
        first = redacted(" ".join(str(error.__cause__ or error).split()))[:200]
        raise InputError(f"storage {shown}: cannot be opened ({first}); correct --storage, or leave it out") from None


def _open_journal(file: Path) -> BaseStorage:
    from filelock import FileLock
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    file.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(file.with_name(f".{file.name}.lock"))
    with lock:
        if number := _check_lines(file):
            raise InputError(
                f"storage {file}: line {number} is damaged; remove that line, or the whole file (runs that have a "
                "record are not trained again), and give the same command again"
            )
    # This lock is gone with its process: Optuna's own outlive a kill by 30 seconds.
    return JournalStorage(JournalFileBackend(str(file), lock))  # type: ignore[arg-type]


def _check_lines(journal: Path) -> int | None:
    """The number of the first damaged line. A last line that a kill cut short is removed: Optuna would extend it."""
    if not journal.exists():
        return None
    with journal.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith(b"\n"):
                os.truncate(journal, journal.stat().st_size - len(line))
                log.warning("%s: its last line was cut short and removed; its content is computed again", journal)
            elif not is_sound(line):
                return number
    return None


def is_sound(line: bytes) -> bool:
    """Is a line one of a journal?"""
    try:
        return "op_code" in dict(json.loads(line))
    except (ValueError, TypeError, RecursionError):
        return False


def create_or_resume(storage: BaseStorage, study: Study, where: str, *, force_new: bool = False) -> optuna.Study:
    """The Optuna study of this name: created, or found with the same definition.

    Raises:
        InputError: it exists with another definition (the difference is shown), or is a copy of one in another storage.
    """
    if force_new and study.name in optuna.get_all_study_names(storage):
        optuna.delete_study(study_name=study.name, storage=storage)
    stored = optuna.create_study(storage=storage, study_name=study.name, directions=study.signs, load_if_exists=True)
    if COPY in stored.user_attrs:
        raise InputError(f'{where}: study "{study.name}" is a copy here; give the --storage that has the original')
    if DEFINITION in stored.user_attrs or stored.get_trials(deepcopy=False):
        check_same(definition_of(stored), study, where)
    stored.set_user_attr(DEFINITION, study.model_dump_json())
    stored.set_metric_names(study.objective_names)
    return stored


def check_same(earlier: Study, later: Study, where: str) -> None:
    """Raises:
    InputError: two studies of one name have another definition.
    """
    old, new = _flat(earlier.identity()), _flat(later.identity())
    differences = [
        f"{key}: {json.dumps(old.get(key)):.80} there, {json.dumps(new.get(key)):.80} here"
        for key in {**old, **new}
        if old.get(key) != new.get(key)
    ]
    if differences:
        raise InputError(
            f'{where}: study "{later.name}" exists with another definition ({"; ".join(differences)}); choose another '
            "name, or --force-new to delete its trials and start again (runs stay)"
        )


def _flat(tree: dict[str, Any]) -> dict[str, Any]:
    """The values of tables under their own keys, as "space.temperature"."""
    tables = {key: value if isinstance(value, dict) else {"": value} for key, value in tree.items()}
    return {f"{key}.{name}".rstrip("."): value for key, table in tables.items() for name, value in table.items()}


def load(url: str, name: str) -> optuna.Study:
    """An existing study of ours.

    Raises:
        InputError: there is none of that name.
    """
    storage = open_storage(url, create=False)
    known = optuna.get_all_study_names(storage)
    if name not in known:
        raise InputError(
            f'no study "{name}" in {redacted(url)}{nearest(name, known)}; studies: {", ".join(known) or "none"}'
        )
    return optuna.load_study(study_name=name, storage=storage)


def copy_to_workdir(url: str, name: str, workdir: Path) -> None:
    """Copy a study from another storage to the work directory's own, for its reports; one begun there stays."""
    own_url = default_url(workdir)
    if _file_of(url) == _file_of(own_url):
        return
    own = open_storage(own_url)
    if name in optuna.get_all_study_names(own):
        if COPY not in optuna.load_study(study_name=name, storage=own).user_attrs:
            return
        optuna.delete_study(study_name=name, storage=own)
    optuna.copy_study(from_study_name=name, from_storage=open_storage(url, create=False), to_storage=own)
    optuna.load_study(study_name=name, storage=own).set_user_attr(COPY, True)


def definition_of(stored: optuna.Study) -> Study:
    """Our study behind an Optuna study.

    Raises:
        InputError: it is not one that `harness study` made.
    """
    text = stored.user_attrs.get(DEFINITION)
    if text is None:
        raise InputError(
            f'study "{stored.study_name}" was not made by harness study; choose another name (--set name=NAME)'
        )
    return Study.parse(json.loads(text), f'study "{stored.study_name}"')


@contextmanager
def lock_study(storage: BaseStorage, url: str, name: str, workdir: Path) -> Iterator[None]:
    """Be the only process that runs the study of this name in its storage, until the block ends.

    Raises:
        InputError: another one does.
    """
    file = _file_of(url)
    place = (file.parent if file is not None else workdir).resolve()
    prefix, what = f".study-{file_name(name)}", f'study "{name}" in {place}'
    with work_lock(place, prefix, what), _server_lock(storage, url, name):
        yield


def _file_of(url: str) -> Path | None:
    """The file that a storage is; None for a server."""
    if "://" in url and not url.startswith("sqlite:"):
        return None
    return Path(url.removeprefix(JOURNAL).removeprefix("sqlite:///")).resolve()


@contextmanager
def _server_lock(storage: BaseStorage, url: str, name: str) -> Iterator[None]:
    import sqlalchemy

    engine: Any = getattr(storage, "engine", None)
    lock = _TRY_LOCK.get(engine.dialect.name) if engine is not None else None
    if lock is None:
        yield
        return
    key = int.from_bytes(hashlib.sha256(f"harness study {name}".encode()).digest()[:8], "big", signed=True)
    with engine.connect() as connection:
        connection = connection.execution_options(isolation_level="AUTOCOMMIT")
        if not connection.execute(sqlalchemy.text(lock), {"key": key}).scalar():
            raise InputError(
                f'study "{name}" in {redacted(url)} is run by another process, perhaps on another machine; wait for '
                "it to end, or choose another name (--set name=NAME)"
            )
        try:
            yield
        finally:
            connection.invalidate()  # a pooled connection would keep the lock
