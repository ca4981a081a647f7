"""What becomes of a process that a function runs in: its answer, its end, and the bound on its memory."""

from __future__ import annotations

import os
import signal
import sys
import time

import psutil
import pytest

from harness.machine.child_process import ChildEnded, in_child

pytestmark = pytest.mark.timeout(120)


def test_a_function_answers_from_another_process() -> None:
    assert in_child(os.getppid) == os.getpid()


def test_a_process_that_is_killed_is_told_and_ends_nothing_else() -> None:
    with pytest.raises(ChildEnded, match="exit code 9"):
        in_child(os._exit, 9)
    with pytest.raises(ChildEnded, match="exit code -15"):
        in_child(signal.raise_signal, signal.SIGTERM)


@pytest.mark.skipif(sys.platform != "linux", reason="looks at threads")
def test_it_ends_with_a_parent_that_is_killed() -> None:
    code = "import time; from harness.machine.child_process import in_child; in_child(time.sleep, 100)"
    parent = psutil.Popen([sys.executable, "-c", code])
    watching: list[psutil.Process] = []
    until = time.monotonic() + 60
    while not watching and time.monotonic() < until:
        time.sleep(0.05)
        children = [child for child in parent.children() if "spawn_main" in " ".join(child.cmdline())]
        watching = [child for child in children if child.num_threads() > 1]
    parent.kill()
    parent.wait()
    watching[0].wait(timeout=30)


@pytest.mark.skipif(sys.platform != "linux", reason="the bound holds on Linux alone")
def test_more_data_than_the_bound_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    assert len(in_child(bytes, 50_000_000, data=1_000_000_000)) == 50_000_000
    with pytest.raises(ChildEnded):
        in_child(bytes, 2_000_000_000, data=1_000_000_000)
    assert "MemoryError" in capfd.readouterr().err
