"""Contrastive Tension: both losses, which sentences meet, TensorFlow's RMSprop, and which copy is
kept.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from harness.method import FitContext
from harness.sources import Corpus, load_corpus
from harness.training import Batch
from methods import contrastive_tension
from methods.contrastive_tension import (
    ContrastiveTension,
    Twin,
    pairs_of,
    tension,
    tension_in_batch,
)
from tests.support.bases import narrow_bert
from tests.support.errors import raises_input_error

SMALL = {"batch_size": 6, "negatives": 2, "train_length": 12, "learning_rate": 1e-4}
TEXTS = [f"sentence number {i}" for i in range(40)]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return load_corpus("embedded:sentences", limit=24)


def make(**values: Any) -> ContrastiveTension:
    config = ContrastiveTension.configure({**SMALL, **values})
    return ContrastiveTension(config, base_model=narrow_bert())


def np_tension(u: np.ndarray, v: np.ndarray, y: np.ndarray, reduction: str) -> float:
    losses = []
    for i in range(len(u)):
        p = 1 / (1 + math.exp(-float(u[i] @ v[i])))
        losses.append(-(y[i] * math.log(p) + (1 - y[i]) * math.log(1 - p)))
    return sum(losses) if reduction == "sum" else sum(losses) / len(losses)


def np_in_batch(u: np.ndarray, v: np.ndarray, g: float, similarity: str) -> float:
    n = len(u)
    s = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            s[i, j] = u[i] @ v[j] * math.exp(g)
            if similarity == "cosine":
                s[i, j] /= math.sqrt(u[i] @ u[i]) * math.sqrt(v[j] @ v[j])
    rows = sum(math.log(sum(np.exp(s[i] - s[i, i]))) for i in range(n)) / n
    columns = sum(math.log(sum(np.exp(s[:, j] - s[j, j]))) for j in range(n)) / n
    return (rows + columns) / 2


# ---------------------------------------------------------------- losses


@pytest.mark.parametrize("n", [1, 2, 7])
def test_losses_equal_the_formulas(n: int) -> None:
    rng = np.random.default_rng(n)
    for same_rows in (False, True):
        u, v = rng.normal(size=(2, n, 4))
        if same_rows:
            u[:], v[:] = u[0], u[0]
        y = (rng.random(n) < 0.4).astype(float)
        tu, tv, ty = (torch.from_numpy(x) for x in (u, v, y))
        for reduction in ("mean", "sum"):
            expected = np_tension(u, v, y, reduction)
            assert float(tension(tu, tv, ty, reduction=reduction)) == pytest.approx(
                expected, rel=1e-9
            )
        for similarity in ("cosine", "dot"):
            ours = tension_in_batch(
                tu, tv, torch.tensor(0.7, dtype=torch.float64), similarity=similarity
            )
            assert float(ours) == pytest.approx(
                np_in_batch(u, v, 0.7, similarity), rel=1e-9, abs=1e-12
            )


def test_losses_by_hand() -> None:
    e = torch.eye(2, dtype=torch.float64)
    # dot products 1 (alike) and 0 (different): log(1 + 1/e) and log 2
    u, v = e, torch.stack([e[0], e[0]])
    one = math.log(1 + math.exp(-1))
    same = torch.tensor([1.0, 0.0])
    assert float(tension(u, v, same)) == pytest.approx((one + math.log(2)) / 2)
    assert float(tension(u, v, same, reduction="sum")) == pytest.approx(one + math.log(2))
    # S = 2 I: log(e^2 + 1) - 2 in every row and column
    in_batch = tension_in_batch(
        e, e, torch.tensor(math.log(2), dtype=torch.float64), similarity="dot"
    )
    assert float(in_batch) == pytest.approx(math.log(math.exp(2) + 1) - 2)
    # a dot product of 10^4 neither overflows nor loses its gradient
    big = (100 * e).float().requires_grad_()
    far = tension(big, big, torch.zeros(2))
    far.backward()
    assert float(far.detach()) == 10_000
    assert big.grad is not None
    assert bool(big.grad.isfinite().all())


def test_gradients() -> None:
    torch.manual_seed(0)
    u, v = (torch.randn(4, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    g = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    y = torch.tensor([1.0, 0.0, 0.0, 1.0], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda u, v: tension(u, v, y), (u, v))
    for similarity in ("cosine", "dot"):
        assert torch.autograd.gradcheck(
            lambda u, v, g, s=similarity: tension_in_batch(u, v, g, similarity=s), (u, v, g)
        )


# ---------------------------------------------------------------- which sentences meet


@pytest.mark.parametrize(
    ("count", "negatives", "alike", "different"),
    [(30, 7, 2, 14), (2, 7, 1, 0), (3, 7, 1, 1), (16, 7, 1, 7), (9, 1, 3, 3)],
)
def test_pairs(count: int, negatives: int, alike: int, different: int) -> None:
    left, right = pairs_of(TEXTS[:count], negatives, np.random.default_rng(0))
    same = [a == b for a, b in zip(left, right, strict=True)]
    assert (same.count(True), same.count(False)) == (alike, different)
    used = left + [b for a, b in zip(left, right, strict=True) if a != b]
    assert len(set(used)) == len(used), (
        "every sentence once, and a positive's sentence in no negative"
    )


def test_positives_are_drawn_from_the_whole_batch() -> None:
    """Batches come sorted by length; the shortest sentences are not the positives every time."""
    first = {pairs_of(TEXTS[:30], 7, np.random.default_rng(seed))[0][0] for seed in range(60)}
    assert len(first) > 20


def labels(texts: list[str], monkeypatch: pytest.MonkeyPatch, **values: Any) -> list[float]:
    seen: list[torch.Tensor] = []
    monkeypatch.setattr(
        contrastive_tension, "tension", lambda u, v, same, reduction: seen.append(same) or u.sum()
    )
    method = make(**values)
    encoder = method.load_base()
    method.loss(encoder, method.heads(encoder), Batch(texts, np.random.default_rng(1), 0))
    return seen[0].tolist()


def test_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    assert labels(TEXTS[:10], monkeypatch) == [1, 1, 0, 0, 0, 0]
    assert labels(["the same text"] * 10, monkeypatch) == [1] * 6, "equal texts are no negatives"
    assert labels([*TEXTS[:5], *"abcdef"], monkeypatch, min_characters=10) == [1, 0, 0]
    assert labels(["a", "b", "c"], monkeypatch, min_characters=10) == [1, 0], (
        "a batch of short ones only is kept whole"
    )


def test_loss_of_identical_sentences_at_the_start() -> None:
    """Both copies are equal and nothing is dropped, so u = v: softplus(-|u|^2), which is 0 for
    vectors this long.
    """
    method = make()
    encoder = method.load_base()
    heads = method.heads(encoder).train()
    batch = Batch(["The same text."] * 4, np.random.default_rng(1), 0)
    norm = float(np.square(np.asarray(encoder.encode("The same text."), dtype=np.float64)).sum())
    value = float(method.loss(encoder.train(), heads, batch)["loss"].detach())
    assert value == pytest.approx(math.log1p(math.exp(-norm)), abs=1e-5)


def test_dropout_is_off_unless_asked_for() -> None:
    for dropout in (False, True):
        method = make(dropout=dropout, objective="in_batch")
        encoder = method.load_base().train()
        heads = method.heads(encoder).train()
        batch = Batch(TEXTS[:6], np.random.default_rng(1), 0)
        a, b = (float(method.loss(encoder, heads, batch)["loss"].detach()) for _ in range(2))
        assert (a == b) is not dropout


# ---------------------------------------------------------------- optimiser, schedule, copies


def test_rmsprop_is_tensorflow_s() -> None:
    """v = 0.9 v + 0.1 g^2; p -= lr g / (sqrt(v) + 1e-7), eps outside of the root."""
    p = torch.nn.Parameter(torch.tensor([[1.0, -2.0]], dtype=torch.float64))
    optimizer = make(learning_rate=0.01).optimizer([{"params": [p], "weight_decay": 0.0}])
    expected, v = np.array([1.0, -2.0]), np.zeros(2)
    for g in (np.array([0.5, 1e-7]), np.array([-0.25, 3e-7]), np.array([2.0, 0.0])):
        p.grad = torch.from_numpy(g)[None]
        optimizer.step()
        v = 0.9 * v + 0.1 * g**2
        expected = expected - 0.01 * g / (np.sqrt(v) + 1e-7)
        assert p.detach().numpy()[0] == pytest.approx(expected, rel=1e-12)
    torchs = make(optimizer="rmsprop_torch").optimizer([{"params": [p]}]).param_groups[0]
    assert (torchs["alpha"], torchs["eps"]) == (0.99, 1e-8)
    assert isinstance(make(optimizer="adamw").optimizer([{"params": [p]}]), torch.optim.AdamW)


def test_schedule_falls_where_the_official_one_does() -> None:
    method = make()
    rates = [
        1e-5 * method.schedule(step, 5000)
        for step in (0, 500, 501, 1000, 1001, 1500, 1501, 2000, 2001, 4999)
    ]
    assert rates == pytest.approx([1e-5, 1e-5, 8e-6, 8e-6, 6e-6, 6e-6, 4e-6, 4e-6, 2e-6, 2e-6])
    assert {make(decay="constant").schedule(step, 10) for step in range(10)} == {1.0}
    assert make(decay="linear", warmup=0.5).schedule(5, 10) == 1.0
    # WarmupLinear of sentence-transformers, with no warm-up as its example has it: from the peak to
    # 0
    assert [make(decay="linear").schedule(step, 4) for step in range(4)] == [1, 0.75, 0.5, 0.25]
    assert [make(warmup_steps=2).schedule(step, 40) for step in range(3)] == [0, 0.5, 1]


class Judge:
    """A dev set that prefers the encoder it sees first (or second) of each pair."""

    def __init__(self, favourite: int) -> None:
        self.favourite, self.calls = favourite, 0

    def evaluate(self, encode: Any) -> dict[str, float]:
        self.calls += 1
        good = (self.calls - 1) % 2 == self.favourite
        return {
            "spearman": (0.5 if good else 0.1) + self.calls / 1000,
            "std": 1.0,
            "effective_rank": 9.0,
        }


def test_the_better_copy_is_kept(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    copies: list[Any] = []
    build = ContrastiveTension.heads

    def remember(self: ContrastiveTension, encoder: Any) -> Any:
        copies.append(build(self, encoder))
        return copies[-1]

    monkeypatch.setattr(ContrastiveTension, "heads", remember)
    kept = []
    for favourite in (0, 1):
        judge: Any = Judge(favourite)
        method = make(eval_every=2).fit(
            corpus, FitContext(precision="fp32", max_steps=2, dev=judge)
        )
        kept.append(method.encoder.state_dict())
    first = copies[1].first.state_dict()
    assert all(torch.equal(kept[1][name], first[name]) for name in first)
    assert not all(torch.equal(kept[0][name], first[name]) for name in first), (
        "the copies have parted"
    )
    start = make().load_base().state_dict()
    assert not all(torch.equal(kept[0][name], start[name]) for name in start)
    assert not all(torch.equal(first[name], start[name]) for name in start)
    encoder = make().load_base()
    assert make(keep="second").candidates(encoder, copies[0]) == (encoder,)


def test_the_in_batch_factor_is_learned(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    scale = Twin(make().load_base(), 20.0, learned=True).log_scale
    assert float(scale.detach().exp()) == pytest.approx(20)
    method = make(objective="in_batch", similarity="cosine", scale=20.0)
    encoder = method.load_base()
    heads: Any = method.heads(encoder)
    method.loss(encoder, heads, Batch(TEXTS[:6], np.random.default_rng(1), 0))["loss"].backward()
    assert float(heads.log_scale.grad.abs()) > 0
    assert all(
        any(p.grad is not None for p in copy.parameters()) for copy in (encoder, heads.first)
    )
    assert not make().heads(encoder).log_scale.requires_grad


@pytest.mark.parametrize("objective", ["pairs", "in_batch"])
def test_a_killed_run_ends_with_the_weights_of_a_whole_one(
    objective: str, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = FitContext(seed=5, precision="fp32", max_steps=6)

    def fit(folder: Path | None) -> list[torch.Tensor]:
        context.folder = folder
        method = make(objective=objective, epochs=2, dropout=objective == "in_batch")
        return list(method.fit(corpus, context).encoder.state_dict().values())

    whole = fit(None)
    steps: list[int] = []
    loss = ContrastiveTension.loss

    def killed(self: ContrastiveTension, encoder: Any, heads: Any, batch: Batch) -> Any:
        steps.append(batch.step)
        context.checkpoint_seconds = 0.0 if batch.step == 2 else 1e9
        if steps == [0, 1, 2, 3]:
            raise KeyboardInterrupt
        return loss(self, encoder, heads, batch)

    monkeypatch.setattr(ContrastiveTension, "loss", killed)
    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path)
    again = fit(tmp_path)
    assert steps == [0, 1, 2, 3, 3, 4, 5], "the second run goes on where the first was killed"
    assert all(torch.equal(a, b) for a, b in zip(whole, again, strict=True))


@pytest.mark.parametrize(
    "values",
    [{"batch_size": 2}, {"negatives": 0}, {"scale": 0}, {"similarity": "cos"}, {"keep": "first"}],
)
def test_bad_settings_are_one_line(values: dict[str, Any]) -> None:
    with raises_input_error(file='method "contrastive_tension"'):
        make(**values)
