"""Encode once: the texts of all tasks are joined, deduplicated, encoded in one call, and shared
between the tasks.
"""

from __future__ import annotations

import json
import math
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from harness.errors import HarnessError, InputError, RunError, StopRequested
from harness.evaluation.outside_models import OutsideModel
from harness.files.atomic import storage_fault
from harness.files.exits import ENDS
from harness.files.printable import first_line
from harness.method import Method
from harness.results.code import task_code
from harness.results.record import Score, missing
from harness.results.store import join_examples
from harness.results.text_ids import stack
from harness.tasks.base import Encode, Task, TaskResult, Vectors, needs_model, task_key
from harness.tasks.prompts import PromptedVectors, Prompts, of_mteb
from harness.tasks.protocol import name_code
from harness.tasks.vectors import (
    UNNAMED,
    EmbeddingTable,
    Origin,
    VectorStore,
    encode_few,
    encode_once,
)


def merge_results(parts: Sequence[TaskResult]) -> TaskResult:
    """One result of several; their costs are added up."""
    whole = TaskResult()
    for part in parts:
        whole.scores += part.scores
        whole.protocols |= part.protocols
        whole.notes += part.notes
        whole.missing |= part.missing
        whole.artifacts |= part.artifacts
        whole.errors |= part.errors
        whole.figures |= part.figures
        whole.cost = {
            key: whole.cost.get(key, 0.0) + part.cost.get(key, 0.0)
            for key in whole.cost | part.cost
        }
    pairs = [part.pairs for part in parts if part.pairs is not None]
    outcomes = [part.outcomes for part in parts if part.outcomes is not None]
    whole.pairs = stack(pairs) if pairs else None
    whole.outcomes = stack(outcomes) if outcomes else None
    if whole.cost.get("encode_seconds"):
        encoded = whole.cost["sentences"] - whole.cost.get("sentences_cached", 0.0)
        whole.cost["sentences_per_second"] = encoded / whole.cost["encode_seconds"]
    return whole


T = TypeVar("T")
_OF_ENCODER = "of_encoder"  # attribute of errors that the encoder raised, while a task was scored


def _mark_errors(encode: Encode) -> Encode:
    """Return `encode`, whose errors are known as its own by `each`."""

    def marking(texts: list[str]) -> Any:
        try:
            return encode(texts)
        except (HarnessError, StopRequested) as error:
            if not isinstance(error, InputError):
                setattr(error, _OF_ENCODER, True)
            raise

    return marking


class TaskFaultError(RunError):
    """The code of a task failed, and no other task has an answer; its cause says how."""


def each(
    tasks: Sequence[Task], ask: Callable[[Task], T]
) -> tuple[list[tuple[Task, T]], dict[str, Exception]]:
    """What `ask` gives for every task, and by name the errors of those that cannot answer: they do
    not stop the others. An error of a task need not name the task: whoever shows it does.

    An `InputError` says that data is missing, damaged or does not suit; any other error is a fault
    of the program.

    Raises:
        RunError, StopRequested: of the encoder, not of the task. OSError: the disk is full or
            fails.
        HarnessError: no task has an answer; the first task's error, which names the task where it
            names no file or key.
    """
    answers: list[tuple[Task, T]] = []
    faults: dict[str, Exception] = {}
    for task in tasks:
        try:
            answers.append((task, ask(task)))
        except (*ENDS, StopRequested) as error:
            if getattr(error, _OF_ENCODER, False) or storage_fault(error) is not None:
                raise
            if isinstance(error, Exception):
                faults[task.name] = error
            else:
                faults[task.name] = RuntimeError(f"it raised {error!r:.100}")
    if faults and not answers:
        name, first = next(iter(faults.items()))
        if isinstance(first, InputError) and first.file is None and first.key is None:
            first.file = name
        if isinstance(first, HarnessError | OSError):
            raise first
        said = f"{type(first).__name__}: {first_line(first)}"
        raise TaskFaultError(f"task {name}: its code failed: {said}") from first
    return answers, faults


