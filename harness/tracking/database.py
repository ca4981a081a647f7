"""Databases behind MLflow: made whole or not at all, and given up after seconds when nobody answers."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

log = logging.getLogger(__name__)

PATIENCE = 5  # seconds for a connection to a database server


def prepare_file(database: Path) -> None:
    """Make a sqlite store that is new, or that a kill left half made; the caller holds its lock.

    It is made beside and moved into place, so that a kill leaves none. A file that holds runs, or that opens, stays.
    """
    for left in database.parent.glob(f".{database.name}.making-*"):
        left.unlink()
    # Names that are used once: MLflow keeps the connections of a process by the file's name.
    beside = database.with_name(f".{database.name}.making-{secrets.token_hex(4)}.new")
    if database.exists():
        if _holds_runs(database) or _opens_as_copy(database, beside.with_suffix(".copy")):
            return
        aside = database.with_name(f"{database.name}.damaged")
        os.replace(database, aside)
        database.with_name(f"{database.name}-journal").unlink(missing_ok=True)
        log.warning("%s: cannot be opened; put aside as %s and made anew (harness track sync sends all runs)", database,
                    aside.name)  # fmt: skip
    _open(beside)
    os.replace(beside, database)


def _holds_runs(database: Path) -> bool:
    """Does a store hold a run, as far as one can read? A busy one may."""
    try:
        with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True, timeout=10)) as store:
            return bool(store.execute("SELECT EXISTS(SELECT 1 FROM runs)").fetchone()[0])
    except sqlite3.OperationalError as error:
        return "no such table" not in str(error)
    except sqlite3.DatabaseError:  # not a database, or a malformed one
        return False


def unsound(database: Path) -> str:
    """What sqlite finds wrong with a store, in a few words; empty where nothing is. It is only read."""
    try:
        with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True, timeout=10)) as store:
            found = str(store.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.DatabaseError as error:
        found = str(error)
    return "" if found == "ok" else found.splitlines()[-1]


def _opens_as_copy(database: Path, copy: Path) -> bool:
    """Can MLflow open a store? It is tried on a copy: an attempt changes the file, and MLflow keeps it open."""
    shutil.copyfile(database, copy)
    try:
        _open(copy)
    except Exception as error:  # of MLflow, SQLAlchemy or Alembic
        log.debug("%s: %s", database, error)
        return False
    finally:
        copy.unlink(missing_ok=True)
    return True


def _open(file: Path) -> None:
    """Have MLflow open (and first make) a store, and let go of it."""
    from mlflow.store.tracking import DEFAULT_LOCAL_FILE_AND_ARTIFACT_PATH
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    logging.getLogger("mlflow.store.db.utils").setLevel(logging.ERROR)  # it tells of every table and every retry
    store = SqlAlchemyStore(f"sqlite:///{file}", DEFAULT_LOCAL_FILE_AND_ARTIFACT_PATH)  # type: ignore[no-untyped-call]
    store.engine.dispose()


def knock(uri: str) -> None:
    """Connect to a database server once: MLflow itself tries for minutes.

    Raises:
        sqlalchemy.exc.SQLAlchemyError: nobody answers within `PATIENCE` seconds, or not to us.
    """
    import sqlalchemy

    address = sqlalchemy.make_url(uri)
    knows = address.get_driver_name() in ("psycopg2", "psycopg", "pymysql", "mysqldb")
    options = {"connect_timeout": PATIENCE} if knows and "connect_timeout" not in address.query else {}
    engine = sqlalchemy.create_engine(address, connect_args=options, poolclass=sqlalchemy.NullPool)
    with engine.connect():
        pass
