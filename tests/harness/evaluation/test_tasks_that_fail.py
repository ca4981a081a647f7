"""A task of another package that fails in any way costs its own scores, and no other's."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from harness.errors import InputError, RunError, StopRequested
from harness.evaluation.scoring import evaluate
from harness.files.exits import refuse_exits
from harness.results.record import Score
from harness.sources import PairSet, Subset
from harness.tasks.base import TaskResult
from harness.tasks.sts import STSTask


def _good() -> STSTask:
    subset = Subset("test", ["a", "ab", "abc"], ["aab", "cd", "b"], np.array([5.0, 1.0, 2.0]))
    return STSTask.of(PairSet("STS12", "mteb", "test", (subset,), "sha", "as written"))


def _encode(texts: list[str]) -> Any:
    return np.array([[text.count(letter) for letter in "abcd"] for text in texts], dtype=float)


class Odd:
    """A task of which one part is not as it should be."""

    name = "odd"
    suite = "odd"
    source = "own"
    sha256 = "0"

    def __init__(self, texts: Any = ("a",), answer: Callable[[Any], Any] = lambda _: None) -> None:
        self._texts, self._answer = texts, answer

    def texts(self) -> Any:
        return self._texts() if callable(self._texts) else self._texts

    def evaluate(self, vectors: Any, *, pooling: str) -> Any:
        return self._answer(vectors)


def _raise(error: BaseException) -> Any:
    raise error


def _score(value: Any) -> Score:
    """Return a score of the odd task that nothing has validated."""
    words = {"task": "odd", "suite": "odd", "source": "own", "split": "test", "metric": "accuracy"}
    ids = {"aggregation": "", "protocol": "p", "comparable": "c"}
    return Score.model_construct(**words, **ids, value=value, n=3)


ANSWERS: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda _: None,
    "a dictionary": lambda _: {"score": 0.5},
    "scores of another kind": lambda _: TaskResult(scores=[0.5]),  # type: ignore[list-item]
    "an infinite score": lambda _: TaskResult(scores=[_score(float("inf"))]),
    "a score that is a text": lambda _: TaskResult(scores=[_score("good")]),
    "notes of another kind": lambda _: TaskResult(notes=[1]),  # type: ignore[list-item]
    "figures that are arrays": lambda _: TaskResult(figures={"odd": {"x": np.zeros(2)}}),
    "pairs without columns": lambda _: TaskResult(pairs=pd.DataFrame({"a": [1]})),
    "outcomes without columns": lambda _: TaskResult(outcomes=pd.DataFrame({"a": [1]})),
    "a text that is no text": lambda vectors: vectors([None]),
    "exits": lambda _: sys.exit(0),
    "ends its process": lambda _: os._exit(0),
    "raises": lambda _: _raise(ValueError("why")),
    "raises GeneratorExit": lambda _: _raise(GeneratorExit()),
    "raises an error of ours": lambda _: _raise(RunError("mine")),
    "requests a stop by itself": lambda _: _raise(StopRequested()),
}
TEXTS: dict[str, Any] = {
    "numbers": [1, 2],
    "nothing": None,
    "bytes": [b"a"],
    "a lone surrogate": ["\ud800"],
    "raise": lambda: _raise(InputError("no data")),
    "exit": lambda: sys.exit(1),
}


def _scores_of(odd: Odd) -> TaskResult:
    with refuse_exits():
        return evaluate(_encode, [_good(), odd], pooling="letters")


@pytest.mark.parametrize("name", ANSWERS)
def test_what_a_task_answers_costs_its_own_scores(name: str) -> None:
    result = _scores_of(Odd(answer=ANSWERS[name]))
    assert {score.task for score in result.scores} == {"STS12"}
    assert list(result.missing) == ["odd"]
    assert result.missing["odd"].kind == "failed"


@pytest.mark.parametrize("name", TEXTS)
def test_what_a_task_gives_as_texts_costs_its_own_scores(name: str) -> None:
    result = _scores_of(Odd(texts=TEXTS[name]))
    assert {score.task for score in result.scores} == {"STS12"}
    assert list(result.missing) == ["odd"]


def test_a_text_that_was_not_announced_is_encoded() -> None:
    seen = []

    def answer(vectors: Any) -> TaskResult:
        seen.append(vectors(["abba"]))
        return TaskResult()

    result = _scores_of(Odd(texts=(), answer=answer))
    assert not result.missing
    assert seen[0].tolist() == [[2, 2, 0, 0]]


@pytest.mark.parametrize("error", [StopRequested(), RunError("no memory")])
def test_what_the_encoder_raises_ends_the_evaluation(error: BaseException) -> None:
    def encode(texts: list[str]) -> Any:
        if "late" in texts:
            raise error
        return _encode(texts)

    odd = Odd(answer=lambda vectors: vectors(["late"]))
    with pytest.raises(type(error)):
        evaluate(encode, [_good(), odd], pooling="letters")