def texts_of(task: Task, most: int | None = None) -> Sequence[str]:
    """The texts of a task.

    Raises:
        InputError: its data cannot be read, or it has more than `most` texts.
    """
    at_least = getattr(
        task, "at_least", None
    )  # of tasks that fetch their data when they are scored
    if most is not None and at_least is not None:
        _check_number(at_least(), most)
    texts = list(task.texts())
    _check_number(len(texts), most)
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"texts() gave {text!r:.60}; expected texts (str)")
    try:
        "\n".join(texts).encode()
    except UnicodeEncodeError as error:  # no tokenizer takes it, and all tasks are encoded together
        raise ValueError(f"texts() gave a text with a lone surrogate ({error.reason})") from None
    return texts


def _read_known_texts(task: Task, most: int | None, model: Any) -> Sequence[str]:
    """Return the texts of a task.

    Raises:
        InputError: as `texts_of`; the model has no vectors of some of them, as a file of vectors.
    """
    texts = texts_of(task, most)
    if isinstance(model, Method | OutsideModel):
        fault = model.fault_of(texts)
        if fault is not None:
            raise fault
    return texts


def _check_result(result: Any) -> TaskResult:
    """Return what a task returned, if it can be stored.

    Raises:
        TypeError, ValueError, KeyError: it is no `TaskResult`, or one of its parts is of another
            kind.
    """
    if not isinstance(result, TaskResult):
        raise TypeError(f"expected a TaskResult, not {type(result).__name__}")
    for score in result.scores:
        if not isinstance(score, Score):
            raise TypeError(f"scores: expected Score, not {type(score).__name__}")
        Score.model_validate(score.model_dump(warnings=False))  # of `model_construct`, say
        if math.isinf(score.value):
            raise ValueError(f"scores: expected a number, not {score.value}")
    for note in result.notes:
        if not isinstance(note, str):
            raise TypeError(f"notes: expected texts, not {type(note).__name__}")
    json.dumps([result.protocols, result.figures, result.artifacts, result.errors])
    join_examples(result.pairs, result.outcomes)
    return result


def _check_number(count: int, most: int | None) -> None:
    if most is not None and count > most:
        raise InputError(
            f"has {count:,} sentences; a rehearsal takes tasks of up to {most:,} (rehearsal.sentences)"
        )


def record_missing(
    result: TaskResult,
    unread: Mapping[str, Exception],
    unscored: Mapping[str, Exception],
) -> None:
    """Enter the tasks without scores: those whose data could not be read, and those that could not
    be scored with it.

    The program's own faults keep their tracebacks.
    """
    for name, fault in {**unread, **unscored}.items():
        cause = fault.__cause__
        if isinstance(fault, TaskFaultError) and isinstance(cause, Exception):
            error = cause
        else:
            error = fault
        why = missing(error, was_read=name in unscored)
        result.missing[name] = why
        result.notes.append(f"{name}: no scores: {why}")
        if why.kind == "failed":
            result.errors[name] = "".join(traceback.format_exception(error))


