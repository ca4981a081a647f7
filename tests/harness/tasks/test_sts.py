"""STS: correlations against scipy, aggregations worked by hand, one task end to end, the dev set of
training.
"""

from __future__ import annotations

import dataclasses
import hashlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from harness.errors import RunError
from harness.sources import PairSet, Subset
from harness.tasks.protocol import protocol_id
from harness.tasks.sts import DevSet, STSTask, aggregate, cosine, pearson, spearman
from harness.tasks.vectors import encode_once
from tests.support.errors import raises_input_error

# Few distinct values make ties, which are what rank correlations get wrong.
tied = st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 5)), min_size=3, max_size=40)
spread = st.lists(
    st.tuples(st.floats(-1, 1, width=32), st.floats(0, 5, width=32)), min_size=3, max_size=40
)


@given(st.one_of(tied, spread))
def test_correlations_equal_scipy(points: list[tuple[float, float]]) -> None:
    x, y = np.array(points, dtype=float).T
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert spearman(x, y) == 0.0
        assert pearson(x, y) == 0.0
        return
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-9)
    # scipy itself loses digits (and says so) where the spread is tiny beside the mean.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = stats.pearsonr(x, y).statistic
    if min(np.ptp(x), np.ptp(y)) > 1e-3:
        assert pearson(x, y) == pytest.approx(expected, abs=1e-6)


def test_spearman_with_ties_by_hand() -> None:
    # Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: covariance 4.5, variances 4.5 and 5.
    assert spearman([0.1, 0.5, 0.5, 0.9], [0, 1, 2, 3]) == pytest.approx(4.5 / np.sqrt(4.5 * 5))


def test_not_a_number_counts_as_zero() -> None:
    gold = [0.0, 1.0, 2.0, 3.0]
    assert spearman([-0.5, np.nan, 0.5, np.inf], gold) == spearman([-0.5, 0.0, 0.5, 0.0], gold)


@pytest.mark.parametrize("constant", [[0.1] * 7, [0.0] * 7, [np.nan] * 7])
def test_constant_similarities_score_zero(constant: list[float]) -> None:
    assert spearman(constant, range(7)) == 0.0
    assert pearson(constant, range(7)) == 0.0


def test_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match="3 similarities for 2 gold"):
        spearman([1, 2, 3], [1, 2])


def test_tensors_serve_as_arrays() -> None:
    import torch

    x = torch.tensor([0.1, 0.4, 0.2], requires_grad=True)
    assert spearman(x, torch.tensor([1, 3, 2])) == pytest.approx(1.0)


def test_aggregations_by_hand() -> None:
    similarities = [np.array([0.8, 0.9]), np.array([0.1, 0.3, 0.2])]
    gold = [np.array([1.0, 2.0]), np.array([5.0, 4.0, 3.0])]
    # Without ties rho = 1 - 6 sum d^2 / (n (n^2 - 1)), d = difference of ranks.
    second = 1 - 6 * (2**2 + 1**2 + 1**2) / (3 * 8)  # ranks 1 3 2 against 3 2 1
    together = 1 - 6 * (3**2 + 3**2 + 4**2 + 1**2 + 1**2) / (
        5 * 24
    )  # ranks 4 5 1 3 2 against 1 2 5 4 3
    assert aggregate(spearman, similarities, gold, "mean") == pytest.approx((1 + second) / 2)
    assert aggregate(spearman, similarities, gold, "wmean") == pytest.approx(
        (2 * 1 + 3 * second) / 5
    )
    assert aggregate(spearman, similarities, gold, "wmean") == pytest.approx(
        (2 * 1 + 3 * second) / 5
    )
    assert aggregate(spearman, similarities, gold, "all") == pytest.approx(together)


def test_unknown_aggregation_is_refused() -> None:
    with raises_input_error(key="aggregation"):
        aggregate(spearman, [[1, 2]], [[1, 2]], "median")


def test_cosine_is_bounded_and_zero_for_zero_vectors() -> None:
    u = np.array([[3, 4], [0, 0], [1e30, 0], [1e-30, 1e-30]], dtype=np.float32)
    v = np.array([[4, 3], [1, 1], [-1e30, 0], [1, 1]], dtype=np.float32)
    np.testing.assert_allclose(cosine(u, v), [24 / 25, 0, -1, 1], rtol=1e-6)


