"""MixCSE: the mixed negative against its formula, its stopped gradient, and the partner that is
drawn for it.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from harness.recipes import iterate_presets
from harness.sources import load_corpus
from harness.training import Batch
from methods.mixcse import MixCSE, mixed_negatives
from methods.objectives import nt_xent
from tests.support.errors import raises_input_error
from tests.support.kill_and_resume import weights_whole_and_resumed

pytestmark = pytest.mark.timeout(300)


def length_one(x: np.ndarray) -> np.ndarray:
    norm = math.sqrt(float(x @ x))
    return x / norm if norm else x


def np_mixed(
    a: np.ndarray, p: np.ndarray, *, shift: int, mix: float, t: float, fixed: Any = None
) -> float:
    """Loops over the formula; `fixed` holds the positives of which the mixtures are made (default:
    p).
    """
    n, total = len(a), 0.0
    source = p if fixed is None else fixed
    for i in range(n):
        own = float(length_one(a[i]) @ length_one(p[i])) / t
        terms = [float(length_one(a[i]) @ length_one(p[j])) / t for j in range(n)]
        if n > 1:
            other = length_one(source[(i + shift) % n])
            m = length_one(mix * length_one(source[i]) + (1 - mix) * other)
            terms.append(float(length_one(a[i]) @ m) / t)
        total += math.log(sum(math.exp(term - own) for term in terms))
    return total / n


def inputs() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    return {
        "random": rng.normal(size=(2, 5, 4)),
        "N = 1": rng.normal(size=(2, 1, 4)),
        "N = 2": rng.normal(size=(2, 2, 4)),
        "identical rows": np.repeat(rng.normal(size=(2, 1, 4)), 3, axis=1),
        "zero rows": np.zeros((2, 3, 4)),
    }


@pytest.mark.parametrize("case", inputs())
@pytest.mark.parametrize("mix", [0.0, 0.2, 0.6])
def test_equals_numpy(case: str, mix: float) -> None:
    a, p = inputs()[case]
    for shift in range(1, len(a)) if len(a) > 1 else [0]:
        for t in (0.05, 1.0):
            value = mixed_negatives(
                torch.from_numpy(a), torch.from_numpy(p), shift=shift, mix=mix, temperature=t
            )
            assert float(value) == pytest.approx(
                np_mixed(a, p, shift=shift, mix=mix, t=t), rel=1e-8, abs=1e-9
            )


def test_by_hand() -> None:
    # e1, e2 twice, t = 1, half and half: m = (1, 1)/sqrt 2 for both, cosine 1/sqrt 2: log(1 + e^-1
    # + e^(1/sqrt2 - 1))
    e = torch.eye(2, dtype=torch.float64)
    expected = math.log(1 + math.exp(-1) + math.exp(1 / math.sqrt(2) - 1))
    assert float(mixed_negatives(e, e, shift=1, mix=0.5, temperature=1.0)) == pytest.approx(
        expected
    )


def test_no_gradient_flows_through_the_mixture() -> None:
    """The gradient is that of the formula with the mixtures held fixed: numpy's differences with
    them fixed say so.
    """
    a, p = inputs()["random"]
    tensors = [torch.from_numpy(x.copy()).requires_grad_() for x in (a, p)]
    mixed_negatives(*tensors, shift=2, mix=0.3, temperature=0.5).backward()
    step = 1e-6
    for which in (0, 1):
        grad = tensors[which].grad
        assert grad is not None
        for i in range(5):
            for k in range(4):
                up, down = [a.copy(), p.copy()], [a.copy(), p.copy()]
                up[which][i, k] += step
                down[which][i, k] -= step
                high, low = (np_mixed(*x, shift=2, mix=0.3, t=0.5, fixed=p) for x in (up, down))
                assert float(grad[i, k]) == pytest.approx((high - low) / (2 * step), abs=1e-7)


def test_it_is_larger_than_simcse_by_the_added_negative() -> None:
    a, p = (torch.from_numpy(x) for x in inputs()["random"])
    assert float(mixed_negatives(a, p, shift=1, mix=0.2, temperature=0.05)) > float(
        nt_xent(a, p, temperature=0.05)
    )


def test_partner_is_never_the_sentence_itself_and_comes_from_the_batch_generator() -> None:
    corpus = load_corpus("embedded:sentences", limit=6)
    method = MixCSE(MixCSE.configure({"train_length": 8}))
    encoder = method.load_base().eval()
    heads = method.heads(encoder)

    def loss(seed: int, count: int) -> float:
        items = Batch(list(corpus[:count]), np.random.default_rng(seed), 0)
        return float(method.loss(encoder, heads, items)["loss"].detach())

    assert loss(0, 6) == loss(0, 6)
    assert len({round(loss(seed, 6), 9) for seed in range(12)}) > 1
    assert len({loss(seed, 2) for seed in range(4)}) == 1, (
        "of two sentences only the other can be mixed in"
    )
    a = torch.eye(3)
    for shift in (0, 3):
        with pytest.raises(ValueError, match=r"shift must be in 1 .. 2"):
            mixed_negatives(a, a, shift=shift, mix=0.2, temperature=1.0)


def test_training_resumes_bit_for_bit(tmp_path: Path) -> None:
    corpus = load_corpus("embedded:sentences", limit=16)
    values = {"batch_size": 4, "train_length": 8, "learning_rate": 1e-3}
    whole, resumed = weights_whole_and_resumed(MixCSE, values, corpus, tmp_path)
    assert all(torch.equal(tensor, resumed[name]) for name, tensor in whole.items())


@pytest.mark.parametrize(
    "values", [{"mix": 1.0}, {"mix": -0.1}, {"similarity": "dot"}, {"temperature": 0}]
)
def test_bad_settings_are_refused_in_one_line(values: dict[str, Any]) -> None:
    with raises_input_error(key=next(iter(values))):
        MixCSE.configure(values)
    for preset, family in iterate_presets(MixCSE.presets):
        share = 0.6 if preset == "code-before-june-2022" else 0.2
        assert MixCSE.configure({}, preset=preset, family=family).mix == share
