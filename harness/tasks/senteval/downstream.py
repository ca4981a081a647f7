"""SentEval's downstream tasks beyond the seven transfer tasks, as a suite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.tasks.senteval.caption_retrieval import CaptionRetrievalTask
from harness.tasks.senteval.transfer import transfer_task
from harness.tasks.suite import Suite, TaskFamily

if TYPE_CHECKING:
    from harness.sources.pair_sets import Source
    from harness.tasks.base import Task

REGRESSORS = ("regressor:SICK-R", "regressor:STS-B")


def _task(name: str, source: Source) -> Task:
    if name in REGRESSORS:
        from harness.tasks.senteval.relatedness import regressor_task  # imports torch

        return regressor_task(name.removeprefix("regressor:"))
    return CaptionRetrievalTask() if name == "caption-retrieval" else transfer_task(name, suite="downstream")


SUITE = Suite(
    ("SST5", "SICK-E", "SNLI", *REGRESSORS, "caption-retrieval"),
    "SentEval's other tasks: SST5, SICK-E, SNLI, trained regressors, caption retrieval",
    chance={"SST5": 1 / 5, "SICK-E": 1 / 3, "SNLI": 1 / 3, **dict.fromkeys(REGRESSORS, 0.0)},
)
TASKS = TaskFamily(SUITE.tasks, _task)
