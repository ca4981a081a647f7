"""Presets that stand for a released script: batches, warm-up and heads as that script has them."""

from __future__ import annotations

from typing import Any

import pytest

from harness import registry
from harness.method import Method

ORIGINALS: list[
    tuple[str, str, str, dict[str, Any]]
] = [  # method, preset, family, settings read in the released code
    (
        "contrastive_tension",
        "port",
        "bert-base",
        {"decay": "linear", "warmup": 0.0, "drop_last": True},
    ),
    (
        "contrastive_tension",
        "in-batch",
        "bert-base",
        {"warmup_steps": 1000, "decay": "linear", "drop_last": True, "min_characters": 0},
    ),
    ("w_mse", "code", "bert-base", {"joint_head": True, "batch_size": 512, "slice": 128}),
    ("cert", "paper", "bert-large", {"head_dropout": 0.1}),
    ("declutr", "code", "roberta-base", {"drop_last": True}),
    ("tsdae", "code", "bert-base", {"decay": False, "warmup": 0.0, "drop_last": True}),
    (
        "tsdae",
        "code-stsb",
        "bert-base",
        {"decay": True, "warmup_steps": 100, "train_length": 75, "drop_last": True},
    ),
    ("mixcse", "code", "bert-base", {"mix": 0.2}),
    ("barlow_twins", "code", "bert-base", {"off_diagonal_weight": 0.0051}),
    ("barlow_twins", "unsee", "bert-base", {"weight_decay": 0.01}),
    ("vicreg", "unsee", "bert-base", {"weight_decay": 0.01}),
    ("corinfomax", "code", "bert-base", {"weight_decay": 0.01}),
    ("self_guided", "code", "bert-base", {"warmup": 0.1, "patience": 10, "drop_last": False}),
    ("is_bert", "code", "bert-base", {"warmup": 0.1, "drop_last": False}),
    ("simcse", "code", "bert-base", {"warmup": 0.0, "drop_last": False}),
]


@pytest.mark.parametrize(("name", "preset", "family", "settings"), ORIGINALS)
def test_a_preset_is_what_the_script_has(
    name: str, preset: str, family: str, settings: dict[str, Any]
) -> None:
    method: type[Method] = registry.load(registry.METHODS, name)
    config = method.configure({}, preset=preset, family=family).model_dump()
    assert {key: config[key] for key in settings} == settings
    assert config["bucket"] == 1, "the originals shuffle at random"


def test_ct_falls_linearly_as_sentence_transformers_trains_it() -> None:
    method: type[Any] = registry.load(registry.METHODS, "contrastive_tension")
    port = method(method.configure({}, preset="port", family="bert-base"))
    assert [port.schedule(step, 10) for step in (0, 5, 9)] == [1.0, 0.5, 0.1]
    in_batch = method(method.configure({}, preset="in-batch", family="bert-base"))
    assert [in_batch.schedule(step, 7812) for step in (0, 500, 1000, 4406)] == [0.0, 0.5, 1.0, 0.5]


def test_cropping_warms_up_for_a_tenth_of_its_steps_rounded_down() -> None:
    method: type[Any] = registry.load(registry.METHODS, "infonce")
    config = method.configure({}, preset="paper", family="mpnet-base")
    assert config.warm_updates(368) == 36  # int(0.1 * 368), as the released notebook has it
