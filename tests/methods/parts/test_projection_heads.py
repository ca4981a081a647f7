from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from methods.parts.projection_heads import projector, tanh_mlp, widths_for


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def linears(head: nn.Module) -> list[nn.Linear]:
    return [m for m in head.modules() if isinstance(m, nn.Linear)]


def test_tanh_mlp_is_tanh_of_an_affine_map_with_berts_initialisation() -> None:
    head = tanh_mlp(300, generator=generator())
    (linear,) = linears(head)
    assert linear.weight.shape == (300, 300)
    assert float(linear.weight.detach().std()) == pytest.approx(
        0.02, rel=0.02
    )  # 90,000 draws: sd of the sd about 0.2 %
    assert abs(float(linear.weight.detach().mean())) < 0.0004
    assert torch.all(linear.bias == 0)
    h = torch.randn(4, 300, generator=generator(1))
    assert torch.allclose(head(h), torch.tanh(h @ linear.weight.T + linear.bias), atol=1e-6)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("first", [True, False, False]),
        ("hidden", [True, True, False]),
        ("none", [False, False, False]),
        ("all", [True, True, True]),
    ],
)
def test_projector_layers_and_biases(pattern: str, expected: list[bool]) -> None:
    head = projector(8, [16, 12, 10], bias=pattern, init="normal", generator=generator())  # type: ignore[arg-type]
    names = [type(m).__name__ for m in head]
    assert names == ["Linear", "BatchNorm1d", "ReLU", "Linear", "BatchNorm1d", "ReLU", "Linear"]
    assert [linear.bias is not None for linear in linears(head)] == expected
    assert [tuple(linear.weight.shape) for linear in linears(head)] == [(16, 8), (12, 16), (10, 12)]
    norms = [m for m in head if isinstance(m, nn.BatchNorm1d)]
    assert all(torch.all(m.weight == 1) and torch.all(m.bias == 0) for m in norms)


def test_scd_projector_has_the_papers_parameter_count() -> None:
    # 768*4096 + 4096 (bias) + 2 * 4096*4096 + two BatchNorms of 2 * 4096
    with torch.device("meta"):
        head = projector(768, [4096] * 3, bias="first", init="normal")
    assert sum(p.numel() for p in head.parameters()) == 768 * 4096 + 4096 + 2 * 4096**2 + 4 * 4096


def test_pytorch_initialisation_is_uniform_within_one_over_root_inputs() -> None:
    head = projector(400, [100], bias="all", init="pytorch", generator=generator())
    (linear,) = linears(head)
    bound = 1 / math.sqrt(400)
    for values in (linear.weight, linear.bias):
        assert float(values.detach().abs().max()) <= bound
    assert float(linear.weight.detach().std()) == pytest.approx(
        bound / math.sqrt(3), rel=0.02
    )  # sd of a uniform variable


def test_same_generator_seed_same_head_and_the_global_generator_is_left_alone() -> None:
    torch.manual_seed(5)
    state = torch.get_rng_state()
    one = projector(6, [5, 4], bias="hidden", init="pytorch", generator=generator(3))
    two = projector(6, [5, 4], bias="hidden", init="pytorch", generator=generator(3))
    other = projector(6, [5, 4], bias="hidden", init="pytorch", generator=generator(4))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert not torch.equal(linears(one)[0].weight, linears(other)[0].weight)
    assert torch.equal(torch.get_rng_state(), state)


def test_each_view_is_normalised_by_its_own_statistics() -> None:
    """Two calls, so an offset of one whole view disappears in the first BatchNorm."""
    head = projector(4, [6, 3], bias="first", init="normal", generator=generator())
    h = torch.randn(8, 4, generator=generator(1))
    assert torch.allclose(head(h), head(h + 3.0), atol=1e-4)


def test_widths_and_names_are_checked() -> None:
    with pytest.raises(ValueError, match="widths"):
        projector(4, [], bias="none", init="normal")
    with pytest.raises(ValueError, match="bias"):
        projector(4, [4], bias="some", init="normal")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="init"):
        projector(4, [4], bias="none", init="zeros")  # type: ignore[arg-type]


def test_a_projector_without_given_widths_follows_the_base_model() -> None:
    assert widths_for(256, 8192) == (1024,) * 3  # as the presets of the embedded model
    assert widths_for(768, 8192) == widths_for(1024, 8192) == (8192,) * 3
