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
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.config import nearest
from harness.errors import InputError
from harness.files.locks import work_lock
from harness.files.names import LONGEST
from harness.files.redaction import redacted
from studies.trials import finished_trials

if TYPE_CHECKING:
    import optuna
    from optuna.storages import BaseStorage

    from studies.definition.study import Study

log = logging.getLogger(__name__)

JOURNAL = "journal:"
DEFINITION = "definition"  # user attribute of an Optuna study: our study, as JSON
WORKDIR = "workdir"  # user attribute: the work directory of the process that made it
COPY = "copy"  # user attribute: true where it is a copy of a study in another storage


def default_url(workdir: Path) -> str:
    """A journal file of the work directory: several processes write it safely, several times faster than sqlite."""
    return f"{JOURNAL}{(workdir / 'studies.journal').resolve()}"


def folder_of(workdir: Path, name: str) -> Path:
    """Where the files of a study are. A study of `--tune` has a row's label in its name, which may be any text."""
    safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in name).lstrip(".") or "study"
    if len(safe.encode()) > LONGEST:
        safe = f"{safe.encode()[: LONGEST - 9].decode(errors='ignore')}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return workdir / "studies" / safe


def quiet() -> None:
    """Silence Optuna, which logs every trial; the progress does that."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    logging.getLogger("alembic").setLevel(logging.WARNING)


def open_storage(url: str, *, create: bool = True) -> BaseStorage:
    """The storage behind `journal:FILE`, a path, `sqlite:///FILE`, `postgresql://...` or `mysql://...`.

    Raises:
        InputError: it cannot be reached or opened (the message has no password in it).
    """
    quiet()
    shown = redacted(url)
    if "://" not in url:
        return _journal(Path(url.removeprefix(JOURNAL)), create=create)
    import sqlalchemy.exc
    from optuna.storages import RDBStorage

    if url.startswith("sqlite://"):
        file = Path(url.removeprefix("sqlite:///"))
        if url in ("sqlite://", "sqlite:///", "sqlite:///:memory:"):
            raise InputError(f"storage {shown}: stores nothing; name a file, as sqlite:///trials.db")
        if not create and not file.exists():
            raise InputError(f"storage {shown}: no such file")
    options: dict[str, Any] = {}
    if not url.startswith("sqlite"):
        options = {"pool_pre_ping": True}  # a connection that the server has closed is opened again
        if url.startswith("postgresql"):
            options["connect_args"] = {"connect_timeout": 10}
    try:
        return RDBStorage(url, engine_kwargs=options)
    except ImportError as error:
        raise InputError(f"storage {shown}: its driver is missing: {redacted(str(error).splitlines()[0])}") from None
    except (sqlalchemy.exc.SQLAlchemyError, OSError, RuntimeError, ValueError) as error:
        first = redacted(" ".join(str(error.__cause__ or error).split()))[:200]
        raise InputError(
            f"storage {shown}: cannot be reached ({first}); start it, correct --storage, or leave it out"
        ) from None


def _journal(path: Path, *, create: bool) -> BaseStorage:
    from filelock import FileLock
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend
    from optuna.storages.journal._file import BaseJournalFileLock

    class ProcessLock(BaseJournalFileLock):
        """A lock that the operating system drops with its process: Optuna's own outlives a kill by 30 seconds."""

        def __init__(self, file: Path) -> None:
            self._lock = FileLock(file)

        def acquire(self) -> bool:
            self._lock.acquire()
            return True

        def release(self) -> None:
            self._lock.release()

    if not create and not path.exists():
        raise InputError(f"storage {path}: no such file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.with_name(f".{path.name}.lock")
        if path.exists():
            with FileLock(lock):
                _mend_end(path)
        return JournalStorage(JournalFileBackend(str(path), ProcessLock(lock)))
    except (OSError, ValueError, KeyError, TypeError, AssertionError) as error:
        if line := _damaged_line(path):
            raise InputError(
                f"storage {path}: line {line} is damaged; remove that line, or the whole file (runs that have a record "
                "are not trained again), and give the same command again"
            ) from None
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"storage {path}: cannot be used ({reason}); name a journal file or a URL") from None


