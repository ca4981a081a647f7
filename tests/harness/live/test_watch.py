"""A comparison that is watched and paused: what it tells, and that going on gives what was never interrupted."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from harness import api, registry
from harness.cli import main
from harness.comparison.comparison_result import Comparison
from harness.errors import HarnessError, StopAsked
from harness.executors.executor import Answer, Executor, Job
from harness.live.before import all_states
from harness.live.requests import CANCEL, PAUSE, ask, asked
from harness.live.signs import Sign, signs
from harness.live.state import Cell, RowScore
from harness.live.watch import Watch
from harness.machine.progress import Reporter
from harness.results.run_folder import RunFolder
from tests.support import short_runs, thread_executor

pytestmark = pytest.mark.timeout(240)

KEY = "comparison-watched"
EXPERIMENT = {
    "name": "watched",
    "seeds": [1, 2],
    "suites": ["Embedded-STS-natural"],
    "max_steps": 40,
    "precision": "fp32",
    "corpus": {"uri": "embedded:sentences", "limit": 40},
    "dev": {"task": "Embedded-STS-natural", "every": 20},
    "methods": [{"method": "simcse", "preset": "mini", "config": {"batch_size": 8, "train_length": 12, "epochs": 99}}],
}


def compare(folder: Path, executor: object = None, **more: object) -> Comparison:
    with pytest.MonkeyPatch.context() as patch:
        short_runs.few_pairs(patch)
        short_runs.no_report(patch)
        return api.compare({**EXPERIMENT, **more}, workdir=folder, tracked=False, executor=executor)  # type: ignore[arg-type]


def made(folder: Path) -> dict[str, Any]:
    """Of every run: scores, and the hashes of weights, pairs and curve."""
    found = {}
    for run in sorted((folder / "runs").iterdir()):
        record = RunFolder(folder, run.name).read()
        assert record is not None
        assert record.status == "finished"
        found[run.name] = ([score.model_dump() for score in record.scores], record.files)
    return found


def ask_once_it_trains(folder: Path, what: str) -> threading.Thread:
    def wait() -> None:
        until = time.monotonic() + 120
        while time.monotonic() < until:
            if any(seen.step > 0 for seen in signs(folder).values()):
                ask(folder, KEY, what)
                return
            time.sleep(0.02)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request is looked for after every update: these runs last a second."""
    monkeypatch.setattr("harness.live.requests.LOOK", 0.0)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The work directory of the comparison that nobody interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    assert all(record.status == "finished" for record in compare(folder).records)
    return folder


def test_paused_and_gone_on_with_is_what_was_never_paused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], whole: Path
) -> None:
    folder = tmp_path / "paused"
    thread = ask_once_it_trains(folder, PAUSE)
    with pytest.raises(HarnessError, match=r'comparison "watched" paused \(asked for by .*nothing is lost') as stopped:
        compare(folder)
    thread.join()
    assert stopped.value.exit_code == 1
    assert list(folder.glob("runs/*/checkpoint/state.pt"))  # it stopped within a training
    assert not list(folder.glob("runs/*/error.txt"))
    (state,) = all_states(folder)
    assert state.phase == "paused"
    assert set(state.counts) <= {"waiting", "finished"}
    assert not signs(folder)
    assert asked(folder, KEY) is None
    assert "Paused" in (folder / "live" / "index.html").read_text()
    assert main(["status", str(folder)]) == 0
    assert "the same command goes on" in capsys.readouterr().out
    compare(folder)
    assert made(folder) == made(whole)
    (state,) = all_states(folder)
    assert state.phase == "ended"
    assert all(cell.seconds for cell in state.cells)
    assert [score.n for score in state.scores] == [2, 1]  # with the untrained start


class Beside(Executor):
    """Workers that are called one after the other, and see the work directory."""

    name = "beside"

    def run(self, asked: Sequence[Job], tick: Callable[[], None]) -> Iterator[Answer]:
        for job in asked:
            yield Answer(job, job.call(*job.arguments))


def test_workers_stop_too_and_what_is_open_is_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Path
) -> None:
    known = registry.load
    monkeypatch.setattr("harness.registry.load", lambda group, name: Beside if name == "beside" else known(group, name))
    cancelled_and_gone_on_with(tmp_path, "beside")
    assert made(tmp_path) == made(whole)


def test_workers_that_see_no_work_directory_stop_too_and_their_checkpoints_come_and_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Path
) -> None:
    thread_executor.install(monkeypatch.setattr)
    monkeypatch.setattr("harness.comparison.carried.EVERY", 0.01)
    monkeypatch.setattr("harness.live.watch.PATIENCE", 3600.0)
    monkeypatch.setattr("harness.live.signs.EVERY", 0.01)
    thread = ask_once_it_trains(tmp_path, PAUSE)  # by its sign
    with pytest.raises(HarnessError, match='comparison "watched" paused'):
        compare(tmp_path, "posted")
    thread.join()
    assert not signs(tmp_path)
    (checkpoint,) = tmp_path.glob("runs/*/checkpoint/state.pt")
    step = torch.load(checkpoint, weights_only=True)["step"]
    assert 0 < step < 40
    updates: list[object] = []
    count = register_optimizer_step_post_hook(lambda *_: updates.append(1))
    compare(tmp_path, "posted")
    count.remove()
    assert len(updates) == 2 * 40 - step
    assert made(tmp_path) == made(whole)
    assert not checkpoint.exists()


