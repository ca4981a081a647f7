"""A base model for tests of training: a quarter of the embedded model's width, with random weights."""

from __future__ import annotations

import os
import shutil
from functools import cache
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForMaskedLM, AutoTokenizer

from harness.encoder.quiet import quiet_transformers
from harness.sources import resolve_model


@cache
def narrow_bert() -> str:
    """Return the model's folder, made once for all processes of a test run."""
    folder = Path(os.environ["HARNESS_TEST_FOLDER"]) / "narrow-bert"
    if not folder.is_dir():
        embedded = resolve_model("embedded:mini-bert")
        config = AutoConfig.from_pretrained(embedded)
        config.update({"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 2})
        config.initializer_range = 0.1  # large enough that vectors of different texts differ
        unfinished = folder.with_name(f"narrow-bert-{os.getpid()}")
        with quiet_transformers(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(7)
            AutoModelForMaskedLM.from_config(config).save_pretrained(unfinished)
        AutoTokenizer.from_pretrained(embedded).save_pretrained(unfinished)
        try:
            unfinished.rename(folder)
        except OSError:  # another process was faster
            shutil.rmtree(unfinished)
    return str(folder)
