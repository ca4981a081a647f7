"""Every installed method keeps the promises of the interface."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import registry
from harness.method import DEFAULT_BASE_MODEL
from harness.testing import assert_method
from tests.support.bases import narrow_bert


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", registry.names(registry.METHODS))
def test_conformance(name: str, word_vectors: Path) -> None:
    # The gradient paradigm has no objective of its own: its loss need not fall where the vectors
    # are random.
    base_model = DEFAULT_BASE_MODEL if name == "gradient_paradigm" else narrow_bert()
    config = {"vectors": str(word_vectors)} if name in ("static", "infersent") else None
    assert_method(name, config=config, base_model=base_model)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", ["pooling", "simcse"])
def test_conformance_where_every_text_is_read_twice(name: str) -> None:
    assert_method(name, config={"pooling": "echo"}, base_model=narrow_bert())
