"""BYOL: its loss, the arithmetic of the following target, what has a gradient and what is in a
checkpoint.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from harness.encoder.network import Network
from harness.method import FitContext
from harness.recipes import iterate_presets
from harness.sources import Corpus, load_corpus
from harness.training import Batch
from methods.byol import BYOL, bootstrap
from tests.support.bases import narrow_bert
from tests.support.errors import raises_input_error
from tests.support.kill_and_resume import weights_whole_and_resumed

pytestmark = pytest.mark.timeout(300)
SMALL = {
    "batch_size": 4,
    "train_length": 8,
    "learning_rate": 1e-3,
    "projector": (16, 8),
    "predictor": 12,
}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return load_corpus("embedded:sentences", limit=16)


def started(**values: Any) -> tuple[Any, Any, Any]:
    method = BYOL(BYOL.configure({**SMALL, **values}), base_model=narrow_bert())
    torch.manual_seed(0)
    encoder = method.load_base()
    heads = method.heads(encoder)
    return method, encoder.train(), heads.train()


def batch(corpus: Any, count: int = 4) -> Batch:
    return Batch(list(corpus[:count]), np.random.default_rng(7), 0)


def np_bootstrap(q_a, q_b, t_a, t_b):
    """|q/|q| - t/|t||^2, both directions; the distance to a zero vector's place counts as that of
    cosine 0.
    """
    total = 0.0
    for q, t in ((q_a, t_b), (q_b, t_a)):
        for x, y in zip(q, t, strict=True):
            lengths = np.sqrt(x @ x) * np.sqrt(y @ y)
            cosine = (x @ y) / lengths if lengths else 0.0
            total += (2 - 2 * cosine) / len(q)
    return total


RNG = np.random.default_rng(8)
CASES = {
    "random": RNG.normal(size=(4, 5, 3)),
    "N = 1": RNG.normal(size=(4, 1, 3)),
    "N = 2": RNG.normal(size=(4, 2, 3)),
    "identical rows": np.repeat(RNG.normal(size=(4, 1, 3)), 3, axis=1),
    "zero rows": np.zeros((4, 3, 3)),
}


@pytest.mark.parametrize("case", CASES)
def test_equals_numpy(case: str) -> None:
    assert float(bootstrap(*map(torch.from_numpy, CASES[case]))) == pytest.approx(
        np_bootstrap(*CASES[case])
    )


def test_by_hand_and_for_unit_vectors_it_is_the_squared_distance() -> None:
    e = torch.eye(2, dtype=torch.float64)
    assert float(bootstrap(e, e, e, e)) == pytest.approx(0.0)
    assert float(bootstrap(e, e, -e, -3 * e)) == pytest.approx(8.0)  # opposite: 4 and 4
    assert float(bootstrap(e, e, e.flip(0), e)) == pytest.approx(
        2.0
    )  # one direction at right angles
    q, t = (x / x.norm(dim=1, keepdim=True) for x in map(torch.from_numpy, CASES["random"][:2]))
    assert float(bootstrap(q, q, t, t)) == pytest.approx(2 * float((q - t).square().sum(1).mean()))


def test_gradient_reaches_the_predictions_only() -> None:
    q_a, q_b, t_a, t_b = (torch.from_numpy(x).requires_grad_() for x in CASES["random"])
    assert torch.autograd.gradcheck(
        lambda a, b: bootstrap(a, b, t_a.detach(), t_b.detach()), (q_a, q_b)
    )
    bootstrap(q_a, q_b, t_a, t_b).backward()
    assert q_a.grad is not None
    assert t_a.grad is None
    assert t_b.grad is None


def test_target_starts_as_a_frozen_copy_and_nothing_of_it_is_trained(corpus: Corpus) -> None:
    method, encoder, heads = started()
    for (name, own), slow in zip(
        encoder.named_parameters(), heads.target_encoder.parameters(), strict=True
    ):
        assert torch.equal(own, slow), name
        assert own.data_ptr() != slow.data_ptr()
    method.loss(encoder, heads, batch(corpus))["loss"].backward()
    frozen = [*heads.target_encoder.parameters(), *heads.target_projector.parameters()]
    assert all(p.grad is None and not p.requires_grad for p in frozen)
    learned = [*encoder.parameters(), *heads.projector.parameters(), *heads.predictor.parameters()]
    assert all(p.requires_grad for p in learned)
    assert sum(float(p.grad.abs().sum()) for p in learned if p.grad is not None) > 0


@pytest.mark.parametrize("momentum", [0.0, 0.9, 1.0])
def test_target_is_the_exponential_moving_average_of_the_online_weights(momentum: float) -> None:
    method, encoder, heads = started(momentum=momentum)
    pairs = [
        *zip(encoder.parameters(), heads.target_encoder.parameters(), strict=True),
        *zip(heads.projector.parameters(), heads.target_projector.parameters(), strict=True),
    ]
    expected = [slow.detach().double().numpy().copy() for _, slow in pairs]
    for step in range(3):
        with torch.no_grad():
            for number, (own, _) in enumerate(pairs):
                own.add_(0.1 * (step + 1) + 0.01 * (number % 7))
        method.after_update(encoder, heads)
        # xi <- tau xi + (1 - tau) theta
        expected = [
            momentum * xi + (1 - momentum) * own.detach().double().numpy()
            for xi, (own, _) in zip(expected, pairs, strict=True)
        ]
    for xi, (_, slow) in zip(expected, pairs, strict=True):
        np.testing.assert_allclose(slow.detach().numpy(), xi, rtol=1e-5, atol=1e-6)


def test_the_loss_is_the_objective_of_what_both_networks_give(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing dropped, so that both networks can be asked again; BatchNorm with the batch's own
    statistics.
    """
    method, encoder, heads = started(dropout=0.0)
    whole = Network.two_views

    def without_check(self: Network, *ids: Any, **options: Any) -> Any:
        """The same, also where the views are equal."""
        return whole(self, *ids, **{**options, "differ_by": None})

    monkeypatch.setattr(Network, "two_views", without_check)
    loss = float(method.loss(encoder, heads, batch(corpus))["loss"].detach())
    with torch.no_grad():
        h = encoder(encoder.eval().collate(encoder.tokenize(list(corpus[:4]), max_length=8)))
        q = heads.predictor(heads.projector(h)).double().numpy()
        t = heads.target_projector(h).double().numpy()  # the target still equals the online network
    assert loss == pytest.approx(np_bootstrap(q, q, t, t), rel=1e-4)


