"""Families of base models: told from configurations as the hub's models have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.encoder.layout import no_model
from harness.encoder.loading import family_of
from harness.sources.remote.hub import remedy
from tests.support.configurations import BERT, ROBERTA, folder_of
from tests.support.errors import raises_input_error

LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16}
# As in the config.json of google-bert/bert-base-uncased, distilbert/distilroberta-base and so on.
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "bert-base": BERT,
    "bert-large": BERT | LARGE,
    "bert-base-multilingual": BERT | {"vocab_size": 119547},
    "roberta-base": ROBERTA,
    "roberta-large": ROBERTA | LARGE,
    "distilroberta": ROBERTA | {"num_hidden_layers": 6},
    "distilbert": {
        "model_type": "distilbert",
        "dim": 768,
        "n_layers": 6,
        "n_heads": 12,
        "vocab_size": 30522,
    },
    "xlm-roberta-base": ROBERTA | {"model_type": "xlm-roberta", "vocab_size": 250002},
    "xlm-roberta-large": ROBERTA | LARGE | {"model_type": "xlm-roberta", "vocab_size": 250002},
    "modernbert-base": {"model_type": "modernbert", "hidden_size": 768, "num_hidden_layers": 22},
    "modernbert-large": {"model_type": "modernbert", "hidden_size": 1024, "num_hidden_layers": 28},
    "albert-base": {
        "model_type": "albert",
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "vocab_size": 30000,
    },
    "bert-384x6": BERT | {"hidden_size": 384, "num_hidden_layers": 6},
    "electra-768x12": BERT | {"model_type": "electra"},
    "mini": BERT | {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2},
}


@pytest.mark.parametrize("family", CONFIGURATIONS)
def test_the_configuration_decides_and_not_the_name(family: str, tmp_path: Path) -> None:
    folder = tmp_path / "roberta-large-of-mine"
    folder.mkdir()
    assert family_of(folder_of(folder, CONFIGURATIONS[family])) == family


def test_the_embedded_model_is_a_family_of_its_own() -> None:
    assert family_of("embedded:mini-bert") == "mini"


def test_what_is_no_model_is_one_line(tmp_path: Path) -> None:
    for name in (str(tmp_path), "embedded:maxi", "no/such-model"):
        with raises_input_error():
            family_of(name)


def test_what_was_garbled_on_its_way_is_named_with_what_to_delete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    folder = tmp_path / "models--org--name"
    (folder / "snapshots" / "0").mkdir(parents=True)
    assert "delete" not in str(no_model("org/name", ValueError("no such model")))
    (folder / "snapshots" / "0" / "config.json").write_bytes(b"\xff")
    assert str(no_model("org/name", ValueError("not JSON"))).endswith(
        f"delete {folder} to download it again"
    )
    assert remedy("x" * 400, "model") == remedy("a\0b", "model") == ""
