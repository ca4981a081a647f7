"""What is told of a comparison: how states change, who is taken for dead, and what earlier versions left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli import main
from harness.errors import InputError
from harness.live.before import all_states
from harness.live.remaining import Left
from harness.live.requests import CANCEL, PAUSE, Stop, ask, asked, file_of, withdraw
from harness.live.signs import Seen, Sign, folder, signs
from harness.live.state import (
    Cell,
    InWork,
    RowScore,
    State,
    judged,
    key_of,
    me,
    read,
    states,
    with_signs,
    write,
)  # fmt: skip

FROZEN = Path(__file__).parents[2] / "frozen" / "work"
HERE = me()


def cells(*states: str) -> list[Cell]:
    return [Cell(f"{i:016x}", f"row · seed {i}", "row", "base", str(i), state) for i, state in enumerate(states)]


def seen(cell: Cell, **more: object) -> Seen:
    now = time.time()
    told = {"host": HERE["host"], "pid": os.getpid(), "step": 3, "steps": 10, "begun": now - 5, "time": now, **more}
    return Seen(cell.id, **told)  # type: ignore[arg-type]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    some = cells("finished", "running", "waiting")
    in_work = [InWork("row · seed 1", "row", "1", seen(some[1], dev=[(0, 0.5), (5, 0.6)]), 12.0)]
    scores = [RowScore("row", "base", "STS average", 3, 70.0, 1.0, 68.0, 72.0)]
    state = State("c", cells=some, in_work=in_work, left=Left(1.0, 0.5, 2.0), scores=scores, **HERE)
    write(tmp_path, state)
    (again,) = states(tmp_path)
    assert replace(again, in_work=[]) == replace(state, in_work=[])
    assert again.in_work[0].left == 12.0
    assert [tuple(point) for point in again.in_work[0].seen.dev] == [(0, 0.5), (5, 0.6)]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 99, "name": "c"}', '{"version": 1}', "null"])
def test_a_file_that_tells_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "live").mkdir()
    (tmp_path / "live" / "comparison-c.json").write_text(text)
    assert read(tmp_path / "live" / "comparison-c.json") is None
    assert states(tmp_path) == []


def test_a_sign_makes_a_cell_run_and_a_lost_worker_has_it_wait(tmp_path: Path) -> None:
    waiting, running, done = cells("waiting", "running", "finished")
    state = State("c", cells=[waiting, running, done])
    told = {cell.id: seen(cell) for cell in (waiting, done)}
    after = with_signs(state, told)
    assert [cell.state for cell in after.cells] == ["running", "running", "finished"]  # its record is there: done
    assert [one.label for one in after.in_work] == [waiting.label]
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    lost = with_signs(after, {waiting.id: seen(waiting, pid=gone.pid)})
    assert lost.cells[0].state == "waiting"
    assert "is gone" in lost.cells[0].reason
    silent = with_signs(after, {waiting.id: seen(waiting, host="elsewhere", time=time.time() - 120)})
    assert silent.cells[0].state == "waiting"
    assert "nothing from its worker (elsewhere" in silent.cells[0].reason
    assert with_signs(lost, {waiting.id: seen(waiting)}).cells[0] == replace(waiting, state="running")
    assert state.cells[0].state == "waiting"  # untouched


def test_who_is_dead() -> None:
    now = time.time()
    mine = State("c", time=now - 9999, cells=cells("running", "finished"), **HERE)
    assert judged(mine).phase == "running"  # its process lives, however long it has been silent
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    dead = judged(replace(mine, pid=gone.pid))
    assert dead.phase == "dead"
    assert [cell.state for cell in dead.cells] == ["waiting", "finished"]
    assert judged(replace(mine, started=mine.started - 100)).phase == "dead"  # another process has its number now
    elsewhere = replace(mine, host="elsewhere", time=now - 30)
    assert judged(elsewhere, now).phase == "running"
    assert judged(replace(elsewhere, time=now - 90), now).phase == "dead"
    assert judged(replace(elsewhere, time=now - 90, every=30.0), now).phase == "running"  # it tells seldom
    assert judged(replace(elsewhere, phase="paused", time=0.0), now).phase == "paused"


def test_a_sign_tells_by_itself_and_goes_with_its_block(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "a"
    run.mkdir(parents=True)
    lines = [{"step": s, "kind": "dev", "spearman": s / 100} for s in (0, 10, 20, 30)]
    (run / "curves.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with Sign(tmp_path, "a") as sign:
        assert signs(tmp_path)["a"].text == "loading"
        assert [step for step, _ in signs(tmp_path)["a"].dev] == [0, 10, 20, 30]  # of the worker before
        sign.dev(20, 0.7)  # it goes on from a checkpoint at 15
        sign.step(21, 40, "loss 1")
        until = time.monotonic() + 10
        while signs(tmp_path)["a"].step != 21 and time.monotonic() < until:
            time.sleep(0.01)
        told = signs(tmp_path)["a"]
    assert list(told.dev) == [(0, 0.0), (10, 0.1), (20, 0.7)]
    assert told.left is None  # one update has no speed
    assert not list(folder(tmp_path).iterdir())
    with Sign(tmp_path / "not there", "a") as sign:
        sign.step(1, 2, "")
    assert not (tmp_path / "not there").exists()


def test_a_request_is_seen_and_forgotten(tmp_path: Path) -> None:
    key = key_of("comparison", "c")
    stop = Stop(tmp_path, key)
    assert not stop()
    assert not Stop(tmp_path, "")()
    ask(tmp_path, key, CANCEL)
    request = asked(tmp_path, key)
    assert request is not None
    assert request.what == CANCEL
    stop._looked = 0.0  # a second later
    assert stop()
    file_of(tmp_path, key).write_text("half a")
    half = asked(tmp_path, key)
    assert half is not None
    assert half.what == PAUSE
    withdraw(tmp_path, key)
    assert asked(tmp_path, key) is None
    assert stop()  # who has seen it stops


def test_the_files_of_a_study_with_any_name() -> None:
    assert key_of("study", "search") == "study-search"
    odd = key_of("study", "../../tune: SimCSE · <b>")
    assert odd.startswith("study-")
    assert "/" not in odd
    assert odd != key_of("study", "../../tune: SCD")


def test_work_directories_of_before(capsys: pytest.CaptureFixture[str]) -> None:
    (frozen,) = all_states(FROZEN)
    assert frozen.phase == "ended"
    assert frozen.counts == {"kept": 14, "collapsed": 2}
    assert main(["status", str(FROZEN)]) == 0
    assert "16 of 16 runs have ended" in capsys.readouterr().out


def test_a_manifest_without_its_records_is_open_and_a_damaged_one_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "comparisons"
    folder.mkdir()
    manifest = json.loads((FROZEN / "comparisons" / "frozen.json").read_text())
    (folder / "frozen.json").write_text(json.dumps(manifest))
    (folder / "other.json").write_text("{")
    found = {state.name: state for state in all_states(tmp_path)}
    assert found["frozen"].phase == "interrupted"
    assert found["frozen"].ended == 0
    assert "damaged" in found["other"].reason
    with pytest.raises(InputError, match="no work directory"):
        all_states(tmp_path / "comparisons")


def test_status_as_json_and_its_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    some = cells("finished", "failed", "waiting")
    some[1].reason = "OSError: \x1b[31mno disk"
    score = RowScore("row", "base", "STS", 1, float("nan"))
    write(tmp_path, State("c", phase="paused", cells=some, scores=[score], time=time.time(), **HERE))
    assert main(["status", str(tmp_path), "--json"]) == 1  # a run has failed
    tree = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert tree["told"][0]["counts"] == {"finished": 1, "failed": 1, "waiting": 1}
    assert main(["status", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "failed: row · seed 1: OSError: ␛[31mno disk" in said
    assert main(["status", str(tmp_path), "d"]) == 2
    assert "there is: c" in capsys.readouterr().err
    assert main(["status", str(tmp_path / "nowhere")]) == 2
    some[1].state = "finished"
    write(tmp_path, State("c", phase="paused", cells=some, **HERE))
    assert main(["status", str(tmp_path)]) == 0
    write(tmp_path, State("c", phase="running", cells=some, **{**HERE, "started": 1.0}))
    assert main(["status", str(tmp_path)]) == 1  # its coordinator is dead
    assert "dead" in capsys.readouterr().out


def test_cancel_marks_what_was_killed_and_pause_finds_nothing_to_stop(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, State("c", cells=cells("finished", "running", "waiting"), **{**HERE, "started": 1.0}))
    assert main(["pause", str(tmp_path)]) == 1
    assert "nothing runs here" in capsys.readouterr().out
    assert main(["cancel", str(tmp_path), "c"]) == 0
    assert "2 runs marked as cancelled" in capsys.readouterr().out
    (state,) = all_states(tmp_path)
    assert state.phase == "cancelled"
    assert state.counts == {"finished": 1, "cancelled": 2}
    assert main(["cancel", str(tmp_path)]) == 1
    assert asked(tmp_path, state.key) is None


def test_one_of_several_is_asked(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path, State(name, time=time.time(), cells=cells("waiting"), **HERE))
    write(tmp_path, State("s", "study", time=time.time(), cells=cells("waiting"), **HERE))
    assert main(["pause", str(tmp_path), "b"]) == 0
    asked_for = [asked(tmp_path, key) for key in ("comparison-a", "comparison-b", "study-s")]
    assert [request is not None for request in asked_for] == [False, True, False]
    assert main(["cancel", str(tmp_path)]) == 0
    found = [asked(tmp_path, key) for key in ("comparison-a", "comparison-b", "study-s")]
    assert [request.what for request in found if request is not None] == [CANCEL] * 3
