"""A study in a real PostgreSQL server, with two workers and one coordinator; skipped where none is installed."""

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

from harness.cli import main
from studies.run.one_coordinator import one_coordinator
from studies.run.storage import load, open_storage
from studies.run.trials import finished_trials

FILE = """
method = "random"
precision = "fp32"
suites = ["Embedded-STS-natural"]
objectives = ["Embedded-STS-natural"]
sampler = "grid"
[space]
dimension = [2, 3, 4, 5, 6, 7]
"""


def programs() -> Path | None:
    """The folder of PostgreSQL's server programs, where Debian puts them or on the path."""
    initdb = shutil.which("initdb")
    places = [Path(initdb).parent] if initdb else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists() and (place / "pg_ctl").exists()), None)


BIN = programs()
pytestmark = [
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


def test_two_workers_finish_each_trial_once_through_postgres(server: str, tmp_path: Path) -> None:
    file = tmp_path / "shared.toml"
    file.write_text(FILE)
    work = tmp_path / "work"
    options = ["--workdir", str(work), "--storage", server, "--workers", "2", "--quiet", "--no-tracking"]
    assert main(["study", "run", str(file), *options]) == 0
    stored = load(open_storage(server), "shared", server)
    counted = finished_trials(stored)
    assert [t.state.name for t in counted] == ["COMPLETE"] * 6
    assert sorted(t.params["dimension"] for t in counted) == [2, 3, 4, 5, 6, 7]
    assert len(stored.trials) == 6
    assert len(list((work / "runs").glob("*/record.json"))) == 6


def test_another_coordinator_is_refused_from_any_work_directory(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "shared.toml"
    file.write_text(FILE.replace("[2, 3, 4, 5, 6, 7]", "[2]"))
    options = ["--workdir", str(tmp_path / "there"), "--storage", server, "--quiet", "--no-tracking"]
    with one_coordinator(open_storage(server), server, "shared", tmp_path / "here"):
        assert main(["study", "run", str(file), *options]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert 'study "shared" in postgresql+psycopg://***@127.0.0.1' in said[0]
    assert "is run by another process, perhaps on another machine" in said[0]
    assert main(["study", "run", str(file), *options]) == 0  # the lock went with its holder
