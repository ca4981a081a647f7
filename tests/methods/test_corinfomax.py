"""CorInfoMax by loops, its running moments in checkpoints, and the target of all methods without
negatives.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from harness import registry
from harness.sources import Corpus, load_corpus
from harness.training import Batch
from methods.barlow_twins import BarlowTwins
from methods.corinfomax import CorInfoMax
from methods.vicreg import VICReg
from tests.support.errors import raises_input_error
from tests.support.kill_and_resume import weights_whole_and_resumed

pytestmark = pytest.mark.timeout(300)
SMALL = {"batch_size": 4, "train_length": 8, "projector_blocks": 0, "projector": (16, 256)}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return load_corpus("embedded:sentences", limit=16)


def started(kind: Any, **values: Any) -> tuple[Any, Any, Any]:
    method = kind(kind.configure({**SMALL, **values}))
    torch.manual_seed(0)
    encoder = method.load_base()
    return method, encoder.train(), method.heads(encoder).train()


def test_two_steps_by_loops() -> None:
    """Both branches have running moments, which begin at 0 and I."""
    rng = np.random.default_rng(0)
    method, _, heads = started(CorInfoMax, target="none", projector=(8, 3), memory=0.2, eps=0.1)
    means, covariances = [np.zeros(3)] * 2, [np.eye(3)] * 2
    for _ in range(2):
        views = rng.normal(1.0, 2.0, (2, 5, 3))
        determinants = 0.0
        for branch, z in enumerate(views):
            means[branch] = 0.2 * means[branch] + 0.8 * z.mean(0)
            outer = [np.outer(row - means[branch], row - means[branch]) for row in z]
            covariances[branch] = 0.2 * covariances[branch] + 0.8 * sum(outer) / 5
            determinants += np.log(np.linalg.det(covariances[branch] + 0.1 * np.eye(3)))
        expected = -0.2 / 3 * determinants + 2000 * ((views[0] - views[1]) ** 2).mean()
        terms = method.terms(*map(torch.from_numpy, views), heads, None)
        assert float(terms["loss"]) == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(heads.covariances.numpy(), np.stack(covariances))


def test_gradient_by_finite_differences() -> None:
    method, _, heads = started(
        CorInfoMax, target="none", projector=(8, 3), eps=0.1, invariance_weight=1.0
    )
    before = [buffer.clone() for buffer in (heads.means, heads.covariances)]

    def loss(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        heads.means.copy_(before[0])
        heads.covariances.copy_(before[1])
        value: torch.Tensor = method.terms(a, b, heads, None)["loss"]
        return value

    inputs = tuple(
        torch.from_numpy(np.random.default_rng(k).normal(size=(5, 3))).requires_grad_()
        for k in (1, 2)
    )
    assert torch.autograd.gradcheck(loss, inputs)


def test_training_resumes_bit_for_bit_moments_and_target_included(
    corpus: Corpus, tmp_path: Path
) -> None:
    values = {**SMALL, "learning_rate": 1e-3, "momentum": 0.5, "memory": 0.5}
    values["projector"] = (16, 64)  # as wide as the vectors of the narrow model
    whole, resumed = weights_whole_and_resumed(CorInfoMax, values, corpus, tmp_path)
    assert all(torch.equal(tensor, resumed[name]) for name, tensor in whole.items())


@pytest.mark.parametrize("kind", [BarlowTwins, VICReg])
@pytest.mark.parametrize("projected", [False, True])
def test_with_a_target_each_view_is_compared_with_the_others_target(
    kind: Any, projected: bool, corpus: Corpus
) -> None:
    method, encoder, heads = started(
        kind, target="ema", target_projector=projected, view="crop", crop=0.5
    )
    seen: list[torch.Tensor] = []
    terms = method.terms
    method.__dict__["terms"] = lambda a, b, *more: seen.extend((a, b)) or terms(a, b, *more)
    loss = method.loss(encoder, heads, Batch(list(corpus[:4]), np.random.default_rng(1), 0))["loss"]
    q_a, t_b, q_b, t_a = seen
    assert loss.item() == pytest.approx((terms(q_a, t_b)["loss"] + terms(q_b, t_a)["loss"]).item())
    assert q_a.requires_grad
    assert not t_a.requires_grad
    assert not t_b.requires_grad
    if projected:  # nothing is dropped and the target begins as the encoder: the same projections
        torch.testing.assert_close(t_a, q_a.detach(), atol=1e-4, rtol=1e-4)
    loss.backward()
    frozen = [
        *heads.target_encoder.parameters(),
        *(heads.target_projector.parameters() if projected else ()),
    ]
    assert all(p.grad is None for p in frozen)
    with torch.no_grad():
        for p in encoder.parameters():
            p.add_(1.0)
    method.after_update(encoder, heads)  # 0.999 of itself and 0.001 of weights that are larger by 1
    for own, slow in zip(encoder.parameters(), heads.target_encoder.parameters(), strict=True):
        torch.testing.assert_close(own - slow, torch.full_like(own, 0.999), atol=1e-4, rtol=0)


def test_without_a_target_a_run_is_dumped_as_before_there_was_one() -> None:
    """So the ids of runs that were recorded before the option stay."""
    for name in ("barlow_twins", "vicreg"):
        kind = registry.load(registry.METHODS, name)
        later = {"target", "target_projector", "momentum", "projector_blocks"}
        assert later.isdisjoint(kind.configure({}).model_dump(mode="json"))
        assert kind.configure({"target": "ema"}).model_dump(mode="json")["target"] == "ema"
        assert kind.configure({"target": "ema"}).target_projector is False
    dumped = CorInfoMax.configure({}).model_dump()
    assert (dumped["target"], dumped["projector_blocks"]) == ("ema", 4)


def test_a_projector_as_wide_as_the_targets_vectors_or_one_line() -> None:
    _, _, heads = started(VICReg, target="ema", projector=None)
    assert heads.projector[-1].out_features == 256
    with raises_input_error(key="projector"):
        started(VICReg, target="ema", projector=(16, 8))
    _, _, heads = started(VICReg, target="ema", projector=(16, 8), target_projector=True)
    assert heads.target_projector[-1].out_features == 8


def test_the_blocks_of_unsee() -> None:
    _, _, heads = started(VICReg, target="ema", projector_blocks=2)
    block = ["Linear", "BatchNorm1d", "ReLU", "Linear", "ReLU", "Linear"]
    assert [type(layer).__name__ for layer in heads.projector] == 2 * block
    assert [m.out_features for m in heads.projector if hasattr(m, "out_features")] == 2 * [
        2560,
        2560,
        256,
    ]
