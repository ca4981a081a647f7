"""SentEval's tasks by name, as suites: transfer, other downstream tasks, probing, and counterparts
on embedded data.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness.sources.embedded import embedded_rows
from harness.sources.senteval.labelled import PROBING, build_labelled, probing_folder, read_probing
from harness.tasks.senteval.caption_retrieval import CaptionRetrievalTask
from harness.tasks.senteval.classifier import CONFIGURATIONS, FULL, Classifier
from harness.tasks.senteval.transfer import (
    TRANSFER,
    ClassificationTask,
    transfer_mean,
    transfer_task,
)
from harness.tasks.suite import Suite, TaskFamily

if TYPE_CHECKING:
    from harness.sources.pair_sets import Source
    from harness.tasks.base import Task

REGRESSORS = ("regressor:SICK-R", "regressor:STS-B")
# Task -> file and parts of the suite. Natural and contrast parts are unlike data and reported
# apart.
EMBEDDED_TRANSFER: dict[str, tuple[str, tuple[str, ...]]] = {
    "Embedded-Questions": ("questions", ("a",)),
    "Embedded-Subjectivity": ("subjectivity", ("b",)),
    "Embedded-Sentiment-natural": ("sentiment", ("e",)),
    "Embedded-Sentiment-contrast": ("sentiment", ("c",)),
    "Embedded-Paraphrase-natural": ("paraphrase", ("e",)),
    "Embedded-Paraphrase-contrast": ("paraphrase", ("a",)),
}


def probing_task(
    dataset: str,
    *,
    name: str = "",
    classifier: Classifier = FULL,
    root: Path | None = None,
) -> ClassificationTask:
    """One probing task by SentEval's name, from files below `root` or HARNESS_SENTEVAL, or
    downloaded on first use.

    The default head is the logistic regression of DeCLUTR's tables; SentEval's authors recommend a
    hidden layer of 50 to 200 units whose dropout is tuned on dev (`classifier`). WordContent never
    has one.
    """
    load = lambda: read_probing(dataset, probing_folder(root))  # noqa: E731
    return ClassificationTask(dataset, load, name=name, suite="probing", classifier=classifier)


class EmbeddedTransferTask(ClassificationTask):
    """One of `EMBEDDED_TRANSFER`: accuracy on test, and of the folds of train ("dev"), as TREC and
    MRPC have them.
    """

    source = "embedded"
    preparation = "raw text"

    def __init__(self, name: str, *, classifier: Classifier = FULL) -> None:
        rows = EMBEDDED_TRANSFER[name]
        super().__init__(
            name,
            lambda: build_labelled(embedded_rows(*rows)),
            suite="embedded-transfer",
            classifier=classifier,
        )


def make_task(name: str, source: Source) -> Task:
    """Return the task of a name of `TASKS`."""
    if name in EMBEDDED_TRANSFER:
        return EmbeddedTransferTask(name)
    if name in PROBING:
        return probing_task(name)
    if name in REGRESSORS:
        from harness.tasks.senteval.relatedness import regressor_task  # imports torch

        return regressor_task(name.removeprefix("regressor:"))
    if name == "caption-retrieval":
        return CaptionRetrievalTask()
    configuration, colon, dataset = name.rpartition(":")
    if colon:
        suite = f"transfer-{configuration}"
    elif name in DOWNSTREAM.tasks:
        suite = "downstream"
    else:
        suite = "transfer"
    return transfer_task(
        dataset,
        name=name,
        suite=suite,
        classifier=CONFIGURATIONS[configuration or "full"],
    )


_CHANCE = dict.fromkeys(TRANSFER, 1 / 2) | {"TREC": 1 / 6}
_CLASSES = {
    "Length": 6,
    "WordContent": 1000,
    "Depth": 7,
    "TopConstituents": 20,
}  # the other six: two
TRANSFER_SUITE = Suite(
    TRANSFER,
    "the seven SentEval tasks, full configuration (10 folds, Adam): the papers' tables",
    metric="accuracy",
    chance=_CHANCE,
    averages=(transfer_mean(),),
)
PROTOTYPING = Suite(
    tuple(f"prototyping:{name}" for name in TRANSFER),
    "the same seven in SentEval's prototyping configuration (5 folds; unstable on long vectors)",
    metric="accuracy",
    chance={f"prototyping:{name}": chance for name, chance in _CHANCE.items()},
)
DOWNSTREAM = Suite(
    ("SST5", "SICK-E", "SNLI", *REGRESSORS, "caption-retrieval"),
    "SentEval's other tasks: SST5, SICK-E, SNLI, trained regressors, caption retrieval",
    chance={
        "SST5": 1 / 5,
        "SICK-E": 1 / 3,
        "SNLI": 1 / 3,
        **dict.fromkeys(REGRESSORS, 0.0),
    },
)
PROBING_SUITE = Suite(
    tuple(PROBING),
    "SentEval's ten probing tasks",
    metric="accuracy",
    chance={name: 1 / _CLASSES.get(name, 2) for name in PROBING},
)
EMBEDDED = Suite(
    tuple(EMBEDDED_TRANSFER),
    "question type, subjectivity, sentiment, paraphrase on embedded data",
    metric="accuracy",
    # The classes of each task are equally frequent: six types of question, two of all else.
    chance={name: 1 / 6 if name == "Embedded-Questions" else 1 / 2 for name in EMBEDDED_TRANSFER},
)
TASKS = TaskFamily(
    (*TRANSFER, *PROTOTYPING.tasks, *DOWNSTREAM.tasks, *PROBING, *EMBEDDED_TRANSFER), make_task
)
