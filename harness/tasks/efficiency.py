"""What a model costs: seconds to train and seconds to encode a pair set, apart, under conditions
that are recorded.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

from harness.errors import InputError
from harness.machine.environment import device_name
from harness.tasks.base import TaskResult, check_vectors
from harness.tasks.protocol import add_number
from harness.tasks.sts import ModelOnPairs
from harness.tasks.suite import Suite, TaskFamily

if TYPE_CHECKING:
    from harness.sources.pair_sets import Source

VERSION = "harness-efficiency-1"
BATCH_SIZE = 64
WARM_UP = 4 * BATCH_SIZE  # sentences encoded before the clock starts: kernels, caches, memory
REPEATS = 3  # the median counts


class EfficiencyTask(ModelOnPairs):
    """Seconds of both phases (Kim et al. 2021 print them for one model on STS-B): "encode_seconds",
    "sentences_per_second", and "train_seconds" of a method that was trained here.

    Encoding is from strings to vectors in main memory, tokenisation included, of both sides of all
    pairs; n is their number. Our encoder makes a sentence that occurs twice once: the number of
    distinct ones is in the protocol, with device, threads, batch size, precision, warm-up and
    repeats. Named "efficiency:" and the pair set.
    """

    suite = "efficiency"

    def evaluate_model(self, model: Any, *, device: str, pooling: str) -> TaskResult:
        """Raises:
        InputError: no model.
        """
        import torch

        from harness.encoder.precision import dtype_of

        if model is None:
            raise InputError(f"{self.name}: there is no model to time", key=self.name)
        if not getattr(model, "timed", True):
            raise InputError(
                f"{self.name}: vectors of a file or a network say no time of a model",
                key=self.name,
            )
        texts = self.texts()
        seconds = _median_seconds(model, texts, device)
        result = TaskResult()
        preparation = self.pairs.data.preparation
        split = self.pairs.split
        conditions: dict[str, Any] = {
            "device": device_name(device),
            "threads": torch.get_num_threads(),
            "precision": dtype_of(model),
            "version": VERSION,
        }
        encoding = conditions | {
            "phase": "encoding",
            "batch_size": BATCH_SIZE,
            "warm_up": WARM_UP,
            "repeats": REPEATS,
            "statistic": "median",
            "distinct": len(set(texts)),
        }
        measured = [
            ("encode_seconds", seconds, len(texts), encoding),
            ("sentences_per_second", len(texts) / seconds, len(texts), encoding),
        ]
        report = getattr(model, "fit_report", None)
        if report is not None and "train_seconds" in report.cost:
            training = conditions | {
                "phase": "training",
                "batch_size": getattr(model.config, "batch_size", None),
                "steps": report.training.get("steps"),
                "precision": str(report.training.get("precision", "fp32")),
            }
            seen = int(report.cost.get("corpus_sentences_seen", 0))
            measured.append(("train_seconds", report.cost["train_seconds"], seen, training))
        for metric, value, n, how in measured:
            add_number(
                result,
                self,
                metric,
                value,
                n,
                pooling,
                split=split,
                preparation=preparation,
                **how,
            )
        return result


def _median_seconds(model: Any, texts: list[str], device: str) -> float:
    """Return the median of the seconds that a model takes to encode texts, after a warm-up."""
    stride = max(1, len(texts) // WARM_UP)
    _time_encoding(model, texts[::stride], device)
    times = [_time_encoding(model, texts, device) for _ in range(REPEATS)]
    return statistics.median(times)


def _time_encoding(model: Any, texts: list[str], device: str) -> float:
    """Return the seconds that a model takes to encode texts."""
    start = time.perf_counter()
    vectors = model.encode(list(texts), batch_size=BATCH_SIZE, device=device)
    check_vectors(vectors, len(texts))
    # The vectors are in main memory, so a GPU has finished too.
    return time.perf_counter() - start


def _task(name: str, source: Source) -> EfficiencyTask:
    return EfficiencyTask(
        name.removeprefix("efficiency:"), "embedded" if name in EMBEDDED.tasks else source
    )


SUITE = Suite(
    ("efficiency:STS-B",),
    "seconds to train and to encode STS-B",
    metric="encode_seconds",
    higher_is_better=False,
    percent=False,
)
EMBEDDED = Suite(
    ("efficiency:Embedded-STS-natural",),
    "seconds to train and to encode the embedded pairs",
    metric="encode_seconds",
    higher_is_better=False,
    percent=False,
)
TASKS = TaskFamily((*SUITE.tasks, *EMBEDDED.tasks), _task)
