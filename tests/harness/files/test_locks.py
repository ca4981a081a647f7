"""One process a work directory, whatever way the holder ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harness.errors import InputError, NoRoom
from harness.files.locks import run_lock, try_run_lock, work_lock
from tests.support.errors import raises_input_error
from tests.support.full_disk import room_for

HOLD = """
import sys, time
from pathlib import Path
from harness.files import locks
with getattr(locks, sys.argv[1])(Path(sys.argv[2])):
    print("held", flush=True)
    time.sleep(60)
"""


def hold_elsewhere(folder: Path, lock: str = "work_lock") -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, lock, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_second_process_is_refused_by_the_holders_id_and_killing_the_holder_frees_the_directory(
    tmp_path: Path,
) -> None:
    workdir = tmp_path / "new" / "work"  # made by the lock
    holder = hold_elsewhere(workdir)
    try:
        with (
            pytest.raises(
                InputError, match=rf"in use by process {holder.pid};.*--workdir"
            ) as refused,
            work_lock(workdir),
        ):
            pass
        assert refused.value.exit_code == 2
    finally:
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
    with work_lock(workdir):
        pass


def test_another_holder_is_waited_for_as_long_as_stated(tmp_path: Path) -> None:
    holder = hold_elsewhere(tmp_path)
    threading.Timer(0.3, holder.kill).start()
    with work_lock(tmp_path, seconds=30):
        assert holder.wait() == -signal.SIGKILL


def test_a_work_directory_can_be_used_again_after_a_run_and_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), work_lock(tmp_path):
        raise RuntimeError
    with work_lock(tmp_path):
        pass


def test_the_same_process_cannot_take_it_twice(tmp_path: Path) -> None:
    with (
        work_lock(tmp_path),
        pytest.raises(InputError, match=f"process {os.getpid()}"),
        work_lock(tmp_path),
    ):
        pass


def test_a_file_in_its_place_is_one_clear_line(tmp_path: Path) -> None:
    file = tmp_path / "work"
    file.write_text("precious")
    with raises_input_error(file=file), work_lock(file):
        pass
    assert file.read_text() == "precious"


def test_a_file_system_that_refuses_is_one_clear_line_and_frees_the_lock(tmp_path: Path) -> None:
    with room_for(0), raises_input_error(kind=NoRoom), work_lock(tmp_path):
        pass
    with work_lock(tmp_path):
        pass


def test_a_link_in_the_place_of_the_holders_file_is_replaced(tmp_path: Path) -> None:
    other = tmp_path / "precious.txt"
    other.write_text("precious")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".lock-holder").symlink_to(other)
    with work_lock(tmp_path / "work"):
        pass
    assert other.read_text() == "precious"


def test_a_second_process_waits_for_a_run_says_so_and_goes_on_when_the_first_one_dies(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    holder = hold_elsewhere(tmp_path, "run_lock")
    inside = threading.Event()

    def wait() -> None:
        with run_lock(tmp_path):
            inside.set()

    waiting = threading.Thread(target=wait, daemon=True)
    try:
        with try_run_lock(tmp_path) as held:
            assert not held
        waiting.start()
        assert not inside.wait(0.3)
        assert holder.poll() is None
        assert [record.message for record in caplog.records] == [
            f"{tmp_path}: another process is at this run; waiting for it"
        ]
    finally:
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
    assert inside.wait(10)
    waiting.join(10)
    with try_run_lock(tmp_path) as held:
        assert held
