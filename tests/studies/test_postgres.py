"""A study in a real PostgreSQL server; skipped where none is installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from harness.errors import InputError
from studies.storage import lock_study, open_storage
from tests.support.small_studies import outcomes, search, written


def programs() -> Path | None:
    """The folder of PostgreSQL's server programs, where Debian puts them or on the path."""
    initdb = shutil.which("initdb")
    places = [Path(initdb).parent] if initdb else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists() and (place / "pg_ctl").exists()), None)


BIN = programs()
TWO = {"workers": 2}
pytestmark = [
    pytest.mark.usefixtures("few_pairs", "no_report"),
    pytest.mark.skipif(BIN is None, reason="no PostgreSQL server here: apt-get install postgresql"),
    pytest.mark.skipif(find_spec("psycopg") is None, reason="no driver: pip install 'psycopg[binary]'"),
    pytest.mark.skipif(
        hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("setpriv") is None,
        reason="PostgreSQL does not run as root, and there is no setpriv to become somebody else",
    ),
]


@pytest.fixture
def server() -> Iterator[str]:
    assert BIN is not None
    # Not in pytest's folders: they are closed to the other user that the server runs as where the tests are root's.
    folder = Path(tempfile.mkdtemp(prefix="harness-postgres-"))
    as_user: list[str] = []
    if os.geteuid() == 0:
        as_user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        os.chown(folder, 65534, 65534)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data, log = str(folder / "data"), str(folder / "log")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": True, "cwd": folder}
    subprocess.run([*as_user, BIN / "initdb", "-D", data, "-U", "me", "-A", "trust"], **quiet)  # type: ignore[call-overload]
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
    control = [*as_user, BIN / "pg_ctl", "-D", data]
    subprocess.run([*control, "-l", log, "-o", options, "-w", "start"], **quiet)  # type: ignore[call-overload]
    try:
        yield f"postgresql+psycopg://me@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run([*control, "-m", "fast", "-w", "stop"], **quiet)  # type: ignore[call-overload]
        shutil.rmtree(folder, ignore_errors=True)


def test_two_workers_end_each_trial_once_through_postgres(server: str, tmp_path: Path) -> None:
    found = search(tmp_path, space={"dimension": [2, 3, 4, 5, 6, 7]}, arguments={"storage": server, "executor": TWO})
    assert [state for _, state, *_ in outcomes(found)] == ["COMPLETE"] * 6
    assert sorted(params["dimension"] for _, _, params, *_ in outcomes(found)) == [2, 3, 4, 5, 6, 7]
    assert len(written(tmp_path)) == 6


def test_another_process_is_refused_from_any_work_directory(server: str, tmp_path: Path) -> None:
    held = lock_study(open_storage(server), server, "cheap", tmp_path / "here")
    with held, pytest.raises(InputError, match=r"\*\*\*@127\.0\.0\.1"):
        search(tmp_path / "there", arguments={"storage": server})
    search(tmp_path / "there", space={"dimension": [2]}, arguments={"storage": server})  # the lock is released