def test_identical_pairs_are_ties() -> None:
    x = np.random.default_rng(0).standard_normal((500, 96)).astype(np.float32)
    assert set(cosine(x, x)) == {np.float32(1)}


def pair_set(subsets: dict[str, list[tuple[str, str, float]]], split: str = "test") -> PairSet:
    """A small pair set with rows (sentence 1, sentence 2, gold)."""
    return PairSet(
        task="STS12",
        source="senteval",
        split=split,
        subsets=tuple(
            Subset(
                name=name,
                sentences1=[r[0] for r in rows],
                sentences2=[r[1] for r in rows],
                gold=np.array([r[2] for r in rows]),
            )
            for name, rows in subsets.items()
        ),
        sha256=hashlib.sha256(repr(subsets).encode()).hexdigest(),
        preparation="as written",
    )


# Sentences are angles in degrees on a circle: the cosine of a pair is known.
ANGLES = {
    "near": [("0", "10", 4.0), ("0", "60", 3.0), ("90", "180", 1.0)],
    "far": [("0", "120", 5.0), ("10", "190", 0.0)],
}


def on_circle(texts: Sequence[str]) -> np.ndarray[Any, Any]:
    angle = np.radians([float(t) for t in texts])
    return np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)


def test_task_gives_six_numbers_with_protocols_and_pairs() -> None:
    task = STSTask.of(pair_set(ANGLES))
    result = task.evaluate(on_circle, pooling="mean")
    cosines = np.cos(np.radians([10, 60, 90, 120, 180]))
    gold = np.array([4, 3, 1, 5, 0])
    values = {(s.metric, s.aggregation): s.value for s in result.scores}
    r_near = stats.pearsonr(cosines[:3], gold[:3]).statistic
    assert values == pytest.approx(
        {
            ("spearman", "all"): stats.spearmanr(cosines, gold).statistic,
            ("spearman", "mean"): 1.0,
            ("spearman", "wmean"): 1.0,
            ("pearson", "all"): stats.pearsonr(cosines, gold).statistic,
            ("pearson", "mean"): (r_near + 1) / 2,
            ("pearson", "wmean"): (3 * r_near + 2 * 1) / 5,
        },
        abs=1e-6,
    )
    assert {s.n for s in result.scores} == {5}
    assert len({s.protocol for s in result.scores}) == 6
    assert {s.protocol for s in result.scores} | {s.comparable for s in result.scores} == set(
        result.protocols
    )
    assert all(protocol_id(d) == i for i, d in result.protocols.items())
    assert result.pairs is not None
    columns = ["task", "source", "split", "subset", "pair", "gold", "score", "text1", "text2"]
    assert list(result.pairs.columns) == columns
    assert list(result.pairs["subset"]) == ["near"] * 3 + ["far"] * 2
    assert list(result.pairs["pair"]) == [0, 1, 2, 0, 1]
    np.testing.assert_allclose(result.pairs["score"], cosines, atol=1e-6)
    # The stored pairs give the stored score exactly: no re-encoding is needed to compare two runs.
    assert (
        spearman(result.pairs["score"].to_numpy(), result.pairs["gold"].to_numpy())
        == values["spearman", "all"]
    )


def test_one_subset_has_no_other_aggregation() -> None:
    result = STSTask.of(pair_set({"test": ANGLES["near"]})).evaluate(on_circle, pooling="mean")
    assert [(s.metric, s.aggregation) for s in result.scores] == [
        ("spearman", "all"),
        ("pearson", "all"),
    ]


def test_pooling_changes_the_protocol_but_stays_comparable() -> None:
    task = STSTask.of(pair_set(ANGLES))
    mean, cls = (task.evaluate(on_circle, pooling=p).scores[0] for p in ("mean", "cls"))
    assert mean.protocol != cls.protocol
    assert mean.comparable == cls.comparable


def test_other_data_is_not_comparable() -> None:
    other = {**ANGLES, "far": [("0", "120", 5.0), ("10", "191", 0.0)]}
    ids = [
        STSTask.of(pair_set(d)).evaluate(on_circle, pooling="mean").scores[0].comparable
        for d in (ANGLES, other)
    ]
    assert ids[0] != ids[1]


