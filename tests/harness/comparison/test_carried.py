"""The small files of a worker that does not see the work directory, and the coordinator's for it, carried by a post."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from harness.comparison import carried as carrying
from harness.comparison import watched
from harness.comparison.carried import carried, deliver
from harness.errors import TrainingStopped
from harness.executors.post import Box
from harness.live import requests
from harness.live.signs import Sign, signs

RUN = "a" * 16


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The coordinator's and the worker's."""
    monkeypatch.setattr(carrying, "EVERY", 0.01)
    (tmp_path / "work").mkdir()
    (tmp_path / "own").mkdir()
    return tmp_path / "work", tmp_path / "own"


def until(true: Callable[[], object]) -> None:
    late = time.monotonic() + 20
    while not true():
        assert time.monotonic() < late
        time.sleep(0.01)


def test_signs_and_scores_arrive_and_requests_and_words_come_back(folders: tuple[Path, Path]) -> None:
    work, own = folders
    post = Box()
    with carried(post, own, "study-x", RUN), Sign(own, RUN) as sign:
        sign.step(3, 10, "training")
        worker = watched.Watched(own, RUN)
        worker.on_dev(2, 0.25)
        until(lambda: deliver(post, work, [RUN]) or watched.scores(work, RUN) == [(2, 0.25)])
        assert signs(work)[RUN].pid > 0
        watched.give_up(work, RUN, "dev 25.00 at step 2 (median pruner)")
        requests.ask(work, "study-x", requests.PAUSE)
        until(lambda: deliver(post, work, [RUN]) or requests.asked(own, "study-x"))
        with pytest.raises(TrainingStopped, match=r"dev 25\.00 at step 2"):
            worker.on_dev(4, 0.5)
        requests.withdraw(work, "study-x")
        until(lambda: deliver(post, work, [RUN]) or not requests.asked(own, "study-x"))
    deliver(post, work, [RUN])
    assert watched.scores(work, RUN) == [(2, 0.25), (4, 0.5)]  # what was told last has come
    assert signs(work)  # until there is an answer


def test_a_request_that_is_there_is_known_before_anything_is_begun(folders: tuple[Path, Path]) -> None:
    work, own = folders
    post = Box()
    requests.ask(work, "study-x", requests.PAUSE)
    deliver(post, work, [])
    with carried(post, own, "study-x", RUN):
        assert requests.asked(own, "study-x")


def test_nothing_is_written_but_the_files_of_runs_that_are_waited_for(folders: tuple[Path, Path]) -> None:
    work, _ = folders
    post = Box()
    for cell in (RUN, "another", "../../outside"):
        post.exchange(cell, {f"live/watched/{cell}.jsonl": "[1, 0.5]\n", "../outside": "x", "live/x.ask": "x"}, [])
    deliver(post, work, [RUN])
    assert [file for file in work.parent.rglob("*") if file.is_file()] == [watched.scores_file(work, RUN)]


class Losing(Box):
    """A post that is away for a while, and forgets."""

    lost = False

    def exchange(self, job: str, told: Mapping[str, str], wanted: Sequence[str]) -> Mapping[str, str]:
        if self.lost:
            raise ConnectionError("its process is gone")
        return super().exchange(job, told, wanted)

    def turn(self, left: Mapping[str, str]) -> Mapping[str, Mapping[str, str]]:
        if self.lost:
            raise ConnectionError("its process is gone")
        return super().turn(left)


def test_a_post_that_is_lost_ends_nothing_and_the_next_one_knows_all(folders: tuple[Path, Path]) -> None:
    work, own = folders
    post = Losing()
    with carried(post, own, "study-x", RUN):
        watched.Watched(own, RUN).on_dev(2, 0.25)
        watched.give_up(work, RUN, "enough")
        until(lambda: deliver(post, work, [RUN]) or watched.stop_file(own, RUN).exists())
        post.lost = True
        deliver(post, work, [RUN])
        time.sleep(0.05)
        watched.forget(work, RUN)
        watched.forget(own, RUN)
        watched.Watched(own, RUN).on_dev(4, 0.5)
        watched.give_up(work, RUN, "enough")
        post.__init__()  # type: ignore[misc]
        post.lost = False
        until(lambda: deliver(post, work, [RUN]) or watched.stop_file(own, RUN).exists())
    deliver(post, work, [RUN])
    assert watched.scores(work, RUN) == [(4, 0.5)]
