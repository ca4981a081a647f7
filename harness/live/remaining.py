"""How long a comparison still takes: from the speed of the runs in work, and from what ended runs took."""

from __future__ import annotations

import heapq
import math
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

SPREAD = 0.3  # of the logarithm of a run's time, until three runs have shown their own
LEAST_SPREAD = 0.05
BEYOND = 0.1  # of the time that it has taken: what a run is given that is beyond its estimate
Z = 1.96


@dataclass(frozen=True)
class Done:
    """A run that has ended.

    Attributes:
        group: runs of one group (seeds of a row) take about as long.
        seconds: wall time, of which `training` went into updates and dev scores.
        work: how long it was expected to take, in any unit that is the same for all; 0 where unknown.
    """

    group: str
    seconds: float
    training: float = 0.0
    work: float = 0.0


@dataclass(frozen=True)
class Going:
    """A run in work: since how many seconds, and how many its training still takes at its own speed, where known; or
    since how many its training is over."""

    group: str
    elapsed: float
    training_left: float | None = None
    work: float = 0.0
    scoring: float = 0.0


@dataclass(frozen=True)
class Waiting:
    """A run that has not begun."""

    group: str
    work: float = 0.0


@dataclass(frozen=True)
class Left:
    """Seconds, and a range that they lie in 19 times of 20, as far as runs of one group take alike."""

    seconds: float
    low: float
    high: float

    def told(self, now: float | None = None) -> str:
        """ "about 12 min left, ends at 14:32 (14:25 to 14:50)", in the local time of who asks."""
        now = time.time() if now is None else now
        if self.seconds < 1:
            return "about to end"
        ends = f"ends at {clock(now + self.seconds, now)}"
        early, late = clock(now + self.low, now), clock(now + self.high, now)
        return f"about {duration(self.seconds)} left, {ends}" + (f" ({early} to {late})" if early != late else "")


def remaining(done: Sequence[Done], going: Sequence[Going], waiting: Sequence[Waiting], workers: int) -> Left | None:
    """What is left of them all, with so many workers, in the order in which they wait; None where nothing is known.

    A run in work takes what its training takes at its own speed, and for scoring what others of its group took. One
    that waits takes the median of its group; else what the group's running one will take; else its work at the others'
    rate; else what runs take on average. The range is that of the sum: the spread of times within groups, of n open
    runs by chance and of k known ones by error.
    """
    if not going and not waiting:
        return Left(0.0, 0.0, 0.0)
    known = _Known(done, going)
    left = [known.left(run) for run in going]
    times = [known.whole(run.group, run.work) for run in waiting]
    sure = [value for value in (*left, *times) if value is not None]
    if len(sure) < len(left) + len(times):
        return None
    free = [value for value in left if value is not None]
    free += [0.0] * (max(workers, 1) - len(free))
    heapq.heapify(free)
    for seconds in times:
        assert seconds is not None
        heapq.heappush(free, heapq.heappop(free) + seconds)
    seconds = max(free)
    n, k = len(sure), max(1, len(done) + sum(run.training_left is not None for run in going))
    wide = math.exp(min(Z * known.spread * math.sqrt(1 / n + 1 / k), 1.5))
    return Left(seconds, seconds / wide, seconds * wide)


class _Known:
    """What runs that have ended, or have a speed, say of the others."""

    def __init__(self, done: Sequence[Done], going: Sequence[Going]) -> None:
        times, scoring = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
        for run in done:
            times[run.group].append(run.seconds)
            scoring[run.group].append(max(0.0, run.seconds - run.training))
        self.typical = {group: median(values) for group, values in times.items()}
        self.scoring = {group: median(values) for group, values in scoring.items()}
        self.rates = [run.seconds / run.work for run in done if run.work > 0]
        self.spread = _spread(times)
        for one in going:
            if one.training_left is not None:
                whole = one.elapsed + one.training_left + max(self.tail(one.group) - one.scoring, 0.0)
                self.typical.setdefault(one.group, whole)
                self.rates += [whole / one.work] if one.work > 0 else []

    def tail(self, group: str) -> float:
        """Seconds of scoring after the training."""
        return self.scoring.get(group, fmean(self.scoring.values()) if self.scoring else 0.0)

    def whole(self, group: str, work: float) -> float | None:
        """Seconds of a run from its beginning."""
        if group in self.typical:
            return self.typical[group]
        if work > 0 and self.rates:
            return work * median(self.rates)
        return fmean(self.typical.values()) if self.typical else None

    def left(self, run: Going) -> float | None:
        """Seconds until a run in work ends."""
        if run.training_left is not None:
            return run.training_left + max(self.tail(run.group) - run.scoring, BEYOND * run.scoring)
        whole = self.whole(run.group, run.work)
        return None if whole is None else max(whole - run.elapsed, BEYOND * run.elapsed)


def _spread(times: dict[str, list[float]]) -> float:
    """Standard deviation of ln(seconds) within groups."""
    logs = [[math.log(max(value, 1e-3)) for value in values] for values in times.values()]
    freedom = sum(len(values) - 1 for values in logs)
    if freedom < 3:
        return SPREAD
    squares = sum((value - fmean(values)) ** 2 for values in logs for value in values)
    return max(LEAST_SPREAD, math.sqrt(squares / freedom))


def duration(seconds: float) -> str:
    """ "40 s", "12 min", "3 h 05 min", "2 d 4 h"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def clock(moment: float, now: float) -> str:
    """ "14:32"; with the date where that is another day than `now`."""
    then, today = time.localtime(moment), time.localtime(now)
    return time.strftime("%H:%M" if then[:3] == today[:3] else "%Y-%m-%d %H:%M", then)
