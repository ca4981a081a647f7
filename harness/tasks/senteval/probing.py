"""The ten probing tasks of SentEval (Conneau et al. 2018): what a vector still knows about the form of its sentence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness.sources.senteval.labelled import PROBING as FILES
from harness.tasks.senteval.classifier import FULL, Classifier
from harness.tasks.senteval.transfer import ClassificationTask
from harness.tasks.suite import Suite, TaskFamily

if TYPE_CHECKING:
    from harness.sources.senteval.labelled import Labelled

PROBING = tuple(FILES)


def probing_task(
    dataset: str, *, name: str = "", classifier: Classifier = FULL, root: Path | None = None
) -> ClassificationTask:
    """One probing task by SentEval's name, from files below `root` or HARNESS_SENTEVAL, or downloaded on first use.

    The default head is the logistic regression of DeCLUTR's tables; SentEval's authors recommend a hidden layer of 50
    to 200 units whose dropout is tuned on dev (`classifier`). WordContent never has one.
    """

    def load() -> Labelled:
        from harness.sources.senteval.labelled import probing_folder, read_probing

        return read_probing(dataset, probing_folder(root))

    return ClassificationTask(dataset, load, name=name, suite="probing", classifier=classifier)


TASKS = TaskFamily(PROBING, lambda name, source: probing_task(name))
_CLASSES = {"Length": 6, "WordContent": 1000, "Depth": 7, "TopConstituents": 20}  # the other six: two
SUITE = Suite(
    PROBING,
    "SentEval's ten probing tasks",
    metric="accuracy",
    chance={name: 1 / _CLASSES.get(name, 2) for name in PROBING},
)
