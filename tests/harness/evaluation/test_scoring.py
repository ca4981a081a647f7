"""Encode once: one call for the union of all texts, rows shared between tasks, and encoders that
misbehave.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.errors import RunError
from harness.evaluation.scoring import evaluate
from harness.sources import PairSet, Subset
from harness.tasks.geometry import GeometryTask
from harness.tasks.sts import STSTask
from harness.tasks.vectors import EmbeddingTable, encode_once

Array = np.ndarray[Any, Any]


class Letters:
    """Encodes a text as counts of the letters a to d, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def __call__(self, texts: list[str]) -> Array:
        self.calls.append(list(texts))
        return np.array([[t.count(c) for c in "abcd"] for t in texts], dtype=np.float64).reshape(
            -1, 4
        )


def pairs(task: str, rows: list[tuple[str, str, float]]) -> PairSet:
    left, right, gold = zip(*rows, strict=True)
    subset = Subset(name="test", sentences1=list(left), sentences2=list(right), gold=np.array(gold))
    return PairSet(
        task=task,
        source="mteb",
        split="test",
        subsets=(subset,),
        sha256=task,
        preparation="as written",
    )


FIRST = pairs("STS12", [("a", "aab", 5.0), ("ab", "cd", 1.0), ("abc", "b", 2.0)])
SECOND = pairs("STS-B", [("aab", "a", 4.5), ("c", "abc", 3.0)])


def test_every_distinct_text_is_encoded_once_in_one_call() -> None:
    encode = Letters()
    result = evaluate(
        encode,
        [STSTask.of(FIRST), STSTask.of(SECOND), GeometryTask.of([SECOND])],
        pooling="letters",
    )
    assert encode.calls == [["a", "ab", "abc", "aab", "cd", "b", "c"]]
    assert {s.task for s in result.scores} == {"STS12", "STS-B", "geometry:STS-B"}
    assert result.pairs is not None
    assert list(result.pairs["task"]) == ["STS12"] * 3 + ["STS-B"] * 2
    np.testing.assert_allclose(
        result.pairs["score"],
        [2 / np.sqrt(5), 0, 1 / np.sqrt(3), 2 / np.sqrt(5), 1 / np.sqrt(3)],
        rtol=1e-6,
    )
    assert {s.protocol for s in result.scores} <= set(result.protocols)
    assert result.cost["sentences"] == 7
    assert result.cost["encode_seconds"] >= 0


def test_together_equals_one_by_one() -> None:
    tasks = [STSTask.of(FIRST), STSTask.of(SECOND)]
    together = evaluate(Letters(), tasks, pooling="letters")
    assert together.scores == [
        s for t in tasks for s in evaluate(Letters(), [t], pooling="letters").scores
    ]


def test_table_gives_rows_in_the_order_asked_for() -> None:
    table = encode_once(Letters(), ["a", "b", "a", "c"])
    assert len(table) == 3
    np.testing.assert_array_equal(
        table(["c", "a", "c"]), [[0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 1, 0]]
    )
    assert table(["a"]).dtype == np.float32
    assert table([]).shape == (0, 4)
    with pytest.raises(KeyError):
        table(["never announced"])


def test_known_texts_are_not_encoded_again() -> None:
    encode, cache = Letters(), dict[str, Array]()
    encode_once(encode, ["a", "b"], cache=cache)
    table = encode_once(encode, ["b", "cc", "a"], cache=cache)
    encode_once(encode, ["cc", "a"], cache=cache)
    assert encode.calls == [["a", "b"], ["cc"]]
    np.testing.assert_array_equal(table(["a", "cc"]), [[1, 0, 0, 0], [0, 0, 2, 0]])


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.ones((2, 4)), r"shape \(2, 4\) for 7 texts; expected \(7, d\)"),
        (np.ones(7), r"shape \(7,\)"),
        (np.ones((7, 0)), r"shape \(7, 0\)"),
        (np.ones((7, 4), dtype=int), "int64 vectors"),
        (np.array([["x"]] * 7), "vectors; expected floating-point"),
    ],
)
def test_a_misbehaving_encoder_is_one_clear_error(vectors: Array, message: str) -> None:
    with pytest.raises(RunError, match=message):
        evaluate(lambda texts: vectors, [STSTask.of(FIRST), STSTask.of(SECOND)], pooling="none")


def test_tensors_and_half_precision_are_taken() -> None:
    import torch

    table = encode_once(lambda texts: torch.ones(len(texts), 3, dtype=torch.bfloat16), ["a", "b"])  # type: ignore[arg-type, return-value]
    assert isinstance(table, EmbeddingTable)
    np.testing.assert_array_equal(table(["b"]), [[1, 1, 1]])


def test_texts_that_cannot_be_utf8_are_texts_too() -> None:
    assert len(encode_once(Letters(), ["\ud800", "", "🙂"])) == 3


def test_values_beyond_float32_are_replaced_and_reported() -> None:
    def huge(texts: list[str]) -> Array:
        return np.array([[1e300 if t == "a" else 1.0, float(len(t))] for t in texts])

    result = evaluate(huge, [STSTask.of(FIRST)], pooling="none")
    assert result.notes == ["STS12: vectors with NaN or infinity, replaced by 0: 1"]
