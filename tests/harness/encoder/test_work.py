"""What training asks of an encoder: word pieces and operations, against torch's own count of what was computed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from transformers import AlbertConfig, AlbertModel

from harness.encoder import Encoder
from harness.encoder.work import Work, passes
from tests.support.encoder_models import SHAPE, base_model

ALIKE = [[2, 5, 6, 7, 8, 3]] * 4  # of one length, so that torch counts no padding


def encoder_of(folder: Path, family: str = "bert") -> Encoder:
    name = base_model(folder, "bert" if family == "albert" else family)
    if family == "albert":  # whose layers share their weights
        AlbertModel(AlbertConfig(**SHAPE, embedding_size=16)).save_pretrained(folder)
    encoder = Encoder.from_pretrained(name, pooling="mean")
    encoder.transformer.set_attn_implementation("eager")  # whose products of matrices torch sees one by one
    return encoder.train()


def counted(encoder: Encoder, *, back: bool = True) -> tuple[Work, int]:
    """What we count of a batch in two views, and what torch counts."""
    work = Work()
    with FlopCounterMode(display=False) as counter, work.counted(), torch.set_grad_enabled(back):
        a, b = encoder.two_views(ALIKE, ALIKE)
        if back:
            (a * b.detach()).sum().backward()
    return work, counter.get_total_flops()


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "albert", "modernbert", "qwen3"])
def test_operations_are_those_that_torch_computes(tmp_path: Path, family: str) -> None:
    work, done = counted(encoder_of(tmp_path, family))
    assert work.tokens == 2 * 4 * 6
    assert work.flops == pytest.approx(done, rel=0.05)  # the gradient of what comes first is needed by nobody


def test_a_pass_without_a_gradient_costs_a_third_and_frozen_weights_as_much(tmp_path: Path) -> None:
    encoder = encoder_of(tmp_path)
    whole = counted(encoder)[0].flops
    forward, done = counted(encoder, back=False)
    assert forward.flops == pytest.approx(done)
    assert forward.flops == pytest.approx(whole / 3)
    frozen = encoder.copy().requires_grad_(False)
    work = Work()
    with work.counted():
        frozen.two_views(ALIKE, ALIKE)
    assert work.flops == forward.flops


def test_padding_and_what_is_computed_twice_are_not_counted(tmp_path: Path) -> None:
    encoder = encoder_of(tmp_path)
    one, both, parts = Work(), Work(), Work()
    with one.counted():
        for row in ([2, 5, 3], [2, 5, 6, 7, 8, 3]):
            encoder(encoder.collate([row]))
    with both.counted():
        encoder(encoder.collate([[2, 5, 3], [2, 5, 6, 7, 8, 3]]))
    encoder.micro_batch = 1
    with parts.counted():
        encoder(encoder.collate([[2, 5, 3], [2, 5, 6, 7, 8, 3]])).sum().backward()
    assert one.tokens == both.tokens == parts.tokens == 9
    assert one.flops == pytest.approx(both.flops) == pytest.approx(parts.flops)


def test_nothing_is_counted_outside_and_what_was_taken_is_gone() -> None:
    work = Work()
    passes(nn.Linear(2, 2), [[1]])
    assert work.take() == (0, 0.0)
    with work.counted():
        passes(nn.Linear(2, 2), torch.tensor([[1, 1, 0]]))
    assert work.take() == (2, 6.0 * 4 * 2)
    assert work.take() == (0, 0.0)
