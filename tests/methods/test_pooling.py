"""Untrained poolings: what is refused before anything is run."""

from __future__ import annotations

import pytest

from harness.errors import InputError
from methods.pooling import PoolingMethod


def test_a_layer_that_the_model_has_not_is_told_before_the_run() -> None:
    there, beyond = (
        PoolingMethod(PoolingMethod.configure({"pooling": f"layer:{k}:cls"})) for k in (4, 10)
    )
    there.check(None)
    with pytest.raises(InputError, match="has layers 0 to 4"):
        beyond.check(None)
