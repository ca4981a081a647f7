"""An evaluation holds vectors, never the token states that they were pooled from: memory does not
grow with length.
"""

from __future__ import annotations

import weakref
from typing import Any

import pytest
import torch

from harness.encoder import Encoder
from harness.evaluation.scoring import evaluate
from harness.tasks.catalogue import resolve_tasks
from tests.support import short_runs


def test_token_states_of_one_batch_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    short_runs.few_pairs(monkeypatch, 200)
    encoder = Encoder.from_pretrained("embedded:mini-bert", pooling="mean", max_length=16)
    seen: list[weakref.ref[torch.Tensor]] = []
    alive: list[int] = []

    def watch(module: Any, arguments: Any, output: Any) -> None:
        alive.append(sum(ref() is not None for ref in seen))
        states = output.hidden_states or (output.last_hidden_state,)
        seen.extend(weakref.ref(state) for state in states)

    encoder.transformer.register_forward_hook(watch)
    tasks = resolve_tasks(["Embedded-STS-natural", "layers:Embedded-STS-natural"])
    result = evaluate(
        lambda texts: encoder.encode(texts, batch_size=16), tasks, pooling="mean", model=encoder
    )
    assert result.missing == {}
    layers = encoder.transformer.config.num_hidden_layers + 1
    assert len(alive) > 20  # batches
    assert max(alive) <= layers  # those of the batch before, until its result is overwritten
