"""The averages that papers print, each over exactly its own tasks. All numbers are in percent (times 100).

An average with a task missing is marked incomplete and has no value: a mean over fewer tasks is another number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.results.record import Score
from harness.tasks.senteval.probing import PROBING
from harness.tasks.senteval.transfer import TRANSFER

STS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
# DeCLUTR's eighteen (Giorgi et al. 2020, section 4.3 and table S3), by our task names.
_ACCURACIES = ("CR", "MR", "MPQA", "SUBJ", "SST2", "SST5", "TREC", "SNLI", "SICK-E")
_REGRESSORS = ("regressor:SICK-R", "regressor:STS-B")
DECLUTR_DOWNSTREAM = (*_ACCURACIES, "MRPC", *_REGRESSORS, *STS[:5], "caption-retrieval")


@dataclass(frozen=True)
class Average:
    """`value` is None where tasks are `missing`; `of` says over how many it goes."""

    value: float | None
    missing: tuple[str, ...]
    of: int

    def shown(self) -> str:
        """ "76.80 (18 of 18)", or that it is incomplete and by what."""
        if self.value is not None:
            return f"{self.value:.2f} ({self.of} of {self.of})"
        few = ", ".join(self.missing[:3]) + (", ..." if len(self.missing) > 3 else "")
        return f"incomplete ({self.of - len(self.missing)} of {self.of}; missing: {few})"


def mean_of(values: Mapping[str, float], tasks: Sequence[str], *, decimals: int | None = None) -> Average:
    """The plain mean over `tasks`; `decimals`: each value is rounded first, as some papers' scripts do."""
    missing = tuple(task for task in tasks if task not in values)
    if missing or not tasks:
        return Average(None, missing, len(tasks))
    chosen = [values[task] if decimals is None else round(values[task], decimals) for task in tasks]
    return Average(sum(chosen) / len(chosen), (), len(tasks))


def sts_average(values: Mapping[str, float]) -> Average:
    """SimCSE, SCD, SG: STS12-16, STS-B, SICK-R, each rounded to two decimals first."""
    return mean_of(values, STS, decimals=2)


def transfer_average(values: Mapping[str, float]) -> Average:
    """SimCSE, SCD, SG: MR, CR, SUBJ, MPQA, SST2, TREC, MRPC (accuracies), each rounded to two decimals first."""
    return mean_of(values, TRANSFER, decimals=2)


@dataclass(frozen=True)
class DeclutrAverages:
    """DeCLUTR's numbers: table 1's "Avg." is `half`, the script's own "all" is `tasks` (over all 28)."""

    downstream: Average
    downstream_without_snli: Average
    probing: Average
    half: Average
    tasks: Average


def declutr_averages(values: Mapping[str, float]) -> DeclutrAverages:
    """From the number of each of the 18 downstream and 10 probing tasks (`declutr_values` makes them from scores)."""
    downstream, probing = mean_of(values, DECLUTR_DOWNSTREAM), mean_of(values, PROBING)
    return DeclutrAverages(
        downstream,
        mean_of(values, [task for task in DECLUTR_DOWNSTREAM if task != "SNLI"]),
        probing,
        half_and_half(downstream, probing),
        mean_of(values, [*DECLUTR_DOWNSTREAM, *PROBING]),
    )


def half_and_half(downstream: Average, probing: Average) -> Average:
    """(downstream + probing) / 2, whatever their numbers of tasks."""
    missing, of = downstream.missing + probing.missing, downstream.of + probing.of
    if downstream.value is None or probing.value is None:
        return Average(None, missing, of)
    return Average((downstream.value + probing.value) / 2, missing, of)


def category_averages(
    values: Mapping[str, float], categories: Mapping[str, Sequence[str]]
) -> tuple[dict[str, Average], Average]:
    """MTEB's: the mean of each category, and the mean over all data sets (not over the categories)."""
    everything = [task for tasks in categories.values() for task in tasks]
    return {name: mean_of(values, tasks) for name, tasks in categories.items()}, mean_of(values, everything)


def mrpc(accuracy: float, f1: float) -> float:
    """DeCLUTR's number for MRPC on test."""
    return (accuracy + f1) / 2


def sts_values(scores: Iterable[Score], aggregation: str = "all") -> dict[str, float]:
    """100 x Spearman on test of the seven STS tasks. STS-B and SICK-R are one set each: always "all"."""
    found = _index(scores)
    keys = {task: (task, "test", "spearman", aggregation if task in STS[:5] else "all") for task in STS}
    return {task: 100 * found[key] for task, key in keys.items() if key in found}


def transfer_values(scores: Iterable[Score], split: str = "test") -> dict[str, float]:
    """Accuracies in percent of the seven transfer tasks."""
    found = _index(scores)
    keys = {task: (task, split, "accuracy", "") for task in TRANSFER}
    return {task: 100 * found[key] for task, key in keys.items() if key in found}


def declutr_values(scores: Iterable[Score], split: str = "test") -> dict[str, float]:
    """The number that DeCLUTR's script takes from each task, on "test" or "dev".

    On dev MRPC counts by its accuracy alone and the regressors by Pearson; STS12-16 have no dev set and give the same
    number to both.
    """
    found = _index(scores)
    regressor = "spearman" if split == "test" else "pearson"
    keys: dict[str, tuple[str, str, str, str]] = {
        **{task: (task, split, "accuracy", "") for task in (*_ACCURACIES, "MRPC", *PROBING)},
        **{task: (task, split, regressor, "") for task in _REGRESSORS},
        **{task: (task, "test", "spearman", "mean") for task in STS[:5]},
        "caption-retrieval": ("caption-retrieval", split, "recall", "mean of six recalls"),
    }
    values = {task: 100 * found[key] for task, key in keys.items() if key in found}
    f1 = found.get(("MRPC", "test", "f1", ""))
    if split == "test" and "MRPC" in values:
        if f1 is None:
            del values["MRPC"]
        else:
            values["MRPC"] = mrpc(values["MRPC"], 100 * f1)
    return values


def _index(scores: Iterable[Score]) -> dict[tuple[str, str, str, str], float]:
    return {(s.task, s.split, s.metric, s.aggregation): s.value for s in scores}
