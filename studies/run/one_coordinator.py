"""One coordinator a study: of two that are started at once, the second one says so and ends.

Where trials are kept in files, a lock beside them says so, to every machine whose file system keeps locks; in
PostgreSQL and MySQL, a lock that the server keeps as long as the coordinator is connected. Both end with their process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import InputError
from harness.files.locks import work_lock
from harness.files.redaction import redacted
from studies.run.storage import JOURNAL, folder_of

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

_TAKE = {
    "postgresql": "SELECT pg_try_advisory_lock(:number)",
    "mysql": "SELECT GET_LOCK(:name, 0)",
    "mariadb": "SELECT GET_LOCK(:name, 0)",
}


@contextmanager
def one_coordinator(storage: BaseStorage, url: str, name: str, workdir: Path) -> Iterator[None]:
    """Be the one process that runs the study of this name, in its storage and in `workdir`, until the block ends.

    Raises:
        InputError: another one does.
    """
    prefix = f"study-{folder_of(workdir, name).name}"
    places = {(workdir / "locks").resolve(): f'study "{name}" in work directory {workdir}'}
    if (file := _file_of(url)) is not None:
        places.setdefault(file.parent / "locks", f'study "{name}" in storage {file}')
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
