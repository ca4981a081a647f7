"""Every installed method keeps the promises of the interface."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import registry
from harness.testing import assert_method


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", registry.names(registry.METHODS))
def test_conformance(name: str, word_vectors: Path) -> None:
    assert_method(name, config={"vectors": str(word_vectors)} if name in ("static", "infersent") else None)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", ["pooling", "simcse"])
def test_conformance_where_every_text_is_read_twice(name: str) -> None:
    assert_method(name, config={"pooling": "echo"})
