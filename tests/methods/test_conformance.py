"""Every installed method keeps the promises of the interface."""

from __future__ import annotations

from typing import Any

import pytest

from harness import registry
from harness.testing import assert_method

# Settings that a method cannot do without.
NEEDED: dict[str, dict[str, Any]] = {}


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", registry.names(registry.METHODS))
def test_conformance(name: str) -> None:
    assert_method(name, config=NEEDED.get(name))


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", ["pooling", "simcse"])
def test_conformance_where_every_text_is_read_twice(name: str) -> None:
    assert_method(name, config={"pooling": "echo"})
