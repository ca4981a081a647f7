"""SCD's options, one by one: the loss that the method builds against the equations in float64, for
every variant.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import pearsonr

from harness.method import FitContext
from harness.sources import Corpus, load_corpus
from harness.training import Batch
from methods.objectives import decorrelation, self_contrast
from methods.parts.projection_heads import projector
from methods.scd import SCD
from tests.support.errors import raises_input_error

pytestmark = pytest.mark.timeout(300)


def np_self_contrast(a: np.ndarray, b: np.ndarray) -> float:
    total = 0.0
    for x, y in zip(a, b, strict=True):
        lengths = math.sqrt(float(x @ x)) * math.sqrt(float(y @ y))
        total += float(x @ y) / lengths if lengths else 0.0
    return total / len(a)


def np_correlation(a: np.ndarray, b: np.ndarray, form: str, eps: float = 1e-5) -> np.ndarray:
    d = a.shape[1]
    c = np.zeros((d, d))
    for j in range(d):
        for k in range(d):
            x, y = a[:, j], b[:, k]
            if form == "literal":  # one root over the sum of the products' squares
                c[j, k] = np.sum(x * y) / math.sqrt(np.sum(x**2 * y**2) + eps)
                continue
            if form == "center":
                x, y = x - x.mean(), y - y.mean()
            c[j, k] = np.mean(x * y) / (
                math.sqrt(np.mean(x**2) + eps) * math.sqrt(np.mean(y**2) + eps)
            )
    return c


def np_decorrelation(a: np.ndarray, b: np.ndarray, weight: float, form: str, sign: float) -> float:
    c = np_correlation(a, b, form)
    on = sum((1 - c[j, j]) ** 2 for j in range(len(c)))
    off = sum(c[j, k] ** 2 for j in range(len(c)) for k in range(len(c)) if j != k)
    return float(sign * on + weight * off)


def inputs() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(11)
    a, b = rng.normal(0.4, 1.0, (2, 7, 4))
    constant = a.copy()
    constant[:, 1] = 3.0
    return {
        "random": (a, b),
        "N = 2": (a[:2], b[:2]),
        "more features than rows": tuple(rng.normal(0.4, 1.0, (2, 3, 8))),
        "identical rows": (np.repeat(a[:1], 4, 0), np.repeat(b[:1], 4, 0)),
        "a feature without variance": (constant, b),
        "all zero": (np.zeros((3, 4)), np.zeros((3, 4))),
    }


@pytest.mark.parametrize("case", inputs())
@pytest.mark.parametrize("form", ["center", "no_center", "literal"])
@pytest.mark.parametrize("literal_sign", [False, True])
def test_every_form_of_the_decorrelation_equals_numpy(
    case: str, form: Any, literal_sign: bool
) -> None:
    a, b = inputs()[case]
    tensors = [torch.from_numpy(x).requires_grad_() for x in (a, b)]
    value = decorrelation(
        *tensors, off_diagonal_weight=0.3, normalisation=form, literal_sign=literal_sign
    )
    expected = np_decorrelation(a, b, 0.3, form, -1.0 if literal_sign else 1.0)
    assert float(value.detach()) == pytest.approx(expected, rel=1e-6, abs=1e-9)
    value.backward()
    assert all(t.grad is not None and bool(t.grad.isfinite().all()) for t in tensors)


@pytest.mark.parametrize("form", ["center", "no_center", "literal"])
def test_gradients_of_every_form(form: Any) -> None:
    a, b = (torch.from_numpy(x).requires_grad_() for x in inputs()["random"])
    assert torch.autograd.gradcheck(
        lambda x, y: decorrelation(x, y, off_diagonal_weight=0.3, normalisation=form, eps=1e-3),
        (a, b),
    )
    assert torch.autograd.gradcheck(lambda x, y: self_contrast(x, y, temperature=0.5), (a, b))


def test_centred_form_is_pearson_correlation() -> None:
    a, b = inputs()["random"]
    c = np_correlation(a, b, "center", eps=0.0)
    assert c[1, 2] == pytest.approx(pearsonr(a[:, 1], b[:, 2]).statistic)
    value = decorrelation(
        torch.from_numpy(a), torch.from_numpy(b), off_diagonal_weight=0.0, eps=0.0
    )
    assert float(value) == pytest.approx(
        sum((1 - pearsonr(a[:, j], b[:, j]).statistic) ** 2 for j in range(4))
    )


def test_one_sentence_has_a_self_contrast_but_no_correlation() -> None:
    row = torch.tensor([[3.0, 4.0]])
    assert float(self_contrast(row, -row)) == pytest.approx(-1.0)
    with pytest.raises(ValueError, match="at least 2 rows"):
        decorrelation(row, row, off_diagonal_weight=0.1)


# ---------------------------------------------------------------- what the method makes of them


class FixedViews:
    """An encoder whose two views are given."""

    def __init__(self, a: np.ndarray, b: np.ndarray) -> None:
        self.dimension = a.shape[1]
        self.views = (torch.from_numpy(a).float(), torch.from_numpy(b).float())

    def tokenize(self, texts: list[str], max_length: int | None = None) -> list[list[int]]:
        return [[0] for _ in texts]

    def two_views(self, *_: Any, **__: Any) -> tuple[torch.Tensor, torch.Tensor]:
        return self.views


OPTIONS: list[dict[str, Any]] = [
    {},
    {"self_contrast_weight": 2.5, "decorrelation_weight": 0.5},
    {"temperature": 1.0},
    {"reduction": "sum"},
    {"reduction": "sum", "self_contrast_weight": 0.1, "temperature": 0.5},
    {"normalisation": "no_center"},
    {"normalisation": "literal"},
    {"literal_sign": True},
    {"off_diagonal_weight": 0.0},
    {"projector_bias": "all"},
    {"projector_bias": "none"},
    {"terms": "self_contrast"},
    {"terms": "decorrelation"},
]


@pytest.mark.parametrize("values", OPTIONS, ids=str)
def test_loss_of_the_method_equals_numpy_through_its_projector(values: dict[str, Any]) -> None:
    a, b = np.random.default_rng(2).normal(0.2, 1.0, (2, 6, 5))
    method = SCD(SCD.configure({"projector": (7, 3), **values}))
    encoder: Any = FixedViews(a, b)
    torch.manual_seed(4)
    heads = method.heads(encoder)
    terms = {
        k: float(v.detach())
        for k, v in method.loss(encoder, heads, Batch(["x"] * 6, None, 0)).items()
    }  # type: ignore[arg-type]
    config, expected = method.config, {}
    if config.terms != "decorrelation":
        count = 6 if config.reduction == "sum" else 1
        cosines = np_self_contrast(a, b) / config.temperature
        expected["self_contrast"] = config.self_contrast_weight * count * cosines
    if config.terms != "self_contrast":
        state = {name: p.detach().double().numpy() for name, p in heads.named_parameters()}
        z_a, z_b = (np_projector(h, state) for h in (a, b))
        sign = -1.0 if config.literal_sign else 1.0
        expected["decorrelation"] = config.decorrelation_weight * np_decorrelation(
            z_a, z_b, config.off_diagonal_weight, config.normalisation, sign
        )
    expected["loss"] = sum(expected.values())
    assert terms == pytest.approx(expected, rel=2e-3, abs=1e-6)


def np_projector(h: np.ndarray, state: dict[str, np.ndarray]) -> np.ndarray:
    """Linear - BatchNorm of this view alone (biased variance) - ReLU - Linear."""
    z = h @ state["0.weight"].T + state.get("0.bias", 0.0)
    z = (z - z.mean(0)) / np.sqrt(z.var(0) + 1e-5) * state["1.weight"] + state["1.bias"]
    return np.maximum(z, 0.0) @ state["3.weight"].T + state.get("3.bias", 0.0)


def test_biases_of_the_projector() -> None:
    for bias, which in (
        ("first", [True, False, False]),
        ("all", [True] * 3),
        ("none", [False] * 3),
    ):
        layers = [
            m
            for m in projector(5, (4, 4, 4), bias=bias, init="normal")
            if isinstance(m, torch.nn.Linear)
        ]  # type: ignore[arg-type]
        assert [layer.bias is not None for layer in layers] == which


def test_presets_are_the_table_of_paper_code_and_released_weights() -> None:
    def preset(name: str, family: str = "bert-base") -> Any:
        return SCD.configure({}, preset=name, family=family)

    paper, code, released = (preset(p) for p in ("paper", "code", "released-weights"))
    roberta = preset("paper", "roberta-base")
    assert (paper.decorrelation_weight, paper.off_diagonal_weight, paper.temperature) == (
        0.005,
        0.013,
        1.0,
    )
    assert (paper.dropout_a, paper.dropout_b) == (0.05, 0.15)
    assert (code.decorrelation_weight, code.off_diagonal_weight, code.temperature) == (
        0.005225,
        0.012,
        0.05,
    )
    assert (code.dropout_a, code.dropout_b, code.batch_size, code.eval_every) == (
        0.05,
        0.155,
        192,
        250,
    )
    assert (released.reduction, released.decorrelation_weight) == ("sum", 1.05)
    assert (roberta.decorrelation_weight, roberta.off_diagonal_weight) == (0.0033, 0.028)
    assert (roberta.dropout_a, roberta.dropout_b, roberta.temperature) == (
        0.065,
        0.24,
        paper.temperature,
    )
    assert SCD.configure({}, preset="paper-roberta") == roberta, "its earlier name"
    # divided by the batch of 192, the released weights have the ratio of the two terms that the
    # mean form has
    assert released.decorrelation_weight / 192 == pytest.approx(0.00547, abs=5e-6)


def test_first_last_pooling_takes_the_embedding_layer_where_asked() -> None:
    corpus: Corpus = load_corpus("embedded:sentences", limit=4)
    values = {
        "pooling": "first_last_avg",
        "first_layer": 0,
        "projector": (8, 8),
        "batch_size": 4,
        "max_steps": 1,
    }
    fitted = SCD(SCD.configure(values)).fit(corpus, FitContext(precision="fp32"))
    assert (fitted.encoder.pooling.name, fitted.encoder.pooling.first_layer) == (
        "first_last_avg",
        0,
    )


@pytest.mark.parametrize(
    "values",
    [
        {"temperature": 0.0},
        {"dropout_a": 1.0},
        {"dropout_b": -0.1},
        {"projector": ()},
    ],
)
def test_bad_settings_are_refused_in_one_line(values: dict[str, Any]) -> None:
    with raises_input_error(key=next(iter(values))):
        SCD.configure(values)


def test_a_bad_width_is_named_by_its_place() -> None:
    with raises_input_error(key="projector.1"):
        SCD.configure({"projector": (4, 0)})
