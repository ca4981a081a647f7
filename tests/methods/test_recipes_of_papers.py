"""Recipes against what papers and released scripts print."""

from __future__ import annotations

from typing import Any

import pytest

from harness import registry
from harness.recipes import iterate_presets

ORDERED = ("quick_thoughts", "skip_thought")  # their originals do not shuffle single sentences

# method, preset, family -> what the source says
PRINTED: list[tuple[str, str, str, dict[str, Any]]] = [
    ("simcse", "paper", "bert-base", {"batch_size": 64, "learning_rate": 3e-5}),
    ("simcse", "paper", "bert-large", {"batch_size": 64, "learning_rate": 1e-5}),
    ("simcse", "paper", "roberta-base", {"batch_size": 512, "learning_rate": 1e-5}),
    ("simcse", "code", "roberta-large", {"batch_size": 512, "learning_rate": 3e-5}),
    (
        "simcse",
        "noncontrastive-baseline",
        "bert-base",
        {"batch_size": 256, "epochs": 2, "learning_rate": 3e-5},
    ),
    (
        "simcse",
        "noncontrastive-baseline",
        "roberta-base",
        {"batch_size": 256, "epochs": 2, "learning_rate": 1e-5},
    ),
    (
        "simcse_supervised",
        "paper",
        "roberta-base",
        {"batch_size": 512, "learning_rate": 5e-5, "epochs": 3},
    ),
    (
        "simcse_supervised",
        "paper",
        "bert-large",
        {"batch_size": 512, "learning_rate": 1e-5, "epochs": 3},
    ),
    (
        "scd",
        "paper",
        "roberta-base",
        {
            "decorrelation_weight": 0.0033,
            "off_diagonal_weight": 0.028,
            "dropout_a": 0.065,
            "dropout_b": 0.24,
            "temperature": 1.0,
        },
    ),
    ("scd", "code", "bert-base", {"batch_size": 192, "learning_rate": 3e-5, "temperature": 0.05}),
    ("barlow_twins", "paper", "roberta-base", {"dropout": 0.1, "batch_size": 256, "epochs": 2}),
    ("barlow_twins", "paper-eda", "roberta-base", {"eda": 0.2}),
    (
        "barlow_twins",
        "code",
        "bert-base",
        {"off_diagonal_weight": 0.0051, "projector_bias": "none"},
    ),
    ("vicreg", "paper", "roberta-base", {"dropout": 0.2}),
    ("mixcse", "code", "bert-base", {"mix": 0.2}),
    ("mixcse", "code-before-june-2022", "bert-base", {"mix": 0.6}),
    ("esimcse", "paper", "bert-base", {"repetition": 0.32, "queue_size": 160, "momentum": 0.995}),
    ("esimcse", "paper", "roberta-base", {"repetition": 0.3, "queue_size": 160, "batch_size": 64}),
    (
        "consert",
        "paper",
        "bert-base",
        {"learning_rate": 5e-7, "batch_size": 96, "temperature": 0.1},
    ),
    ("consert", "code", "bert-large", {"view_a": "none", "view_b": "shuffle", "epochs": 25}),
    ("diffcse", "paper", "bert-base", {"learning_rate": 7e-6, "mask": 0.3, "rtd_weight": 0.005}),
    (
        "diffcse",
        "paper",
        "roberta-base",
        {"learning_rate": 1e-5, "mask": 0.2, "generator": "distilroberta-base"},
    ),
    (
        "diffcse",
        "paper-transfer",
        "bert-base",
        {"learning_rate": 2e-6, "mask": 0.15, "rtd_weight": 0.05},
    ),
    (
        "promptbert",
        "paper",
        "bert-base",
        {"batch_size": 256, "learning_rate": 1e-5, "epochs": 1, "denoise": True},
    ),
    (
        "sncse",
        "paper",
        "bert-base",
        {
            "batch_size": 256,
            "learning_rate": 1e-5,
            "margin_weight": 1e-3,
            "margin_lower": 0.1,
            "margin_upper": 0.3,
        },
    ),
    (
        "sncse",
        "paper",
        "roberta-large",
        {"batch_size": 128, "learning_rate": 5e-6, "margin_weight": 5e-4},
    ),
    (
        "dclr",
        "paper",
        "bert-base",
        {"batch_size": 128, "epochs": 3, "threshold": 0.9, "noise_share": 1.0},
    ),
    (
        "dclr",
        "code",
        "roberta-base",
        {"learning_rate": 3e-5, "threshold": 0.85, "noise_share": 2.5},
    ),
    (
        "rankcse",
        "paper",
        "bert-base",
        {"learning_rate": 3e-5, "batch_size": 128, "teacher_share": 0.33},
    ),
    ("w_mse", "code", "bert-base", {"batch_size": 512, "joint_head": True}),
    (
        "infonce",
        "paper",
        "mpnet-base",
        {
            "view": "sentence_crop",
            "batch_size": 64,
            "learning_rate": 2e-5,
            "temperature": 0.05,
            "select": "last",
            "native_dropout": True,
        },
    ),
    (
        "declutr",
        "paper",
        "distilroberta",
        {"lr_schedule": "instances", "batch_size": 16, "l_max": 512},
    ),
    ("declutr", "code", "roberta-base", {"lr_schedule": "released", "drop_last": True}),
    (
        "self_guided",
        "paper",
        "bert-large",
        {"batch_size": 16, "learning_rate": 5e-5, "layer_pooling": "max"},
    ),
    ("self_guided", "code", "roberta-base", {"layer_pooling": "mean", "select": "last"}),
    ("contrastive_tension", "port", "bert-base", {"decay": "linear", "optimizer": "rmsprop_torch"}),
    (
        "contrastive_tension",
        "in-batch",
        "bert-base",
        {"batch_size": 128, "warmup_steps": 1000, "drop_last": True},
    ),
    ("tsdae", "code", "bert-base", {"decay": False, "warmup": 0.0, "train_length": 128}),
    ("tsdae", "code-stsb", "bert-base", {"decay": True, "warmup_steps": 100, "train_length": 75}),
    (
        "is_bert",
        "code",
        "bert-base",
        {"learning_rate": 2e-6, "adam_eps": 1e-7, "bias_correction": False},
    ),
    (
        "vicreg",
        "unsee",
        "bert-base",
        {"target": "ema", "projector_blocks": 4, "warmup": 0.1, "learning_rate": 1e-4},
    ),
    ("lejepa", "paper", "bert-base", {"weight": 0.05, "points": 17, "range": 5.0, "slices": 1024}),
    (
        "gradient_paradigm",
        "paper",
        "roberta-base",
        {
            "margin": 0.37,
            "ratio": 1.25,
            "temperature": 0.05,
            "tanh": True,
            "redundancy": 1.0,
            "batch_size": 512,
            "base": "barlow_twins",
        },
    ),
    (
        "gradient_paradigm",
        "original-vicreg",
        "roberta-base",
        {"redundancy": 30.0, "learning_rate": 1e-6},
    ),
    (
        "retromae",
        "paper",
        "bert-base",
        {"encoder_mask": 0.3, "decoder_mask": 0.5, "epochs": 8, "batch_size": 256},
    ),
    (
        "cot_bert",
        "paper",
        "bert-base",
        {"batch_size": 256, "parts": 2, "learning_rate": 1e-5, "drop_last": True},
    ),
    ("cert", "paper", "bert-large", {"pooling": "cls_pooler", "head_dropout": 0.1}),
]


