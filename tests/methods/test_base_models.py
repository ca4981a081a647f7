"""Every method that trains on sentences makes two updates on every type of encoder, and is read
back as it was.

The encoders have the configurations of their types, a width of 32 and random weights. ModernBERT's
and Qwen3's checkpoints drop nothing by themselves.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness import registry
from harness.errors import InputError
from harness.method import FitContext, Method
from harness.sources import Corpus, load_corpus
from tests.support.encoder_models import NO_DROPOUT, base_model
from tests.support.errors import raises_input_error

WORDS = [
    "cat",
    "dog",
    "sat",
    "on",
    "big",
    "red",
    "mat",
    "ran",
    "fast",
    "slow",
    "small",
    "tree",
    "bird",
]
TYPES = ("roberta", "xlm-roberta", *NO_DROPOUT)
SMALL = {"batch_size": 8, "train_length": 16, "log_every": 1}
NARROW = {"projector": (16, 16)}
METHODS: dict[str, dict[str, Any]] = {
    "simcse": {},
    "scd": NARROW,
    "barlow_twins": NARROW,
    "vicreg": NARROW,
    "mixcse": {},
    "esimcse": {},
    "consert": {},
    "byol": {**NARROW, "predictor": 16},
    "infonce": {},
    "w_mse": {"projector": (16, 4), "slice": 8},
    "lejepa": {**NARROW, "slices": 16},
    "visreg": {**NARROW, "slices": 16},
    "siglip": {},
    "corinfomax": {"projector_blocks": 1},
    "gradient_paradigm": {"margin": 0.9, "temperature": 0.1, "ratio": 1.5},
    "self_guided": {"head_width": 16},
    "contrastive_tension": {"batch_size": 15},
    "is_bert": {"filters": 8},
    "tsdae": {},
}
NEEDS_TWO_VIEWS = (
    "simcse",
    "scd",
    "barlow_twins",
    "vicreg",
    "mixcse",
    "esimcse",
    "byol",
    "infonce",
    "w_mse",
    "lejepa",
    "visreg",
    "siglip",
    "corinfomax",
    "gradient_paradigm",
)
SHORT = [
    ("simcse", "qwen3"),
    ("scd", "modernbert"),
    ("barlow_twins", "xlm-roberta"),
    ("self_guided", "modernbert"),
    ("is_bert", "roberta"),
    ("tsdae", "xlm-roberta"),
    ("contrastive_tension", "qwen3"),
]
ALL = [(name, kind) for name in METHODS for kind in TYPES]


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {kind: base_model(tmp_path_factory.mktemp(kind), kind) for kind in TYPES}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    draw = np.random.default_rng(0)
    texts = [" ".join(draw.choice(WORDS, size=draw.integers(4, 9))) for _ in range(32)]
    file = tmp_path_factory.mktemp("text") / "made.txt"
    file.write_text("\n".join(texts))
    return load_corpus(str(file))


def settings(name: str, kind: str) -> dict[str, Any]:
    """With rates where the checkpoint has none: of attention alone where the type drops no hidden
    states.
    """
    values = {**SMALL, **METHODS[name], "pooling": "mean"}
    if name not in NEEDS_TWO_VIEWS or kind not in NO_DROPOUT:
        return values
    if kind == "modernbert":
        return values | ({} if name == "scd" else {"dropout": 0.1})
    if name == "scd":
        return values | {
            "dropout_a": None,
            "dropout_b": None,
            "attention_rate_a": 0.1,
            "attention_rate_b": 0.2,
        }
    return values | {"dropout": None, "attention_rate": 0.1}


def two_updates(name: str, kind: str, bases: dict[str, str], corpus: Corpus, folder: Path) -> None:
    method: type[Method] = registry.load(registry.METHODS, name)
    made = method(method.configure(settings(name, kind)), base_model=bases[kind])
    if name == "tsdae" and kind in NO_DROPOUT:
        with raises_input_error():
            made.fit(corpus, FitContext(precision="fp32", max_steps=2))
        return
    before = np.asarray(made.load_base().encode(corpus[:4])) if name != "is_bert" else None
    made.fit(corpus, FitContext(precision="fp32", max_steps=2))
    vectors = np.asarray(made.encode(corpus[:4]))
    assert np.isfinite(vectors).all()
    assert before is None or not np.allclose(vectors, before, atol=1e-7), "nothing was learnt"
    made.save(folder / "saved")
    again = method.load(folder / "saved")
    assert again.config == made.config
    np.testing.assert_allclose(np.asarray(again.encode(corpus[:4])), vectors, atol=1e-6)


@pytest.mark.parametrize(("name", "kind"), SHORT)
def test_two_updates_save_load_and_encode(
    name: str, kind: str, bases: dict[str, str], corpus: Corpus, tmp_path: Path
) -> None:
    two_updates(name, kind, bases, corpus, tmp_path)


@pytest.mark.campaign
@pytest.mark.parametrize(("name", "kind"), [pair for pair in ALL if pair not in SHORT])
def test_two_updates_of_every_method_on_every_type(
    name: str, kind: str, bases: dict[str, str], corpus: Corpus, tmp_path: Path
) -> None:
    two_updates(name, kind, bases, corpus, tmp_path)


@pytest.mark.parametrize("kind", NO_DROPOUT)
def test_equal_views_are_refused_with_the_option_that_helps(
    kind: str, bases: dict[str, str], corpus: Corpus
) -> None:
    """SimCSE leaves the rates to the checkpoint, which has none: both views are the same vector."""
    method = registry.load(registry.METHODS, "simcse")
    with pytest.raises(InputError, match=f'views of every sentence .* "{kind}".*set dropout'):
        method(method.configure(SMALL | {"pooling": "mean"}), base_model=bases[kind]).fit(
            corpus, FitContext(max_steps=2)
        )
    same = method.configure(
        SMALL | {"pooling": "mean", "same_mask": True}
    )  # the ablation asks for equal views
    method(same, base_model=bases[kind]).fit(corpus, FitContext(precision="fp32", max_steps=1))


@pytest.mark.parametrize("name", ["scd", "barlow_twins", "w_mse", "byol", "infonce"])
def test_every_objective_of_two_views_refuses_equal_ones(
    name: str, bases: dict[str, str], corpus: Corpus
) -> None:
    none = {"dropout_a": 0.0, "dropout_b": 0.0} if name == "scd" else {"dropout": 0.0}
    method = registry.load(registry.METHODS, name)
    config = method.configure({**SMALL, **METHODS[name], **none})
    with raises_input_error():
        method(config, base_model=bases["roberta"]).fit(
            corpus, FitContext(precision="fp32", max_steps=1)
        )


@pytest.mark.parametrize(
    "name", ["esimcse", "promptbert", "sncse", "self_guided", "is_bert", "contrastive_tension"]
)
def test_a_base_model_without_dropout_is_one_line_where_views_differ_without_it(
    name: str, bases: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    template = {"pooling": "prompt:the [X] and the", "second": "a [X] and the"}
    values = {
        "contrastive_tension": {"dropout": True},
        "promptbert": template,
        "sncse": template,
    }.get(name, {})
    kind = registry.load(registry.METHODS, name)
    for base, lines in (("modernbert", 1), ("roberta", 0)):
        caplog.clear()
        method = kind(kind.configure(values), base_model=bases[base])
        method.heads(method.load_base())
        assert [f'type "{base}" has no dropout' in message for message in caplog.messages] == [
            True
        ] * lines


def test_a_type_without_hidden_dropout_says_so(bases: dict[str, str], corpus: Corpus) -> None:
    method = registry.load(registry.METHODS, "simcse")
    config = method.configure(SMALL | {"pooling": "mean", "dropout": 0.1})
    with raises_input_error(key="hidden_dropout"):
        method(config, base_model=bases["qwen3"]).fit(
            corpus, FitContext(precision="fp32", max_steps=1)
        )
