"""Training of the last layers alone: which weights move, and what cannot be trained so."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModel

from harness import registry
from harness.encoder import Encoder
from harness.encoder.last_layers import freeze_below
from harness.errors import InputError
from harness.method import FitContext, require_corpus
from harness.training import TrainedMethod
from tests.support.errors import raises_input_error

BASE = "embedded:mini-bert"
TEXTS = ["A dog runs.", "It rains.", "She sells maps.", "He sings."]
# What transformers calls the parts of a model in training order: those below the second layer, and
# those of it and above. Sizes are as small as the type allows.
SMALL: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "vocab_size": 50,
}
TYPES = {
    "bert": (SMALL, "encoder.layer.1.", ("pooler.",)),
    "roberta": (SMALL, "encoder.layer.1.", ("pooler.",)),
    "mpnet": (SMALL, "encoder.layer.1.", ("pooler.",)),
    "electra": ({**SMALL, "embedding_size": 16}, "encoder.layer.1.", ()),
    "distilbert": (
        {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32, "vocab_size": 50},
        "transformer.layer.1.",
        (),
    ),
    "modernbert": ({**SMALL, "pad_token_id": 0}, "layers.1.", ("final_norm.",)),
    "llama": ({**SMALL, "num_key_value_heads": 2}, "layers.1.", ("norm.",)),
}


def make(name: str, **values: Any) -> TrainedMethod:
    kind: type[TrainedMethod] = registry.load(registry.METHODS, name)
    return kind(kind.configure({"batch_size": 4, "max_steps": 2, **values}), base_model=BASE)


def moved(method: TrainedMethod) -> set[str]:
    """Train, and return the names of the transformer's weights that are not the base model's."""
    before = Encoder.from_pretrained(BASE).transformer.state_dict()
    text: Any = TEXTS if method.text == "sentences" else [" ".join(TEXTS)] * 4
    method.fit(text, FitContext(seed=1, precision="fp32"))
    after = method.encoder.transformer.state_dict()
    return {name for name, weight in after.items() if not torch.equal(weight, before[name])}


def depth() -> int:
    return int(
        AutoConfig.from_pretrained(
            Encoder.from_pretrained(BASE).transformer.name_or_path
        ).num_hidden_layers
    )


@pytest.mark.parametrize("name", ["simcse", "barlow_twins", "quick_thoughts", "tsdae"])
def test_only_the_last_layers_move(name: str) -> None:
    last = depth() - 1
    found = moved(make(name, trainable_layers=1))
    assert found
    assert {name.partition(f"layer.{last}.")[0] for name in found} == {"encoder."}


def test_all_layers_without_the_embeddings() -> None:
    found = moved(make("simcse", trainable_layers=depth()))
    assert not [name for name in found if name.startswith("embeddings.")]
    assert [name for name in found if "layer.0." in name]
    assert [name for name in moved(make("simcse")) if name.startswith("embeddings.")]


@pytest.mark.parametrize("name", TYPES)
def test_what_learns_in_models_of_several_types(name: str) -> None:
    sizes, second, above = TYPES[name]
    model = AutoModel.from_config(AutoConfig.for_model(name, **sizes))
    encoder = torch.nn.Module()
    encoder.transformer = model
    freeze_below(encoder, 1, name)  # type: ignore[arg-type]
    learning = {name for name, p in model.named_parameters() if p.requires_grad}
    assert learning == {
        name for name, _ in model.named_parameters() if name.startswith((second, *above))
    }
    assert [name for name in learning if name.startswith(second)]


def test_more_layers_than_the_model_has_are_refused_before_training() -> None:
    method = make("simcse", trainable_layers=depth() + 1)
    corpus = require_corpus(method, TEXTS)
    with raises_input_error() as caught:
        method.check(corpus)
    assert caught.value.key == "trainable_layers"
    with pytest.raises(InputError):
        make("simcse", trainable_layers=0)


def test_layers_that_share_their_weights_are_refused() -> None:
    config = AutoConfig.for_model("albert", **SMALL, embedding_size=16)
    encoder = torch.nn.Module()
    encoder.transformer = AutoModel.from_config(config)
    with pytest.raises(InputError) as caught:
        freeze_below(encoder, 1, "albert")  # type: ignore[arg-type]
    assert caught.value.key == "trainable_layers"


def test_the_option_is_a_part_of_the_id_where_it_is_set() -> None:
    configs = [
        make("simcse", **values).config.model_dump() for values in ({}, {"trainable_layers": 2})
    ]
    assert "trainable_layers" not in configs[0]
    assert configs[1]["trainable_layers"] == 2