@pytest.mark.parametrize(("name", "preset", "family", "printed"), PRINTED)
def test_values_are_those_that_are_printed(
    name: str, preset: str, family: str, printed: dict[str, Any]
) -> None:
    config = registry.load(registry.METHODS, name).configure({}, preset=preset, family=family)
    assert {key: getattr(config, key) for key in printed} == printed


def test_papers_and_codes_shuffle_at_random() -> None:
    """Their batches hold sentences of all lengths; only recipes for the mini model sort by length.
    Quick Thoughts has batches of consecutive sentences, which nothing sorts; those of
    Skip-Thought's own code are of one length.
    """
    seen = 0
    for name in registry.names(registry.METHODS):
        method = registry.load(registry.METHODS, name)
        for preset, family in iterate_presets(method.presets):
            config: Any = method.configure({}, preset=preset, family=family)
            if family not in (None, "mini") and hasattr(config, "bucket") and name not in ORDERED:
                assert config.bucket == 1, f"{name}: {preset} on {family}"
                seen += 1
    assert seen > 100


def test_the_rates_of_a_model_that_drops_nothing_are_stated() -> None:
    for name in ("simcse", "mixcse", "esimcse", "barlow_twins", "vicreg", "byol", "w_mse"):
        config: Any = registry.load(registry.METHODS, name).configure(
            {}, preset="paper", family="modernbert-base"
        )
        assert config.dropout > 0
