"""ESimCSE: the loss with a queue against its formula, what enters the queue and when, and the slow
encoder.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from harness.sources import Corpus, load_corpus
from harness.training import Batch
from methods.esimcse import ESimCSE, nt_xent_queue
from methods.objectives import nt_xent
from tests.support.errors import raises_input_error
from tests.support.kill_and_resume import weights_whole_and_resumed

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return load_corpus("embedded:sentences", limit=16)


def by_hand(a: np.ndarray, p: np.ndarray, queue: np.ndarray, t: float) -> float:
    """Loops over the formula."""
    total = 0.0
    for i in range(len(a)):
        others = [
            np.dot(a[i], x) / np.linalg.norm(a[i]) / np.linalg.norm(x) / t for x in (*p, *queue)
        ]
        total += math.log(sum(math.exp(s) for s in others)) - others[i]
    return total / len(a)


@pytest.mark.parametrize(("n", "m"), [(5, 0), (5, 3), (1, 4), (2, 1)])
def test_equals_the_formula(n: int, m: int) -> None:
    rng = np.random.default_rng(n + m)
    a, p, queue = rng.normal(size=(n, 4)), rng.normal(size=(n, 4)), rng.normal(size=(m, 4))
    for t in (0.05, 1.0):
        value = float(nt_xent_queue(*map(torch.from_numpy, (a, p, queue)), temperature=t))
        assert value == pytest.approx(by_hand(a, p, queue, t), rel=1e-9)


def test_without_a_queue_it_is_simcse_and_the_queue_learns_nothing() -> None:
    a, p, queue = (torch.randn(4, 3, dtype=torch.float64, requires_grad=True) for _ in range(3))
    nothing = torch.empty(0, 3)
    torch.testing.assert_close(
        nt_xent_queue(a, p, nothing, temperature=0.1), nt_xent(a, p, temperature=0.1)
    )
    nt_xent_queue(a, p, queue, temperature=0.1).backward()
    assert queue.grad is None
    assert a.grad is not None


def set_up(corpus: Corpus, **values: Any) -> tuple[ESimCSE, Any, Any, Batch]:
    method = ESimCSE(ESimCSE.configure({"train_length": 12, "queue_size": 6, **values}))
    encoder = method.load_base()
    return (
        method,
        encoder,
        method.heads(encoder),
        Batch(list(corpus[:4]), np.random.default_rng(0), 0),
    )


def test_the_queue_takes_a_batch_after_its_update_and_keeps_the_newest(corpus: Corpus) -> None:
    method, encoder, heads, batch = set_up(corpus)
    encoder.train()
    heads.train()
    method.loss(encoder, heads, batch)
    assert len(heads.queue.newest()) == 0, "a batch is no negative of its own"
    method.after_update(encoder, heads)
    with torch.no_grad():
        slow = heads.mlp(
            heads.slow.eval()(encoder.collate(encoder.tokenize(batch.texts, max_length=12)))
        )
    torch.testing.assert_close(
        heads.queue.newest(), slow.flip(0), msg="slow vectors of the plain text, without dropout"
    )
    method.loss(encoder, heads, Batch(list(corpus[4:8]), np.random.default_rng(0), 1))
    method.after_update(encoder, heads)
    torch.testing.assert_close(heads.queue.newest()[4:], slow.flip(0)[:2])


def test_earlier_sentences_raise_the_loss_and_queue_size_0_has_none(corpus: Corpus) -> None:
    def losses(**values: Any) -> list[float]:
        torch.manual_seed(1)
        method, encoder, heads, _ = set_up(corpus, **values)
        seen = []
        for step in range(2):
            torch.manual_seed(1)
            batch = Batch(list(corpus[:4]), np.random.default_rng(0), step)
            seen.append(float(method.loss(encoder.eval(), heads, batch)["loss"].detach()))
            method.after_update(encoder, heads)
        return seen

    first, second = losses()
    assert second > first
    assert losses(queue_size=0) == [first, first]


def test_the_slow_encoder_follows_by_its_momentum(corpus: Corpus) -> None:
    method, encoder, heads, batch = set_up(corpus, momentum=0.75)
    name, weight = next(iter(encoder.named_parameters()))
    before = weight.detach().clone()
    method.loss(encoder, heads, batch)
    with torch.no_grad():
        weight.add_(1.0)
    method.after_update(encoder, heads)
    torch.testing.assert_close(dict(heads.slow.named_parameters())[name], before + 0.25)
    assert not any(p.requires_grad for p in heads.slow.parameters())


def test_one_view_is_the_sentence_and_the_other_says_pieces_of_it_twice(corpus: Corpus) -> None:
    method, encoder, _, batch = set_up(corpus, train_length=32)
    plain, doubled = method.views(encoder, batch)
    assert plain == encoder.tokenize(batch.texts, max_length=32)
    assert any(len(b) > len(a) for a, b in zip(plain, doubled, strict=True))
    for a, b in zip(plain, doubled, strict=True):
        left = iter(b)
        assert all(token in left for token in a), "order is kept and nothing is lost"
    method, encoder, _, batch = set_up(corpus, repetition=0.0)
    assert method.views(encoder, batch)[0] == method.views(encoder, batch)[1]


def test_words_of_a_template_are_said_once(corpus: Corpus) -> None:
    template = {"pooling": 'prompt:This : "[X]" means [MASK].', "repetition": 1.0}
    method = ESimCSE(ESimCSE.configure({**template, "train_length": 24}))
    encoder = method.load_base()
    batch = Batch(list(corpus[:8]), np.random.default_rng(0), 0)
    plain, repeated = method.views(encoder, batch)
    assert sum(map(len, repeated)) > sum(map(len, plain))
    for row, whole in zip(repeated, plain, strict=True):
        assert row[:4] == whole[:4]  # [CLS] this : "
        assert row[-5:] == whole[-5:]  # " means [MASK] . [SEP]
        assert row.count(encoder.tokenizer.mask_token_id) == 1


def test_training_resumes_bit_for_bit(corpus: Corpus, tmp_path: Path) -> None:
    values = {"batch_size": 4, "train_length": 8, "learning_rate": 1e-3, "queue_size": 6}
    whole, resumed = weights_whole_and_resumed(ESimCSE, values, corpus, tmp_path)
    assert all(torch.equal(tensor, resumed[name]) for name, tensor in whole.items())


@pytest.mark.parametrize(
    "values", [{"momentum": 1.1}, {"queue_size": -1}, {"repetition": 2}, {"similarity": "dot"}]
)
def test_bad_settings_are_refused_in_one_line(values: dict[str, Any]) -> None:
    with raises_input_error(key=next(iter(values))):
        ESimCSE.configure(values)
