"""Labelled texts of a file, classified as SentEval does: with its classifier, its order of examples
and its folds.
"""

from __future__ import annotations

from harness.errors import InputError
from harness.sources.senteval.labelled import Example, Labelled, in_order
from harness.tasks.base import TaskResult, Vectors
from harness.tasks.own.data import OwnData
from harness.tasks.own.file_task import FileTask
from harness.tasks.senteval.classifier import FULL
from harness.tasks.senteval.transfer import ClassificationTask

# texts: of fewer a twentieth is less than 10, and fits end before they have learnt (50 texts of two
# topics: accuracy 56, of a logistic regression 76)
_FEW_FITTED = 220


class FileClassification(FileTask, ClassificationTask):
    """Accuracy: nested folds of a file without parts; with a train part the test part."""

    kind = "classification"
    dataset = "own"  # no set of SentEval's, which have rules of their own
    classifier = FULL

    def _load(self) -> Labelled:
        return read_labelled_texts(self.own)

    @property
    def data_remarks(self) -> list[str]:
        remarks = super().data_remarks
        parts = self.data.parts
        fitted = len(parts.get("train", self.tested))
        if "dev" not in parts and fitted < _FEW_FITTED:
            remarks.append(
                f"{self.name}: {fitted} texts are few for SentEval's classifier, which a twentieth of "
                "them stops: accuracies may be far too low (knn:FILE fits nothing)"
            )
        return remarks

    def evaluate(self, vectors: Vectors, *, pooling: str) -> TaskResult:
        result = super().evaluate(vectors, pooling=pooling)
        result.notes += self.data_remarks
        return result


def read_labelled_texts(own: OwnData) -> Labelled:
    """Return the texts by part with numbered labels.

    Raises:
        InputError: there is one label only, or the test part has one that training lacks.
    """
    own.rows("test")  # there are some
    if "train" in own.counts:
        parts = own.counts
    else:
        parts = {"test": len(own.frame)}
    if "dev" in own.counts and "train" not in own.counts:
        message = "has a dev part but no train part to fit a classifier on"
        raise InputError(message, file=own.where, key='column "split"')
    learnt = own.rows("train" if "train" in parts else "test")["label"]
    names = sorted(set(learnt))
    if len(names) < 2:
        message = f"all labels are {names[0]!r:.40}: at least two are needed"
        raise InputError(message, file=own.where, key='column "label"')
    number = {name: place for place, name in enumerate(names)}
    examples: dict[str, list[Example]] = {}
    for part in parts:
        rows = own.rows(part)
        for line, name in rows["label"].items():
            if name not in number:
                message = f"the train part has no label {name!r:.40}"
                remedy = "add examples of it to the train part, or remove the line"
                place = f"{own.where}, line {line}"
                raise InputError(message, file=place, key='column "label"', remedy=remedy)
        labels = [number[name] for name in rows["label"]]
        if len(parts) == 1:
            read = "all"
        else:
            read = part
        examples[read] = [
            (text, "", label) for text, label in zip(rows["text"], labels, strict=True)
        ]
    return in_order(examples, len(names), as_written=True)
