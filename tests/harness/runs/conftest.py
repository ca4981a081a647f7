"""All tests here score few pairs with one thread."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def few(quick: None) -> None:
    """As `quick`."""
