"""Base models of the papers' sizes without their weights: configurations, and families of the hub's
names.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.encoder import loading

BERT: dict[str, Any] = {
    "model_type": "bert",
    "vocab_size": 30522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
}
ROBERTA: dict[str, Any] = {**BERT, "model_type": "roberta", "vocab_size": 50265}


def folder_of(folder: Path, configuration: dict[str, Any]) -> str:
    """Write a model folder that holds a configuration alone, and return its name."""
    (folder / "config.json").write_text(json.dumps(configuration))
    return str(folder)


ON_THE_HUB = {
    "google-bert/bert-base-uncased": "bert-base",
    "google-bert/bert-large-uncased": "bert-large",
    "google/bert_uncased_L-4_H-256_A-4": "mini",
    "google-bert/bert-base-multilingual-cased": "bert-base-multilingual",
    "FacebookAI/roberta-base": "roberta-base",
    "FacebookAI/roberta-large": "roberta-large",
    "distilbert/distilroberta-base": "distilroberta",
    "FacebookAI/xlm-roberta-base": "xlm-roberta-base",
    "answerdotai/ModernBERT-base": "modernbert-base",
    "microsoft/mpnet-base": "mpnet-base",
    "google/gemma-3-270m": "gemma3_text-640x18",
    "sentence-transformers/bert-base-nli-mean-tokens": "bert-base",
    "sentence-transformers/bert-large-nli-mean-tokens": "bert-large",
    "sentence-transformers/roberta-base-nli-mean-tokens": "roberta-base",
}


def know_base_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files that name models of the hub be resolved without one."""
    read = loading.family_of
    monkeypatch.setattr(loading, "family_of", lambda name: ON_THE_HUB.get(name) or read(name))
