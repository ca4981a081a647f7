"""`progress.json`, `harness status`, `harness stop`, and what the dry run shows."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import termios
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness import registry
from harness.api.result import Comparison
from harness.cli import main
from harness.errors import RunError, StopRequested
from harness.machine.progress import describe_duration
from harness.runs import progress as progress_module
from harness.runs.progress import Progress, RunState, read_progress, request_stop
from tests.support import small_runs
from tests.support.forks import start_fork
from tests.support.small_runs import CONTRAST, EXPERIMENT


def states(runs: int = 3) -> list[RunState]:
    return [
        RunState(f"A · seed {n}", "A", "mini", str(n), f"{n:03x}", steps=100) for n in range(runs)
    ]


def test_readers_see_every_run_and_how_it_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Progress(tmp_path, "mine") as progress:
        progress.expect(states())
        progress.start("A · seed 0", "000")
        progress.finish("A · seed 0", "failed", "a line", reason="no luck", seconds=3.0)
        progress.start("A · seed 1", "001")
        progress.step("A · seed 1", 40, 100, "training")
        progress.write()
        (state,) = read_progress(tmp_path)
        assert (state["phase"], [run["state"] for run in state["runs"]]) == (
            "running",
            ["failed", "running", "waiting"],
        )
        assert state["remaining_seconds"] > 0
        assert main(["status", "--workdir", str(tmp_path)]) == 1  # a run failed
        out = capsys.readouterr().out
        assert all(word in out for word in ("mine", "A · seed 1", "40", "100", "no luck"))
        assert main(["status", "--workdir", str(tmp_path), "--json"]) == 1
        assert json.loads(capsys.readouterr().out)[0]["runs"] == state["runs"]
    assert read_progress(tmp_path)[0]["phase"] == "ended"


def test_the_time_that_is_left_is_that_of_the_last_runs(tmp_path: Path) -> None:
    """The first ones were made while the machine was busy, or are reused."""
    with Progress(tmp_path, "mine") as progress:
        progress.expect(states(31))
        assert progress.remaining() is None
        for number in range(25):
            state = "reused" if number < 2 else "finished"
            seconds = 600.0 if number < 15 else 60.0
            progress.finish(f"A · seed {number}", state, "a line", seconds=seconds)
        assert progress.remaining() == pytest.approx(6 * 60)


def test_several_comparisons_share_the_file_and_a_lost_process_is_noticed(tmp_path: Path) -> None:
    with Progress(tmp_path, "first") as progress:
        progress.expect(states(1))
    with Progress(tmp_path, "second") as progress:
        progress.expect(states(2))
        assert {state["name"]: state["phase"] for state in read_progress(tmp_path)} == {
            "first": "ended",
            "second": "running",
        }
        file = tmp_path / "progress.json"
        known = json.loads(file.read_text())
        known["second"]["pid"] = 2**22 + 1  # no process has this number
        file.write_text(json.dumps(known))
        assert {state["name"]: state["phase"] for state in read_progress(tmp_path)}[
            "second"
        ] == "interrupted"
        with pytest.raises(RunError, match="second"):
            request_stop(tmp_path, "second")


def test_a_stop_ends_no_other_process_of_the_recorded_number(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        with Progress(tmp_path, "mine") as progress:
            progress.expect(states(1))
            file = tmp_path / "progress.json"
            for changes in ({"process_start": None}, {"process_start": 1.0}, {}):
                known = json.loads(file.read_text())
                known["mine"] |= {"pid": other.pid, **changes}
                if changes == {}:
                    del known["mine"]["process_start"]  # as an earlier version wrote it
                file.write_text(json.dumps(known))
                assert read_progress(tmp_path)[0]["phase"] == "interrupted"
                with pytest.raises(RunError):
                    request_stop(tmp_path, "mine")
        assert other.poll() is None
        other.kill()


@pytest.mark.parametrize("answer", [ProcessLookupError(3, "gone"), PermissionError(1, "not yours")])
def test_a_process_that_cannot_be_stopped_is_one_line(
    tmp_path: Path,
    answer: OSError,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def kill(pid: int, number: int) -> None:
        raise answer

    with Progress(tmp_path, "mine") as progress:
        progress.expect(states(1))
        monkeypatch.setattr(os, "kill", kill)
        assert main(["stop", "--workdir", str(tmp_path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "mine" in line


@pytest.mark.parametrize(
    "change",
    [
        {"updated": 1.0, "runs": None},
        {"pid": "x"},
        {"updated": float("nan")},
        {"updated": 1e300},
        {"pid": 10**400},
        {"runs": [{"label": "a"}]},
        {"runs": [3]},
        {"phase": 1},
        {"remaining_seconds": "soon"},
    ],
)
def test_a_damaged_state_is_left_out(tmp_path: Path, change: dict[str, object]) -> None:
    for name in ("mine", "other"):
        with Progress(tmp_path, name) as progress:
            progress.expect(states(1))
    file = tmp_path / "progress.json"
    known = json.loads(file.read_text())
    known["mine"] |= change
    file.write_text(json.dumps(known))
    assert [state["name"] for state in read_progress(tmp_path)] == ["other"]
    assert main(["status", "--workdir", str(tmp_path)]) in (0, 1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1" * 400,
        '{"a": {"updated": ' + "1" * 400 + "}}",
        "{",
        "[]",
        "3",
        '{"a": 1}',
        '{"a": {"updated": 1}}',
        "[" * 100_000,
    ],
)
def test_a_damaged_file_shows_nothing(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "progress.json").write_text(text)
    assert read_progress(tmp_path) == []
    assert main(["status", "--workdir", str(tmp_path)]) == 2
    assert f"{tmp_path / 'progress.json'}: " in capsys.readouterr().err  # which is there
    with Progress(tmp_path, "mine") as progress:
        progress.expect(states(1))
    assert [state["name"] for state in read_progress(tmp_path)] == ["mine"]


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Python's own handling of Ctrl-C, also where the tests run in the background, which ignores
    the signal.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_a_first_signal_requests_a_stop_and_a_second_one_interrupts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)

    def interrupted() -> None:
        with Progress(tmp_path, "mine") as progress:
            progress.expect(states())
            assert main(["stop", "--workdir", str(tmp_path)]) == 0
            assert progress.stopping
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert read_progress(tmp_path)[0]["phase"] == "stopped"
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
    assert main(["stop", "--workdir", str(tmp_path)]) == 1
    assert main(["stop", "--workdir", str(tmp_path), "mine"]) == 1
    assert main(["status", "--workdir", str(tmp_path / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err


def run_in_terminal(master: int, slave: int, ready: int, workdir: Path, *, ignored: bool) -> None:
    """Run until a stop is requested, on a terminal of its own; then print, and end with 3 where the
    end was clean.
    """
    os.close(master)
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for number in (0, 1, 2):
        os.dup2(slave, number)
    signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
    try:
        with Progress(workdir, "mine") as progress:
            progress.expect(states())
            os.write(ready, b".")
            for _ in range(20 if ignored else 400):
                if progress.stopping:
                    os.write(2, b"stopping")
                    os.kill(os.getpid(), signal.SIGHUP)  # as the shell sends it, too
                    raise StopRequested
                time.sleep(0.05)
    except RunError:
        os._exit(3)
    os._exit(4)


@pytest.mark.parametrize(("ignored", "code", "phase"), [(False, 3, "stopped"), (True, 4, "ended")])
def test_the_end_of_the_terminal_is_a_request_to_stop(
    tmp_path: Path, ignored: bool, code: int, phase: str
) -> None:
    """A process that ignores the signal, as one of `nohup`, goes on."""
    master, slave = os.openpty()
    reading, ready = os.pipe()
    process = start_fork(partial(run_in_terminal, ignored=ignored), master, slave, ready, tmp_path)
    os.close(slave)
    os.read(reading, 1)
    os.close(master)
    process.join()
    for number in (reading, ready):
        os.close(number)
    assert process.exitcode == code
    assert read_progress(tmp_path)[0]["phase"] == phase


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(40, "40 s"), (700, "12 min"), (11_100, "3 h 05 min"), (187_200, "2 d 4 h")],
)
def test_durations(seconds: float, text: str) -> None:
    assert describe_duration(seconds) == text


def test_a_comparison_has_a_page(small: Comparison, work: Path) -> None:
    assert "SimCSE" in (work / "progress.html").read_text()


def dry_run(work: Path, capsys: pytest.CaptureFixture[str], **more: object) -> str:
    from harness.commands.compare import show_plan

    capsys.readouterr()
    assert show_plan({**EXPERIMENT, **more}, work, against=[]) == 0
    return capsys.readouterr().out


def test_a_dry_run_tells_training_from_scoring_and_reuse_and_writes_nothing(
    small: Comparison,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert "3 reused" in dry_run(small.workdir, capsys)
    assert "3 to score" in dry_run(small.workdir, capsys, suites=[CONTRAST])
    more = dry_run(small.workdir, capsys, seeds=[1, 2, 3])
    assert "3 reused" in more
    assert "1 to train" in more
    assert "Pooling" in dry_run(
        tmp_path / "new",
        capsys,
        methods=[{"method": "pooling"}, small_runs.SIMCSE],
        max_steps=None,
        budget={"sentences": 64},
    )
    assert not (tmp_path / "new").exists()


def test_a_dry_run_fits_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = [registry.load(registry.METHODS, name) for name in ("whitening", "simcse")]
    for kind in kinds:
        monkeypatch.setattr(kind, "fit", lambda *_: pytest.fail("fitted"))
    assert "whitening" in dry_run(
        tmp_path / "work", capsys, methods=[{"method": "whitening"}, small_runs.SIMCSE]
    )
    assert not (tmp_path / "work").exists()


def _elsewhere(workdir: Path, **values: Any) -> None:
    """Write progress as a process of another machine does."""
    with Progress(workdir, "far") as progress:
        progress.expect(states(1))
        progress.start("A · seed 0", "000")
        file = workdir / "progress.json"
        tree = json.loads(file.read_text())
    tree["far"] |= {"host": "gpu-node-17", "pid": 1, **values}
    file.write_text(json.dumps(tree))


@pytest.mark.parametrize(
    ("silence", "phase"), [(0.0, "running"), (100.0, "running"), (300.0, "unknown")]
)
def test_what_another_machine_does_is_told_by_its_signs_of_life(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], silence: float, phase: str
) -> None:
    now = time.time()
    _elsewhere(tmp_path, updated=now - 3000, alive=now - silence)
    (state,) = read_progress(tmp_path)
    assert state["phase"] == phase
    assert main(["status", "--workdir", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "ended" not in out
    assert ("no sign of life from gpu-node-17 for 5 min" in out) == (phase == "unknown")
    assert main(["stop", "--workdir", str(tmp_path)]) == 1
    assert "gpu-node-17" in capsys.readouterr().err


def test_a_process_gives_signs_of_life_while_a_run_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_module, "_ALIVE", 0.05)
    with Progress(tmp_path, "mine") as progress:
        progress.expect(states(1))
        first = read_progress(tmp_path)[0]
        deadline = time.monotonic() + 120
        while read_progress(tmp_path)[0]["alive"] <= first["alive"] + 0.1:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert read_progress(tmp_path)[0]["updated"] == first["updated"]


def test_a_run_that_is_scored_has_the_step_that_it_has_reached(tmp_path: Path) -> None:
    with Progress(tmp_path, "mine") as progress:
        progress.expect(states(1))
        progress.start("A · seed 0", "000")
        progress.step("A · seed 0", 50, 50, "loss 0.1")
        progress.step("A · seed 0", 0, 0, "encoding 593 sentences")
        run = progress.runs["A · seed 0"]
        assert (run.step, run.steps, run.text) == (50, 50, "encoding 593 sentences")


def test_a_requested_stop_shows_at_once_and_nothing_runs_afterwards(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Progress(tmp_path, "mine") as progress:
        progress.expect(states(2))
        progress.start("A · seed 0", "000")
        progress.step("A · seed 0", 0, 0, "encoding 64 of 900 sentences")
        progress.write()
        assert main(["stop", "--workdir", str(tmp_path)]) == 0
        assert "encoding 64 of 900 sentences" in capsys.readouterr().out
        assert progress.stopping
        deadline = time.monotonic() + 120
        while not read_progress(tmp_path)[0].get("stop_requested"):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert main(["status", "--workdir", str(tmp_path)]) == 0
        assert "stopping, as requested at" in capsys.readouterr().out
        file = tmp_path / "progress.json"
        left = json.loads(file.read_text())
    left["mine"]["pid"] = 2**22 + 1  # a process that was killed meanwhile
    file.write_text(json.dumps(left))
    (state,) = read_progress(tmp_path)
    assert (state["phase"], {run["state"] for run in state["runs"]}) == (
        "interrupted",
        {"waiting"},
    )


@pytest.mark.parametrize(
    "changes", [{"stop_requested": time.time()}, {"alive": 1.0, "updated": 1.0}, {}]
)
def test_the_time_that_is_left_is_stated_of_what_runs_alone(
    tmp_path: Path, changes: dict[str, float], capsys: pytest.CaptureFixture[str]
) -> None:
    now = {"updated": time.time(), "alive": time.time(), "remaining_seconds": 9999.0}
    _elsewhere(tmp_path, **{**now, **changes})
    main(["status", "--workdir", str(tmp_path)])
    assert ("left" in capsys.readouterr().out) == (changes == {})


def test_a_clock_that_went_back_shows_no_negative_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _elsewhere(tmp_path, updated=time.time() + 10**6, alive=time.time() + 10**6)
    main(["status", "--workdir", str(tmp_path)])
    assert "updated 0 s ago" in capsys.readouterr().out
