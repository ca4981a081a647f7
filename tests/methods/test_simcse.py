"""SimCSE's variants: similarity, head, dropout masks and masked-language modelling, each against
its definition.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import logsumexp

from harness.encoder.masked_lm import IGNORED, mask_tokens
from harness.method import FitContext
from harness.sources import Corpus, load_corpus
from harness.training import Batch
from methods.objectives import nt_xent
from methods.simcse import SimCSE
from tests.support.bases import narrow_bert
from tests.support.errors import raises_input_error
from tests.support.kill_and_resume import weights_whole_and_resumed

pytestmark = pytest.mark.timeout(300)
SMALL = {"batch_size": 6, "train_length": 12, "learning_rate": 1e-4}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return load_corpus("embedded:sentences", limit=24)


def make(**values: Any) -> SimCSE:
    return SimCSE(SimCSE.configure({**SMALL, **values}), base_model=narrow_bert())


def started(method: Any) -> tuple[Any, Any]:
    """Encoder and heads of a method, before the first update."""
    torch.manual_seed(0)
    encoder = method.load_base()
    return encoder, method.heads(encoder)


def batch(corpus: Any, count: int = 6, step: int = 0) -> Batch:
    return Batch(list(corpus[:count]), np.random.default_rng(7 + step), step)


# ---------------------------------------------------------------- the objective in float64


def np_similarity(u: np.ndarray, v: np.ndarray, kind: str) -> float:
    product = sum(float(x) * float(y) for x, y in zip(u, v, strict=True))
    if kind == "dot":
        return product
    lengths = math.sqrt(sum(float(x) ** 2 for x in u)) * math.sqrt(sum(float(y) ** 2 for y in v))
    return product / lengths if lengths else 0.0


def np_simcse(a, p, h, *, t, w, kind):
    """Eq. 4 and the weighted Eq. 5, one term after the other."""
    total = 0.0
    for i in range(len(a)):
        own = np_similarity(a[i], p[i], kind) / t
        terms = [np_similarity(a[i], p[j], kind) / t for j in range(len(p))]
        if h is not None:
            for j in range(len(h)):
                # the paper's alpha multiplies exp(...) of the own negative; the weight is its
                # logarithm
                alpha = math.exp(w) if i == j else 1.0
                terms.append(math.log(alpha) + np_similarity(a[i], h[j], kind) / t)
        total += float(logsumexp(terms)) - own
    return total / len(a)


def cases() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    same = np.repeat(rng.normal(size=(1, 5)), 4, axis=0)
    return {
        "random": rng.normal(size=(3, 6, 5)),
        "N = 1": rng.normal(size=(3, 1, 5)),
        "N = 2": rng.normal(size=(3, 2, 5)),
        "identical rows": np.stack([same, same, same]),
        "a zero row": rng.normal(size=(3, 4, 5)) * np.array([1.0, 0.0, 1.0, 1.0])[:, None],
    }


@pytest.mark.parametrize("case", cases())
@pytest.mark.parametrize("kind", ["cosine", "dot"])
@pytest.mark.parametrize("negatives", [False, True])
@pytest.mark.parametrize("t", [0.001, 0.05, 1.0])
def test_every_variant_equals_numpy(case: str, kind: Any, negatives: bool, t: float) -> None:
    a, p, h = cases()[case]
    for w in (0.0, math.log(0.5), math.log(2.0)) if negatives else (0.0,):
        value = nt_xent(
            torch.from_numpy(a),
            torch.from_numpy(p),
            temperature=t,
            hard_negatives=torch.from_numpy(h) if negatives else None,
            hard_negative_weight=w,
            similarity=kind,
        )
        expected = np_simcse(a, p, h if negatives else None, t=t, w=w, kind=kind)
        assert float(value) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kind", ["cosine", "dot"])
def test_gradients_with_hard_negatives(kind: Any) -> None:
    inputs = [
        torch.from_numpy(x).requires_grad_()
        for x in np.random.default_rng(1).normal(size=(3, 4, 3))
    ]

    def loss(a: torch.Tensor, p: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        return nt_xent(
            a, p, temperature=0.5, hard_negatives=h, hard_negative_weight=0.7, similarity=kind
        )

    assert torch.autograd.gradcheck(loss, inputs)


def test_dot_product_by_hand() -> None:
    # dots: row 1 sees 2 and 0, row 2 sees 0 and 3: (log(1 + e^-2) + log(1 + e^-3)) / 2
    a = torch.diag(torch.tensor([2.0, 3.0], dtype=torch.float64))
    expected = (math.log1p(math.exp(-2)) + math.log1p(math.exp(-3))) / 2
    assert float(
        nt_xent(a, torch.eye(2, dtype=torch.float64), temperature=1.0, similarity="dot")
    ) == pytest.approx(expected)
    with pytest.raises(ValueError, match='must be "cosine" or "dot"'):
        nt_xent(a, a, temperature=1.0, similarity="euclid")  # type: ignore[arg-type]


# ---------------------------------------------------------------- what the method feeds it


def test_the_loss_is_the_objective_of_the_two_views(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through similarity, temperature and head; the same mask twice makes both views the first one."""
    for values in (
        {},
        {"similarity": "dot", "temperature": 1.0},
        {"same_mask": True, "temperature": 0.5},
        {"head": "none"},
    ):
        method = make(**values)
        encoder, heads = started(method)
        views = [
            torch.randn(6, encoder.dimension, generator=torch.Generator().manual_seed(s))
            for s in (1, 2)
        ]
        monkeypatch.setattr(encoder, "two_views", lambda *_, given=views, **__: tuple(given))
        a, b = (
            view.double().numpy()
            for view in (views[0], views[0] if values.get("same_mask") else views[1])
        )
        if values.get("head") != "none":
            weight, bias = (p.detach().double().numpy() for p in heads.mlp[0].parameters())
            a, b = (np.tanh(x @ weight.T + bias) for x in (a, b))
        t, kind = method.config.temperature, method.config.similarity
        loss = float(method.loss(encoder, heads, batch(corpus))["loss"].detach())
        assert loss == pytest.approx(np_simcse(a, b, None, t=t, w=0.0, kind=kind), rel=1e-4), values


