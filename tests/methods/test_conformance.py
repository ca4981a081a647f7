"""Every installed method keeps the promises of the interface."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModelForMaskedLM, AutoTokenizer

import harness
from harness import registry
from harness.method import DEFAULT_BASE_MODEL
from harness.testing import assert_method

EMBEDDED = Path(harness.__file__).parent / "embedded" / "model"


@pytest.fixture(scope="module")
def small_bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A quarter of the embedded model's width, with random weights: the same promises in a fifth of the time."""
    folder = tmp_path_factory.mktemp("bert")
    config = AutoConfig.from_pretrained(EMBEDDED)
    config.update({"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 2})
    torch.manual_seed(7)
    AutoModelForMaskedLM.from_config(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(EMBEDDED).save_pretrained(folder)
    return str(folder)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", registry.names(registry.METHODS))
def test_conformance(name: str, small_bert: str, word_vectors: Path) -> None:
    # The gradient paradigm has no objective of its own: its loss need not fall where the vectors are random.
    base_model = DEFAULT_BASE_MODEL if name == "gradient_paradigm" else small_bert
    config = {"vectors": str(word_vectors)} if name in ("static", "infersent") else None
    assert_method(name, config=config, base_model=base_model)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", ["pooling", "simcse"])
def test_conformance_where_every_text_is_read_twice(name: str) -> None:
    assert_method(name, config={"pooling": "echo"})
