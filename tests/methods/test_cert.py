"""CERT: InfoNCE against its formula, the queue against a deque, and the momentum encoder's
arithmetic.
"""

from __future__ import annotations

import math
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from harness.method import FitContext
from harness.sources import Corpus, load_corpus
from harness.training import Batch
from methods.cert import CERT, MoCo, Queue, follow, info_nce
from tests.support.bases import narrow_bert
from tests.support.errors import raises_input_error

SMALL = {
    "batch_size": 4,
    "train_length": 12,
    "learning_rate": 1e-3,
    "optimizer": "adamw",
    "epochs": 1,
    "queue_size": 10,
    "momentum": 0.9,
    "head_width": 8,
}


@pytest.fixture(scope="module")
def pairs() -> Corpus:
    return load_corpus("embedded:pairs", kind="pairs", limit=24)


def make(**values: Any) -> CERT:
    return CERT(CERT.configure({**SMALL, **values}), base_model=narrow_bert())


def moco(method: CERT, encoder: Any) -> MoCo:
    heads = method.heads(encoder)
    assert isinstance(heads, MoCo)
    return heads


# ---------------------------------------------------------------- loss


def np_info_nce(q: np.ndarray, k: np.ndarray, queue: np.ndarray, t: float) -> float:
    total = 0.0
    for i in range(len(q)):
        qi, ki = q[i] / math.sqrt(q[i] @ q[i]), k[i] / math.sqrt(k[i] @ k[i])
        own = math.exp(float(qi @ ki) / t)
        total -= math.log(own / (own + sum(math.exp(float(qi @ m) / t) for m in queue)))
    return total / len(q)


@pytest.mark.parametrize(("n", "size"), [(1, 1), (1, 9), (2, 3), (6, 20)])
def test_loss_equals_the_formula(n: int, size: int) -> None:
    rng = np.random.default_rng(n)
    queue = rng.normal(size=(size, 5))
    queue /= np.linalg.norm(queue, axis=1, keepdims=True)
    for same_rows in (False, True):
        q, k = rng.normal(size=(2, n, 5))
        if same_rows:
            q[:], k[:] = q[0], q[0]
        tensors = (torch.from_numpy(x) for x in (q, k, queue))
        expected = np_info_nce(q, k, queue, 0.07)
        assert float(info_nce(*tensors, temperature=0.07)) == pytest.approx(expected, rel=1e-9)


def test_loss_by_hand() -> None:
    e = torch.eye(3, dtype=torch.float64)
    # key equal to the query, one orthogonal negative: -log(e / (e + 1)); with two, and half the
    # temperature: e^2 + 2
    assert float(info_nce(5 * e[:1], e[:1], e[1:2], temperature=1.0)) == pytest.approx(
        math.log(1 + math.exp(-1))
    )
    assert float(info_nce(e[:1], e[:1], e[1:], temperature=0.5)) == pytest.approx(
        math.log(1 + 2 * math.exp(-2))
    )
    # a queue that is full of the key itself: one of four equal terms
    assert float(info_nce(e[:1], e[:1], e[[0, 0, 0]], temperature=0.01)) == pytest.approx(
        math.log(4)
    )


