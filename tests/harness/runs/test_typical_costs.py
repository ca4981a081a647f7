"""The sizes of models that estimates of time are made of, against the models themselves."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from transformers import AutoConfig, AutoModel

from harness.runs.typical_costs import Shape, Texts, encoding_speed, read_shape, text_seconds
from tests.support import small_runs

CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "bert": {"hidden_size": 768, "num_hidden_layers": 3},
    "distilbert": {"dim": 768, "n_layers": 2, "hidden_dim": 3072},
    "mpnet": {"hidden_size": 384, "intermediate_size": 1536, "num_hidden_layers": 2},
    "modernbert": {"hidden_size": 768, "num_hidden_layers": 2},
    "gemma3_text": {
        "hidden_size": 640,
        "intermediate_size": 2048,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "head_dim": 256,
        "vocab_size": 1000,
    },
    "qwen3": {
        "hidden_size": 1024,
        "intermediate_size": 3072,
        "num_hidden_layers": 2,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 1000,
    },
    "gpt2": {"n_embd": 256, "n_layer": 2, "n_head": 4},
}


@pytest.mark.parametrize("kind", CONFIGURATIONS)
def test_the_weights_of_a_token_are_those_of_the_model(kind: str) -> None:
    config = AutoConfig.for_model(kind, **CONFIGURATIONS[kind])
    with torch.device("meta"):
        model = AutoModel.from_config(config)
    matrices = 0
    for name, module in model.named_modules():
        of_layer = isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"
        if of_layer and "pooler" not in name:
            matrices += module.weight.numel()
    assert Shape.of(config.to_dict()).body == pytest.approx(matrices, rel=0.01)


def test_longer_texts_and_larger_models_cost_more() -> None:
    shape = read_shape(small_runs.BASE)
    assert shape is not None
    short = text_seconds(shape, Texts(10, 40.0))
    assert short < text_seconds(shape, Texts(10, 80.0))
    assert text_seconds(shape, Texts(10, 1e6)) == text_seconds(
        shape, Texts(10, 2e6)
    )  # they are cut
    assert encoding_speed(768) > 0


@pytest.mark.parametrize("name", ["vectors.npz", "http://localhost:9/v1#m", "module:function"])
def test_of_a_model_that_is_no_transformer_no_size_is_known(name: str) -> None:
    assert read_shape(name) is None
