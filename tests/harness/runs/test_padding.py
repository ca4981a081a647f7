"""What the dry run says of random batches that are padded."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers import AutoConfig

from harness.api.experiments import plan_comparison
from harness.runs.padding import (
    PACKED_TYPES,
    _measure_padding,
    can_pack,
    describe_padding,
    try_packing,
)
from harness.training import BatchStream
from harness.training.loop import TrainingConfig

TREE = {
    "seeds": [1],
    "suites": ["Embedded-STS-natural"],
    "corpus": "embedded:sentences",
    "max_steps": 4,
    "device": "cpu",
    "dev": {"task": "Embedded-STS-natural"},
}


def test_batches_are_random_by_default_as_in_the_originals() -> None:
    assert TrainingConfig().bucket == 1


def test_the_share_is_rows_times_the_longest_over_all_lengths() -> None:
    texts = ["a" * 10, "a" * 20, "a" * 30]
    stream = BatchStream(texts, batch_size=3, bucket=1, seed=1, length_cap=100)
    assert _measure_padding(stream) == pytest.approx(3 * 30 / 60)
    cut = BatchStream(texts, batch_size=3, bucket=1, seed=1, length_cap=20)
    assert _measure_padding(cut) == pytest.approx(3 * 20 / 50)


def test_only_rows_whose_random_batches_are_padded_are_named() -> None:
    rows = [
        {"name": "packs", "method": "simcse"},
        {"name": "pads", "method": "simcse", "config": {"packed": False}},
        {"name": "sorts", "method": "simcse", "config": {"packed": False, "bucket": 32}},
    ]
    said = describe_padding(plan_comparison({**TREE, "methods": rows}).plan)
    assert "pads (packed = false)" in said
    assert "packs" not in said
    assert "sorts" not in said
    assert describe_padding(plan_comparison({**TREE, "methods": rows[:1]}).plan) == ""


SIZES = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 50}
SIZES_OF_DISTILBERT = {"dim": 16, "n_heads": 2, "hidden_dim": 32, "vocab_size": 50}


@pytest.mark.parametrize("name", sorted(PACKED_TYPES))
def test_types_that_are_not_tried_can_be_packed(name: str) -> None:
    sizes = SIZES_OF_DISTILBERT if name == "distilbert" else SIZES
    config = AutoConfig.for_model(name, **sizes, pad_token_id=0)
    assert try_packing(config)


def test_a_base_model_is_tried_by_its_configuration_alone(tmp_path: Path) -> None:
    for name in ("electra", "deberta-v2"):
        config = AutoConfig.for_model(name, **SIZES, num_hidden_layers=2)
        config.architectures = ["Model"]
        config.save_pretrained(tmp_path / name)
    assert can_pack(str(tmp_path / "electra"))
    assert not can_pack(str(tmp_path / "deberta-v2"))  # its attention mixes tokens by position
