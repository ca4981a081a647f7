"""RankCSE: its three terms against their formulas, the teachers' part, and what a row is told to
have known.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon

from harness.sources import Corpus, load_corpus
from harness.training import Batch
from methods.rankcse import RankCSE, list_mle, list_net, ranking_consistency
from tests.support.errors import raises_input_error
from tests.support.kill_and_resume import weights_whole_and_resumed

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return load_corpus("embedded:sentences", limit=16)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max())
    return e / e.sum()


@pytest.mark.parametrize("n", [1, 2, 5])
def test_consistency_is_scipys_divergence_of_rows_and_columns(n: int) -> None:
    scores = 3 * np.random.default_rng(n).normal(size=(n, n))
    rows = [jensenshannon(softmax(scores[i]), softmax(scores[:, i])) ** 2 for i in range(n)]
    assert float(ranking_consistency(torch.from_numpy(scores))) == pytest.approx(
        np.mean(rows), abs=1e-12
    )
    symmetric = torch.from_numpy(scores + scores.T)
    assert float(ranking_consistency(symmetric)) == pytest.approx(0, abs=1e-12)


def test_list_net_is_the_cross_entropy_over_the_others() -> None:
    rng = np.random.default_rng(0)
    s, t = rng.normal(size=(4, 4)), rng.normal(size=(4, 4))
    total = 0.0
    for i in range(4):
        others = [j for j in range(4) if j != i]
        total -= float(softmax(t[i, others]) @ np.log(softmax(s[i, others])))
    assert float(list_net(torch.from_numpy(s), torch.from_numpy(t))) == pytest.approx(total / 4)
    assert float(list_net(torch.ones(1, 1), torch.ones(1, 1))) == 0


def test_list_mle_is_the_likelihood_of_the_teachers_order() -> None:
    rng = np.random.default_rng(1)
    s, t = rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
    total = 0.0
    for i in range(3):
        order = sorted(range(3), key=lambda j, i=i: -t[i, j])
        for r in range(3):
            total -= math.log(math.exp(s[i, order[r]]) / sum(math.exp(s[i, k]) for k in order[r:]))
    assert float(list_mle(torch.from_numpy(s), torch.from_numpy(t))) == pytest.approx(total / 3)
    # Of all orders of one row, the likelihoods sum to one.
    orders = [
        torch.tensor([[-o.index(j) for j in range(3)]]).double()
        for o in itertools.permutations(range(3))
    ]
    chance = sum(math.exp(-float(list_mle(torch.from_numpy(s[:1]), order))) for order in orders)
    assert chance == pytest.approx(1)


def set_up(corpus: Corpus, **values: Any) -> tuple[RankCSE, Any, Any, Batch]:
    torch.manual_seed(0)
    method = RankCSE(RankCSE.configure({"train_length": 12, **values}))
    encoder = method.load_base().eval()
    return (
        method,
        encoder,
        method.heads(encoder).eval(),
        Batch(list(corpus[:5]), np.random.default_rng(0), 0),
    )


def test_two_teachers_are_weighted(corpus: Corpus) -> None:
    both = ("embedded:mini-bert",) * 2
    method, _, _, batch = set_up(corpus, teachers=both, teacher_share=0.25)
    rng = np.random.default_rng(0)
    vectors = [rng.normal(size=(5, 3)), rng.normal(size=(5, 4))]

    class Teacher:
        def __init__(self, given: np.ndarray) -> None:
            self.given = given

        def encode(self, texts: list[str], **options: Any) -> torch.Tensor:
            assert texts == batch.texts
            return torch.from_numpy(self.given)

    method._teachers = tuple(Teacher(v) for v in vectors)  # type: ignore[assignment]
    unit = [v / np.linalg.norm(v, axis=1, keepdims=True) for v in vectors]
    expected = 0.25 * unit[0] @ unit[0].T + 0.75 * unit[1] @ unit[1].T
    found = method._teacher_cosines(batch, torch.zeros(5, 5, dtype=torch.float64))
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("distillation", ["listmle", "listnet"])
def test_the_loss_is_the_weighted_sum_of_its_terms(distillation: str, corpus: Corpus) -> None:
    weights = {"consistency_weight": 2.0, "ranking_weight": 0.5}
    method, encoder, heads, batch = set_up(corpus, distillation=distillation, **weights)
    terms = method.loss(encoder, heads, batch)
    z = (
        heads.mlp(encoder(encoder.collate(encoder.tokenize(batch.texts, max_length=12))))
        .detach()
        .double()
    )
    z = z / z.norm(dim=1, keepdim=True)
    t = torch.from_numpy(method._teachers[0].encode(batch.texts)).double()
    t = t / t.norm(dim=1, keepdim=True)
    scores, teacher = z @ z.T / 0.05, t @ t.T
    ranking = (
        list_mle(scores, teacher)
        if distillation == "listmle"
        else list_net(scores, teacher / 0.025)
    )
    assert float(terms["ranking"].detach()) == pytest.approx(0.5 * float(ranking), rel=1e-3)
    assert float(terms["consistency"].detach()) == pytest.approx(
        2 * float(ranking_consistency(scores)), abs=1e-4
    )
    parts = sum(float(terms[name].detach()) for name in ("contrast", "consistency", "ranking"))
    assert float(terms["loss"].detach()) == pytest.approx(parts, rel=1e-6)


def test_a_row_knew_what_its_teachers_knew() -> None:
    for known, row in (
        ("supervised", "supervised"),
        ("untrained", "unsupervised"),
        ("unsupervised", "unsupervised"),
    ):
        assert RankCSE(RankCSE.configure({"teacher_supervision": known})).supervision == row
    assert set(RankCSE(RankCSE.configure({})).inputs) == {"teacher 1"}


def test_training_resumes_bit_for_bit(corpus: Corpus, tmp_path: Path) -> None:
    values = {"batch_size": 4, "train_length": 8, "learning_rate": 1e-3}
    whole, resumed = weights_whole_and_resumed(RankCSE, values, corpus, tmp_path)
    assert all(torch.equal(tensor, resumed[name]) for name, tensor in whole.items())


@pytest.mark.parametrize(
    "values",
    [
        {"teachers": []},
        {"teachers": ["a", "b", "c"]},
        {"teacher_pooling": "middle"},
        {"distillation": "pairs"},
    ],
)
def test_bad_settings_are_refused_in_one_line(values: dict[str, Any]) -> None:
    with raises_input_error(key=next(iter(values))):
        RankCSE.configure(values)