def test_the_tanh_layer_kept_at_test_is_saved_and_read_by_sentence_transformers(
    corpus: Corpus, tmp_path: Path
) -> None:
    from sentence_transformers import SentenceTransformer

    texts = ["A dog runs across the field.", "Two children play chess.", ""]
    method = make(head="mlp", max_steps=1, learning_rate=1e-3).fit(
        corpus, FitContext(precision="fp32")
    )
    linear, tanh = method.encoder.head
    vectors = np.asarray(method.encode(texts))
    assert isinstance(tanh, torch.nn.Tanh)
    assert np.abs(vectors).max() < 1.0
    # the layer was trained (it starts with bias 0), and a vector is tanh(W h + b) of the pooled
    # state
    assert linear.bias.abs().max() > 0
    method.encoder.head = torch.nn.Sequential()
    pooled = np.asarray(method.encode(texts), dtype=np.float64)
    method.encoder.head = torch.nn.Sequential(linear, tanh)
    weight, bias = (p.detach().double().numpy() for p in linear.parameters())
    assert vectors == pytest.approx(np.tanh(pooled @ weight.T + bias), abs=1e-5)

    method.save(tmp_path / "model")
    assert np.allclose(SimCSE.load(tmp_path / "model").encode(texts), vectors, atol=1e-5)
    theirs = SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(texts)
    assert np.allclose(theirs, vectors, atol=1e-5)


def test_where_the_tanh_layer_lives() -> None:
    for head, at_test, in_loss in (("training", 0, 2), ("mlp", 2, 0), ("none", 0, 0)):
        encoder, heads = started(make(head=head))
        assert len(encoder.head) == at_test
        assert len(list(heads.parameters())) == in_loss


