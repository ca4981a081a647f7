"""How long it still takes, on made curves: nothing known, one point, seeds alike, unlike rows, several workers."""

from __future__ import annotations

import random

import pytest

from harness.live.remaining import Done, Going, Left, Waiting, clock, duration, remaining
from harness.live.signs import Seen


def test_nothing_is_left_and_nothing_is_known() -> None:
    assert remaining([], [], [], 1) == Left(0.0, 0.0, 0.0)
    assert remaining([], [], [Waiting("a")], 1) is None
    assert remaining([], [Going("a", 5.0)], [], 1) is None  # loading: no speed yet


def test_a_single_run_in_work_is_told_by_its_own_speed() -> None:
    left = remaining([], [Going("a", elapsed=10.0, training_left=30.0)], [], 1)
    assert left is not None
    assert left.seconds == 30.0
    assert left.low < 30.0 < left.high


def test_a_speed_needs_two_points_of_time() -> None:
    started = Seen("x", step=1, steps=10, begun=0.0, first_step=1, first_time=5.0, step_time=5.0)
    assert started.speed is None
    assert started.left is None
    resumed = Seen("x", step=60, steps=100, begun=0.0, first_step=50, first_time=10.0, step_time=15.0)
    assert resumed.speed == 2.0  # of the updates that this worker made, loading apart
    assert resumed.left == 20.0


def test_scoring_comes_after_the_training() -> None:
    left = remaining([Done("a", 50.0, training=40.0)], [Going("a", 10.0, training_left=30.0)], [], 1)
    assert left is not None
    assert left.seconds == 40.0


def test_waiting_seeds_take_what_the_others_of_their_row_took() -> None:
    done = [Done("a", 10.0), Done("a", 12.0), Done("b", 100.0)]
    left = remaining(done, [], [Waiting("a"), Waiting("a"), Waiting("b")], 1)
    assert left is not None
    assert left.seconds == pytest.approx(11 + 11 + 100)


def test_another_row_takes_its_work_at_the_rate_of_the_others() -> None:
    left = remaining([Done("a", 10.0, work=2.0)], [], [Waiting("b", work=6.0)], 1)
    assert left is not None
    assert left.seconds == pytest.approx(30.0)
    unknown = remaining([Done("a", 10.0)], [], [Waiting("b")], 1)
    assert unknown is not None
    assert unknown.seconds == 10.0


def test_workers_share_what_waits_and_the_last_one_counts() -> None:
    done = [Done("a", 10.0)]
    four = [Waiting("a")] * 4
    seconds = [left.seconds for n in (1, 2, 3) if (left := remaining(done, [], four, n))]
    assert seconds == [40.0, 20.0, 20.0]
    going = [Going("a", 0.0, training_left=100.0), Going("a", 0.0, training_left=10.0)]
    left = remaining([], going, [Waiting("a")], 2)  # the second worker takes the third run
    assert left is not None
    assert left.seconds == 10.0 + 100.0


def test_a_run_beyond_its_estimate_is_not_told_to_be_over() -> None:
    left = remaining([Done("a", 10.0)], [Going("a", elapsed=40.0)], [], 1)
    assert left is not None
    assert left.seconds == 4.0


def test_the_range_narrows_with_what_is_known_and_holds_what_follows() -> None:
    draw = random.Random(0)
    inside = 0
    for _ in range(300):
        times = [100 * draw.lognormvariate(0, 0.2) for _ in range(12)]
        left = remaining([Done("a", seconds) for seconds in times[:6]], [], [Waiting("a")] * 6, 1)
        assert left is not None
        inside += left.low <= sum(times[6:]) <= left.high
    assert 0.85 < inside / 300 <= 1
    few = remaining([Done("a", 10.0)], [], [Waiting("a")], 1)
    many = remaining([Done("a", 10.0 + i / 10) for i in range(9)], [], [Waiting("a")], 1)
    assert few is not None
    assert many is not None
    assert many.high / many.low < few.high / few.low


def test_in_words() -> None:
    assert [duration(s) for s in (5, 600, 11100, 190000)] == ["5 s", "10 min", "3 h 05 min", "2 d 4 h"]
    noon = 1_700_000_000.0
    assert Left(600, 300, 1200).told(noon).startswith("about 10 min left, ends at ")
    assert Left(0, 0, 0).told(noon) == "about to end"
    assert len(clock(noon + 10 * 86400, noon)) == len("2023-11-24 22:13")


def test_a_run_that_is_scored_has_its_training_behind_it() -> None:
    seen = Seen("x", step=0, steps=0, text="encoding", begun=0.0, first_step=1, first_time=5.0, step_time=50.0)
    assert seen.left == 0.0
    scored = Going("a", elapsed=60.0, training_left=0.0, scoring=10.0)
    alone, known = remaining([], [scored], [Waiting("a")], 1), remaining([Done("a", 70.0, 50.0)], [scored], [], 1)
    assert alone is not None
    assert alone.seconds == 1.0 + 60.0
    assert known is not None
    assert known.seconds == 10.0
