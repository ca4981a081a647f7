"""How each row scores each example of a task, and the examples that are worth a look.

Rows are compared by errors, not by scores, since a cosine of 0.8 is high in one embedding space and
low in another. The error of a pair is the distance between its rank by cosine and its rank by gold
score, as a share of all ranks (0: equal ranks, 1: first instead of last); a classified text has
error 1 if it is wrong; a query 1 minus its score. Errors are means over the seeds of a row.

Runs store ids of texts, not texts, since licences of data sets may forbid copies. Texts are read
from the tasks' data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import HarnessError, InputError
from harness.files.printable import one_line
from harness.results.outcomes import is_mean
from harness.results.text_ids import pair_units, text_id
from harness.tasks.catalogue import SOURCES, resolve_tasks
from harness.tasks.own.data import TaskFile
from reports.load import RecordedResults, RecordedRow
from reports.read.examples import Examples
from reports.results import base_name
from reports.stats.estimate import Floats

_SETS = ("v_measure",)  # metrics of whole sets, which have no examples
_USUAL = ("spearman", "accuracy")  # the metric that is shown of a task with several

Key = tuple[str, str]  # of a row
Texts = list[tuple[str, ...]]


@dataclass
class ExploredTask:
    """The n examples of one task, and the runs that were scored on them: row key -> record id ->
    examples.
    """

    task: str
    source: str
    metric: str
    examples: Examples
    runs: Mapping[Key, Mapping[str, Examples]]
    file: Mapping[str, Any] | None = None  # its settings, of a task that is a file

    @cached_property
    def errors(self) -> dict[Key, Floats]:
        """Row key -> (n,) mean error over seeds, 0 to 1."""
        found = {}
        for key, runs in self.runs.items():
            total = np.zeros(len(self.examples.target))
            for run in runs.values():
                total += error(run)
            found[key] = total / len(runs)
        return found

    @cached_property
    def known(self) -> tuple[Texts, list[str], str]:
        """(n,) one or two texts of each example, () if unknown; (n,) gold scores or labels; why
        texts are unknown.
        """
        target = self.examples.target
        gold = []
        for value in np.round(target, 3):
            gold.append("" if np.isnan(value) else f"{value:g}")
        try:
            texts, labels = _read_texts(self.examples, self.file)
        except (HarnessError, OSError, ValueError) as fault:
            why = f"the data of {self.task} cannot be read here: {one_line(str(fault))}"
            return [()] * len(target), gold, why
        why = ""
        lacking = sum(not some for some in texts)
        if lacking:
            some = f"{lacking:,} of {len(texts):,} examples of {self.task}"
            why = f"{some} are not in the data found here"
        return texts, labels or gold, why

    def rows(self, comparison: RecordedResults, base_model: str = "") -> list[RecordedRow]:
        """The rows that have the task, in the order of the comparison; of one base model if it is
        given.
        """
        found = []
        for row in comparison.rows:
            names = ("", row.base_model, base_name(row.base_model))
            if row.key in self.runs and base_model in names:
                found.append(row)
        return found


def error(examples: Examples) -> Floats:
    """(n,) the error of one run on each example, 0 to 1."""
    metric = examples.score[3]
    target = examples.target
    outcome = examples.outcome
    if is_mean(metric, target):
        return np.asarray(np.clip(1 - outcome, 0, 1))
    if metric.removeprefix("cosine_") == "f1":
        return np.asarray(outcome != target, dtype=np.float64)
    from scipy.stats import rankdata

    distance = np.abs(rankdata(outcome) - rankdata(target))
    return np.asarray(distance / max(len(target) - 1, 1))


def read_tasks(
    comparison: RecordedResults, wanted: Callable[[str], bool] = lambda task: True
) -> list[ExploredTask]:
    """Every task of a comparison whose runs stored examples, with one metric each."""
    found: dict[tuple[str, str, str, str], dict[Key, dict[str, Examples]]] = {}
    for row in comparison.rows:
        for record in row.finished:
            for examples in comparison.examples.get(record.id, ()):
                task, *_, metric = examples.score
                if metric not in _SETS and wanted(task):
                    by_row = found.setdefault(examples.score, {})
                    by_row.setdefault(row.key, {})[record.id] = examples
    tasks: dict[Key, ExploredTask] = {}
    for (task, source, _, metric), runs in found.items():
        known = tasks.get((task, source))
        is_more_usual = known is not None and metric in _USUAL and known.metric not in _USUAL
        if known is None or is_more_usual:
            listed = comparison.file.files.get(f"{source}:{task}")
            file = None if listed is None else listed.settings
            tasks[task, source] = replace(_with_same_examples(runs), file=file)
    return list(tasks.values())


def _with_same_examples(runs: Mapping[Key, Mapping[str, Examples]]) -> ExploredTask:
    """The runs that were scored on the examples that most runs were scored on."""
    every: list[Examples] = []
    for by_id in runs.values():
        every.extend(by_id.values())
    counts = Counter(one.digest for one in every)
    ((usual, _),) = counts.most_common(1)
    same = {}
    for key, by_id in runs.items():
        of_row = {run: one for run, one in by_id.items() if one.digest == usual}
        if of_row:
            same[key] = of_row
    first = next(one for one in every if one.digest == usual)
    task, source, _, metric = first.score
    return ExploredTask(task, source, metric, first, same)


def _read_texts(examples: Examples, file: Mapping[str, Any] | None) -> tuple[Texts, list[str]]:
    """The texts of n examples, and their labels if the task has labels."""
    name, source, _, _ = examples.score
    wanted: str | TaskFile = name
    if file is not None:
        wanted = TaskFile(**file)
    if source in SOURCES:
        (task,) = resolve_tasks([wanted], source=source)
    else:
        (task,) = resolve_tasks([wanted])
    tested = getattr(task, "tested", None)
    if tested is not None:
        texts, units = _texts_and_units(tested.first, tested.second)
        if np.array_equal(units, examples.texts[:, 0]):  # the data is the one that was scored
            return texts, [f"{label:g}" for label in tested.labels.tolist()]
    by_id = {}
    for text in reversed(list(dict.fromkeys(task.texts()))):
        by_id[text_id(text)] = text
    if not by_id:
        raise InputError("the task creates its texts while it is scored")
    found = []
    for ids in examples.texts:
        some = tuple(by_id.get(int(one), "") for one in ids)
        found.append(some if all(some) else ())
    return found, []


def _texts_and_units(
    first: Sequence[str], second: Sequence[str] | None
) -> tuple[Texts, NDArray[np.int64]]:
    """Return the texts of each example, and its id as it is stored with outcomes."""
    if second:
        pairs: Texts = list(zip(first, second, strict=True))
        return pairs, pair_units(first, second)
    ids = [text_id(text) for text in first]
    return [(text,) for text in first], np.array(ids)


@dataclass(frozen=True)
class Chosen:
    """One example. example: its number in the task's data, from 1; ids: of its texts; texts: () if
    unknown.

    scores and errors: of each row, means over its seeds; by: what it was chosen by.
    """

    task: str
    source: str
    example: int
    ids: tuple[str, ...]
    texts: tuple[str, ...]
    gold: str
    scores: Mapping[str, float]
    errors: Mapping[str, float]
    by: float


def choose_differing(
    task: ExploredTask,
    a: RecordedRow,
    b: RecordedRow,
    most: int,
    text: str = "",
) -> list[Chosen]:
    """The examples on which two rows differ most in error; `by` is positive where `a` has the
    smaller error.
    """
    by = task.errors[b.key] - task.errors[a.key]
    return _choose(task, [a, b], by, np.abs(by), most, text)


def choose_hard(
    task: ExploredTask,
    rows: Sequence[RecordedRow],
    most: int,
    text: str = "",
) -> list[Chosen]:
    """The examples that most rows get wrong, by the median of their errors."""
    by = np.median([task.errors[row.key] for row in rows], axis=0)
    return _choose(task, rows, by, by, most, text)


def _choose(
    task: ExploredTask,
    rows: Sequence[RecordedRow],
    by: Floats,
    size: Floats,
    most: int,
    text: str,
) -> list[Chosen]:
    """The `most` examples of the largest size above 0; only those with a text that contains `text`."""
    texts, gold, _ = task.known
    order = []
    for number in np.argsort(-size, kind="stable"):
        place = int(number)
        if size[place] > 0 and _is_in(text, texts[place]):
            order.append(place)

    scores = {}
    errors = {}
    for name, row in zip(_tell_names_apart(rows), rows, strict=True):
        outcomes = [run.outcome for run in task.runs[row.key].values()]
        scores[name] = np.mean(outcomes, axis=0)
        errors[name] = task.errors[row.key]
    chosen = []
    for place in order[:most]:
        numbers = [int(one) % 2**64 for one in task.examples.texts[place]]
        ids = tuple(f"{number:016x}" for number in numbers)
        chosen.append(
            Chosen(
                task.task,
                task.source,
                place + 1,
                ids,
                texts[place],
                gold[place],
                scores=_round_all(scores, place),
                errors=_round_all(errors, place),
                by=round(float(by[place]), 4),
            )
        )
    return chosen


def _is_in(text: str, some: Sequence[str]) -> bool:
    """True if some texts have another one in them, in whatever case, or that one is empty."""
    if not text:
        return True
    wanted = text.casefold()
    return any(wanted in one.casefold() for one in some)


def _tell_names_apart(rows: Sequence[RecordedRow]) -> list[str]:
    """Return the label of each row, with its base model where several have the label."""
    labels = [row.label for row in rows]
    names = []
    for row in rows:
        name = row.label
        if labels.count(name) > 1:
            name = f"{name} ({base_name(row.base_model)})"
        names.append(name)
    return names


def _round_all(by_row: Mapping[str, Floats], place: int) -> dict[str, float]:
    """Return the value of each row at one place, to four digits."""
    found = {}
    for name, values in by_row.items():
        value = float(values[place])
        found[name] = round(value, 4)
    return found