# ---------------------------------------------------------------- masked-language modelling


def test_mlm_masks_the_copies_separately_and_by_seed_and_step_alone(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = make(mlm_weight=0.1)
    encoder, heads = started(method)
    seen: list[list[list[int]]] = []
    original = encoder.hidden_states

    def spy(features: dict[str, torch.Tensor]) -> Any:
        seen.append(features["input_ids"].tolist())
        return original(features)

    monkeypatch.setattr(encoder, "hidden_states", spy)
    for step in (0, 0, 1):
        torch.manual_seed(step)  # the state of torch's generator has no part in the masks
        method.loss(encoder, heads, batch(corpus, step=step))
    first, again, other = seen
    assert first == again
    assert first != other
    assert len(first) == 12, "both copies of the six sentences"
    assert first[:6] != first[6:], "masked separately"
    mask = encoder.tokenizer.mask_token_id
    assert any(mask in row for row in first)


def test_mlm_term_is_the_weighted_mean_cross_entropy_of_the_masked_tokens(corpus: Corpus) -> None:
    method = make(mlm_weight=0.1, mlm_probability=0.3)
    encoder, heads = started(method)
    encoder.eval()
    terms = {
        name: float(term.detach())
        for name, term in method.loss(encoder, heads, batch(corpus)).items()
    }
    assert terms["loss"] == pytest.approx(terms["contrast"] + terms["mlm"], rel=1e-6)
    assert set(make().loss(encoder, started(make())[1], batch(corpus))) == {"loss"}

    # the same masks, every logit, and the sum over the vocabulary in numpy
    items = batch(corpus)
    ids = encoder.tokenize(items.texts, max_length=12)
    masked, labels = mask_tokens([*ids, *ids], encoder.tokenizer, items.rng, probability=0.3)
    losses = []
    with torch.no_grad():
        for row, truth in zip(
            masked, labels, strict=True
        ):  # one sentence at a time: no padding here
            logits = (
                heads.mlm(encoder.hidden_states(encoder.collate([row]))[-1])[0].double().numpy()
            )
            losses += [
                logsumexp(logits[k]) - logits[k][token]
                for k, token in enumerate(truth)
                if token != IGNORED
            ]
    assert len(losses) > 10
    assert terms["mlm"] == pytest.approx(0.1 * sum(losses) / len(losses), rel=1e-4)


def test_mlm_without_a_masked_token_is_zero_and_still_has_a_gradient(corpus: Corpus) -> None:
    method = make(mlm_weight=0.1, mlm_probability=1e-9)
    encoder, heads = started(method)
    terms = method.loss(encoder, heads, batch(corpus, 2))
    assert float(terms["mlm"].detach()) == 0.0
    terms["loss"].backward()
    assert all(p.grad is None or bool(p.grad.isfinite().all()) for p in encoder.parameters())


def test_mlm_heads_own_no_copy_of_the_embeddings() -> None:
    encoder, heads = started(make(mlm_weight=0.1))
    own = {id(p) for p in heads.parameters()}
    assert not own & {id(p) for p in encoder.parameters()}
    assert (
        sum(p.numel() for p in heads.mlm.parameters())
        < encoder.transformer.get_input_embeddings().weight.numel()
    )


def test_training_with_mlm_resumes_bit_for_bit(corpus: Corpus, tmp_path: Path) -> None:
    whole, resumed = weights_whole_and_resumed(
        SimCSE, {**SMALL, "mlm_weight": 0.1}, corpus, tmp_path
    )
    assert all(torch.equal(tensor, resumed[name]) for name, tensor in whole.items())


@pytest.mark.parametrize(
    "values",
    [
        {"temperature": 0.0},
        {"dropout": 1.0},
        {"mlm_weight": -1.0},
        {"mlm_probability": 1.0},
        {"head": "all"},
    ],
)
def test_bad_settings_are_refused_in_one_line(values: dict[str, Any]) -> None:
    with raises_input_error(key=next(iter(values))):
        SimCSE.configure(values)
