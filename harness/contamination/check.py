"""Tasks against a text that was trained or selected on: computed once for each pair of data, and kept."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.contamination.near_texts import RULE, Found, look_for
from harness.contamination.normal_form import normal_form
from harness.files.redaction import redacted
from harness.results.overlaps import SELECTION, Overlap, TaskOverlap, overlap_file, read_overlap, write_overlap
from harness.sources.corpus.corpus import Pair
from harness.tasks.base import needs_model, task_key

if TYPE_CHECKING:
    from harness.sources import Corpus
    from harness.tasks.base import Task
    from harness.tasks.sts import DevSet

MOST_TEXTS = 200_000  # distinct texts of a task that are held in memory, some 200 bytes each
_EXAMPLES = 5
_SHOWN = 300  # characters of an example
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+|(?<=[。！？])")


@dataclass(frozen=True)
class CheckedText:
    """A text that was trained or selected on: what records say of it, and its sentences."""

    about: Mapping[str, Any]
    stream: Callable[[], Iterable[str]]


def training_text(corpus: Corpus) -> CheckedText:
    """A corpus: its sentences, all sides of its pairs, its documents and the sentences of these."""
    return CheckedText(corpus.describe(), lambda: _texts(corpus))


def selection_text(dev: DevSet, about: Mapping[str, Any]) -> CheckedText:
    """A set that selects checkpoints, `about` as a record says it."""
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


def check(workdir: Path, text: CheckedText, tasks: Sequence[Task]) -> Overlap:
    """What the tasks share with a text; what is kept of it is not computed again.

    Tasks that look into a model score no text and are left out.

    Raises:
        OSError: the work directory cannot be written.
    """
    from filelock import FileLock

    judged = [task for task in tasks if not needs_model(task) and task.suite != "geometry"]
    file = overlap_file(workdir, text.about)
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(file.with_name(f".{file.stem}.lock")):  # another comparison may check the same text here
        kept = read_overlap(workdir, text.about)
        known = kept.tasks if kept is not None and kept.rule == RULE else {}
        opened = {task_key(task): _opened(task) for task in judged}
        due = {key: one for key, one in opened.items() if key not in known or _older(known[key], one)}
        overlap = Overlap(rule=RULE, text=dict(text.about), tasks={**known, **_compared(text, due)})
        if due or kept is None:
            write_overlap(workdir, overlap)
    return overlap.model_copy(update={"tasks": {key: overlap.tasks[key] for key in opened}})


@dataclass(frozen=True)
class _OpenedTask:
    """A task with its texts, and with the pairs or other examples that it scores: subset -> both sides."""

    about: TaskOverlap
    texts: Sequence[str] = ()
    pairs: Mapping[str, tuple[Sequence[str], Sequence[str]]] | None = None


def _older(known: TaskOverlap, task: _OpenedTask) -> bool:
    """Is what is kept of other data, or of a version that did not count the examples?"""
    return known.data != task.about.data or bool(task.pairs and not known.pairs)


def _opened(task: Task) -> _OpenedTask:
    late = "its texts are not known before it is scored"
    if hasattr(task, "at_least") and task.source != "embedded":  # it fetches its data when it is scored
        return _OpenedTask(TaskOverlap(suite=task.suite, unchecked=late))
    try:
        sha256 = task.sha256
        texts = list(dict.fromkeys(task.texts()))
    except Exception as error:  # of one task, and another package's at times: the others are checked
        return _OpenedTask(TaskOverlap(suite=task.suite, unchecked=redacted(str(error)).partition("\n")[0]))
    about = TaskOverlap(data=sha256, suite=task.suite)
    if not texts:
        return _OpenedTask(about.model_copy(update={"unchecked": late}))
    if len(texts) > MOST_TEXTS:
        return _OpenedTask(about.model_copy(update={"unchecked": f"it has more than {MOST_TEXTS:,} texts"}))
    subsets = getattr(getattr(task, "data", None), "subsets", ())
    pairs = {s.name: (s.sentences1, s.sentences2) for s in subsets}
    tested = getattr(task, "tested", None)
    if tested is not None:
        pairs = {"": (tested.first, tested.second or tested.first)}
    return _OpenedTask(about, texts, pairs)


def _compared(text: CheckedText, tasks: Mapping[str, _OpenedTask]) -> dict[str, TaskOverlap]:
    """One pass over the text for all tasks."""
    every = list(dict.fromkeys(one for task in tasks.values() for one in task.texts))
    if not every:
        return {key: task.about for key, task in tasks.items()}
    found = look_for(every, text.stream())
    place = {one: number for number, one in enumerate(every)}
    return {key: _one(task, place, found) if task.texts else task.about for key, task in tasks.items()}


def _one(task: _OpenedTask, place: Mapping[str, int], found: Found) -> TaskOverlap:
    forms = {form: place[text] for text in task.texts if (form := normal_form(text))}
    near = [number for number in forms.values() if found.near[number]]
    in_text = found.equal | found.near

    def met(one: str) -> bool:
        return bool(in_text[place[one]])

    touched = {
        name: [n for n, (a, b) in enumerate(zip(*sides, strict=True)) if met(a) or met(b)]
        for name, sides in (task.pairs or {}).items()
    }
    texts = {number: form for form, number in forms.items()}
    return task.about.model_copy(
        update={
            "texts": len(forms),
            "equal": sum(bool(found.equal[number]) for number in forms.values()),
            "near": len(near),
            "pairs": sum(len(sides[0]) for sides in (task.pairs or {}).values()),
            "touched": {name: numbers for name, numbers in touched.items() if numbers},
            "examples": [(texts[n][:_SHOWN], found.example[n][:_SHOWN]) for n in near[:_EXAMPLES]],
        }
    )
