"""The fits of `harness.tasks.classifier` by a few lines of C, on a processor for which a C compiler is there.

At a step a fit reads 64 rows and writes a few hundred weights: too little for torch, whose every operation passes over
memory again. `descent.c` reads each row once and keeps the weights near. It is compiled for this processor on its first
use, in about a second, and kept in the cache folder; without a compiler torch does the same, more slowly.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import math
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harness.sources.cache import cache_root
from harness.tasks.classifier import Array, Classifier, Solution, Split, on_all_cores, optimizer_settings, shuffler

_SOURCE = Path(__file__).with_name("descent.c")
# No -ffast-math: it would change how the whole process rounds tiny numbers.
_FLAGS = ["-std=gnu11", "-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC"]
if platform.machine() in ("x86_64", "AMD64"):
    _FLAGS.append("-mprefer-vector-width=512")
_KINDS = ("adam", "rmsprop", "sgd", "adagrad")  # by the number that descent.c gives them
_PAD, _BLOCK = 16, 8  # as in descent.c
_SECONDS = 60


@functools.cache
def library() -> ctypes.CDLL | None:
    """The compiled `descent.c`, or None where it cannot be compiled, stored or loaded."""
    command = [*shlex.split(os.environ.get("CC") or "cc"), *_FLAGS]
    if shutil.which(command[0]) is None:
        return None
    key = hashlib.sha256(b"\0".join([_SOURCE.read_bytes(), " ".join(command).encode(), _processor()])).hexdigest()
    folder = cache_root() / "compiled"
    file = folder / f"descent-{key[:16]}.so"
    try:
        if not file.exists():
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder) as room:
                made = Path(room) / file.name
                subprocess.run(
                    [*command, "-o", str(made), str(_SOURCE), "-lm"],
                    check=True, capture_output=True, timeout=_SECONDS,
                )  # fmt: skip
                os.replace(made, file)  # at once, for processes that compile at the same time
        found = ctypes.CDLL(str(file))
    except (OSError, subprocess.SubprocessError):
        return None
    p, n, i = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    found.descend.argtypes = [p, n, p, p, p, n, n, n, n, p, p, p, p, p, i, ctypes.c_float, ctypes.c_int64, p]
    found.predict.argtypes = [p, n, p, n, n, n, p, p, p]
    found.descend.restype = found.predict.restype = None
    return found


def _processor() -> bytes:
    """What -march=native looks at: a cache folder may be shared by unlike machines."""
    try:
        lines = Path("/proc/cpuinfo").read_bytes().splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()} {platform.node()}".encode()
    return b"\n".join(
        sorted({line for line in lines if line.startswith((b"flags", b"Features", b"model", b"cpu fam"))})
    )


def solve_natively(
    kernel: ctypes.CDLL, x: Array, y: Array, splits: Sequence[Split], l2: Array, classes: int, config: Classifier,
    threads: int,
) -> Solution:  # fmt: skip
    """As `harness.tasks.classifier.solve`, for heads without a hidden layer."""
    fits = _Fits(kernel, x, y, classes, config)
    pieces = min(l2.shape[1], math.ceil(threads / len(splits)))  # few splits: their L2 values apart
    accuracy = np.zeros(l2.shape)
    predicted = [np.zeros((l2.shape[1], len(split.test)), dtype=np.int64) for split in splits]

    def fit(part: tuple[int, Array]) -> None:
        s, values = part
        accuracy[s, values], predicted[s][values] = fits.fit(splits[s], l2[s, values])

    on_all_cores(
        fit, [(s, v) for s in range(len(splits)) for v in np.array_split(np.arange(l2.shape[1]), pieces)], threads
    )
    return Solution(accuracy, predicted)


class _Fits:
    """What the fits of a task share: rows, labels, the weights at the start, the shuffles."""

    def __init__(self, kernel: ctypes.CDLL, x: Array, y: Array, classes: int, config: Classifier) -> None:
        from harness.tasks.heads import fresh_weights

        self.kernel, self.classes, self.config = kernel, classes, config
        d = x.shape[1]
        self.width = math.ceil(d / _PAD) * _PAD
        x = np.ascontiguousarray(x, dtype=np.float32)
        self.x = x if self.width == d else np.pad(x, ((0, 0), (0, self.width - d)))
        self.y = np.ascontiguousarray(y, dtype=np.int64)
        self.start = np.zeros((classes, self.width + _PAD), dtype=np.float32)
        weight, bias = fresh_weights(d, classes, config)
        self.start[:, :d], self.start[:, self.width] = weight.numpy(), bias.numpy()
        self.kind, self.rate = optimizer_settings(config.optim)
        self.shuffles: dict[tuple[int, int], _Shuffles] = {}
        self.lock = threading.Lock()

    def fit(self, split: Split, l2: Array) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """One fit for each L2 value: accuracy (R,) on the held-out rows and labels (R, n) of the test rows."""
        c = self.config
        train, held = (np.ascontiguousarray(rows, dtype=np.int32) for rows in (split.train, split.held_out))
        with self.lock:
            shuffles = self.shuffles.setdefault((len(train), split.drawn), _Shuffles(c.seed, len(train), split.drawn))
        weights = np.repeat(self.start[None], len(l2), axis=0)
        moments = np.zeros((2, *weights.shape), dtype=np.float32)
        decay = np.ascontiguousarray(l2, dtype=np.float32)
        room = np.zeros(2 * weights.size + _BLOCK * len(l2) * self.classes + _PAD, dtype=np.float32)
        best, best_correct, failures = weights.copy(), np.full(len(l2), -1), np.zeros(len(l2), dtype=np.int64)
        running = np.arange(len(l2), dtype=np.int32)
        passes = 0
        while len(running) and passes <= c.max_epoch:
            for _ in range(c.epoch_size):
                order = shuffles[passes]
                self.kernel.descend(
                    *_at(self.x), self.width, *_at(self.y, train, order), len(train), c.batch_size, self.classes,
                    len(running), *_at(running, weights, moments[0], moments[1], decay), _KINDS.index(self.kind),
                    self.rate, passes * math.ceil(len(train) / c.batch_size), *_at(room),
                )  # fmt: skip
                passes += 1
            correct = (self._labels(weights[running], held) == self.y[held]).sum(axis=1)
            better = correct > best_correct[running]
            best[running[better]] = weights[running[better]]
            best_correct[running[better]] = correct[better]
            stopped = ~better & (failures[running] >= c.tenacity)
            failures[running[~better]] += 1
            running = running[~stopped]
        return best_correct / max(1, len(held)), self._labels(best, np.ascontiguousarray(split.test, dtype=np.int32))

    def _labels(self, weights: Array, rows: Array) -> NDArray[np.int64]:
        labels = np.zeros((len(weights), len(rows)), dtype=np.int64)
        room = np.zeros(_BLOCK * len(weights) * self.classes, dtype=np.float32)
        self.kernel.predict(
            *_at(self.x), self.width, *_at(rows), len(rows), self.classes, len(weights), *_at(weights, labels, room)
        )
        return labels


def _at(*arrays: Array) -> tuple[int, ...]:
    return tuple(array.ctypes.data for array in arrays)


class _Shuffles:
    """The orders of n rows that a seeded generator gives pass after pass; drawn once for all fits that share them."""

    def __init__(self, seed: int, n: int, drawn: int) -> None:
        """`drawn`: rows that it has permuted before (`Split.drawn`)."""
        self.n, self.seed, self.drawn = n, seed, drawn
        self.generator: np.random.RandomState | None = None
        self.orders: list[NDArray[np.int32]] = []
        self.lock = threading.Lock()

    def __getitem__(self, i: int) -> NDArray[np.int32]:
        with self.lock:
            if self.generator is None:
                self.generator = shuffler(self.seed, self.drawn)
            while len(self.orders) <= i:
                self.orders.append(self.generator.permutation(self.n).astype(np.int32))
            return self.orders[i]
