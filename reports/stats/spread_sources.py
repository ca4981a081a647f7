"""Where the spread of a row's scores comes from: its variance by stream of random numbers, and by
drawn pairs.

A stream's variance is that of runs in which it alone has other seeds. The other streams have one
seed: what the stream does alone is in it, and what it does together with them. So the variances of
streams are no parts of a whole. Where streams act together (a training run that any small change
sends another way) each alone may bring nearly as much as all of them, and their sum exceeds the
variance of runs in which all differ; in the words of sensitivity analysis they are total effects
(Homma & Saltelli, Reliability Engineering & System Safety 52, 1996), here at one point.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.seeds import STREAMS, PartSeed, Stream
from reports.results import ResultRow, Results, Run
from reports.stats.estimate import Interval
from reports.stats.significance import Significance
from reports.targets import Target

NAMES: dict[Stream, str] = {
    "init": "initialisation",
    "data_order": "data order",
    "dropout": "dropout",
    "views": "views",
}
ALL, PAIRS = "all streams", "test pairs"
CONFIDENCE = 0.95
FEWEST = (
    4  # seeds that a share is told of: with three its interval spans a factor of tens of thousands
)


@dataclass(frozen=True)
class SpreadSource:
    """What one source brings, in points (times 100).

    Attributes:
        streams: what varies: some streams, all of them, or none where the test pairs are redrawn.
        scores, seeds: (runs,) of the runs in which it varies, in points; empty for the test pairs.
        variance, freedom: the estimate, and how many degrees of freedom it has.
        records: ids of the runs.
    """

    name: str
    streams: tuple[Stream, ...]
    scores: tuple[float, ...]
    variance: float
    freedom: float
    records: tuple[str, ...]
    seeds: tuple[int, ...] = ()

    @property
    def deviation(self) -> float:
        return math.sqrt(self.variance)

    @property
    def interval(self) -> tuple[float, float]:
        """Of the standard deviation, at 95 %."""
        low, high = variance_interval(self.variance, self.freedom)
        return math.sqrt(low), math.sqrt(high)

    @property
    def silent(self) -> bool:
        """Are all its runs alike to the last digit? The method draws nothing from these streams
        then.
        """
        return len(set(self.scores)) == 1


def variance_interval(variance: float, freedom: float) -> tuple[float, float]:
    """Of the variance behind a sample variance of normal values: f s^2 / chi^2_f at both tails."""
    from scipy.stats import chi2

    tail = (1 - CONFIDENCE) / 2
    largest, smallest = chi2.ppf([1 - tail, tail], freedom)
    squares = freedom * variance
    return squares / float(largest), squares / float(smallest)


def share_of(part: SpreadSource, whole: SpreadSource) -> Interval | None:
    """var(part) / var(whole) with a 95 % interval, by the seeds that both have; None where these
    are too few, or nothing varies.

    The two are not independent: seed s of the stream is in a run of each. Pitman's interval for the
    variances of paired values (Biometrika 31, 1939; Morgan in the same volume) has w [K - sqrt(K^2
    - 1), K + sqrt(K^2 - 1)] with the ratio w, their correlation r over n seeds and K = 1 + 2 (1 -
      r^2) t^2 / (n - 2), t Student's with n - 2 degrees of
    freedom. The first run is one and the same in both, which it can bear (coverage in
    docs/statistics.md).
    """
    from scipy.special import stdtrit

    ours = dict(zip(part.seeds, part.scores, strict=True))
    theirs = dict(zip(whole.seeds, whole.scores, strict=True))
    common = [seed for seed in ours if seed in theirs]
    if len(common) < FEWEST:
        return None
    x = np.array([ours[seed] for seed in common])
    y = np.array([theirs[seed] for seed in common])
    if np.ptp(y) == 0:
        return None
    if np.ptp(x) == 0:
        return Interval(0.0, 0.0, 0.0)

    ratio = float(x.var() / y.var())
    correlation = float(np.corrcoef(x, y)[0, 1])
    freedom = len(common) - 2
    t = float(stdtrit(freedom, (1 + CONFIDENCE) / 2))
    apart = 1 - min(correlation**2, 1.0)
    k = 1 + 2 * apart * t * t / freedom
    wide = k + math.sqrt(k * k - 1)
    return Interval(ratio, ratio / wide, ratio * wide)


@dataclass(frozen=True)
class Decomposition:
    """The sources of one row's spread: all streams first (None with fewer than two such runs), then
    each that varied, then the test pairs (None without stored pairs); and the streams that varied
    alone in no runs.
    """

    row: ResultRow
    whole: SpreadSource | None
    parts: tuple[SpreadSource, ...]
    pairs: SpreadSource | None
    unvaried: tuple[Stream, ...]

    @property
    def sources(self) -> list[SpreadSource]:
        every = (self.whole, *self.parts, self.pairs)
        return [source for source in every if source is not None]


def decomposition(
    row: ResultRow, significance: Significance, target: Target
) -> Decomposition | None:
    """Of one row by a target; None where no two runs differ in some streams alone."""
    plain = {}
    for record in row.runs:
        if not isinstance(record.random_seed, PartSeed):
            plain[record.seed] = record

    largest = _largest_groups(row, plain)
    parts = []
    for streams in sorted(largest, key=_order_of_streams):
        source = _estimate_streams(streams, largest[streams], target)
        if source is not None:
            parts.append(source)
    if not parts:
        return None
    varied: set[Stream] = set()
    for source in parts:
        if len(source.streams) == 1:
            varied.update(source.streams)
    return Decomposition(
        row,
        _estimate_streams(STREAMS, list(plain.values()), target),
        tuple(parts),
        _estimate_pairs(row, significance, target),
        tuple(stream for stream in STREAMS if stream not in varied),
    )


def _largest_groups(
    row: ResultRow,
    plain: Mapping[int, Run],
) -> dict[tuple[Stream, ...], list[Run]]:
    """Streams -> the most runs in which they alone vary, with the run that has no such seed."""
    groups: dict[tuple[int, tuple[Stream, ...]], list[Run]] = {}
    for record in row.partial_seed_runs:
        seed = record.random_seed
        assert isinstance(seed, PartSeed)
        key = (seed.held, seed.vary)
        if key not in groups:
            if seed.held in plain:
                groups[key] = [plain[seed.held]]
            else:
                groups[key] = []
        groups[key].append(record)
    largest: dict[tuple[Stream, ...], list[Run]] = {}
    for (_, streams), records in groups.items():
        largest[streams] = max(largest.get(streams, []), records, key=len)
    return largest


def _order_of_streams(streams: tuple[Stream, ...]) -> tuple[int, ...]:
    return len(streams), *map(STREAMS.index, streams)


def decompositions(comparison: Results, significance: Significance) -> list[Decomposition]:
    """Of every row that has runs in which some streams alone vary, by the first target."""
    target = significance.first
    if target is None:
        return []
    found = []
    for row in comparison.rows:
        if row.partial_seed_runs:
            sources = decomposition(row, significance, target)
            if sources is not None:
                found.append(sources)
    return found


def _estimate_streams(
    streams: tuple[Stream, ...], records: Sequence[Run], target: Target
) -> SpreadSource | None:
    """Return what some streams bring, from the runs in which they vary; None for fewer than two."""
    scores = _scores(records, target)
    if len(scores) < 2:
        return None
    values = np.array(list(scores.values()))
    variance = 0.0
    if np.ptp(values) > 0:
        variance = float(values.var(ddof=1))
    if streams == STREAMS:
        name = ALL
    else:
        name = " and ".join(NAMES[stream] for stream in streams)
    seeds = {record.id: record.seed for record in records}
    return SpreadSource(
        name,
        streams,
        tuple(values.tolist()),
        variance,
        len(values) - 1.0,
        tuple(scores),
        tuple(seeds[run] for run in scores),
    )


def _scores(records: Sequence[Run], target: Target) -> dict[str, float]:
    """Run -> its mean over the target's tasks in points, of finished runs that have them all."""
    found = {}
    for record in records:
        if record.status != "finished":
            continue
        value = target.value_of_run(record)
        if value is not None:
            found[record.id] = value
    return found


