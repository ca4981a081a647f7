"""Batches without padding: gradients are those of padded batches, and runs resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from harness import registry
from harness.sources import load_corpus
from methods.parts.embedding_views import change_embeddings, feature_cutoff, token_cutoff
from tests.methods.test_large_batches import IN_PARTS, base, expect_equal, gradients, method
from tests.support.bases import narrow_bert
from tests.support.encoder_models import base_model
from tests.support.errors import raises_input_error
from tests.support.kill_and_resume import weights_whole_and_resumed

pytestmark = pytest.mark.timeout(300)
__all__ = ["base"]

# What is more than vectors of two views: changed embeddings and a first gradient, token states, a
# decoder that reads them, a guide's hidden states.
MORE: dict[str, dict[str, Any]] = {
    "consert": {"view_a": "token_cutoff", "view_b": "adversarial"},
    "is_bert": {},
    "tsdae": {},
    "self_guided": {"regularisation": 0.1, "guide_dropout": True},
}
CASES = {**IN_PARTS, **MORE}


@pytest.mark.parametrize("name", list(CASES))
def test_the_gradient_is_that_of_padded_batches(name: str, base: str) -> None:
    padded = gradients(method(name, base, **CASES[name], packed=False), dropout=False)
    packed = gradients(method(name, base, **CASES[name], packed=True), dropout=False)
    assert any(bool(tensor.any()) for name, tensor in padded.items() if name.startswith("encoder"))
    expect_equal(packed, padded)


def test_masked_language_modelling_beside_it(tmp_path: Path) -> None:
    values = {"dropout": 0.0, "mlm_weight": 1.0, "mlm_probability": 0.5}
    model = narrow_bert()
    expect_equal(
        gradients(method("simcse", model, **values, packed=True), dropout=False),
        gradients(method("simcse", model, **values, packed=False), dropout=False),
    )


def test_low_rank_adapters_are_packed_too(tmp_path: Path) -> None:
    pytest.importorskip("peft")
    values = {"mntp_steps": 0, "lora": 2, "batch_size": 7}
    folder = base_model(tmp_path, "qwen3")
    expect_equal(
        gradients(method("llm2vec", folder, **values, packed=True), dropout=False),
        gradients(method("llm2vec", folder, **values, packed=False), dropout=False),
    )


def test_changed_embeddings_are_those_of_the_padded_batch(base: str) -> None:
    """The same draws for the same tokens."""

    def views(packed: bool) -> torch.Tensor:
        torch.manual_seed(1)
        encoder = method("consert", base, packed=packed).load_base().double().train()
        ids = encoder.tokenize(["the cat sat on the mat", "tree", "a dog ran"])
        changes = (
            lambda h, mask: token_cutoff(h, mask, rate=0.4),
            lambda h, mask: feature_cutoff(h, mask, rate=0.4),
        )
        with change_embeddings(encoder.transformer, *changes):
            vectors = encoder.two_views(
                ids, ids, hidden_dropout=(0.0, 0.0), attention_dropout=(0.0, 0.0)
            )
        return torch.stack(vectors)

    torch.testing.assert_close(views(True), views(False), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("simcse", {"batch_size": 5, "train_length": 12, "bucket": 1}),
        (
            "scd",
            {"batch_size": 5, "train_length": 12, "micro_batch": 3, "gradient_checkpointing": True},
        ),
    ],
)
def test_training_resumes_bit_for_bit_and_is_repeatable(
    name: str, values: dict[str, Any], tmp_path: Path
) -> None:
    cls = registry.load(registry.METHODS, name)
    values = {**values, **({"projector": [24, 24]} if name == "scd" else {}), "packed": True}
    corpus = load_corpus("embedded:sentences", limit=20)
    whole, resumed = weights_whole_and_resumed(cls, values, corpus, tmp_path)
    assert all(torch.equal(tensor, resumed[name]) for name, tensor in whole.items())


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert", "mpnet"])
def test_by_default_batches_are_packed_where_the_base_model_can(
    family: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Else training goes on with padding, and one line in the log says so."""
    trained = method("simcse", base_model(tmp_path, family), dropout=0.1, batch_size=4, max_steps=1)
    trained.fit(load_corpus("embedded:sentences", limit=8))
    assert trained.fit_report.training.get("packed", False) == (family != "mpnet")
    assert sum("mpnet" in record.getMessage() for record in caplog.records) == (family == "mpnet")


def test_a_base_model_that_cannot_is_refused_before_training(tmp_path: Path) -> None:
    with raises_input_error(key="packed"):
        method("simcse", base_model(tmp_path, "mpnet"), packed=True).load_base()
    for name in ("infersent", "skip_thought"):
        with raises_input_error(key="packed"):
            method(name, packed=True)
