"""Compares the texts of tasks with a training text or dev set, once for each pair of data sets.

The results are in `WORKDIR/cache/overlaps/ID.json`, one file for each text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.contamination.near_texts import RULE, Found, find_texts, normal_form
from harness.errors import InputError
from harness.files.atomic import sweep, write_atomic
from harness.files.hashing import content_id
from harness.files.printable import join_some, redacted
from harness.files.reading import read_json
from harness.sources.corpus.corpus import Pair
from harness.tasks.base import needs_model, task_key

if TYPE_CHECKING:
    from harness.sources import Corpus
    from harness.tasks.base import Task
    from harness.tasks.sts import DevSet

SELECTION = "selection"  # the kind of a text that is a dev set
MOST_TEXTS = 200_000  # distinct texts of a task that are held in memory, some 200 bytes each
LARGE = 0.05  # a share of the texts of a task that is worth a line
# examples that are stored of a task, and their characters
_EXAMPLES = 5
_SHOWN = 300
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+|(?<=[。！？])")
_UNKNOWN = "its texts are not known before it is scored"


class TaskOverlap(BaseModel):
    """One task compared with one text.

    Attributes:
        data: sha256 of the task's data.
        texts: number of distinct texts of the task, in normal form; `equal` and `near`: how many of
            them the other text holds word for word, and nearly.
        pairs: number of examples (pairs or single texts) that are scored one by one; 0 for other
            tasks.
        touched: subset -> numbers of the examples with such a text on either side (as numbered in
            the run's pairs; under "" as in its outcomes).
        examples: a few (text of the task, nearly equal text).
        unchecked: why the task was not compared; empty if it was.
    """

    model_config = ConfigDict(frozen=True)

    data: str = ""
    suite: str = ""
    texts: int = 0
    equal: int = 0
    near: int = 0
    pairs: int = 0
    touched: dict[str, list[int]] = {}
    examples: list[tuple[str, str]] = []
    unchecked: str = ""

    @property
    def share(self) -> float:
        """Share of its texts that are equal or nearly equal, in [0, 1]."""
        if self.texts:
            return (self.equal + self.near) / self.texts
        return 0.0

    @property
    def touched_share(self) -> float:
        """Share of its examples that have such a text, in [0, 1]."""
        if self.pairs:
            touched = sum(map(len, self.touched.values()))
            return touched / self.pairs
        return 0.0


class Overlap(BaseModel):
    """One text compared with tasks. rule: how; text: its description as in a record; tasks: by
    "SOURCE:TASK".
    """

    schema_version: Literal[1] = 1
    rule: str
    text: dict[str, Any]
    tasks: dict[str, TaskOverlap] = {}


def overlap_file(workdir: Path, text: Mapping[str, Any]) -> Path:
    """The file of a text, named by its content and by what is read from it (sentences or
    documents).
    """
    return (
        workdir
        / "cache"
        / "overlaps"
        / f"{content_id([text.get('sha256'), text.get('kind', SELECTION)])}.json"
    )


def read_overlap(workdir: Path, text: Mapping[str, Any]) -> Overlap | None:
    """The stored result for a record's `corpus` or `dev`; None if there is none, or the file is
    damaged.
    """
    file = overlap_file(workdir, text)
    try:
        if file.is_file():
            return Overlap.model_validate(read_json(file))
        return None
    except (InputError, ValidationError):
        return None


def write_overlap(workdir: Path, overlap: Overlap) -> None:
    """Replace the file of a text. The caller holds its lock."""
    file = overlap_file(workdir, overlap.text)
    sweep(file)
    write_atomic(file, overlap.model_dump_json() + "\n")


@dataclass(frozen=True)
class CheckedText:
    """A training text or dev set. about: its description as in a record; stream: yields its texts."""

    about: Mapping[str, Any]
    stream: Callable[[], Iterable[str]]


def training_text(corpus: Corpus) -> CheckedText:
    """A corpus: its sentences, all sides of its pairs, its documents and their sentences."""
    return CheckedText(corpus.describe(), lambda: _texts(corpus))


def selection_text(dev: DevSet, about: Mapping[str, Any]) -> CheckedText:
    """A dev set that selects checkpoints, described by `about` as in a record."""
    return CheckedText({**about, "kind": SELECTION}, dev.texts)


def _texts(corpus: Corpus) -> Iterator[str]:
    for item in corpus:
        if isinstance(item, Pair):
            yield from filter(None, (item.anchor, item.positive, item.negative))
            continue
        yield item
        if corpus.kind == "documents":
            sentences = _SENTENCE_END.split(item)
            if len(sentences) > 1:
                yield from sentences


def find_overlaps(
    workdir: Path,
    texts: Mapping[str, CheckedText],
    tasks: Sequence[Task],
) -> Iterator[str]:
    """Compare texts, by what they are called, with the tasks, and store the overlaps; a line for
    each large one.
    """
    for name, text in texts.items():
        shares = {}
        for key, one in check(workdir, text, tasks).tasks.items():
            shares[key] = one.share
        large = sorted(
            ((share, key) for key, share in shares.items() if share >= LARGE), reverse=True
        )
        if large:
            parts = []
            for share, key in large:
                task = key.partition(":")[2]
                parts.append(f"{task} {100 * share:.0f} %")
            named = join_some(parts)
            yield f"note: the {name} contains texts of {named} (report: scores without them)"


def check(workdir: Path, text: CheckedText, tasks: Sequence[Task]) -> Overlap:
    """Find the texts of the tasks in a training text or dev set; stored results are reused.

    Tasks that look into a model score no texts and are left out.

    Raises:
        OSError: the work directory cannot be written.
    """
    from filelock import FileLock

    opened = {}
    for task in tasks:
        if not needs_model(task) and task.suite != "geometry":
            opened[task_key(task)] = _open(task)
    file = overlap_file(workdir, text.about)
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(
        file.with_name(f".{file.stem}.lock")
    ):  # another comparison may check the same text
        stored = read_overlap(workdir, text.about)
        if stored is not None and stored.rule == RULE:
            known = stored.tasks
        else:
            known = {}
        due = {}
        for key, one in opened.items():
            if key not in known or known[key].data != one.about.data:
                due[key] = one
        found = {**known, **_compare(text, due)}
        overlap = Overlap(rule=RULE, text=dict(text.about), tasks=found)
        if due or stored is None:
            write_overlap(workdir, overlap)
    asked = {key: overlap.tasks[key] for key in opened}
    return overlap.model_copy(update={"tasks": asked})


@dataclass(frozen=True)
class _OpenTask:
    """A task's texts, and both sides of the examples that it scores one by one, by subset."""

    about: TaskOverlap
    texts: Sequence[str] = ()
    pairs: Mapping[str, tuple[Sequence[str], Sequence[str]]] | None = None


def _open(task: Task) -> _OpenTask:
    def mark_unchecked(why: str, data: str = "") -> _OpenTask:
        return _OpenTask(TaskOverlap(data=data, suite=task.suite, unchecked=why))

    if hasattr(task, "at_least") and task.source not in (
        "embedded",
        "file",
    ):  # it fetches its data when it is scored
        return mark_unchecked(_UNKNOWN)
    try:
        sha256 = task.sha256
        texts = list(dict.fromkeys(task.texts()))
    except (
        Exception
    ) as error:  # a task, perhaps of another package, must not prevent the check of the others
        reason = redacted(str(error)).partition("\n")[0]
        return mark_unchecked(reason)
    if not texts or len(texts) > MOST_TEXTS:
        return mark_unchecked(
            f"it has more than {MOST_TEXTS:,} texts" if texts else _UNKNOWN, sha256
        )
    pairs = {}
    for s in getattr(getattr(task, "data", None), "subsets", ()):
        pairs[s.name] = (s.sentences1, s.sentences2)
    if (tested := getattr(task, "tested", None)) is not None:
        pairs = {"": (tested.first, tested.second or tested.first)}
    return _OpenTask(TaskOverlap(data=sha256, suite=task.suite), texts, pairs)


def _compare(text: CheckedText, tasks: Mapping[str, _OpenTask]) -> dict[str, TaskOverlap]:
    """Compare all tasks in one pass over the text."""
    texts: list[str] = []
    for task in tasks.values():
        texts.extend(task.texts)
    place = {}
    for number, one in enumerate(dict.fromkeys(texts)):
        place[one] = number
    found = find_texts(list(place), text.stream() if place else ())
    result = {}
    for key, task in tasks.items():
        if task.texts:
            result[key] = _count(task, place, found)
        else:
            result[key] = task.about
    return result


def _count(task: _OpenTask, place: Mapping[str, int], found: Found) -> TaskOverlap:
    forms = {}
    for text in task.texts:
        form = normal_form(text)
        if form:
            forms[form] = place[text]
    equal = 0
    near = []
    for form, number in forms.items():
        if found.equal[number]:
            equal += 1
        if found.near[number]:
            near.append((form, number))
    examples = []
    for form, number in near[:_EXAMPLES]:
        examples.append((form[:_SHOWN], found.example[number][:_SHOWN]))

    either = found.equal | found.near
    pairs = 0
    touched = {}
    for name, (first, second) in (task.pairs or {}).items():
        pairs += len(first)
        numbers = []
        for n, (a, b) in enumerate(zip(first, second, strict=True)):
            if either[place[a]] or either[place[b]]:
                numbers.append(n)
        if numbers:
            touched[name] = numbers
    return task.about.model_copy(
        update={
            "texts": len(forms),
            "equal": equal,
            "near": len(near),
            "pairs": pairs,
            "touched": touched,
            "examples": examples,
        }
    )