def _estimate_pairs(
    row: ResultRow,
    significance: Significance,
    target: Target,
) -> SpreadSource | None:
    """Return what one run's score varies by when the pairs are redrawn."""
    found = significance.by_seed(row, target)
    variance = significance.run_variance(row, target)
    if found is None or variance is None:
        return None
    mean = float(found.scores.mean())
    return SpreadSource(
        PAIRS,
        streams=(),
        scores=(),
        variance=1e4 * variance,
        freedom=pairs_freedom(mean, variance, significance.examples(target)),
        records=tuple(r.id for r in row.finished),
    )


def pairs_freedom(
    correlation: float,
    variance: float,
    pairs: int,
    replicates: float = math.inf,
) -> float:
    """Degrees of freedom of the variance that pairs bring to Spearman's correlation, by what each
    moves it or by a bootstrap of so many replicates.

    Twice the inverse of its relative variance, which is 2 / (pairs - 1) + 2 / (replicates - 1) and,
    since the variance goes with (1 - r^2)^2 (1 + r^2 / 2) (Bonett & Wright, Psychometrika 65, 2000)
    and r itself is an estimate, the square of that expression's logarithmic slope times the
    variance of r; a fifth more by simulation.
    """
    r = min(abs(correlation), 0.95)
    square = r * r
    slope = r / (1 + square / 2) - 4 * r / (1 - square)
    by_correlation = 1.2 * slope**2 * variance
    by_pairs = 2 / max(pairs - 1, 1)
    by_replicates = 2 / max(replicates - 1, 1)
    return 2 / (by_correlation + by_pairs + by_replicates)