def _mend_end(journal: Path) -> None:
    """Cut off the part of a line that a kill left at the end: Optuna would join the next line to it. Its lock is held.

    Raises:
        ValueError: the last line is whole and no line of a journal; Optuna would notice with the next one.
    """
    with journal.open("rb") as file:
        last = next(iter(deque(file, maxlen=1)), b"")
    if last and not last.endswith(b"\n"):
        os.truncate(journal, journal.stat().st_size - len(last))
        log.warning("%s: its last line was cut short; it was removed, and its content is computed again", journal)
    elif last:
        json.loads(last)


def _damaged_line(journal: Path) -> int | None:
    """The number of the first line of a journal that is not one; None where there is none, or no file to read."""
    try:
        with journal.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    entry = json.loads(line)
                except ValueError:
                    return number
                if not isinstance(entry, dict) or "op_code" not in entry:
                    return number
    except OSError:
        pass
    return None


def create_or_resume(
    storage: BaseStorage, study: Study, workdir: Path, where: str, *, force_new: bool = False
) -> optuna.Study:
    """The Optuna study of this name: created, or found with the same definition.

    Raises:
        InputError: it exists with another definition (the difference is shown), or is a copy of one in another storage.
    """
    import optuna

    known = {summary.study_name for summary in optuna.get_all_study_summaries(storage, include_best_trial=False)}
    if study.name in known and force_new:
        optuna.delete_study(study_name=study.name, storage=storage)
        known.remove(study.name)
    if study.name in known:
        stored = optuna.load_study(study_name=study.name, storage=storage)
        if COPY in stored.user_attrs:
            raise InputError(f'{where}: study "{study.name}" is a copy here; give the --storage that has the original')
        if DEFINITION not in stored.user_attrs and not stored.get_trials(deepcopy=False):
            stored.set_user_attr(DEFINITION, study.model_dump_json())  # a kill between its making and its definition
        earlier = definition_of(stored)
        different = difference(earlier, study)
        if different:
            raise InputError(
                f'{where}: study "{study.name}" exists with another definition ({different}); '
                "give another --name, or --force-new to delete its trials and start again (runs stay)"
            )
    else:
        stored = optuna.create_study(storage=storage, study_name=study.name, directions=study.signs)
    stored.set_user_attr(DEFINITION, study.model_dump_json())
    stored.set_user_attr(WORKDIR, str(workdir.resolve()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        stored.set_metric_names(study.objective_names)
    return stored


def load(storage: BaseStorage, name: str, url: str) -> optuna.Study:
    """An existing study of ours.

    Raises:
        InputError: there is none of that name.
    """
    import optuna

    known = [s.study_name for s in optuna.get_all_study_summaries(storage, include_best_trial=False)]
    if name not in known:
        raise InputError(
            f'no study "{name}" in {redacted(url)}{nearest(name, known)}; studies: {", ".join(known) or "none"}'
        )
    return optuna.load_study(study_name=name, storage=storage)


def count_trials(url: str) -> dict[str, int]:
    """Name -> number of ended trials of our studies in a storage.

    Raises:
        InputError: no such storage.
    """
    import optuna

    storage = open_storage(url, create=False)
    return {
        known.study_name: len(finished_trials(optuna.load_study(study_name=known.study_name, storage=storage)))
        for known in optuna.get_all_study_summaries(storage, include_best_trial=False)
        if DEFINITION in known.user_attrs
    }


def copy_to_workdir(url: str, name: str, workdir: Path) -> None:
    """Copy a study from another storage to the work directory's own, for its reports; one begun there stays."""
    import optuna

    if "://" not in url and Path(url.removeprefix(JOURNAL)).resolve() == (workdir / "studies.journal").resolve():
        return
    own = open_storage(default_url(workdir))
    there = {s.study_name: s for s in optuna.get_all_study_summaries(own, include_best_trial=False)}
    if name in there:
        if COPY not in there[name].user_attrs:
            return
        optuna.delete_study(study_name=name, storage=own)
    optuna.copy_study(from_study_name=name, from_storage=open_storage(url, create=False), to_storage=own)
    optuna.load_study(study_name=name, storage=own).set_user_attr(COPY, True)


def definition_of(stored: optuna.Study) -> Study:
    """Our study behind an Optuna study.

    Raises:
        InputError: it is not one that `harness study` made.
    """
    from studies.definition.study import Study

    text = stored.user_attrs.get(DEFINITION)
    if text is None:
        raise InputError(f'study "{stored.study_name}" was not made by harness study; give another --name')
    return Study.parse(json.loads(text), f'study "{stored.study_name}"')


def difference(earlier: Study, later: Study) -> str:
    """What of the identity of two studies differs, one phrase a key; empty when nothing does."""
    old, new = earlier.identity(), later.identity()
    said = []
    for key in old:
        if old[key] == new[key]:
            continue
        if isinstance(old[key], dict) and isinstance(new[key], dict):
            parts = sorted({k for k in old[key] | new[key] if old[key].get(k) != new[key].get(k)})
            said += [f"{key}.{k}: {_brief(old[key].get(k))} there, {_brief(new[key].get(k))} here" for k in parts]
        else:
            said.append(f"{key}: {_brief(old[key])} there, {_brief(new[key])} here")
    return "; ".join(said)


def _brief(value: Any) -> str:
    text = "none" if value is None else json.dumps(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


_TAKE = {
    "postgresql": "SELECT pg_try_advisory_lock(:number)",
    "mysql": "SELECT GET_LOCK(:name, 0)",
    "mariadb": "SELECT GET_LOCK(:name, 0)",
}


@contextmanager
def lock_study(storage: BaseStorage, url: str, name: str, workdir: Path) -> Iterator[None]:
    """Be the only process that runs the study of this name, in its storage and in `workdir`, until the block ends.

    Raises:
        InputError: another one does.
    """
    prefix = f".study-{folder_of(workdir, name).name}"
    places = {workdir.resolve(): f'study "{name}" in work directory {workdir}'}
    if (file := _file_of(url)) is not None:
        places.setdefault(file.parent, f'study "{name}" in storage {file}')
    with ExitStack() as held:
        for folder, what in places.items():
            held.enter_context(work_lock(folder, prefix, what))
        held.enter_context(_on_server(storage, url, name))
        yield


def _file_of(url: str) -> Path | None:
    """The file that a storage is; None for a server."""
    if "://" not in url:
        return Path(url.removeprefix(JOURNAL)).resolve()
    return Path(url.removeprefix("sqlite:///")).resolve() if url.startswith("sqlite:") else None


@contextmanager
def _on_server(storage: BaseStorage, url: str, name: str) -> Iterator[None]:
    engine: Any = getattr(storage, "engine", None)
    take = _TAKE.get(engine.dialect.name) if engine is not None else None
    if take is None:
        yield
        return
    import sqlalchemy

    digest = hashlib.sha256(f"harness study {name}".encode()).digest()
    keys = {"number": int.from_bytes(digest[:8], "big", signed=True)} if ":number" in take else {"name": digest.hex()}
    with engine.connect() as connection:
        connection = connection.execution_options(isolation_level="AUTOCOMMIT")
        if not connection.execute(sqlalchemy.text(take), keys).scalar():
            raise InputError(
                f'study "{name}" in {redacted(url)} is run by another process, perhaps on another machine; wait for '
                "it to end, or give another --name"
            )
        try:
            yield
        finally:
            connection.invalidate()  # a pooled connection would keep the lock
