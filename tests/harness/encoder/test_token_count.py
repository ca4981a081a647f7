"""Tokens are counted without padding, in every view, and only where somebody counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.encoder import Encoder
from harness.encoder.token_count import count_tokens
from tests.support.encoder_models import base_model

ROWS = [[2, 5, 6, 7, 8, 3], [2, 5, 3]]


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert"])
def test_tokens_of_both_views_count_without_padding(tmp_path: Path, family: str) -> None:
    encoder = Encoder.from_pretrained(base_model(tmp_path, family), pooling="mean").train()
    with count_tokens() as lengths:
        encoder.two_views(ROWS, ROWS, differ_by=None)
    assert sum(lengths) == 2 * (6 + 3)
    encoder.two_views(ROWS, ROWS, differ_by=None)
    assert sum(lengths) == 2 * (6 + 3)
