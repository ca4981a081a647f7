"""What a pretraining leaves behind: a Hugging Face folder with its masked-language head, its curves and its recipe."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import torch

from harness.encoder.layout.saving import staged_folder
from harness.encoder.quiet import quiet_transformers
from harness.pretraining.masked_lm_pretraining import Pretraining
from harness.pretraining.options import SHAPE

_ROWS = 16  # of the loss table


def save(run: Pretraining, path: Path) -> None:
    """Write model, tokenizer, curves.jsonl and README.md into the folder `path`, in whole or not at all."""
    model = run.model.to("cpu")  # type: ignore[arg-type]
    if run.config.half:
        model = model.to(torch.float16)
    with staged_folder(path) as folder, quiet_transformers():
        model.save_pretrained(folder)
        run.tokenizer.save_pretrained(folder)
        lines = "".join(json.dumps(line) + "\n" for line in run.curves.lines)
        (folder / "curves.jsonl").write_text(lines, "utf-8")
        (folder / "README.md").write_text(_readme(run, path.name), "utf-8")


def _readme(run: Pretraining, name: str) -> str:
    config, shape = run.config, run.model.config
    tokens = run.step * run.rows * run.length
    corpora = [
        f"- {corpus.uri}: {len(corpus):,} {corpus.kind}, sha256 `{corpus.sha256[:16]}`" for corpus in run.corpora
    ]
    from_scratch = config.base_model is None
    options = config.model_dump(exclude={"base_model", *(() if from_scratch else SHAPE)}, exclude_none=True)
    recipe = [f"| {key} | {value} |" for key, value in {**options, "learning_rate": config.peak}.items()]
    return f"""---
library_name: transformers
pipeline_tag: fill-mask
---

# {name}

A {shape.model_type} encoder ({shape.num_hidden_layers} layers, {shape.hidden_size} wide, a vocabulary of \
{len(run.tokenizer):,} tokens, {sum(p.numel() for p in run.model.parameters()):,} parameters), \
{"pretrained from scratch" if from_scratch else f"started from {config.base_model} and further pretrained"} by \
masked-language modelling. Made by `harness pretrain`.

Masked-token loss on held-back text: {run.loss:.3f} nats a token (perplexity {math.exp(min(run.loss, 50)):.1f}), \
{run.initial:.3f} before.

## Text

{chr(10).join(corpora)}

Packed into sequences of {run.length} tokens: {len(run.train):,} for training, {len(run.held):,} for validation.

## Recipe

{run.step:,} updates, {tokens:,} tokens, {run.seconds / 60:.1f} minutes on {run.device}, computed in {run.precision}; \
AdamW, linear warm-up and decay.

| option | value |
|---|---|
{chr(10).join(recipe)}

## Loss

| updates | training | validation |
|---|---|---|
{chr(10).join(_loss_table(run.curves.lines))}
"""


def _loss_table(lines: list[dict[str, Any]]) -> list[str]:
    """Validation losses, evenly thinned, each beside the last training loss before it."""
    rows, training = [], math.nan
    for line in lines:
        if line["kind"] == "train":
            training = line["loss"]
        else:
            seen = "" if math.isnan(training) else f"{training:.3f}"
            rows.append(f"| {line['step']:,} | {seen} | {line['loss']:.3f} |")
    every = max(1, math.ceil(len(rows) / _ROWS))
    return [row for place, row in enumerate(rows) if place % every == 0 or place == len(rows) - 1]
