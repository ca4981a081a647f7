"""A base model for tests of training: a quarter of the embedded model's width, half of its layers
and a fifth of its tokens, with random weights.
"""

from __future__ import annotations

import json
import os
import shutil
from functools import cache
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForMaskedLM

from harness.encoder.quiet import quiet_transformers
from harness.files.reading import read_json
from harness.sources import resolve_model

TOKENS = 3000  # the most frequent ones, with all letters: loads and training steps are short


@cache
def narrow_bert() -> str:
    """Return the model's folder, made once for all processes of a test run."""
    folder = Path(os.environ["HARNESS_TEST_FOLDER"]) / "narrow-bert"
    if not folder.is_dir():
        embedded = Path(resolve_model("embedded:mini-bert"))
        config = AutoConfig.from_pretrained(embedded)
        config.update({"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 2})
        config.num_hidden_layers = 2
        config.vocab_size = TOKENS
        config.initializer_range = 0.1  # large enough that vectors of different texts differ
        unfinished = folder.with_name(f"narrow-bert-{os.getpid()}")
        with quiet_transformers(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(7)
            AutoModelForMaskedLM.from_config(config).save_pretrained(unfinished)
        tokenizer = read_json(embedded / "tokenizer.json")
        tokens = tokenizer["model"]["vocab"].items()
        tokenizer["model"]["vocab"] = {token: place for token, place in tokens if place < TOKENS}
        (unfinished / "tokenizer.json").write_text(json.dumps(tokenizer))
        shutil.copy(embedded / "tokenizer_config.json", unfinished)
        try:
            unfinished.rename(folder)
        except OSError:  # another process was faster
            shutil.rmtree(unfinished)
    return str(folder)
