"""Dev scores on their way from a worker to the coordinator, and the word to stop on its way back."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.comparison import watched
from harness.errors import TrainingStopped


def test_scores_arrive_and_the_word_to_stop_ends_the_run_at_its_next_look(tmp_path: Path) -> None:
    worker = watched.Watched(tmp_path, "run")
    assert watched.scores(tmp_path, "run") == []
    worker.on_dev(0, 0.25)
    worker.on_dev(10, 0.5)
    assert watched.scores(tmp_path, "run") == [(0, 0.25), (10, 0.5)]
    watched.give_up(tmp_path, "run", "dev 50.00 at step 10 (median pruner)")
    worker.look()  # it has looked a moment ago
    with pytest.raises(TrainingStopped, match=r"dev 50\.00 at step 10") as stopped:
        worker.on_dev(20, 0.75)
    assert stopped.value.status == "pruned"
    watched.Watched(tmp_path, "another").on_dev(10, 0.5)


def test_a_line_that_is_being_written_is_left_and_what_was_said_of_an_earlier_run_is_forgotten(tmp_path: Path) -> None:
    watched.Watched(tmp_path, "run").on_dev(10, 0.5)
    (file,) = (tmp_path / "live" / "watched").iterdir()
    file.write_text(file.read_text() + "[20, 0.")
    assert watched.scores(tmp_path, "run") == [(10, 0.5)]
    watched.give_up(tmp_path, "run", "enough")
    watched.forget(tmp_path, "run")
    watched.Watched(tmp_path, "run").look()
    assert watched.scores(tmp_path, "run") == []