def test_target_drops_units_unless_told_not_to(corpus: Corpus) -> None:
    for dropped in (True, False):
        method, encoder, heads = started(target_dropout=dropped, dropout=0.2)
        seen: list[torch.Tensor] = []
        heads.target_projector.register_forward_pre_hook(
            lambda _, given, seen=seen: seen.append(given[0])
        )
        method.loss(encoder, heads, batch(corpus))
        a, b = seen  # the two views of equal text
        assert torch.equal(a, b) is not dropped


def test_other_views_reach_both_networks(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    method, encoder, heads = started(view="crop", crop=0.5)
    calls: list[tuple[Any, ...]] = []
    for network in (encoder, heads.target_encoder):
        original = network.two_views

        def spy(*ids: Any, original: Any = original, **rates: Any) -> Any:
            calls.append((*ids, rates))
            return original(*ids, **rates)

        monkeypatch.setattr(network, "two_views", spy)
    method.loss(encoder, heads, batch(corpus))
    online, target = calls
    assert online == target
    assert online[0] != online[1]
    assert BYOL(BYOL.configure({"view": "paraphrase"})).text == "pairs"
    assert BYOL(BYOL.configure({})).text == "sentences"


def test_a_batch_of_two_and_what_is_kept(corpus: Corpus) -> None:
    method, encoder, heads = started()
    assert bool(method.loss(encoder, heads, batch(corpus, 2))["loss"].isfinite())
    config = BYOL.configure({**SMALL, "max_steps": 1})
    fitted = BYOL(config, base_model=narrow_bert()).fit(corpus, FitContext(precision="fp32"))
    assert fitted.num_parameters() == sum(p.numel() for p in encoder.parameters()), (
        "neither heads nor target are kept"
    )


def test_training_resumes_bit_for_bit_target_included(corpus: Corpus, tmp_path: Path) -> None:
    whole, resumed = weights_whole_and_resumed(BYOL, {**SMALL, "momentum": 0.5}, corpus, tmp_path)
    assert all(torch.equal(tensor, resumed[name]) for name, tensor in whole.items())


@pytest.mark.parametrize(
    "values", [{"momentum": 1.1}, {"projector": ()}, {"predictor": 0}, {"dropout": 1.0}]
)
def test_bad_settings_are_refused_in_one_line(values: dict[str, Any]) -> None:
    with raises_input_error(key=next(iter(values))):
        BYOL.configure(values)
    for preset, family in iterate_presets(BYOL.presets):
        BYOL.configure({}, preset=preset, family=family)
