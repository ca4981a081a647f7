"""The sigmoid loss: against transformers' SigLIP, by hand, and what it learns."""

from __future__ import annotations

import math

import pytest
import torch

from harness import registry
from harness.method import FitContext
from methods.objectives import sigmoid_pairs


def test_equals_transformers_in_value_and_gradient() -> None:
    from transformers import SiglipConfig, SiglipModel

    small = {
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    config = SiglipConfig(
        text_config={
            **small,
            "vocab_size": 40,
            "max_position_embeddings": 8,
            "projection_size": 16,
        },
        vision_config={**small, "image_size": 8, "patch_size": 4},
    )
    torch.manual_seed(1)
    model = SiglipModel(config).double().eval()
    torch.nn.init.constant_(model.logit_scale, math.log(10.0))
    torch.nn.init.constant_(model.logit_bias, -10.0)
    out = model(
        input_ids=torch.randint(0, 40, (5, 8)),
        pixel_values=torch.randn(5, 3, 8, 8, dtype=torch.float64),
        return_loss=True,
    )
    # transformers' rows are texts: its loss divides by their number, as ours does
    text, image = out.text_embeds, out.image_embeds
    ours = sigmoid_pairs(text, image, scale=model.logit_scale.exp(), bias=model.logit_bias)
    assert float(ours) == pytest.approx(float(out.loss), rel=1e-12)
    wanted = torch.autograd.grad(
        out.loss, (text, image, model.logit_scale, model.logit_bias), retain_graph=True
    )
    found = torch.autograd.grad(ours, (text, image, model.logit_scale, model.logit_bias))
    # unit vectors are normalised again here, which takes the gradient along them away
    for mine, other, vectors in zip(found[:2], wanted[:2], (text, image), strict=True):
        along = (other * vectors).sum(1, keepdim=True) * vectors
        assert torch.allclose(mine, other - along, rtol=1e-9, atol=1e-12)
    for mine, other in zip(found[2:], wanted[2:], strict=True):
        assert torch.allclose(mine, other, rtol=1e-9)


def test_by_hand() -> None:
    a = torch.tensor([[1.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
    b = torch.tensor([[3.0, 4.0], [0.0, 1.0]], dtype=torch.float64)
    cosines = [[0.6, 0.0], [0.8, 1.0]]
    wanted = 0.0
    for i in range(2):
        for j in range(2):
            sign = 1 if i == j else -1
            wanted += math.log1p(math.exp(-sign * (10 * cosines[i][j] - 3)))
    found = sigmoid_pairs(a, b, scale=torch.tensor(10.0), bias=torch.tensor(-3.0))
    assert float(found) == pytest.approx(wanted / 2, rel=1e-6)


def test_scale_and_bias_learn() -> None:
    kind = registry.load(registry.METHODS, "siglip")
    values = {"batch_size": 4, "max_steps": 3, "learning_rate": 1e-2, "log_every": 1}
    method = kind(kind.configure(values), base_model="embedded:mini-bert")
    texts = ["A dog runs.", "It rains.", "She sells maps.", "He sings."] * 3
    seen: list[dict[str, float]] = []
    heads_of = method.heads

    def remember(encoder: object) -> torch.nn.Module:
        heads = heads_of(encoder)
        seen.append({name: float(p) for name, p in heads.named_parameters() if p.ndim == 0})
        method.__dict__["kept"] = heads
        return heads

    method.heads = remember
    method.fit(texts, FitContext(seed=1, precision="fp32"))
    after = {
        name: float(p) for name, p in method.__dict__["kept"].named_parameters() if p.ndim == 0
    }
    assert seen[0] == pytest.approx({"log_scale": math.log(10), "bias": -10.0})
    assert all(after[name] != value for name, value in seen[0].items())