def test_nan_vectors_and_constant_scores_are_reported() -> None:
    def broken(texts: Sequence[str]) -> np.ndarray[Any, Any]:
        return np.full((len(texts), 2), np.nan, dtype=np.float32)

    result = STSTask.of(pair_set(ANGLES)).evaluate(broken, pooling="mean")
    assert {s.value for s in result.scores} == {0.0}
    assert any("NaN or infinity, replaced by 0: 10" in note for note in result.notes)
    assert any("near" in note and "undefined" in note for note in result.notes)


def test_dev_set_encodes_each_sentence_once_and_equals_the_task() -> None:
    pairs = pair_set(ANGLES, split="dev")
    calls: list[list[str]] = []

    def encode(texts: list[str]) -> np.ndarray[Any, Any]:
        calls.append(list(texts))
        return on_circle(texts)

    dev = DevSet(pairs)
    expected = STSTask.of(pairs).evaluate(on_circle, pooling="mean").scores[0].value
    assert dev.score(encode) == pytest.approx(expected, abs=1e-12)
    assert calls == [dev.texts()]
    assert sorted(calls[0]) == ["0", "10", "120", "180", "190", "60", "90"]
    assert (dev.name, dev.sha256, len(dev)) == ("STS12 dev", pairs.sha256, 5)


@pytest.mark.parametrize("change", [list.clear, list.reverse, list.sort])
def test_an_encode_that_changes_its_input_changes_nothing_else(
    change: Callable[[list[str]], None],
) -> None:
    def encode(texts: list[str]) -> np.ndarray[Any, Any]:
        vectors = on_circle(texts)
        change(texts)
        return vectors

    dev = DevSet(pair_set(ANGLES, split="dev"))
    expected = dev.score(on_circle)
    assert [dev.score(encode), dev.score(encode)] == [expected, expected]
    table = encode_once(encode, ["0", "90", "0"])
    assert np.allclose(table(["90", "0"]), on_circle(["90", "0"]))


def test_a_dev_set_that_was_cut_says_so() -> None:
    """STS-B has 1,500 dev pairs in SentEval's files; other sources have no count of their own."""
    cut = PairSet(
        "STS-B",
        "senteval",
        "dev",
        (Subset("dev", ["a", "b"], ["c", "d"], np.array([1.0, 2.0])),),
        "",
        "",
    )
    (note,) = DevSet(cut).notes
    assert note.startswith("dev set STS-B dev: examples: 2 in dev (not 1,500); files cut short")
    assert DevSet(dataclasses.replace(cut, source="mteb")).notes == []
    whole = Subset("dev", ["a"] * 1500, ["b"] * 1500, np.arange(1500.0))
    assert DevSet(dataclasses.replace(cut, subsets=(whole,))).notes == []


def test_dev_set_statistics_show_collapse() -> None:
    dev = DevSet(pair_set(ANGLES, split="dev"))
    rng = np.random.default_rng(0)
    spread = dev.evaluate(lambda texts: rng.standard_normal((len(texts), 64)))
    point = dev.evaluate(
        lambda texts: np.ones((len(texts), 64), dtype=np.float32) * np.float32(0.1)
    )
    assert spread["std"] == pytest.approx(1.0, abs=0.15)
    assert spread["effective_rank"] > 5
    same = {"spearman": 0.0, "std": pytest.approx(0.0, abs=1e-9), "effective_rank": 0.0}
    assert point == {**same, "mean_cosine": pytest.approx(1.0)}


def test_dev_set_needs_different_gold_scores() -> None:
    with raises_input_error(key="STS12 dev"):
        DevSet(pair_set({"d": [("a", "b", 2.0), ("c", "d", 2.0)]}, split="dev"))


def test_wrong_number_of_vectors_is_one_clear_error() -> None:
    with pytest.raises(
        RunError, match=r"encode returned shape \(3, 2\) for 7 texts; expected \(7, d\)"
    ):
        DevSet(pair_set(ANGLES, split="dev")).score(lambda texts: np.ones((3, 2)))