def evaluate(
    encode: Encode,
    tasks: Sequence[Task],
    *,
    pooling: str,
    cache: VectorStore | None = None,
    origin: Origin = UNNAMED,
    model: Any = None,
    device: str = "cpu",
    most: int | None = None,
    few: int | None = None,
    prompts: Prompts | None = None,
) -> TaskResult:
    """All scores of `tasks` for one encoder, whose texts are encoded once.

    A task whose data is missing or damaged, or that fails, does not stop the others: it has no
    scores, and is in `missing` with the reason, and in `notes`; so is one that asks for more than
    `most` texts. With `few`, so many texts are encoded, and the others get the vectors of these
    (`encode_few`); nothing is read from `cache`, and nothing stored. A task that cannot know its
    texts beforehand gets them encoded when it asks. `pooling` names how the vectors are made (it
    enters the protocol ids, as `prompts` do), `origin` whose they are. `model` (a method, an
    `Encoder`) and `device` are for tasks that look into the model or time it.

    `cost` of the result has "sentences" (distinct texts), "sentences_cached" (those of them that
    `cache` had), "encode_seconds" and "sentences_per_second" of the others (neither where there
    were none), "evaluate_seconds" (scoring, without that encoding), and "score_cpu_seconds"
    (processor seconds of both).

    Raises:
        InputError: the data of every task is missing or damaged.
        RunError: `encode` returned something else than one vector a text.
        OSError: the disk is full or fails.
    """
    encode = _mark_errors(encode)
    if few is not None:
        tasks = [_for_rehearsal(task) for task in tasks]
    readable, unread = each(tasks, lambda task: _read_known_texts(task, most, model))
    before: Mapping[str, str] = {}
    if prompts is not None:
        readable = [(task, [] if of_mteb(task) else texts) for task, texts in readable]
        plain = [task for task, _ in readable if not needs_model(task)]
        before = prompts.before(plain)
    texts = _distinct_texts(readable, before)

    def more(unknown: list[str]) -> EmbeddingTable:
        _check_number(len(unknown), most)
        return encode_all_or_few(unknown)

    def encode_all_or_few(texts: list[str]) -> EmbeddingTable:
        if not texts:
            return EmbeddingTable([], np.empty((0, 0), dtype=np.float32))
        if few is not None:
            return encode_few(encode, texts, few)
        return encode_once(encode, texts, cache=cache)

    start = time.perf_counter()
    worked = time.process_time()
    first = encode_all_or_few(texts)
    table = EmbeddingTable(
        texts,
        first.vectors,
        fresh=first.fresh,
        seconds=first.seconds,
        more=more,
        origin=origin,
    )

    def score(task: Task) -> TaskResult:
        if needs_model(task):
            found = task.evaluate_model(model, device=device, pooling=pooling)
            return name_code(_check_result(found), task_code(task))
        vectors: Vectors = table
        how = pooling
        prompt = before.get(task_key(task), "")
        if prompts is not None and (prompt or of_mteb(task)):  # else its texts stand alone
            vectors = PromptedVectors(table, prompts, prompt)
            how = f"{pooling}, {prompts.label_of(task)}"
        found = task.evaluate(vectors, pooling=how)
        return name_code(_check_result(found), task_code(task))

    known = [task for task, _ in readable]
    scored, unscored = each(known, score)
    result = merge_results([part for _, part in scored])
    record_missing(result, unread, unscored)
    if prompts is not None and prompts.unfit:
        result.notes.append(prompts.unfit)
    if few is None:
        count = len(texts) + table.requested
    else:
        count = table.fresh
    result.cost = _cost_of(table, count, time.perf_counter() - start)
    result.cost["score_cpu_seconds"] = time.process_time() - worked
    return result


def _for_rehearsal(task: Task) -> Task:
    """Return a task as a rehearsal scores it: with a small classifier, where it has one."""
    make = getattr(task, "for_rehearsal", None)
    small: Task = task if make is None else make()
    return small


def _distinct_texts(
    readable: Sequence[tuple[Task, Sequence[str]]], before: Mapping[str, str]
) -> list[str]:
    """Return the texts of tasks that take vectors, each once, with the prompts before them."""
    texts: dict[str, None] = {}
    for task, own in readable:
        if needs_model(task):
            continue
        prompt = before.get(task_key(task), "")
        for text in own:
            texts[prompt + text] = None
    return list(texts)


def _cost_of(table: EmbeddingTable, sentences: int, seconds: float) -> dict[str, float]:
    """Return the cost of an evaluation of so many distinct texts, `seconds` in all."""
    cost = {"sentences": float(sentences), "evaluate_seconds": seconds - table.seconds}
    if table.fresh < sentences:
        cost["sentences_cached"] = float(sentences - table.fresh)
    if table.fresh and table.seconds:
        cost["encode_seconds"] = table.seconds
        cost["sentences_per_second"] = table.fresh / table.seconds
    return cost