@pytest.mark.campaign
def test_workers_in_processes_stop_too(tmp_path: Path) -> None:
    pytest.importorskip("pebble")
    cancelled_and_gone_on_with(tmp_path, {"name": "processes", "workers": 2, "cpus_per_cell": 1})


def cancelled_and_gone_on_with(folder: Path, executor: object) -> None:
    thread = ask_once_it_trains(folder, CANCEL)
    with pytest.raises(HarnessError, match="cancelled"):
        compare(folder, executor)
    thread.join()
    (state,) = all_states(folder)
    assert state.phase == "cancelled"
    assert state.counts["cancelled"] >= 1
    assert set(state.counts) <= {"cancelled", "finished"}
    assert not list((folder / "locks").glob("shared-*"))
    compare(folder, executor)
    assert all_states(folder)[0].counts.keys() <= {"finished", "kept"}


def test_what_is_told_while_it_lasts_and_how_it_ended(tmp_path: Path) -> None:
    cells = [Cell("a" * 16, "a", "row"), Cell("b" * 16, "b", "row")]

    def interrupted() -> None:
        with Watch(tmp_path, "c") as watch:
            watch.expect(cells)
            watch.start("a")
            watch.done("a", "finished", "", seconds=5.0)
            watch.start("b")
            watch._refresh()
            told = json.loads((tmp_path / "live" / "comparison-c.json").read_text())
            assert [cell["state"] for cell in told["cells"]] == ["finished", "running"]
            assert told["left"]["seconds"] == 5.0
            assert told["phase"] == "running"
            watch.expect([*cells, Cell("c" * 16, "c", "row")])  # another round: what has ended stays so
            watch.tick()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    (state,) = all_states(tmp_path)
    assert state.phase == "interrupted"
    assert state.counts == {"finished": 1, "waiting": 2}
    with pytest.raises(OSError, match="full"), Watch(tmp_path, "c"):
        raise OSError("the disk is full\nof secrets")
    assert all_states(tmp_path)[0].reason == "OSError: the disk is full"


def test_a_stop_ends_workers_that_see_no_request_after_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harness.live import watch as module

    waited = []

    def asked_to_stop() -> None:
        with Watch(tmp_path, "c") as watch:
            watch.expect([Cell("a" * 16, "a", "row")])
            watch.tick()
            ask(tmp_path, watch.key, PAUSE)
            watch.stop._looked = 0.0
            with Sign(tmp_path, "a" * 16):
                watch.tick()  # a worker is at it: it is waited for
                waited.append(1)
                monkeypatch.setattr(module, "PATIENCE", 0.0)
                time.sleep(0.01)
                watch.tick()

    with pytest.raises(StopAsked):
        asked_to_stop()
    assert waited
    assert all_states(tmp_path)[0].phase == "paused"


def test_a_trial_has_a_run_after_the_other_and_its_coordinator_says_its_scores(tmp_path: Path) -> None:
    """How a study tells: cells come as they are asked for, and their scores are no records'."""
    with Watch(tmp_path, "s", kind="study", scores=lambda: [RowScore("lr=1", "", "dev", 1, 70.0)]) as watch:
        watch.expect([Cell("a" * 16, "trial 0", "lr=1")], total=8)
        assert watch.reporter.total == 8
        watch.at("trial 0", "b" * 16)
        with Sign(tmp_path, "b" * 16, show=watch.step) as sign:
            sign.step(1, 2, "")
            watch._refresh()
        (state,) = all_states(tmp_path)
        assert (state.key, state.counts) == ("study-s", {"running": 1})
        watch.done("trial 0", "pruned", "", reason="dev 10.00 at step 5")
    (state,) = all_states(tmp_path)
    assert state.counts == {"pruned": 1}
    assert [score.mean for score in state.scores] == [70.0]


def test_telling_fails_and_the_runs_go_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "live").write_text("a file where the folder should be")
    with Watch(tmp_path, "c") as watch:
        watch.expect([Cell("a" * 16, "a", "row")])
        watch.start("a")
        watch._refresh()
        watch.done("a", "finished", "")
    assert sum("cannot be written" in line for line in caplog.messages) == 1  # told once


def test_lines_of_a_log_have_the_time_and_what_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    reporter = Reporter(2)
    reporter.start("a")
    reporter._last -= 99
    reporter.remaining = "about 5 s left"
    reporter.step(1, 2, "loss 1")
    reporter.step(2, 2, "loss 0")  # too soon for another line
    reporter.done("70.00")
    lines = capsys.readouterr().err.splitlines()
    assert [line[8:] for line in lines] == [" [1/2] a: step 1/2, loss 1 (about 5 s left)", " [1/2] a: 70.00"]
    assert all(time.strptime(line[:8], "%H:%M:%S") for line in lines)