def test_gradients() -> None:
    torch.manual_seed(0)
    q, k = (torch.randn(3, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    queue = torch.nn.functional.normalize(torch.randn(5, 4, dtype=torch.float64), dim=-1)
    assert torch.autograd.gradcheck(lambda q, k: info_nce(q, k, queue, temperature=0.3), (q, k))
    assert (
        info_nce(q.bfloat16(), k.bfloat16(), queue.bfloat16(), temperature=0.07).dtype
        == torch.float32
    )


# ---------------------------------------------------------------- queue and momentum


def test_queue_by_hand() -> None:
    queue = Queue(5, 1)
    keys = torch.arange(1.0, 20.0)[:, None]
    queue.push(keys[:3])
    assert queue.keys[:3].flatten().tolist() == [1, 2, 3]
    queue.push(keys[3:6])  # 4 and 5 behind, 6 over the oldest
    assert queue.keys.flatten().tolist() == [6, 2, 3, 4, 5]
    assert int(queue.place) == 1
    queue.push(keys[6:13])  # seven keys into five places: the last five
    assert sorted(queue.keys.flatten().tolist()) == [9, 10, 11, 12, 13]


@pytest.mark.parametrize("size", [1, 4, 7])
def test_queue_holds_the_last_keys_whatever_the_batch_sizes(size: int) -> None:
    rng = np.random.default_rng(size)
    queue, expected, number = Queue(size, 2), deque(maxlen=size), 0.0
    for step in range(40):
        rows = [(number + i, -number - i) for i in range(int(rng.integers(1, 10)))]
        number += len(rows)
        queue.push(torch.tensor(rows))
        expected.extend(rows)
        if len(expected) == size and step % 3 == 0:
            ours = torch.roll(queue.keys, -int(queue.place), 0).tolist()  # the oldest first
            assert sorted(map(tuple, ours)) == sorted(expected)
            assert tuple(ours[0]) == expected[0] or len(rows) > size


def test_queue_starts_with_unit_vectors_and_is_part_of_the_state() -> None:
    queue = Queue(50, 8)
    assert queue.keys.norm(dim=1).numpy() == pytest.approx(np.ones(50), rel=1e-5)
    assert set(queue.state_dict()) == {"keys", "place"}
    assert not list(queue.parameters())


def test_momentum_by_hand() -> None:
    slow, fast = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
    for module, value in ((slow, 1.0), (fast, 2.0)):
        torch.nn.init.constant_(module.weight, value)
        torch.nn.init.constant_(module.bias, -value)
    follow(slow, fast, 0.9)
    assert float(slow.weight.detach()) == pytest.approx(1.1)
    follow(slow, fast, 0.9)  # 0.9 * 1.1 + 0.1 * 2
    assert float(slow.weight.detach()) == pytest.approx(1.19)
    assert float(slow.bias.detach()) == pytest.approx(-1.19)
    follow(slow, fast, 1.0)
    assert float(slow.weight.detach()) == pytest.approx(1.19)
    follow(slow, fast, 0.0)
    assert float(slow.weight.detach()) == 2.0


def project(vectors: Any, head: Any) -> np.ndarray:
    """Linear-ReLU-Linear in float64."""
    first, second = head[0], head[2]
    x = np.asarray(vectors, dtype=np.float64) @ first.weight.detach().double().numpy().T
    x = np.maximum(x + first.bias.detach().double().numpy(), 0)
    return x @ second.weight.detach().double().numpy().T + second.bias.detach().double().numpy()


def test_one_update_of_the_whole(pairs: Corpus) -> None:
    """Keys are the paraphrases' vectors before the update; they enter the queue after it, and the
    key model follows.
    """
    method = make()
    torch.manual_seed(0)
    encoder = method.load_base().eval()
    heads = moco(method, encoder).eval()
    assert all(
        torch.equal(a, b) for a, b in zip(heads.key.parameters(), encoder.parameters(), strict=True)
    )
    assert all(
        torch.equal(a, b)
        for a, b in zip(heads.key_head.parameters(), heads.head.parameters(), strict=True)
    )
    items = list(pairs[:4])
    before = heads.queue.keys.clone()
    terms = method.loss(encoder, heads, Batch(items, np.random.default_rng(0), 0))
    assert torch.equal(heads.queue.keys, before)
    terms["loss"].backward()
    assert all(p.grad is None for p in (*heads.key.parameters(), *heads.key_head.parameters()))
    assert all(p.grad is not None for p in heads.head.parameters())

    encoder.max_length = heads.key.max_length = SMALL["train_length"]
    q = project(encoder.encode([p.anchor for p in items]), heads.head)
    k = project(heads.key.encode([p.positive for p in items]), heads.key_head)
    expected = np_info_nce(q, k, before.double().numpy(), 0.07)
    assert float(terms["loss"].detach()) == pytest.approx(expected, rel=1e-4)

    old = [p.detach().clone() for p in heads.key.parameters()]
    with torch.no_grad():
        for p in encoder.parameters():
            p += 0.5
    method.after_update(encoder, heads)
    unit = k / np.linalg.norm(k, axis=1, keepdims=True)
    assert heads.queue.keys[:4].numpy() == pytest.approx(unit, abs=1e-4)
    assert torch.equal(heads.queue.keys[4:], before[4:])
    for p, was in zip(heads.key.parameters(), old, strict=True):
        assert torch.allclose(p, was + 0.05, atol=1e-6)


def test_dropout_lies_between_the_vector_and_both_heads(pairs: Corpus) -> None:
    """head(drop(pooled)), as in BertForSequenceClassification: the query's units are drawn first,
    then the key's.
    """
    method = make(head_dropout=0.4)
    torch.manual_seed(0)
    encoder = method.load_base().eval()
    heads = moco(method, encoder).eval()
    items = list(pairs[:4])
    torch.manual_seed(7)
    loss = float(
        method.loss(encoder, heads, Batch(items, np.random.default_rng(0), 0))["loss"].detach()
    )

    torch.manual_seed(7)
    kept = [torch.nn.Dropout(0.4)(torch.ones(4, encoder.dimension)).numpy() for _ in range(2)]
    assert np.mean([part == 0 for part in kept]) == pytest.approx(0.4, abs=0.05)
    encoder.max_length = heads.key.max_length = SMALL["train_length"]
    sides = [
        (encoder, heads.head, [p.anchor for p in items]),
        (heads.key, heads.key_head, [p.positive for p in items]),
    ]
    q, k = (
        project(np.asarray(model.encode(texts)) * units, head)
        for (model, head, texts), units in zip(sides, kept, strict=True)
    )
    expected = np_info_nce(q, k, heads.queue.keys.double().numpy(), 0.07)
    assert loss == pytest.approx(expected, rel=1e-4)


# ---------------------------------------------------------------- runs


def test_the_encoder_that_is_kept_without_a_dev_set(pairs: Corpus) -> None:
    start = make().load_base().state_dict()
    context = FitContext(precision="fp32", max_steps=2)
    # a key encoder that keeps all of its weights never moves
    still = make(momentum=1.0, keep="key").fit(pairs, context).encoder.state_dict()
    assert all(torch.equal(still[name], start[name]) for name in start)
    moved = make(momentum=1.0, keep="query").fit(pairs, context).encoder.state_dict()
    assert not all(torch.equal(moved[name], start[name]) for name in start)
    # one that keeps nothing is the query encoder
    both = [
        make(momentum=0.0, keep=keep).fit(pairs, context).encoder.state_dict()
        for keep in ("key", "query")
    ]
    assert all(torch.equal(both[0][name], both[1][name]) for name in start)


def test_a_killed_run_ends_with_the_weights_of_a_whole_one(
    pairs: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = FitContext(seed=5, precision="fp32", max_steps=6)

    def fit(folder: Path | None) -> list[torch.Tensor]:
        context.folder = folder
        return list(make().fit(pairs, context).encoder.state_dict().values())

    whole = fit(None)
    steps: list[int] = []
    loss = CERT.loss

    def killed(self: CERT, encoder: Any, heads: Any, batch: Batch) -> Any:
        steps.append(batch.step)
        context.checkpoint_seconds = 0.0 if batch.step == 2 else 1e9
        if steps == [0, 1, 2, 3]:
            raise KeyboardInterrupt
        return loss(self, encoder, heads, batch)

    monkeypatch.setattr(CERT, "loss", killed)
    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path)
    again = fit(tmp_path)
    assert steps == [0, 1, 2, 3, 3, 4, 5], "the second run goes on where the first was killed"
    assert all(torch.equal(a, b) for a, b in zip(whole, again, strict=True))


def test_schedule_is_half_a_cosine() -> None:
    rates = [make().schedule(step, 100) for step in (0, 25, 50, 75, 99)]
    expected = [(1 + math.cos(math.pi * step / 100)) / 2 for step in (0, 25, 50, 75, 99)]
    assert rates == pytest.approx(expected)
    assert make(warmup=0.1).schedule(5, 100) == 0.5
    assert make(warmup=0.1).schedule(10, 100) == 1.0
    assert make(decay="linear").schedule(25, 100) == 0.75


def test_optimiser_is_the_script_s() -> None:
    group = (
        CERT()
        .optimizer([{"params": [torch.nn.Parameter(torch.zeros(1))], "weight_decay": 1e-5}])
        .param_groups[0]
    )
    assert (group["lr"], group["momentum"], group["weight_decay"]) == (4e-5, 0.9, 1e-5)


@pytest.mark.parametrize(
    "values", [{"temperature": 0}, {"momentum": 1.5}, {"queue_size": 0}, {"batch_size": 1}]
)
def test_bad_settings_are_one_line(values: dict[str, Any]) -> None:
    with raises_input_error(file='method "cert"'):
        make(**values)


def test_sentences_are_refused() -> None:
    with raises_input_error(file='method "cert"'):
        make().fit(load_corpus("embedded:sentences", limit=4))
