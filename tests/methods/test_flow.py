"""BERT-flow: an exact invertible map, its likelihood against the equations in numpy, and a run that
can resume.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from harness.encoder.layout import is_whole_method
from harness.errors import NotFitted
from harness.method import FitContext
from harness.sources import load_corpus
from methods.flow import Flow
from methods.parts.glow import Actnorm, Glow
from methods.pooling import PoolingMethod
from tests.support.errors import raises_input_error

KINDS = [(c, m) for c in ("additive", "affine") for m in ("reversal", "learned")]
TEXTS = ["A dog runs across the field.", "Two children play chess.", "", "rain"]


def random_flow(
    dimension: int, coupling: Any, mixing: Any, *, levels: int = 3, seed: int = 0
) -> Glow:
    """A flow in float64 whose every weight has moved."""
    torch.manual_seed(seed)
    flow = Glow(dimension, levels=levels, steps=2, width=5, coupling=coupling, mixing=mixing)
    flow = flow.double()
    for part in flow.modules():
        if isinstance(part, Actnorm):
            part.ready.fill_(True)
    with torch.no_grad():
        for p in flow.parameters():
            p += 0.2 * torch.randn_like(p)
    return flow


@pytest.mark.parametrize(("coupling", "mixing"), KINDS)
def test_log_determinant_is_that_of_the_jacobian(coupling: str, mixing: str) -> None:
    flow = random_flow(16, coupling, mixing)
    x = torch.randn(3, 16, dtype=torch.float64)
    _, log_det = flow(x)
    for row, claimed in zip(x, log_det, strict=True):
        jacobian = torch.autograd.functional.jacobian(lambda v: flow(v[None])[0][0], row)
        assert float(torch.linalg.slogdet(jacobian)[1]) == pytest.approx(
            float(claimed.detach()), abs=1e-9
        )


def numpy_bits(flow: Glow, x: NDArray[np.float64], *, affine: bool) -> NDArray[np.float64]:
    """-log2 p(x) / D as in Kingma & Dhariwal (2018) with the constants of BERT-flow, written out
    once more.
    """
    w = {name: tensor.detach().numpy() for name, tensor in flow.state_dict().items()}
    n, d = x.shape
    log_p = np.zeros(n)

    def normal(z: NDArray[np.float64]) -> NDArray[np.float64]:
        return (-(z**2) / 2 - np.log(2 * np.pi) / 2).sum(1)

    def network(name: str, a: NDArray[np.float64]) -> NDArray[np.float64]:
        for i in (0, 1):
            a = a @ w[f"{name}.dense.{i}.weight"].T
            a = (a + w[f"{name}.norm.{i}.shift"]) * np.exp(3 * w[f"{name}.norm.{i}.log_scale"])
            a = np.where(a > 0, a, 0)
        return (a @ w[f"{name}.weight"].T + w[f"{name}.bias"]) * np.exp(3 * w[f"{name}.log_scale"])

    for level in range(3):
        if level:
            half = x.shape[1] // 2
            log_p += normal(x[:, half:])
            x = x[:, :half]
        for step in range(2):
            base = f"levels.{level}.{3 * step}"
            scale = np.exp(3 * w[f"{base}.log_scale"])
            x = (x + w[f"{base}.shift"]) * scale
            log_p += np.log(scale).sum()
            x = x[:, ::-1]
            half = x.shape[1] // 2
            first, second = x[:, :half], x[:, half:]
            out = network(f"levels.{level}.{3 * step + 2}.network", first)
            if affine:
                gate = 1 / (1 + np.exp(-(out[:, half:] + 2)))
                second = (second + out[:, :half]) * gate
                log_p += np.log(gate).sum(1)
            else:
                second = second + out
            x = np.concatenate([first, second], 1)
    log_p += normal(x)
    return -log_p / (d * np.log(2))


@pytest.mark.parametrize("coupling", ["additive", "affine"])
def test_bits_per_dimension_equal_the_equations(coupling: str) -> None:
    flow = random_flow(16, coupling, "reversal")
    x = torch.randn(7, 16, dtype=torch.float64)
    expected = numpy_bits(flow, x.numpy(), affine=coupling == "affine")
    assert flow.bits_per_dimension(x).detach().numpy() == pytest.approx(expected, abs=1e-12)


def test_bits_of_the_identity_by_hand() -> None:
    # nothing has been learnt: z is x in another order, so one row of zeros has log2(2 pi) / 2 =
    # 1.3257 bits a dimension
    flow = Glow(8, levels=2).eval()
    assert flow.bits_per_dimension(torch.zeros(1, 8)).tolist() == pytest.approx([1.325748])
    # |x|^2 = 8: 1 / (2 ln 2) = 0.7213 bits a dimension more
    assert flow.bits_per_dimension(torch.ones(1, 8)).tolist() == pytest.approx(
        [1.325748 + 0.721348]
    )


def test_learned_mixing_starts_as_a_rotation() -> None:
    flow = Glow(16, levels=1, steps=1, mixing="learned").eval()
    x = torch.randn(5, 16)
    z, log_det = flow(x)
    assert z.norm(dim=1).tolist() == pytest.approx(x.norm(dim=1).tolist(), rel=1e-4)
    assert log_det.abs().max() < 1e-4


def test_actnorm_takes_mean_and_variance_of_the_first_batch_only() -> None:
    norm = Actnorm(3).train()
    x = torch.randn(400, 3) * torch.tensor([0.1, 1.0, 20.0]) + 5
    y, log_det = norm(x)
    assert y.mean(0).abs().max() < 1e-4
    assert y.square().mean(0).tolist() == pytest.approx([1, 1, 1], rel=1e-3)
    assert float(log_det.detach()) == pytest.approx(
        float(-x.std(0, unbiased=False).log().sum()), abs=1e-3
    )
    before = norm.shift.clone()
    norm(x + 100)
    assert torch.equal(norm.shift, before)
    fresh = Actnorm(3).eval()
    assert torch.equal(fresh(x)[0], x), "evaluation never initialises"


def test_the_output_begins_with_what_left_the_flow_first() -> None:
    # 8 channels, nothing learnt, one reversal a level: the second half of each level leaves
    flow = Glow(8, levels=3, steps=1).eval()
    z = flow(torch.arange(8.0)[None])[0][0]
    # level 1: 7..0, out 3 2 1 0; level 2 turns 7 6 5 4 into 4 5 6 7, out 6 7; level 3 turns 4 5
    # into 5 4
    assert z.tolist() == [3, 2, 1, 0, 6, 7, 5, 4]


@pytest.mark.parametrize(
    ("dimension", "levels", "fine"), [(12, 2, True), (12, 3, False), (15, 1, False)]
)
def test_dimensions_that_cannot_be_halved_are_refused(
    dimension: int, levels: int, fine: bool
) -> None:
    if fine:
        Glow(dimension, levels=levels)
    else:
        with raises_input_error():
            Glow(dimension, levels=levels)


# ---------------------------------------------------------------- the method

SMALL: dict[str, Any] = {"batch_size": 16, "levels": 2, "steps": 1, "log_every": 1}


def flow(**values: Any) -> Flow:
    return Flow(Flow.configure({**SMALL, **values}))


def test_fit_encode_save_load(tmp_path: Path) -> None:
    corpus = load_corpus("embedded:sentences", limit=40)
    method = flow(epochs=3)
    with pytest.raises(NotFitted):
        method.save(tmp_path / "early")
    assert method.fit(corpus, FitContext(seed=1)) is method
    vectors = np.asarray(method.encode(TEXTS))
    assert (vectors.shape, vectors.dtype) == ((4, 256), np.float32)
    assert np.allclose(method.encode(TEXTS[0]), vectors[0], atol=1e-5)
    assert np.asarray(method.encode([])).shape == (0, 256)
    assert np.linalg.norm(
        np.asarray(method.encode(TEXTS, normalize_embeddings=True)), axis=1
    ) == pytest.approx(1)
    assert torch.is_tensor(method.encode(TEXTS, convert_to_tensor=True))
    base = np.asarray(
        PoolingMethod(PoolingMethod.configure({"pooling": "first_last_avg"})).fit().encode(TEXTS)
    )
    assert method._flow is not None
    assert method._flow(torch.from_numpy(base))[0].detach().numpy() == pytest.approx(
        vectors, abs=1e-3
    )

    method.save(tmp_path / "model")
    assert is_whole_method(tmp_path / "model"), "nobody may take the encoder alone for the method"
    again = Flow.load(tmp_path / "model")
    assert np.allclose(again.encode(TEXTS), vectors, atol=1e-5)
    assert again.num_parameters() == method.num_parameters()
    with raises_input_error(file=tmp_path / "model"):
        PoolingMethod.load(tmp_path / "model")


def test_training_lowers_the_bits_and_a_killed_run_ends_with_the_same_weights(
    tmp_path: Path,
) -> None:
    corpus = load_corpus("embedded:sentences", limit=40)
    whole = flow(epochs=6, learning_rate=3e-3).fit(
        corpus, FitContext(seed=1, folder=tmp_path / "whole")
    )
    curve = [
        float(line.split('"bits": ')[1].split(",")[0])
        for line in (tmp_path / "whole/curves.jsonl").open()
    ]
    assert curve[-1] < curve[0]
    assert whole.fit_report.training["steps"] == 18

    class Killed(BaseException): ...

    def kill(step: int, steps: int, text: str) -> None:
        if step == 7:
            raise Killed

    context = FitContext(seed=1, folder=tmp_path / "killed", checkpoint_seconds=0, progress=kill)
    with pytest.raises(Killed):
        flow(epochs=6, learning_rate=3e-3).fit(corpus, context)
    context.progress = None
    again = flow(epochs=6, learning_rate=3e-3).fit(corpus, context)
    assert np.array_equal(np.asarray(again.encode(TEXTS)), np.asarray(whole.encode(TEXTS)))
    assert not np.array_equal(
        np.asarray(
            flow(epochs=6, learning_rate=3e-3).fit(corpus, FitContext(seed=2)).encode(TEXTS)
        ),
        np.asarray(whole.encode(TEXTS)),
    )


def test_what_it_is_fitted_to() -> None:
    pairs = load_corpus("embedded:pairs", kind="pairs", limit=12)
    config = Flow.configure({"fit_on": "pairs"})
    assert Flow(config).text == "pairs"
    assert not Flow(config).uses_dev
    fitted = flow(fit_on="pairs").fit(pairs)
    negatives = sum(pair.negative is not None for pair in pairs)
    assert fitted.fit_report.cost["corpus_sentences_seen"] == 24 + negatives
    with raises_input_error(file='method "flow"'):
        flow().fit(pairs)

    task = flow(fit_on="task").fit()
    assert Flow(task.config).supervision == "transductive"
    assert Flow(task.config).text == "none"
    assert task.transductive
    plain = np.asarray(task.encode(TEXTS))
    texts = list(load_corpus("embedded:sentences", limit=20))
    adapted = task.for_task(texts)
    assert np.abs(np.asarray(adapted.encode(TEXTS)) - plain).max() > 0.01
    assert np.array_equal(np.asarray(task.encode(TEXTS)), plain), "the method itself has no map"
    same = flow(fit_on="sentences").fit(load_corpus("embedded:sentences", limit=20))
    assert np.allclose(same.encode(TEXTS), adapted.encode(TEXTS), atol=1e-4)


def test_dropout_while_fitting_is_repeatable_and_off_afterwards() -> None:
    corpus = load_corpus("embedded:sentences", limit=16)
    first, second = (flow(dropout=True).fit(corpus, FitContext(seed=3)) for _ in range(2))
    assert np.array_equal(np.asarray(first.encode(TEXTS)), np.asarray(second.encode(TEXTS)))
    without = flow().fit(corpus, FitContext(seed=3))
    assert np.abs(np.asarray(without.encode(TEXTS)) - np.asarray(first.encode(TEXTS))).max() > 1e-3


def test_a_flow_that_cannot_halve_the_vectors_says_so() -> None:
    with raises_input_error():
        flow(levels=9).fit(load_corpus("embedded:sentences", limit=4))
