"""Geometry of the embedding space: alignment and uniformity (Wang and Isola 2020), and how evenly
vectors use it.

Alignment and uniformity take L2-normalised vectors f(x) on the unit sphere; the functions here
normalise. Ranks, IsoScore and partition isotropy take (n, d) arrays or tensors as they are, and
compute in float64.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import InputError
from harness.results.facts import Facts
from harness.sources.pair_sets import EMBEDDED_STS
from harness.tasks.base import TaskResult, Vectors, as_array, finite, unit_rows
from harness.tasks.protocol import add_number
from harness.tasks.suite import Suite, TaskFamily

if TYPE_CHECKING:
    from harness.sources.pair_sets import PairSet, Source, Subset

GEOMETRY_VERSION = "harness-geometry-1"
Floats = NDArray[np.float64]
_FLAT = 1e-12  # share of the variance in the mean square below which it is float32 rounding noise, not spread
_CHUNK = 4096  # rows whose projections are held at a time
_BLOCK = 2048  # rows of a block of the similarity matrix: 16 MiB in float32


def alignment(x: Any, y: Any, *, alpha: float = 2) -> float:
    """Mean over positive pairs of ||f(x) - f(y)||^alpha; 0 when partners coincide, lower is better.

    `x`, `y`: (n, d) arrays or tensors, row i of each is a positive pair; normalised here.
    """
    a = as_array(x)
    b = as_array(y)
    if a.shape != b.shape or a.ndim != 2 or not len(a):
        raise ValueError(
            f"alignment needs two (n, d) arrays of one shape with n > 0, got {a.shape} and {b.shape}"
        )
    difference = unit_rows(a) - unit_rows(b)
    distance = np.linalg.norm(difference, axis=1)
    return float(np.mean(distance**alpha))


def uniformity(x: Any, *, t: float = 2) -> float:
    """ln of the mean over unordered pairs i < j of exp(-t ||f(x_i) - f(x_j)||^2); lower is better,
    0 is collapse.

    Vectors spread evenly over a sphere of high dimension give slightly more than -2t (-4 by
    default).
    `x`: (n, d), n > 1, normalised here. Exact over all n (n - 1) / 2 pairs: products in float32
    (error of the result about 1e-8; in full collapse at most 2t d 2^-24, and 1.2e-5 was found there
    at d = 768), sums in float64, one block of the similarity matrix at a time.
    """
    a = as_array(x)
    if a.ndim != 2 or len(a) < 2:
        raise ValueError(f"uniformity needs an (n, d) array with n > 1, got {a.shape}")
    # exp(-4t) would fall below float32's smallest number for a sharp kernel; the usual t = 2 spans
    # exp(-8) to 1.
    unit: NDArray[np.floating[Any]] = unit_rows(a)
    if t <= 10:
        unit = unit.astype(np.float32)
    else:
        unit = unit.astype(np.float64)
    lengths = np.einsum("ij,ij->i", unit, unit, dtype=np.float64)  # 1, or 0 for a zero vector
    squares = (t * lengths).astype(unit.dtype)
    total = 0.0
    for i in range(0, len(unit), _BLOCK):
        rows = slice(i, i + _BLOCK)
        for j in range(i, len(unit), _BLOCK):
            columns = slice(j, j + _BLOCK)
            block = unit[rows] @ unit[columns].T
            block *= 2 * t
            block -= squares[rows, None]
            block -= squares[None, columns]
            np.exp(block, out=block)  # -t |a - b|^2 = 2t a.b - t |a|^2 - t |b|^2
            if i == j:
                block = np.triu(block, 1)
            total += float(block.sum(dtype=np.float64))
    pairs = len(unit) * (len(unit) - 1) / 2
    return float(np.log(total) - np.log(pairs))


def effective_rank(x: Any) -> float:
    """exp of the entropy of the singular values, scaled to sum 1, of the centred (n, d) vectors
    (Roy, Vetterli 2007).

    Between 1 and min(n - 1, d); 0 when all vectors are equal up to float32 rounding. The vectors
    are taken as they are, not normalised.
    """
    if len(as_array(x)) > 1:
        return entropy_rank(singular_values(x))
    return 0.0


def feature_std(x: Any) -> float:
    """sqrt(d) times the mean over features of the standard deviation of the normalised (n, d)
    vectors.

    About 1 when they are spread evenly over the sphere, 0 when they have collapsed to one
    direction.
    """
    unit = unit_rows(as_array(x))
    spread = unit.std(axis=0).mean()
    return float(spread * np.sqrt(unit.shape[1]))


def mean_cosine(x: Any) -> float:
    """Mean cosine over unordered pairs i < j of (n, d) vectors, n > 1; near 1 in a narrow cone, 0
    when even.
    """
    unit = unit_rows(as_array(x))
    n = len(unit)
    if n < 2:
        raise ValueError(f"mean_cosine needs at least two vectors, got {n}")
    total = unit.sum(axis=0)
    with_themselves = np.einsum("ij,ij->", unit, unit)
    of_pairs = total @ total - with_themselves
    return float(of_pairs / (n * (n - 1)))


def _wide(x: Any) -> Floats:
    wide = np.asarray(as_array(x), dtype=np.float64)
    if wide.ndim != 2 or len(wide) < 2 or not wide.shape[1]:
        raise ValueError(f"expected an (n, d) array with n > 1, got {wide.shape}")
    return wide


def _centre(x: Any) -> Floats | None:
    """`x` less its mean; None when all rows are equal up to float32 rounding."""
    wide = _wide(x)
    centred: Floats = wide - wide.mean(axis=0)
    variance = float(np.mean(centred**2))
    mean_square = float(np.mean(wide**2))
    if variance > _FLAT * mean_square:
        return centred
    return None


def singular_values(x: Any, *, centre: bool = True) -> Floats:
    """Singular values (min(n, d),), largest first, scaled to sum 1; all 0 where there is no spread.

    `centre` takes the mean off first.
    """
    if centre:
        wide = _centre(x)
    else:
        wide = _wide(x)
    if wide is None or not wide.any():
        return np.zeros(min(_wide(x).shape))
    # Eigenvalues of the smaller Gram matrix are the squared singular values: far cheaper than an
    # SVD of a tall matrix.
    if len(wide) < wide.shape[1]:
        gram = wide @ wide.T
    else:
        gram = wide.T @ wide
    ascending = np.linalg.eigvalsh(gram / np.trace(gram))
    squares = ascending[::-1]
    values: Floats = np.sqrt(np.clip(squares, 0.0, None))
    values /= values.sum()
    return values


def entropy_rank(shares: Any) -> float:
    """exp of the entropy of shares (k,) that sum to 1; 0 where all are 0."""
    positive = np.asarray(shares, dtype=np.float64)
    positive = positive[positive > 0]
    if positive.size:
        entropy = -(positive * np.log(positive)).sum()
        return float(np.exp(entropy))
    return 0.0


def rankme(x: Any) -> float:
    """RankMe (Garrido et al. 2023, equation 1): the entropy rank of the singular values of the
    vectors, mean included.

    Between 1 and min(n, d); 0 when all vectors are 0. It differs from
    `effective_rank` by the mean alone, which dominates the spectrum of most language models. The
    paper's epsilon of 1e-7 is left out.
    """
    return entropy_rank(singular_values(x, centre=False))


def isoscore(x: Any) -> float:
    """IsoScore (Rudman et al. 2022, algorithm 1): the share of directions that carry variance, from
    0 to 1.

    With variances s along the principal axes, scaled to length sqrt(d): defect = |s - 1| / sqrt(2
    (d - sqrt d)), phi = (d - defect^2 (d - sqrt d))^2 / d^2, score = (d phi - 1) / (d - 1). Equal
    variance along k of d axes and none along the rest gives (k - 1) / (d - 1). 0 without spread; 1
    for d = 1.
    """
    centred = _centre(x)
    if centred is None:
        return 0.0
    d = centred.shape[1]
    if d == 1:
        return 1.0
    eigenvalues = np.linalg.eigvalsh(centred.T @ centred)
    variances = np.clip(eigenvalues, 0.0, None)
    scaled = variances * np.sqrt(d) / np.linalg.norm(variances)
    room = d - np.sqrt(d)
    squares = (scaled - 1) ** 2
    distance = float(np.sum(squares))
    defect = distance / (2 * room)  # squared
    used = d - defect * room
    phi = used**2 / d**2
    score = (d * phi - 1) / (d - 1)
    return float(np.clip(score, 0.0, 1.0))


def partition_isotropy(x: Any) -> float:
    """min over max of Z(c) = sum_i exp(c . x_i) over unit directions c (Mu and Viswanath 2018,
    section 2.2).

    1 when even, near 0 in a cone. As there, c runs over the eigenvectors of X^T X; over both signs
    of each, for the sign that an eigenvector is given with is arbitrary.
    """
    wide = _wide(x)
    _, positive = np.linalg.eigh(wide.T @ wide)
    directions = np.concatenate([positive, -positive], axis=1)
    logs = np.full(directions.shape[1], -np.inf)  # of Z, which itself can overflow
    for start in range(0, len(wide), _CHUNK):
        some = wide[start : start + _CHUNK]
        exponents = some @ directions
        peak = exponents.max(axis=0)
        sums = np.exp(exponents - peak).sum(axis=0)
        of_some = peak + np.log(sums)
        logs = np.logaddexp(logs, of_some)
    return float(np.exp(logs.min() - logs.max()))


def cosine_histograms(
    x: Any,
    y: Any,
    gold: Any,
    *,
    edges: Sequence[float] = (0, 1, 2, 3, 4, 5),
    bins: int = 50,
) -> dict[str, Any]:
    """How the cosines of pairs are spread, for the pairs of each range of gold scores.

    x, y (n, d); gold (n,). A pair belongs to the range [edge, next edge), in the last range the
    upper edge included.
    Returns "bins": the edges (bins + 1,) of equal bins over [-1, 1]; "buckets": one dict a range
    with "low", "high", "n", "mean" and "std" of its cosines (None without pairs) and "counts"
    (bins,).
    """
    left = unit_rows(as_array(x))
    right = unit_rows(as_array(y))
    products = np.einsum("ij,ij->i", left, right)
    cosine = np.clip(products, -1.0, 1.0)
    scores = np.asarray(as_array(gold), dtype=np.float64)
    limits = np.linspace(-1.0, 1.0, bins + 1)
    buckets = []
    for low, high in pairwise(edges):
        below = scores < high
        if high == edges[-1]:
            below |= scores == high
        inside = cosine[(scores >= low) & below]
        buckets.append(
            {
                "low": float(low),
                "high": float(high),
                "n": len(inside),
                "mean": float(inside.mean()) if len(inside) else None,
                "std": float(inside.std()) if len(inside) else None,
                "counts": np.histogram(inside, limits)[0].tolist(),
            }
        )
    return {"bins": limits.round(10).tolist(), "buckets": buckets}


SPREAD: dict[str, Callable[[Any], float]] = {
    "effective_rank": effective_rank,
    "rankme": rankme,
    "isoscore": isoscore,
    "partition_isotropy": partition_isotropy,
    "mean_cosine": mean_cosine,
    "std": feature_std,
}
UNNORMALISED = ("effective_rank", "rankme", "isoscore", "partition_isotropy")


# a pair is positive when its gold score is above 4 (Gao et al. 2021, section 3)
THRESHOLD = 4.0
ALPHA = 2.0
T = 2.0


class GeometryTask:
    """Alignment over the positive pairs of a pair set, uniformity and spread over all its
    sentences.

    Named "geometry:" and the pair set, all splits of which count. `n` of a score is the number of
    pairs (alignment) or sentences (the others).
    """

    suite = "geometry"

    def __init__(self, pair_set: str, source: Source, *, splits: Sequence[str]) -> None:
        """`splits`: the splits that the pair set has."""
        self.name = f"geometry:{pair_set}"
        self.source = source
        self._pair_set = pair_set
        self._splits = tuple(splits)

    @classmethod
    def of(cls, parts: Sequence[PairSet]) -> GeometryTask:
        """A task over data that is at hand already: one pair set a split."""
        splits = [part.split for part in parts]
        task = cls(parts[0].task, parts[0].source, splits=splits)
        task.data = tuple(parts)
        return task

    @cached_property
    def data(self) -> tuple[PairSet, ...]:
        """The pair sets, one a split."""
        from harness.sources.pair_sets import load_sts

        parts = []
        for split in self._splits:
            parts.append(load_sts(self._pair_set, source=self.source, split=split))
        return tuple(parts)

    @property
    def sha256(self) -> str:
        if len(self.data) == 1:
            return self.data[0].sha256
        hashes = "".join(part.sha256 for part in self.data)
        return hashlib.sha256(hashes.encode()).hexdigest()

    @property
    def _subsets(self) -> list[Subset]:
        subsets: list[Subset] = []
        for part in self.data:
            subsets.extend(part.subsets)
        return subsets

    def texts(self) -> list[str]:
        """The sentences that uniformity runs over, with repeats."""
        texts: list[str] = []
        for subset in self._subsets:
            texts.extend(subset.sentences1)
            texts.extend(subset.sentences2)
        return texts

    def positives(self) -> tuple[list[str], list[str]]:
        """First and second sentences of the pairs whose gold score passes the threshold."""
        left = []
        right = []
        for subset in self._subsets:
            for a, b, gold in zip(subset.sentences1, subset.sentences2, subset.gold, strict=True):
                if gold > THRESHOLD:
                    left.append(a)
                    right.append(b)
        return left, right

    def evaluate(self, vectors: Vectors, *, pooling: str) -> TaskResult:
        """Metrics "alignment", "uniformity" and those of `SPREAD`; as figure "cosines"
        (`cosine_histograms` over the pairs of the test split; over all where there is none).

        Raises:
            InputError: no pair passes the threshold.
        """
        left, right = self.positives()
        if not left:
            raise InputError(
                f"{self.name} ({self.source}): no pair has a gold score > {THRESHOLD:g}",
                key=self.name,
            )
        result = TaskResult()
        for part in self.data:
            for text in part.unusual_sizes():
                result.notes.append(f"{self.name}: {text}")
        x, damaged = finite(vectors(self.texts()))
        result.note_damaged(self.name, damaged)
        u, _ = finite(vectors(left))
        v, _ = finite(vectors(right))
        closeness = alignment(u, v, alpha=ALPHA)
        measured: dict[str, tuple[float, int, dict[str, Any]]] = {
            "alignment": (
                closeness,
                len(left),
                {"threshold": THRESHOLD, "strict": True, "alpha": ALPHA},
            ),
            "uniformity": (uniformity(x, t=T), len(x), {"dedupe": False, "t": T}),
        }
        for metric, function in SPREAD.items():
            measured[metric] = (function(x), len(x), {"dedupe": False})
        for metric, (value, n, options) in measured.items():
            options |= {"similarity": "none" if metric in UNNORMALISED else "L2-normalised"}
            options |= {"version": GEOMETRY_VERSION, "preparation": self.data[0].preparation}
            add_number(result, self, metric, value, n, pooling, split="all", **options)
        result.figures[self.name] = {
            "cosines": self._cosines(vectors),
            **Facts("", lacks="numbers of all vectors together").plain(),
        }
        return result

    def _cosines(self, vectors: Vectors) -> dict[str, Any]:
        """Return the histograms of the test pairs' cosines, with "split": "test"; of all pairs,
        with "split": "all", where there is no test split.
        """
        parts = [part for part in self.data if part.split == "test"]
        split = "test" if parts else "all"
        subsets: list[Subset] = []
        for part in parts or self.data:
            subsets.extend(part.subsets)
        left = []
        for subset in subsets:
            left.extend(subset.sentences1)
        right = []
        for subset in subsets:
            right.extend(subset.sentences2)
        u = finite(vectors(left))[0]
        v = finite(vectors(right))[0]
        gold = np.concatenate([subset.gold for subset in subsets])
        return {**cosine_histograms(u, v, gold), "split": split}


def _task(name: str, source: Source) -> GeometryTask:
    pair_set = name.removeprefix("geometry:")
    if pair_set in EMBEDDED_STS:
        return GeometryTask(pair_set, "embedded", splits=("dev", "test"))
    return GeometryTask(pair_set, source, splits=("train", "dev", "test"))


TASKS = TaskFamily(("geometry:STS-B", *(f"geometry:{name}" for name in EMBEDDED_STS)), _task)
SUITE = Suite(
    ("geometry:STS-B",),
    "alignment, uniformity, ranks and isotropy of STS-B's sentences",
    metric="uniformity",
    higher_is_better=False,
    percent=False,
)
EMBEDDED = Suite(
    (*EMBEDDED_STS, *TASKS.names[1:]),
    "similarity and geometry on the embedded sentences; no hub needed",
)
